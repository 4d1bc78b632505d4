//! Results as the contents of files, for bundles.

use std::path::Path;

use crate::{
    Error, RUN_INFO_FILE, Results, RunInfo, Table,
    schema::{Budget, TableRow, decode_plain, encode_plain},
};

/// A result table as a Parquet file without compression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The table.
    pub table: Table,
    /// The number of its rows.
    pub rows: u64,
    /// The contents of the file.
    pub bytes: Vec<u8>,
}

/// The largest tables that are read.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// The rows of a table.
    pub rows: u64,
    /// The bytes of all texts.
    pub text_bytes: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { rows: 1 << 22, text_bytes: 1 << 30 }
    }
}

/// A file of one table.
fn file_of<R: TableRow>(rows: &[R]) -> Result<TableFile, Error> {
    Ok(TableFile { table: R::TABLE, rows: rows.len() as u64, bytes: encode_plain(rows)? })
}

/// Reads the tables of one run.
struct TableReader<F> {
    find: F,
    limits: FileLimits,
    text: Budget,
}

impl<F: FnMut(Table) -> Option<Vec<u8>>> TableReader<F> {
    fn read<R: TableRow>(&mut self) -> Result<Vec<R>, Error> {
        let name = R::TABLE.file_name();
        let path = Path::new(&name);
        let bytes = (self.find)(R::TABLE).ok_or_else(|| Error::damaged(path, "the table is missing"))?;
        decode_plain(path, bytes, self.limits.rows, &mut self.text)
    }
}

impl Results {
    /// The tables as files, in the order of [`Table::ALL`]. The same results give the same bytes.
    pub fn to_files(&self) -> Result<Vec<TableFile>, Error> {
        Ok(vec![
            file_of(&self.cells)?,
            file_of(&self.grep)?,
            file_of(&self.load)?,
            file_of(&self.layout)?,
            file_of(&self.modelled)?,
            file_of(&self.trace)?,
            file_of(&self.trace_buckets)?,
            file_of(&self.maps)?,
            file_of(&self.free_space)?,
            file_of(&self.aging)?,
            file_of(&self.latency)?,
            file_of(&self.steps)?,
            file_of(&self.cures)?,
            file_of(&self.circumstances)?,
        ])
    }

    /// The number of rows of a table.
    pub fn count_rows(&self, table: Table) -> usize {
        match table {
            Table::Cells => self.cells.len(),
            Table::Grep => self.grep.len(),
            Table::Load => self.load.len(),
            Table::Layout => self.layout.len(),
            Table::Modelled => self.modelled.len(),
            Table::Trace => self.trace.len(),
            Table::TraceBuckets => self.trace_buckets.len(),
            Table::Maps => self.maps.len(),
            Table::FreeSpace => self.free_space.len(),
            Table::Aging => self.aging.len(),
            Table::Latency => self.latency.len(),
            Table::Steps => self.steps.len(),
            Table::Cures => self.cures.len(),
            Table::Circumstances => self.circumstances.len(),
        }
    }

    /// Reads the files of [`Results::to_files`], which may have been made to harm. `run` is the
    /// content of [`RUN_INFO_FILE`]. `find` returns the file of a table.
    ///
    /// Errors: a table is missing or damaged, or exceeds a limit.
    pub fn of_files(run: &[u8], find: impl FnMut(Table) -> Option<Vec<u8>>, limits: FileLimits) -> Result<Self, Error> {
        let run: RunInfo =
            serde_json::from_slice(run).map_err(|error| Error::damaged(Path::new(RUN_INFO_FILE), error))?;
        if run.format != crate::FORMAT {
            let (path, found) = (RUN_INFO_FILE.into(), run.format);
            return Err(Error::NewerFormat { path, found, known: crate::FORMAT.to_owned() });
        }
        let mut reader = TableReader { find, limits, text: Budget::of(limits.text_bytes) };
        Ok(Self {
            run,
            cells: reader.read()?,
            grep: reader.read()?,
            load: reader.read()?,
            layout: reader.read()?,
            modelled: reader.read()?,
            trace: reader.read()?,
            trace_buckets: reader.read()?,
            maps: reader.read()?,
            free_space: reader.read()?,
            aging: reader.read()?,
            latency: reader.read()?,
            steps: reader.read()?,
            cures: reader.read()?,
            circumstances: reader.read()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellKey, CellRow, CircumstanceRow, FORMAT, MapRow, Role};

    fn key() -> CellKey {
        CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 3 }
    }

    fn sample() -> Results {
        let map = |cell, path: &str| MapRow {
            key: key(),
            side: 64,
            cell_bytes: 4096,
            cell,
            used_bytes: 1,
            free_bytes: 2,
            extents: 3,
            place: 0.1 + 0.2,
            path: Some(path.to_owned()),
        };
        Results {
            run: RunInfo { format: FORMAT.to_owned(), run_name: "r".into(), ..RunInfo::default() },
            cells: vec![CellRow::without_figures(key(), "why")],
            maps: (0..100).map(|cell| map(cell, &"x".repeat(1000))).collect(),
            circumstances: vec![CircumstanceRow { arm: String::new(), key: "k".into(), value: "v".into() }],
            ..Results::default()
        }
    }

    fn read(files: &[TableFile], limits: FileLimits) -> Result<Results, Error> {
        let run = serde_json::to_vec(&sample().run).unwrap();
        let find = |table| files.iter().find(|file| file.table == table).map(|file| file.bytes.clone());
        Results::of_files(&run, find, limits)
    }

    #[test]
    fn written_tables_read_back_equal() {
        let files = sample().to_files().unwrap();
        assert_eq!(files.iter().map(|file| file.table).collect::<Vec<_>>(), Table::ALL);
        assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 102);
        assert_eq!(read(&files, FileLimits::default()).unwrap(), sample());
        assert_eq!(sample().to_files().unwrap(), files);
    }

    #[test]
    fn tables_with_a_changed_byte_are_read_or_refused() {
        let good = encode_plain(&sample().cells).unwrap();
        let is_refused = |(at, value): (usize, u8)| {
            let mut bytes = good.clone();
            bytes[at] = value;
            decode_plain::<CellRow>(Path::new("cells"), bytes, 10, &mut Budget::of(1 << 20)).is_err()
        };
        let changes = (0..good.len()).step_by(5).flat_map(|at| [0x15, 0xff].map(|value| (at, value)));
        let (refused, read): (Vec<_>, Vec<_>) = changes.partition(|change| is_refused(*change));
        assert!(refused.len() * 8 > read.len(), "{} are refused, {} are read", refused.len(), read.len());
    }

    /// A file that the fuzz target `tables` found: its metadata places a column before the file.
    #[test]
    fn panic_of_the_library_is_an_error() {
        let bytes = include_bytes!("../tests/data/negative-start.parquet").to_vec();
        let read = decode_plain::<crate::LoadRow>(Path::new("load"), bytes, 10, &mut Budget::of(1 << 20));
        let refused = read.unwrap_err().to_string();
        assert!(refused.contains("the Parquet library cannot decode it: "), "{refused}");
    }

    #[test]
    fn tables_beyond_a_limit_are_refused() {
        let mut files = sample().to_files().unwrap();
        let refused = |files: &[TableFile], limits| read(files, limits).unwrap_err().to_string();
        let few = refused(&files, FileLimits { rows: 99, ..FileLimits::default() });
        assert!(few.contains("it has 100 rows, and 99 are allowed"), "{few}");
        // A dictionary has the long text once.
        assert!(files.iter().all(|file| file.bytes.len() < 10_000));
        let short = refused(&files, FileLimits { text_bytes: 50_000, ..FileLimits::default() });
        assert!(short.contains("its texts are longer than allowed"), "{short}");
        let maps = files.iter_mut().find(|file| file.table == Table::Maps).unwrap();
        maps.bytes = crate::schema::encode(&sample().maps).unwrap();
        assert!(refused(&files, FileLimits::default()).contains("a column is compressed"));
        files.retain(|file| file.table != Table::Steps);
        let maps = files.iter_mut().find(|file| file.table == Table::Maps).unwrap();
        maps.bytes = encode_plain(&sample().maps).unwrap();
        assert!(refused(&files, FileLimits::default()).contains("the table is missing"));
    }
}
