//! Encodes rows as a Parquet file, and decodes them.
//!
//! A file of one run has one row group. A column is required, or optional if a value may be
//! missing. The file's key-value metadata has the meaning of each column: `senesce.unit.COLUMN`,
//! `senesce.description.COLUMN`.

use std::{io::Write, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, IntType, LogicalType, Repetition, Type as Physical, ZstdLevel},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::{SchemaDescriptor, Type},
};

use crate::Error;
use crate::schema::{Column, ColumnType, Table, TableRow, Value, columns_of, row_of, values_of};
use crate::{
    parquet_pages::{self, call_library},
    results::FORMAT,
};

/// The number of rows of a group in the file of a merged run.
const GROUP_ROWS: usize = 16_384;

/// Encodes the rows as a Parquet file of one group; the same rows give the same bytes.
pub(crate) fn encode<R: TableRow>(rows: &[R]) -> Result<Vec<u8>, Error> {
    encode_rows(rows, &columns_of::<R>()).map_err(not_encoded::<R>)
}

/// Encodes the rows without compression, for a file that is compressed as a whole. A reader can
/// then bound the memory for the file by its size.
pub(crate) fn encode_plain<R: TableRow>(rows: &[R]) -> Result<Vec<u8>, Error> {
    let columns = columns_of::<R>();
    let write = || {
        let mut writer = open_file(Vec::new(), R::TABLE, &columns, Compression::UNCOMPRESSED)?;
        write_group(&mut writer, rows, &columns)?;
        writer.into_inner()
    };
    write().map_err(not_encoded::<R>)
}

/// `columns` are those of the row type, or the first of them.
fn encode_rows<R: TableRow>(rows: &[R], columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let mut writer = open_file(Vec::new(), R::TABLE, columns, usual_compression()?)?;
    write_group(&mut writer, rows, columns)?;
    writer.into_inner()
}

/// Writes a file row by row. It holds the rows of one group in memory. The same rows give the same
/// bytes.
pub(crate) struct TableWriter<R, W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: Vec<R>,
}

impl<R: TableRow, W: Write + Send> TableWriter<R, W> {
    pub(crate) fn create(to: W) -> Result<Self, Error> {
        let columns = columns_of::<R>();
        let open = || open_file(to, R::TABLE, &columns, usual_compression()?);
        let file = open().map_err(not_encoded::<R>)?;
        Ok(Self { file, columns, rows: Vec::new() })
    }

    pub(crate) fn push(&mut self, row: R) -> Result<(), Error> {
        self.rows.push(row);
        if self.rows.len() < GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    fn write_group(&mut self) -> Result<(), Error> {
        write_group(&mut self.file, &self.rows, &self.columns).map_err(not_encoded::<R>)?;
        self.rows.clear();
        Ok(())
    }

    /// Writes the last group and the end of the file.
    pub(crate) fn finish(mut self) -> Result<W, Error> {
        if !self.rows.is_empty() || self.file.flushed_row_groups().is_empty() {
            self.write_group()?;
        }
        self.file.into_inner().map_err(not_encoded::<R>)
    }
}

fn not_encoded<R: TableRow>(source: ParquetError) -> Error {
    Error::Encode { table: R::TABLE.name(), source }
}

fn usual_compression() -> Result<Compression, ParquetError> {
    Ok(Compression::ZSTD(ZstdLevel::try_new(3)?))
}

fn open_file<W: Write + Send>(
    to: W,
    table: Table,
    columns: &[Column],
    compression: Compression,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.name()).with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_created_by("senesce".to_owned())
        .set_key_value_metadata(Some(metadata(table.name(), columns)))
        .build();
    SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))
}

fn write_group<R: TableRow, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    rows: &[R],
    columns: &[Column],
) -> Result<(), ParquetError> {
    let mut values: Vec<Vec<Value>> = columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in values.iter_mut().zip(values_of(row)) {
            column.push(value);
        }
    }
    let mut group = file.next_row_group()?;
    for (column, values) in columns.iter().zip(values) {
        let mut writer = group.next_column()?.expect("the schema has these columns");
        write_column(&mut writer, column.column_type, values)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// Decodes the rows of a Parquet file. Columns are found by name; unknown ones are skipped.
pub(crate) fn decode<R: TableRow>(path: &Path, bytes: Vec<u8>) -> Result<Vec<R>, Error> {
    decode_rows(path, &open_table(path, bytes)?, &mut Budget::unlimited())
}

fn open_table(path: &Path, bytes: Vec<u8>) -> Result<SerializedFileReader<bytes::Bytes>, Error> {
    call_library(|| SerializedFileReader::new(bytes::Bytes::from(bytes))).map_err(|error| Error::damaged(path, error))
}

/// Decodes the rows of a file of [`encode_plain`] that may have been made to harm.
///
/// Errors: as [`decode`]; it has more than `most_rows` rows; it is compressed; its texts exceed
/// `text`.
pub(crate) fn decode_plain<R: TableRow>(
    path: &Path,
    bytes: Vec<u8>,
    most_rows: u64,
    text: &mut Budget,
) -> Result<Vec<R>, Error> {
    let reader = open_table(path, bytes)?;
    let mut rows: u64 = 0;
    for group in reader.metadata().row_groups() {
        rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        if group.columns().iter().any(|column| column.compression() != Compression::UNCOMPRESSED) {
            return Err(Error::damaged(path, "a column is compressed"));
        }
    }
    for group in 0..reader.num_row_groups() {
        let group = call_library(|| reader.get_row_group(group)).map_err(|error| Error::damaged(path, error))?;
        parquet_pages::check_pages(&*group).map_err(|error| Error::damaged(path, error))?;
    }
    if rows > most_rows {
        return Err(Error::damaged(path, format_args!("it has {rows} rows, and {most_rows} are allowed")));
    }
    decode_rows(path, &reader, text)
}

/// The bytes of text that a decoder may still produce. A few bytes of a file can stand for many
/// long texts.
pub(crate) struct Budget {
    left: u64,
    /// The number of values that are decoded at once.
    batch: usize,
}

impl Budget {
    fn unlimited() -> Self {
        Self { left: u64::MAX, batch: usize::MAX }
    }

    /// A budget of `bytes`.
    pub(crate) fn of(bytes: u64) -> Self {
        Self { left: bytes, batch: 1024 }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ParquetError> {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.ok_or_else(|| ParquetError::General("its texts are longer than allowed".to_owned()))?;
        Ok(())
    }
}

fn decode_rows<R: TableRow>(
    path: &Path,
    reader: &SerializedFileReader<bytes::Bytes>,
    text: &mut Budget,
) -> Result<Vec<R>, Error> {
    let damaged = |error: ParquetError| Error::damaged(path, error);
    let columns = columns_of::<R>();
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut places = Vec::with_capacity(columns.len());
    for column in &columns {
        places.push(find(schema, column).map_err(|detail| Error::damaged(path, detail))?);
    }
    let mut rows = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = call_library(|| reader.get_row_group(group)).map_err(damaged)?;
        let mut read = Vec::with_capacity(columns.len());
        for (column, place) in columns.iter().zip(&places) {
            read.push(read_column(&*group, column, *place, text).map_err(damaged)?.into_iter());
        }
        let count = read.first().map_or(0, ExactSizeIterator::len);
        for row in 0..count {
            let values = read.iter_mut().map(|column| column.next()).collect::<Option<Vec<_>>>();
            let values = values.ok_or_else(|| Error::damaged(path, "columns of different lengths"))?;
            let parsed = row_of(values);
            rows.push(parsed.ok_or_else(|| Error::damaged(path, format_args!("row {row} has an unknown role")))?);
        }
    }
    Ok(rows)
}

/// The physical and logical type of a column in the file.
fn types(column_type: ColumnType) -> (Physical, Option<LogicalType>) {
    match column_type {
        ColumnType::Text | ColumnType::OptionalText => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::UInt64 | ColumnType::OptionalUInt64 => {
            (Physical::INT64, Some(LogicalType::Integer(IntType { bit_width: 64, is_signed: false })))
        }
        ColumnType::Float64 => (Physical::DOUBLE, None),
        ColumnType::Boolean => (Physical::BOOLEAN, None),
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = types(column.column_type);
    let repetition = if is_nullable(column) { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(column.name, physical).with_repetition(repetition);
    builder.with_logical_type(logical).build().map(Arc::new)
}

fn is_nullable(column: &Column) -> bool {
    matches!(column.column_type, ColumnType::Float64 | ColumnType::OptionalUInt64 | ColumnType::OptionalText)
}

fn metadata(table: &str, columns: &[Column]) -> Vec<KeyValue> {
    let pair = |key: String, value: &str| KeyValue { key, value: Some(value.to_owned()) };
    let mut metadata = vec![pair("senesce.format".to_owned(), FORMAT), pair("senesce.table".to_owned(), table)];
    for column in columns {
        if !column.unit.is_empty() {
            metadata.push(pair(format!("senesce.unit.{}", column.name), column.unit));
        }
        metadata.push(pair(format!("senesce.description.{}", column.name), column.description));
    }
    metadata
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    column_type: ColumnType,
    values: Vec<Value>,
) -> Result<(), ParquetError> {
    let mut values = crate::schema::Values(values.into_iter());
    let count = values.0.len();
    let typed = "a row gives values of its columns' types";
    match column_type {
        ColumnType::Text => {
            let values = (0..count).map(|_| Some(ByteArray::from(values.text().expect(typed).into_bytes())));
            write_typed::<ByteArrayType>(writer, values, false)
        }
        ColumnType::OptionalText => {
            let text = |text: String| ByteArray::from(text.into_bytes());
            let values = (0..count).map(|_| values.optional_text().expect(typed).map(text));
            write_typed::<ByteArrayType>(writer, values, true)
        }
        ColumnType::UInt64 => {
            let values = (0..count).map(|_| Some(values.uint().expect(typed).cast_signed()));
            write_typed::<Int64Type>(writer, values, false)
        }
        ColumnType::OptionalUInt64 => {
            let values = (0..count).map(|_| values.optional_uint().expect(typed).map(u64::cast_signed));
            write_typed::<Int64Type>(writer, values, true)
        }
        // Null, not NaN: other programs skip nulls in means and medians.
        ColumnType::Float64 => {
            let values = (0..count).map(|_| Some(values.float().expect(typed)).filter(|value| !value.is_nan()));
            write_typed::<DoubleType>(writer, values, true)
        }
        ColumnType::Boolean => {
            let values = (0..count).map(|_| Some(values.boolean().expect(typed)));
            write_typed::<BoolType>(writer, values, false)
        }
    }
}

fn write_typed<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
    is_nullable: bool,
) -> Result<(), ParquetError> {
    let (mut there, mut present) = (Vec::new(), Vec::new());
    for value in values {
        present.push(i16::from(value.is_some()));
        there.extend(value);
    }
    writer.typed::<T>().write_batch(&there, is_nullable.then_some(&present[..]), None)?;
    Ok(())
}

/// The position of a column in the file. None if the file is older than the column; its values are
/// then null.
fn find(schema: &SchemaDescriptor, column: &Column) -> Result<Option<usize>, String> {
    let Some(place) = schema.columns().iter().position(|there| there.name() == column.name) else {
        return if is_nullable(column) { Ok(None) } else { Err(format!("no column `{}`", column.name)) };
    };
    let there = schema.column(place);
    let found = (there.physical_type(), there.logical_type_ref().cloned());
    if found != types(column.column_type) || there.max_rep_level() > 0 || there.max_def_level() > 1 {
        return Err(format!("column `{}` is of type {:?}", column.name, there.self_type()));
    }
    Ok(Some(place))
}

fn read_column(
    group: &(dyn RowGroupReader + '_),
    column: &Column,
    place: Option<usize>,
    text: &mut Budget,
) -> Result<Vec<Value>, ParquetError> {
    let count = usize::try_from(group.metadata().num_rows()).map_err(|_| broken(column))?;
    let missing = || broken(column);
    let Some(place) = place else {
        let null = match column.column_type {
            ColumnType::Float64 => Value::Float64(f64::NAN),
            ColumnType::OptionalText => Value::OptionalText(None),
            _ => Value::OptionalUInt64(None),
        };
        return Ok(vec![null; count]);
    };
    let reader = call_library(|| group.get_column_reader(place))?;
    let values = match (reader, column.column_type) {
        (ColumnReader::ByteArrayColumnReader(reader), ColumnType::Text) => {
            read_texts(reader, count, text)?.into_iter().map(|value| value.map(Value::Text)).collect()
        }
        (ColumnReader::ByteArrayColumnReader(reader), ColumnType::OptionalText) => {
            Some(read_texts(reader, count, text)?.into_iter().map(Value::OptionalText).collect())
        }
        (ColumnReader::Int64ColumnReader(reader), ColumnType::UInt64) => {
            read_typed(reader, count)?.into_iter().map(|value| Some(Value::UInt64(value?.cast_unsigned()))).collect()
        }
        (ColumnReader::Int64ColumnReader(reader), ColumnType::OptionalUInt64) => read_typed(reader, count)?
            .into_iter()
            .map(|value| Some(Value::OptionalUInt64(value.map(i64::cast_unsigned))))
            .collect(),
        (ColumnReader::DoubleColumnReader(reader), ColumnType::Float64) => read_typed(reader, count)?
            .into_iter()
            .map(|value| Some(Value::Float64(value.unwrap_or(f64::NAN))))
            .collect(),
        (ColumnReader::BoolColumnReader(reader), ColumnType::Boolean) => {
            read_typed(reader, count)?.into_iter().map(|value| value.map(Value::Boolean)).collect()
        }
        _ => None,
    };
    let values: Vec<Value> = values.ok_or_else(missing)?;
    if values.len() == count { Ok(values) } else { Err(missing()) }
}

fn broken(column: &Column) -> ParquetError {
    ParquetError::General(format!("column `{}` does not hold its values", column.name))
}

/// The texts of a column, null as `None`.
fn read_texts(
    mut reader: ColumnReaderImpl<ByteArrayType>,
    count: usize,
    budget: &mut Budget,
) -> Result<Vec<Option<String>>, ParquetError> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let batch = read_batch(&mut reader, (count - texts.len()).min(budget.batch))?;
        if batch.is_empty() {
            break;
        }
        for value in batch {
            let text = match value {
                Some(value) => {
                    budget.spend(value.len())?;
                    let not_utf8 = |_| ParquetError::General("a text is not UTF-8".to_owned());
                    Some(String::from_utf8(value.data().to_vec()).map_err(not_utf8)?)
                }
                None => None,
            };
            texts.push(text);
        }
    }
    Ok(texts)
}

/// The values of a column, null as `None`.
fn read_typed<T: DataType>(mut reader: ColumnReaderImpl<T>, count: usize) -> Result<Vec<Option<T::T>>, ParquetError> {
    read_batch(&mut reader, count)
}

/// The next values of a column, null as `None`: `count`, or all that are left.
fn read_batch<T: DataType>(reader: &mut ColumnReaderImpl<T>, count: usize) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut there, mut present) = (Vec::new(), Vec::new());
    let mut records = 0;
    while records < count {
        let (read, _, _) = call_library(|| reader.read_records(count - records, Some(&mut present), None, &mut there))?;
        if read == 0 {
            break;
        }
        records += read;
    }
    if present.is_empty() {
        return Ok(there.into_iter().map(Some).collect());
    }
    let mut there = there.into_iter();
    Ok(present.into_iter().map(|level| if level > 0 { there.next() } else { None }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellKey, FreeSpaceRow, LayoutRow, MapRow, Role};

    fn key() -> CellKey {
        CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 3 }
    }

    #[test]
    fn a_missing_nullable_column_reads_as_null() {
        let row = LayoutRow {
            key: key(),
            space: "device".into(),
            files: 2,
            fragmented_files: 1,
            extents: 3,
            blocks: 4,
            extents_per_file: 1.5,
            layout_score: 0.5,
            adjacent_files_share: 0.25,
            path_adjacent_files_share: 0.125,
        };
        let columns = columns_of::<LayoutRow>();
        let older = encode_rows(std::slice::from_ref(&row), &columns[..columns.len() - 1]).unwrap();
        let read: Vec<LayoutRow> = decode(Path::new("layout.parquet"), older).unwrap();
        assert!(read[0].path_adjacent_files_share.is_nan());
        assert_eq!(LayoutRow { path_adjacent_files_share: 0.125, ..read[0].clone() }, row);
    }

    #[test]
    fn map_paths_are_optional() {
        let row = |cell: u64, path: Option<&str>| MapRow {
            key: key(),
            side: 64,
            cell_bytes: 4096,
            cell,
            used_bytes: 1,
            free_bytes: 2,
            extents: 3,
            place: 0.5,
            path: path.map(str::to_owned),
        };
        let rows = [row(0, Some("a/ß")), row(1, None), row(2, Some("")), row(3, Some("a/ß"))];
        let whole: Vec<MapRow> = decode(Path::new("maps.parquet"), encode(&rows).unwrap()).unwrap();
        assert_eq!(whole, rows);
        let columns = columns_of::<MapRow>();
        let older = encode_rows(&rows, &columns[..columns.len() - 1]).unwrap();
        let read: Vec<MapRow> = decode(Path::new("maps.parquet"), older).unwrap();
        assert!(read.iter().zip(&rows).all(|(read, row)| *read == MapRow { path: None, ..row.clone() }));
        // Repeated paths of cells add almost nothing to the size.
        let many: Vec<MapRow> = (0..4096).map(|cell| row(cell, Some("copy-1/a/long/path/of/a/file"))).collect();
        let without: Vec<MapRow> = many.iter().map(|row| MapRow { path: None, ..row.clone() }).collect();
        let (with, without) = (encode(&many).unwrap().len(), encode(&without).unwrap().len());
        assert!(with < without + 200, "{with} and {without} bytes");
    }

    #[test]
    fn a_missing_required_column_is_damage() {
        let row = FreeSpaceRow { key: key(), bucket_bytes: 4096, extents: 1, bytes: 4096 };
        let columns = columns_of::<FreeSpaceRow>();
        let cut = encode_rows(&[row], &columns[..columns.len() - 1]).unwrap();
        let refused = decode::<FreeSpaceRow>(Path::new("free_space.parquet"), cut).unwrap_err().to_string();
        assert!(refused.contains("free_space.parquet") && refused.contains("no column `bytes`"), "{refused}");
    }
}
