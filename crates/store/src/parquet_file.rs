//! Rows as the bytes of a Parquet file, and back.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array, new_null_array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::Error;
use crate::results::FORMAT;
use crate::schema::{Column, ColumnType, TableRow, Value, columns_of, row_of, values_of};

/// The bytes of a Parquet file with these rows; the same rows give the same bytes.
pub(crate) fn encode<R: TableRow>(rows: &[R]) -> Result<Vec<u8>, Error> {
    encode_rows(rows, &columns_of::<R>()).map_err(|source| Error::Encode { table: R::TABLE.name(), source })
}

/// `columns` are the row's, or the first of them.
fn encode_rows<R: TableRow>(rows: &[R], columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let mut values: Vec<Vec<Value>> = columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, value) in values.iter_mut().zip(values_of(row)) {
            column.push(value);
        }
    }
    let metadata = [("senesce.format", FORMAT), ("senesce.table", R::TABLE.name())];
    let metadata: HashMap<_, _> = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let schema = Arc::new(Schema::new_with_metadata(columns.iter().map(field).collect::<Vec<_>>(), metadata));
    let arrays = columns.iter().zip(values).map(|(column, values)| array(column.column_type, values)).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by("senesce".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

/// The rows of a Parquet file. Columns are found by name; unknown ones are passed over.
pub(crate) fn decode<R: TableRow>(path: &Path, bytes: Vec<u8>) -> Result<Vec<R>, Error> {
    let damaged = |error: ParquetError| Error::damaged(path, error);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).map_err(damaged)?;
    let reader = reader.build().map_err(damaged)?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| Error::damaged(path, error))?;
        let columns = columns_of::<R>();
        let mut arrays = Vec::with_capacity(columns.len());
        for column in &columns {
            let array = match batch.column_by_name(column.name) {
                Some(array) => array.clone(),
                // Written before there was such a column.
                None if is_nullable(column) => new_null_array(&data_type(column.column_type), batch.num_rows()),
                None => return Err(Error::damaged(path, format_args!("no column `{}`", column.name))),
            };
            if array.data_type() != &data_type(column.column_type) {
                let detail = format!("column `{}` is of type {}", column.name, array.data_type());
                return Err(Error::damaged(path, detail));
            }
            arrays.push(array);
        }
        for row in 0..batch.num_rows() {
            let values = columns.iter().zip(&arrays).map(|(column, array)| value(column, array, row)).collect();
            let parsed = row_of(values);
            rows.push(parsed.ok_or_else(|| Error::damaged(path, format_args!("row {row} has an unknown role")))?);
        }
    }
    Ok(rows)
}

fn data_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Text => DataType::Utf8,
        ColumnType::UInt64 | ColumnType::OptionalUInt64 => DataType::UInt64,
        ColumnType::Float64 => DataType::Float64,
        ColumnType::Boolean => DataType::Boolean,
    }
}

fn field(column: &Column) -> Field {
    let mut metadata = HashMap::from([("description".to_owned(), column.description.to_owned())]);
    if !column.unit.is_empty() {
        metadata.insert("unit".to_owned(), column.unit.to_owned());
    }
    Field::new(column.name, data_type(column.column_type), is_nullable(column)).with_metadata(metadata)
}

fn is_nullable(column: &Column) -> bool {
    matches!(column.column_type, ColumnType::Float64 | ColumnType::OptionalUInt64)
}

fn array(column_type: ColumnType, values: Vec<Value>) -> ArrayRef {
    let mut values = crate::schema::Values(values.into_iter());
    let count = values.0.len();
    let typed = "a row gives values of its columns' types";
    match column_type {
        ColumnType::Text => Arc::new(StringArray::from_iter_values((0..count).map(|_| values.text().expect(typed)))),
        ColumnType::UInt64 => Arc::new(UInt64Array::from_iter_values((0..count).map(|_| values.uint().expect(typed)))),
        ColumnType::OptionalUInt64 => {
            Arc::new(UInt64Array::from_iter((0..count).map(|_| values.optional_uint().expect(typed))))
        }
        // Null, not NaN: other programs' means and medians pass over nulls.
        ColumnType::Float64 => Arc::new(Float64Array::from_iter(
            (0..count).map(|_| Some(values.float().expect(typed)).filter(|value| !value.is_nan())),
        )),
        ColumnType::Boolean => {
            Arc::new(BooleanArray::from((0..count).map(|_| values.boolean().expect(typed)).collect::<Vec<_>>()))
        }
    }
}

fn value(column: &Column, array: &ArrayRef, row: usize) -> Value {
    match column.column_type {
        ColumnType::Text => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        ColumnType::UInt64 => Value::UInt64(array.as_primitive::<UInt64Type>().value(row)),
        ColumnType::OptionalUInt64 if array.is_null(row) => Value::OptionalUInt64(None),
        ColumnType::OptionalUInt64 => Value::OptionalUInt64(Some(array.as_primitive::<UInt64Type>().value(row))),
        ColumnType::Float64 if array.is_null(row) => Value::Float64(f64::NAN),
        ColumnType::Float64 => Value::Float64(array.as_primitive::<Float64Type>().value(row)),
        ColumnType::Boolean => Value::Boolean(array.as_boolean().value(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellKey, FreeSpaceRow, LayoutRow, Role};

    fn key() -> CellKey {
        CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 3 }
    }

    #[test]
    fn a_file_from_before_a_column_that_may_be_null_is_read() {
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
        let older = encode_rows(&[row.clone()], &columns[..columns.len() - 1]).unwrap();
        let read: Vec<LayoutRow> = decode(Path::new("layout.parquet"), older).unwrap();
        assert!(read[0].path_adjacent_files_share.is_nan());
        assert_eq!(LayoutRow { path_adjacent_files_share: 0.125, ..read[0].clone() }, row);
    }

    #[test]
    fn a_file_without_a_column_that_is_never_null_is_damaged() {
        let row = FreeSpaceRow { key: key(), bucket_bytes: 4096, extents: 1, bytes: 4096 };
        let columns = columns_of::<FreeSpaceRow>();
        let cut = encode_rows(&[row], &columns[..columns.len() - 1]).unwrap();
        let refused = decode::<FreeSpaceRow>(Path::new("free_space.parquet"), cut).unwrap_err().to_string();
        assert!(refused.contains("free_space.parquet") && refused.contains("no column `bytes`"), "{refused}");
    }
}
