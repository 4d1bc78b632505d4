//! The published experiments, as far as they are about time.

mod ablation;
mod disks;
mod diurnal;
mod flash;
mod mixed;
mod recompact;
mod sequential;

use std::{fmt, str::FromStr};

use senesce_sim::{CpuProfile, storage::StorageFigures};
use senesce_trials::{Fact, Figure, Point, Scale, find_experiment};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, TimedTrial, Window, published_machines};

/// A published experiment, with its number in the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Experiment {
    /// OLTP on disks, 3,000 operations a second, turnover by turnover.
    E1,
    /// OLTP on the 12 SSDs of an aggregate of SSDs and disks.
    E3,
    /// OLTP on flash at rising load.
    E4,
    /// Random overwrites on flash at rising load.
    E5,
    /// Sequential reads of 64 KiB on disks, of a file that was written at random.
    E6,
    /// The same on flash.
    E7,
    /// Sequential reads and writes on aged flash, with write-after-read.
    E8,
    /// Reads of packed contents during their recompaction.
    E10,
    /// A load of days and nights, and gardening by idle resources.
    E13,
}

/// The simulation at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Offered operations a second, or the number of clients.
    pub load: u64,
    /// Cores for the events that relocation causes, by the table of processor times.
    pub cleaning_cores: f64,
    /// The resulting figures, of a model.
    pub figures: StorageFigures,
}

/// One aggregate in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Turnovers written by clients so far.
    pub turnovers: f64,
    /// The counters of the garden during the collection of the trace.
    pub counted: Point,
    /// Whether the garbage collection figures of its SSDs are meaningful.
    pub collection_is_meant: bool,
    /// Its settings: the aggregate, its gardening, the machine of the simulation.
    pub facts: Vec<Fact>,
    /// The runs, one for each load.
    pub runs: Vec<Run>,
}

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scale.
    pub scale: Scale,
    /// The table of processors.
    pub profile: CpuProfile,
    /// Its parts.
    pub stages: Vec<Stage>,
    /// Figures, with the paper's statements.
    pub figures: Vec<Figure>,
    /// Differences from the published experiment.
    pub notes: Vec<String>,
    /// The structural figures of the same aggregates, for E1, E4 and E5.
    #[serde(skip)]
    pub structure: Option<senesce_trials::Outcome>,
}

impl Experiment {
    /// All experiments.
    pub const ALL: [Self; 9] =
        [Self::E1, Self::E3, Self::E4, Self::E5, Self::E6, Self::E7, Self::E8, Self::E10, Self::E13];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::E1 => "OLTP on 21 disks, 3,000 operations a second",
            Self::E3 => "OLTP at random on 12 SSDs, as in front of disks",
            Self::E4 => "OLTP on 21 SSDs at rising load",
            Self::E5 => "random overwrites on 21 SSDs at rising load",
            Self::E6 => "reads of 64 KiB in order on 21 disks",
            Self::E7 => "reads of 64 KiB in order on 21 SSDs",
            Self::E8 => "reads and writes of 64 KiB in order on 21 aged SSDs",
            Self::E10 => "reads of packed contents on 21 SSDs while they are recompacted",
            Self::E13 => "OLTP on 21 SSDs by day and by night",
        }
    }

    /// Runs it. Cost: that of the aging (see docs/results/garden-trials.md), plus some microseconds
    /// for each simulated operation and chain.
    pub fn run(self, scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
        match self {
            Self::E1 => disks::long(scale, profile),
            Self::E3 => flash::tier(scale, profile),
            Self::E4 => flash::oltp(scale, profile),
            Self::E5 => flash::random(scale, profile),
            Self::E6 => sequential::on_disks(scale, profile),
            Self::E7 => sequential::on_flash(scale, profile),
            Self::E8 => mixed::run(scale, profile),
            Self::E10 => recompact::run(scale, profile),
            Self::E13 => diurnal::run(scale, profile),
        }
    }

    /// A window of E4 without cleaning, to which the table of processor times is fitted.
    pub fn collect_for_calibration(scale: Scale) -> Result<(senesce_trials::Setup, Window)> {
        flash::collect_plateau(scale)
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Experiment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(find_experiment(&Self::ALL, text)?)
    }
}

impl Stage {
    /// The current state of a trial, with a window of it and its simulated runs.
    fn new(
        name: &str,
        trial: &mut TimedTrial,
        system: &senesce_sim::storage::StorageSetup,
        window: &Window,
        runs: Vec<Run>,
    ) -> Self {
        let mut facts = trial.facts();
        facts.extend(published_machines::facts(system));
        let series = trial.trial().series();
        Self {
            name: name.to_owned(),
            turnovers: series.sum().client_blocks as f64 / series.turnover as f64,
            counted: window.counted,
            collection_is_meant: published_machines::is_collection_meant(system),
            facts,
            runs,
        }
    }

    /// The run at a load, if there is one.
    pub fn at(&self, load: u64) -> Option<&Run> {
        self.runs.iter().find(|run| run.load == load)
    }
}

/// Runs a window; `load` is the number that identifies the run.
fn run_at(
    load: u64,
    machine: &senesce_sim::storage::StorageSetup,
    window: &Window,
    offered: &senesce_sim::storage::StorageLoad,
) -> Result<Run> {
    let figures = senesce_sim::storage::compute_storage(machine, &window.trace, offered)?;
    let each = machine.cpu.cost(&window.cleaning_events()) as f64 / window.operations().max(1) as f64;
    Ok(Run { load, cleaning_cores: each * figures.per_second / 1e9, figures })
}

/// The mean latency of a run with cleaning, divided by that of one without.
fn ratio(without: &Run, with: &Run) -> f64 {
    let (one, other) = (&without.figures, &with.figures);
    compute_ratio((one.kept_up, one.latency.mean), (other.kept_up, other.latency.mean))
}

/// The ratio of two latencies, of runs that kept up or did not. The latency of an overloaded run
/// grows with its length. So any run is faster than an overloaded one, and an overloaded one is
/// slower than any other. Two of them cannot be compared.
fn compute_ratio((one_kept_up, one): (bool, f64), (other_kept_up, other): (bool, f64)) -> f64 {
    match (one_kept_up, other_kept_up) {
        (_, true) => other / one,
        (true, false) => f64::INFINITY,
        (false, false) => f64::NAN,
    }
}

/// The number of simulated operations: those of the window, but enough for a tail; fewer if a trial
/// is shortened.
fn operations(window: &Window, scale: Scale) -> u64 {
    window.operations().max(40_000 * scale.turnover_percent.min(100) / 100)
}

#[cfg(test)]
mod tests {
    use super::compute_ratio;

    #[test]
    fn an_overloaded_run_is_never_faster() {
        assert_eq!(compute_ratio((true, 2.0), (true, 3.0)), 1.5);
        assert_eq!(compute_ratio((false, 200.0), (true, 3.0)), 0.015);
        assert_eq!(compute_ratio((true, 2.0), (false, 0.1)), f64::INFINITY);
        assert!(compute_ratio((false, 2.0), (false, 3.0)).is_nan());
    }
}
