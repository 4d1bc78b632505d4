//! Joins the results of many runs into one file per table, without holding them in memory.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use crate::parquet_file::TableWriter;
use crate::results::{FORMAT, RUN_INFO_FILE, Results, RunInfo};
use crate::schema::{Table, TableRow};
use crate::{
    AgingRow, CellRow, CircumstanceRow, CureRow, Error, FreeSpaceRow, GrepRow, LatencyRow, LayoutRow, LoadRow, MapRow,
    ModelledRow, StepRow, TraceBucketRow, TraceRow,
};

/// Writes the tables of a merged run, row by row.
///
/// It keeps the rows in the order of [`Merger::push`], so the same results in the same order give
/// the same bytes. Memory: a bounded number of rows of each table.
pub struct Merger {
    dir: PathBuf,
    cells: Output<CellRow>,
    grep: Output<GrepRow>,
    load: Output<LoadRow>,
    layout: Output<LayoutRow>,
    modelled: Output<ModelledRow>,
    trace: Traces,
    maps: Output<MapRow>,
    free_space: Output<FreeSpaceRow>,
    aging: Output<AgingRow>,
    latency: Output<LatencyRow>,
    steps: Output<StepRow>,
    cures: Output<CureRow>,
    circumstances: Output<CircumstanceRow>,
}

/// The tables of traces.
struct Traces {
    requests: Output<TraceRow>,
    buckets: Output<TraceBucketRow>,
}

/// One table.
struct Output<R> {
    path: PathBuf,
    writer: TableWriter<R, BufWriter<File>>,
}

impl Merger {
    /// Starts a merged run in `dir`, which must not exist. No reader can open it before
    /// [`Merger::finish`].
    pub fn create(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir.parent().unwrap_or(Path::new("."))).map_err(|e| Error::io("make directory", dir, e))?;
        fs::create_dir(dir).map_err(|error| Error::io("make directory", dir, error))?;
        Ok(Self {
            dir: dir.to_owned(),
            cells: Output::create(dir)?,
            grep: Output::create(dir)?,
            load: Output::create(dir)?,
            layout: Output::create(dir)?,
            modelled: Output::create(dir)?,
            trace: Traces { requests: Output::create(dir)?, buckets: Output::create(dir)? },
            maps: Output::create(dir)?,
            free_space: Output::create(dir)?,
            aging: Output::create(dir)?,
            latency: Output::create(dir)?,
            steps: Output::create(dir)?,
            cures: Output::create(dir)?,
            circumstances: Output::create(dir)?,
        })
    }

    /// Appends the results of a run. No earlier run may have an arm of the same name.
    pub fn push(&mut self, results: Results) -> Result<(), Error> {
        self.cells.push(results.cells)?;
        self.grep.push(results.grep)?;
        self.load.push(results.load)?;
        self.layout.push(results.layout)?;
        self.modelled.push(results.modelled)?;
        self.trace.requests.push(results.trace)?;
        self.trace.buckets.push(results.trace_buckets)?;
        self.maps.push(results.maps)?;
        self.free_space.push(results.free_space)?;
        self.aging.push(results.aging)?;
        self.latency.push(results.latency)?;
        self.steps.push(results.steps)?;
        self.cures.push(results.cures)?;
        self.circumstances.push(results.circumstances)
    }

    /// Appends circumstances of the merged run.
    pub fn push_circumstances(&mut self, rows: Vec<CircumstanceRow>) -> Result<(), Error> {
        self.circumstances.push(rows)
    }

    /// Makes the tables durable, then writes the description of the run. Its `format` is always set
    /// to [`FORMAT`].
    pub fn finish(self, run: &RunInfo) -> Result<(), Error> {
        self.grep.finish()?;
        self.load.finish()?;
        self.layout.finish()?;
        self.modelled.finish()?;
        self.trace.requests.finish()?;
        self.trace.buckets.finish()?;
        self.maps.finish()?;
        self.free_space.finish()?;
        self.aging.finish()?;
        self.latency.finish()?;
        self.steps.finish()?;
        self.cures.finish()?;
        self.circumstances.finish()?;
        self.cells.finish()?;
        let run = RunInfo { format: FORMAT.to_owned(), ..run.clone() };
        let mut json = serde_json::to_vec_pretty(&run)
            .map_err(|source| Error::Json { what: "the run's description".to_owned(), source })?;
        json.push(b'\n');
        let path = self.dir.join(RUN_INFO_FILE);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&json)?;
            file.sync_all()?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|error| Error::io("write", &path, error))
    }
}

impl<R: TableRow> Output<R> {
    fn create(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(R::TABLE.file_name());
        let file = File::create_new(&path).map_err(|error| Error::io("create", &path, error))?;
        let writer = TableWriter::create(BufWriter::new(file))?;
        Ok(Self { path, writer })
    }

    fn push(&mut self, rows: Vec<R>) -> Result<(), Error> {
        rows.into_iter().try_for_each(|row| self.writer.push(row))
    }

    fn finish(self) -> Result<(), Error> {
        let file = self.writer.finish()?;
        let sync = || file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all();
        sync().map_err(|error| Error::io("write", &self.path, error))
    }
}

impl Results {
    /// Replaces the name of every arm.
    pub fn rename_arms(&mut self, name: impl Fn(&str) -> String) {
        fn rename<R: TableRow>(rows: &mut [R], name: &impl Fn(&str) -> String) {
            for key in rows.iter_mut().filter_map(TableRow::key_mut) {
                key.arm = name(&key.arm);
            }
        }
        rename(&mut self.cells, &name);
        rename(&mut self.grep, &name);
        rename(&mut self.load, &name);
        rename(&mut self.layout, &name);
        rename(&mut self.modelled, &name);
        rename(&mut self.trace, &name);
        rename(&mut self.trace_buckets, &name);
        rename(&mut self.maps, &name);
        rename(&mut self.free_space, &name);
        rename(&mut self.aging, &name);
        rename(&mut self.latency, &name);
        rename(&mut self.steps, &name);
        rename(&mut self.cures, &name);
        for row in self.circumstances.iter_mut().filter(|row| !row.arm.is_empty()) {
            row.arm = name(&row.arm);
        }
    }
}

impl Table {
    /// The name of the table's file.
    pub(crate) fn file_name(self) -> String {
        format!("{}{}", self.name(), crate::part::SUFFIX)
    }
}
