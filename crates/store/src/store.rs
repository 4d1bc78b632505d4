//! The store of one run's results.
//!
//! Files of a results directory:
//!
//! ```text
//! run.json                           the description of the run; written last on creation
//! circumstances.parquet              replaced as a whole
//! events.ndjson                      appended during the run
//! parts/<table>/<cell>.g<n>.parquet  one file per cell and table; n counts appends of the cell
//! <table>.parquet                    all cells, after compaction
//! *.new                              unfinished; never read, removed on opening
//! ```
//!
//! A cell counts if its part in `parts/cells` exists. That part is written after all others of the
//! same generation are durable. So a crash never shows a partial cell, and a second append of a
//! cell shows the old or the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::disk::{Disk, RealDisk};
use crate::part::{PartName, part_key};
use crate::results::{CellResults, EVENTS_FILE, EVENTS_SCHEMA, FORMAT, RUN_INFO_FILE, Results, RunInfo};
use crate::schema::{Table, TableRow, decode, encode};
use crate::{CellCosts, CellKey, CellRow, CircumstanceRow, Error};

const UNFINISHED: &str = ".new";

/// The results of one run, open for reading and appending. One writer at a time.
pub struct ResultStore {
    disk: Box<dyn Disk>,
    dir: PathBuf,
    run: RunInfo,
    /// The counting generation of each cell that has parts.
    parts: BTreeMap<PartName, u64>,
    /// The highest generation tried per cell: a generation that failed half-way is never written
    /// again.
    tried: BTreeMap<PartName, u64>,
    /// Cells in the compacted tables.
    compacted: BTreeSet<PartName>,
}

impl ResultStore {
    /// Starts results in `dir` (made if missing), the directory for `run.json` and the tables.
    ///
    /// Errors: [`Error::AlreadyExists`] if it has results.
    pub fn create(dir: &Path, run_name: &str) -> Result<Self, Error> {
        Self::create_on(Box::new(RealDisk), dir, run_name)
    }

    /// Opens the results in `dir` and removes the leftovers of an interrupted append.
    ///
    /// Errors: [`Error::NotResults`], [`Error::NewerFormat`], [`Error::Damaged`].
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_on(Box::new(RealDisk), dir)
    }

    /// Opens the results in `dir` for reading. It changes nothing, so a run may append at the same
    /// time.
    pub fn open_read_only(dir: &Path) -> Result<Self, Error> {
        let disk: Box<dyn Disk> = Box::new(RealDisk);
        let run = read_run_info(&*disk, dir)?;
        let mut store = Self::without_cells(disk, dir, run);
        store.find_cells()?;
        Ok(store)
    }

    /// [`ResultStore::create`] on a given disk.
    pub fn create_on(disk: Box<dyn Disk>, dir: &Path, run_name: &str) -> Result<Self, Error> {
        let info_path = dir.join(RUN_INFO_FILE);
        match disk.read(&info_path) {
            Ok(_) => return Err(Error::AlreadyExists { path: dir.to_path_buf() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("read", &info_path, error)),
        }
        create_part_dirs(&*disk, dir)?;
        let run = RunInfo { run_name: run_name.to_owned(), ..RunInfo::default() };
        let mut store = Self::without_cells(disk, dir, run.clone());
        store.put_run_info(&run)?;
        Ok(store)
    }

    /// [`ResultStore::open`] on a given disk.
    pub fn open_on(disk: Box<dyn Disk>, dir: &Path) -> Result<Self, Error> {
        let run = read_run_info(&*disk, dir)?;
        let mut store = Self::without_cells(disk, dir, run);
        store.find_cells()?;
        // Results of an older version have no directory for a table that is newer.
        create_part_dirs(&*store.disk, dir)?;
        store.remove_leftovers()?;
        store.mend_events()?;
        Ok(store)
    }

    /// The directory passed to `create` or `open`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The description of the run.
    pub fn run_info(&self) -> &RunInfo {
        &self.run
    }

    /// Replaces the description of the run, durably. Its `format` is always set to [`FORMAT`].
    pub fn put_run_info(&mut self, run: &RunInfo) -> Result<(), Error> {
        let run = RunInfo { format: FORMAT.to_owned(), ..run.clone() };
        let mut json = serde_json::to_vec_pretty(&run)
            .map_err(|source| Error::Json { what: "the run's description".to_owned(), source })?;
        json.push(b'\n');
        self.replace(&self.dir.join(RUN_INFO_FILE), &json)?;
        self.run = run;
        Ok(())
    }

    /// Replaces table `circumstances`, durably. `rows` must be all rows of the run.
    pub fn put_circumstances(&mut self, rows: &[CircumstanceRow]) -> Result<(), Error> {
        self.replace(&self.table_path(Table::Circumstances), &encode(rows)?)
    }

    /// Appends or replaces a cell as one unit; durable on return.
    ///
    /// Errors: [`Error::WrongCell`] if a row names another cell; I/O errors. After an I/O error the
    /// cell is complete, but may be the old or the new one.
    pub fn append_cell(&mut self, results: &CellResults) -> Result<(), Error> {
        let key = &results.cell.key;
        check_keys(key, &results.grep)?;
        check_keys(key, &results.load)?;
        check_keys(key, results.layout.as_slice())?;
        check_keys(key, &results.modelled)?;
        check_keys(key, &results.trace)?;
        check_keys(key, &results.trace_buckets)?;
        check_keys(key, &results.map)?;
        check_keys(key, &results.free_space)?;
        check_keys(key, results.aging.as_slice())?;
        check_keys(key, &results.latency)?;
        check_keys(key, &results.steps)?;
        check_keys(key, &results.cures)?;
        let part = PartName::of(key);
        let before = self.parts.get(&part).copied();
        let tried = self.tried.entry(part.clone()).or_default();
        *tried = before.unwrap_or(0).max(*tried) + 1;
        let generation = *tried;
        self.put_part(&part, generation, &results.grep)?;
        self.put_part(&part, generation, &results.load)?;
        self.put_part(&part, generation, results.layout.as_slice())?;
        self.put_part(&part, generation, &results.modelled)?;
        self.put_part(&part, generation, &results.trace)?;
        self.put_part(&part, generation, &results.trace_buckets)?;
        self.put_part(&part, generation, &results.map)?;
        self.put_part(&part, generation, &results.free_space)?;
        self.put_part(&part, generation, results.aging.as_slice())?;
        self.put_part(&part, generation, &results.latency)?;
        self.put_part(&part, generation, &results.steps)?;
        self.put_part(&part, generation, &results.cures)?;
        // From this point on the cell counts.
        self.put_part(&part, generation, std::slice::from_ref(&results.cell))?;
        self.parts.insert(part.clone(), generation);
        if let Some(before) = before {
            self.remove_parts(&[(part, before)])?;
        }
        Ok(())
    }

    /// Whether the cell has been appended (valid or not).
    pub fn contains(&self, key: &CellKey) -> bool {
        let part = PartName::of(key);
        self.parts.contains_key(&part) || self.compacted.contains(&part)
    }

    /// What reading a cell costs; nothing of a cell that was not appended. Cost: two small files,
    /// or the compacted tables.
    pub fn read_costs(&self, key: &CellKey) -> Result<CellCosts, Error> {
        Ok(CellCosts { grep: self.read_rows(key)?, load: self.read_rows(key)?, modelled: self.read_rows(key)? })
    }

    fn read_rows<R: TableRow>(&self, key: &CellKey) -> Result<Vec<R>, Error> {
        let part = PartName::of(key);
        let path = match self.parts.get(&part) {
            Some(generation) => self.part_path(R::TABLE, &part, *generation),
            None => self.table_path(R::TABLE),
        };
        let mut rows: Vec<R> = self.read_file(&path)?;
        rows.retain(|row| row.key() == Some(key));
        Ok(rows)
    }

    /// Appends one event to the events file: a JSON object of `schema`, `event` (the kind) and the
    /// fields of `body`, which must serialize to an object (or to nothing: `&()`). It is not
    /// synced: events are for watching a run, results are in the tables.
    pub fn append_event(&mut self, kind: &str, body: &impl Serialize) -> Result<(), Error> {
        let json = |source| Error::Json { what: format!("event `{kind}`"), source };
        let mut line = serde_json::Map::new();
        line.insert("schema".to_owned(), EVENTS_SCHEMA.into());
        line.insert("event".to_owned(), kind.into());
        match serde_json::to_value(body).map_err(json)? {
            serde_json::Value::Object(fields) => line.extend(fields),
            serde_json::Value::Null => {}
            other => drop(line.insert("value".to_owned(), other)),
        }
        let mut bytes = serde_json::to_vec(&line).map_err(json)?;
        bytes.push(b'\n');
        let path = self.dir.join(EVENTS_FILE);
        self.disk.append(&path, &bytes).map_err(|error| Error::io("append to", &path, error))
    }

    /// All events, oldest first; a torn last line is left out.
    pub fn read_events(&self) -> Result<Vec<serde_json::Value>, Error> {
        let path = self.dir.join(EVENTS_FILE);
        let bytes = read_or_empty(&*self.disk, &path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes[..whole]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).map_err(|error| Error::damaged(&path, error)))
            .collect()
    }

    /// Merges all parts into one `<table>.parquet` each, durably, and removes the parts. Later
    /// appends are possible; compact again then. Cost: all results in memory.
    pub fn compact(&mut self) -> Result<(), Error> {
        let results = self.read_all()?;
        // As long as parts exist, they hide the rows of their cells in the compacted tables. The
        // order of these writes does not matter.
        self.replace(&self.table_path(Table::Grep), &encode(&results.grep)?)?;
        self.replace(&self.table_path(Table::Load), &encode(&results.load)?)?;
        self.replace(&self.table_path(Table::Layout), &encode(&results.layout)?)?;
        self.replace(&self.table_path(Table::Modelled), &encode(&results.modelled)?)?;
        self.replace(&self.table_path(Table::Trace), &encode(&results.trace)?)?;
        self.replace(&self.table_path(Table::TraceBuckets), &encode(&results.trace_buckets)?)?;
        self.replace(&self.table_path(Table::Maps), &encode(&results.maps)?)?;
        self.replace(&self.table_path(Table::FreeSpace), &encode(&results.free_space)?)?;
        self.replace(&self.table_path(Table::Aging), &encode(&results.aging)?)?;
        self.replace(&self.table_path(Table::Latency), &encode(&results.latency)?)?;
        self.replace(&self.table_path(Table::Steps), &encode(&results.steps)?)?;
        self.replace(&self.table_path(Table::Cures), &encode(&results.cures)?)?;
        self.replace(&self.table_path(Table::Cells), &encode(&results.cells)?)?;
        let parts: Vec<_> = std::mem::take(&mut self.parts).into_iter().collect();
        self.compacted.extend(parts.iter().map(|(part, _)| part.clone()));
        self.remove_parts(&parts)
    }

    /// Reads table `circumstances` alone.
    pub fn read_circumstances(&self) -> Result<Vec<CircumstanceRow>, Error> {
        self.read_file(&self.table_path(Table::Circumstances))
    }

    /// Reads table `cells` alone.
    pub fn read_cells(&self) -> Result<Vec<CellRow>, Error> {
        self.read_table()
    }

    /// Reads everything. Cost: one file per table and cell that is not compacted.
    pub fn read_all(&self) -> Result<Results, Error> {
        let mut results = Results {
            // Tables of older results are read as those of this format.
            run: RunInfo { format: FORMAT.to_owned(), ..self.run.clone() },
            cells: self.read_table()?,
            grep: self.read_table()?,
            load: self.read_table()?,
            layout: self.read_table()?,
            modelled: self.read_table()?,
            trace: self.read_table()?,
            trace_buckets: self.read_table()?,
            maps: self.read_table()?,
            free_space: self.read_table()?,
            aging: self.read_table()?,
            latency: self.read_table()?,
            steps: self.read_table()?,
            cures: self.read_table()?,
            circumstances: self.read_file(&self.table_path(Table::Circumstances))?,
        };
        results.sort();
        Ok(results)
    }

    fn without_cells(disk: Box<dyn Disk>, dir: &Path, run: RunInfo) -> Self {
        let dir = dir.to_path_buf();
        Self { disk, dir, run, parts: BTreeMap::new(), tried: BTreeMap::new(), compacted: BTreeSet::new() }
    }

    fn table_path(&self, table: Table) -> PathBuf {
        self.dir.join(table.file_name())
    }

    fn part_path(&self, table: Table, part: &PartName, generation: u64) -> PathBuf {
        self.dir.join("parts").join(table.name()).join(part.file_name(generation))
    }

    /// Reads one table of cells: parts, and compacted rows of cells without parts.
    fn read_table<R: TableRow>(&self) -> Result<Vec<R>, Error> {
        let mut rows: Vec<R> = self.read_file(&self.table_path(R::TABLE))?;
        rows.retain(|row| {
            let part = part_key(row);
            self.compacted.contains(&part) && !self.parts.contains_key(&part)
        });
        for (part, generation) in &self.parts {
            rows.extend(self.read_file::<R>(&self.part_path(R::TABLE, part, *generation))?);
        }
        Ok(rows)
    }

    fn read_file<R: TableRow>(&self, path: &Path) -> Result<Vec<R>, Error> {
        match read_or_empty(&*self.disk, path)? {
            bytes if bytes.is_empty() => Ok(Vec::new()),
            bytes => decode(path, bytes),
        }
    }

    fn put_part<R: TableRow>(&self, part: &PartName, generation: u64, rows: &[R]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.replace(&self.part_path(R::TABLE, part, generation), &encode(rows)?)
    }

    /// Replaces a file atomically and durably.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        self.disk.write_durably(&unfinished, bytes).map_err(|error| Error::io("write", &unfinished, error))?;
        self.disk.rename(&unfinished, path).map_err(|error| Error::io("rename to", path, error))?;
        let dir = path.parent().unwrap_or(Path::new("."));
        self.disk.sync_dir(dir).map_err(|error| Error::io("sync directory", dir, error))
    }

    /// Removes generations of cells: `cells` first and durably, so that after a crash no counting
    /// cell lacks its other tables.
    fn remove_parts(&self, parts: &[(PartName, u64)]) -> Result<(), Error> {
        let others: Vec<Table> = Table::OF_CELLS.into_iter().filter(|table| *table != Table::Cells).collect();
        for tables in [&[Table::Cells][..], &others] {
            for table in tables {
                let paths: Vec<_> = parts.iter().map(|(part, n)| self.part_path(*table, part, *n)).collect();
                self.remove_files(&self.dir.join("parts").join(table.name()), &paths)?;
            }
        }
        Ok(())
    }

    fn remove_files(&self, dir: &Path, paths: &[PathBuf]) -> Result<(), Error> {
        for path in paths {
            match self.disk.remove(path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("remove", path, error)),
            }
        }
        if paths.is_empty() {
            return Ok(());
        }
        self.disk.sync_dir(dir).map_err(|error| Error::io("sync directory", dir, error))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, Error> {
        self.disk.list(dir).map_err(|error| Error::io("list", dir, error))
    }

    fn find_cells(&mut self) -> Result<(), Error> {
        let dir = self.dir.join("parts").join(Table::Cells.name());
        for (part, generation) in self.list(&dir)?.iter().filter_map(|name| PartName::parse(name)) {
            let newest = self.parts.entry(part).or_insert(generation);
            *newest = generation.max(*newest);
        }
        let compacted: Vec<crate::CellRow> = self.read_file(&self.table_path(Table::Cells))?;
        self.compacted = compacted.iter().map(part_key).collect();
        Ok(())
    }

    /// Removes unfinished files, and parts of generations that do not count.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let stale = |name: &str| match PartName::parse(name) {
            Some((part, generation)) => self.parts.get(&part) != Some(&generation),
            None => name.ends_with(UNFINISHED),
        };
        for table in Table::OF_CELLS {
            let dir = self.dir.join("parts").join(table.name());
            let paths: Vec<_> = self.list(&dir)?.iter().filter(|name| stale(name)).map(|name| dir.join(name)).collect();
            self.remove_files(&dir, &paths)?;
        }
        let names = self.list(&self.dir)?;
        let paths: Vec<_> =
            names.iter().filter(|name| name.ends_with(UNFINISHED)).map(|name| self.dir.join(name)).collect();
        self.remove_files(&self.dir, &paths)
    }

    /// Cuts off a torn last line, so that the next event starts on a new line.
    fn mend_events(&self) -> Result<(), Error> {
        let path = self.dir.join(EVENTS_FILE);
        let bytes = read_or_empty(&*self.disk, &path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole == bytes.len() { Ok(()) } else { self.replace(&path, &bytes[..whole]) }
    }
}

fn create_part_dirs(disk: &dyn Disk, dir: &Path) -> Result<(), Error> {
    for table in Table::OF_CELLS {
        let path = dir.join("parts").join(table.name());
        disk.create_dir(&path).map_err(|error| Error::io("make directory", &path, error))?;
    }
    Ok(())
}

fn read_or_empty(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, Error> {
    match disk.read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

fn read_run_info(disk: &dyn Disk, dir: &Path) -> Result<RunInfo, Error> {
    let path = dir.join(RUN_INFO_FILE);
    let bytes = read_or_empty(disk, &path)?;
    if bytes.is_empty() {
        return Err(Error::NotResults { path: dir.to_path_buf() });
    }
    // The format is checked first: a newer version may have changed the other fields.
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| Error::damaged(&path, error))?;
    let found = value["format"].as_str().unwrap_or_default().to_owned();
    let version = |format: &str| format.strip_prefix("senesce-results/").and_then(|text| text.parse::<u64>().ok());
    match (version(&found), version(FORMAT)) {
        (Some(found_version), Some(known)) if found_version > known => {
            Err(Error::NewerFormat { path, found, known: FORMAT.to_owned() })
        }
        (Some(1..), _) => serde_json::from_value(value).map_err(|error| Error::damaged(&path, error)),
        _ => Err(Error::damaged(&path, format_args!("its format is `{found}`, not `{FORMAT}`"))),
    }
}

fn check_keys<R: TableRow>(cell: &CellKey, rows: &[R]) -> Result<(), Error> {
    match rows.iter().filter_map(TableRow::key).find(|key| *key != cell) {
        None => Ok(()),
        Some(key) => {
            let [row, cell] = [key, cell].map(|key| format!("{}/{}/{}", key.arm, key.role.name(), key.pulls));
            Err(Error::WrongCell { table: R::TABLE.name(), row, cell })
        }
    }
}
