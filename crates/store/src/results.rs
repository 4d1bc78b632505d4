//! Results as values: those of one cell, and those of a whole run.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgingRow, CellKey, CellRow, CircumstanceRow, CureRow, FreeSpaceRow, GrepRow, LatencyRow, LayoutRow, LoadRow,
    MapRow, ModelledRow, StepRow, TraceBucketRow, TraceRow,
};

/// The results format that this version writes. It also reads `senesce-results/1`, which has no
/// table `load`, and `senesce-results/2`, which has no table `cures` and no cells of cured volumes.
pub const FORMAT: &str = "senesce-results/3";
/// The format of one line of the events file.
pub const EVENTS_SCHEMA: &str = "senesce-events/1";
/// The file that describes the run; a directory without it holds no results.
pub const RUN_INFO_FILE: &str = "run.json";
/// The events file: one JSON object per line, appended during the run.
pub const EVENTS_FILE: &str = "events.ndjson";

/// The description of a run; stored in [`RUN_INFO_FILE`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The format of the results directory; the store sets it to [`FORMAT`].
    #[serde(default)]
    pub format: String,
    /// Name of the run.
    pub run_name: String,
    /// Name of the plan; empty if unknown yet.
    #[serde(default)]
    pub plan_name: String,
    /// Hash (hex) of the plan; empty if unknown yet.
    #[serde(default)]
    pub plan_hash: String,
    /// Version of the program that ran it; empty if unknown yet.
    #[serde(default)]
    pub senesce_version: String,
}

/// All measurements of one cell; appended as one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct CellResults {
    /// The cell itself. An invalid cell has its reason here, and may lack everything else.
    pub cell: CellRow,
    /// Repetitions of the grep test.
    pub grep: Vec<GrepRow>,
    /// The load of the machine during each repetition.
    pub load: Vec<LoadRow>,
    /// Static layout, if it was measured.
    pub layout: Option<LayoutRow>,
    /// Modelled costs; empty if no device was requested.
    pub modelled: Vec<ModelledRow>,
    /// The requests of a traced grep test; empty without a trace.
    pub trace: Vec<TraceRow>,
    /// Their histograms; empty without a trace.
    pub trace_buckets: Vec<TraceBucketRow>,
    /// The map's cells; empty if not drawn.
    pub map: Vec<MapRow>,
    /// Buckets of free extents; empty if not measured.
    pub free_space: Vec<FreeSpaceRow>,
    /// The aging of the volume up to this checkpoint; none for unaged volumes.
    pub aging: Option<AgingRow>,
    /// Latencies of the operations up to this checkpoint; empty for unaged volumes.
    pub latency: Vec<LatencyRow>,
    /// The steps up to this checkpoint; empty for unaged volumes.
    pub steps: Vec<StepRow>,
    /// The cure of the volume, a row for each device; none for volumes that are not cured.
    pub cures: Vec<CureRow>,
}

/// What reading a cell costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellCosts {
    /// Repetitions of the grep test.
    pub grep: Vec<GrepRow>,
    /// The load of the machine during them.
    pub load: Vec<LoadRow>,
    /// Modelled costs.
    pub modelled: Vec<ModelledRow>,
}

impl CellCosts {
    /// The repetitions that figures are computed from, see [`Results::counted_grep`].
    pub fn counted_grep(&self) -> impl Iterator<Item = &GrepRow> {
        counted(&self.grep, &self.load)
    }
}

/// The rows of table `grep` that figures are computed from, by the rows of table `load`.
fn counted<'a>(grep: &'a [GrepRow], load: &'a [LoadRow]) -> impl Iterator<Item = &'a GrepRow> {
    let disturbed: BTreeSet<(&CellKey, u64)> =
        load.iter().filter(|row| !row.disturbance.is_empty()).map(|row| (&row.key, row.repetition)).collect();
    let is_disturbed = move |row: &GrepRow| disturbed.contains(&(&row.key, row.repetition));
    let quiet: BTreeSet<&CellKey> = grep.iter().filter(|row| !is_disturbed(row)).map(|row| &row.key).collect();
    grep.iter().filter(move |row| !is_disturbed(row) || !quiet.contains(&row.key))
}

impl CellResults {
    /// A cell without measurements.
    pub fn of(cell: CellRow) -> Self {
        Self {
            cell,
            grep: Vec::new(),
            load: Vec::new(),
            layout: None,
            modelled: Vec::new(),
            trace: Vec::new(),
            trace_buckets: Vec::new(),
            map: Vec::new(),
            free_space: Vec::new(),
            aging: None,
            latency: Vec::new(),
            steps: Vec::new(),
            cures: Vec::new(),
        }
    }
}

/// All results of a run, each table sorted by arm, role, pulls (then repetition, bucket, or key).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Results {
    /// The description of the run.
    pub run: RunInfo,
    /// Table `cells`.
    pub cells: Vec<CellRow>,
    /// Table `grep`.
    pub grep: Vec<GrepRow>,
    /// Table `load`.
    pub load: Vec<LoadRow>,
    /// Table `layout`.
    pub layout: Vec<LayoutRow>,
    /// Table `modelled`.
    pub modelled: Vec<ModelledRow>,
    /// Table `trace`.
    pub trace: Vec<TraceRow>,
    /// Table `trace_buckets`.
    pub trace_buckets: Vec<TraceBucketRow>,
    /// Table `maps`.
    pub maps: Vec<MapRow>,
    /// Table `free_space`.
    pub free_space: Vec<FreeSpaceRow>,
    /// Table `aging`.
    pub aging: Vec<AgingRow>,
    /// Table `latency`.
    pub latency: Vec<LatencyRow>,
    /// Table `steps`.
    pub steps: Vec<StepRow>,
    /// Table `cures`.
    pub cures: Vec<CureRow>,
    /// Table `circumstances`.
    pub circumstances: Vec<CircumstanceRow>,
}

impl Results {
    /// The rows of table `grep` that figures are computed from. Disturbed repetitions are left out,
    /// unless a cell has no others. Rows without a row in table `load`, as in older results, count.
    pub fn counted_grep(&self) -> impl Iterator<Item = &GrepRow> {
        counted(&self.grep, &self.load)
    }
}
