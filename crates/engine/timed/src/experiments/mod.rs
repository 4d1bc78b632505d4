//! The published experiments, as far as they are time.

mod ablation;
mod disks;
mod flash;
mod mixed;
mod nights;
mod recompact;
mod sequential;

use std::{fmt, str::FromStr};

use senesce_sim::{CpuProfile, storage::StorageFigures};
use senesce_trials::{Fact, Figure, Point, Scale, find_experiment};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, TimedTrial, Window, machine};

/// A published experiment. Numbers are those of the design's table.
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
    /// Reads of 64 KiB in order on disks, of a file that was written at random.
    E6,
    /// The same on flash.
    E7,
    /// Reads and writes in order on aged flash, and writing after reads.
    E8,
    /// Reads of packed contents while they are recompacted.
    E10,
    /// A load of days and nights, and gardening that goes by what is left.
    E13,
}

/// The simulation at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Operations a second that were offered, or clients that were there.
    pub load: u64,
    /// Cores for events that are there because blocks are moved, as the table has them.
    pub cleaning_cores: f64,
    /// What came out: a model's.
    pub figures: StorageFigures,
}

/// One aggregate in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What is special about it.
    pub name: String,
    /// Turnovers that clients had written by then.
    pub turnovers: f64,
    /// What the garden counted while the trace was collected.
    pub counted: Point,
    /// Whether what SSDs say of collection means something.
    pub collection_is_meant: bool,
    /// What is set: the aggregate, its gardening, the machine of the simulation.
    pub facts: Vec<Fact>,
    /// At each load.
    pub runs: Vec<Run>,
}

/// What came out of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which one it is.
    pub experiment: Experiment,
    /// Its scale.
    pub scale: Scale,
    /// The table of processors.
    pub profile: CpuProfile,
    /// Its parts.
    pub stages: Vec<Stage>,
    /// Figures, and what the paper says of them.
    pub figures: Vec<Figure>,
    /// What of the published experiment is not here, or other than there.
    pub notes: Vec<String>,
    /// What the same aggregates say of the part that is structure: of E1, E4 and E5.
    #[serde(skip)]
    pub structure: Option<senesce_trials::Outcome>,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 9] =
        [Self::E1, Self::E3, Self::E4, Self::E5, Self::E6, Self::E7, Self::E8, Self::E10, Self::E13];

    /// What it is about.
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

    /// Does it. Cost: that of the aging (see docs/results/garden-trials.md), and some microseconds for each operation and chain that is
    /// simulated.
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
            Self::E13 => nights::run(scale, profile),
        }
    }

    /// A window of E4 without cleaning: what the table of processors is fitted to.
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
    /// A trial as it is now, with a window of it and what the simulation made of that.
    fn new(
        name: &str,
        trial: &mut TimedTrial,
        system: &senesce_sim::storage::StorageSetup,
        window: &Window,
        runs: Vec<Run>,
    ) -> Self {
        let mut facts = trial.facts();
        facts.extend(machine::facts(system));
        let series = trial.trial().series();
        Self {
            name: name.to_owned(),
            turnovers: series.sum().client_blocks as f64 / series.turnover as f64,
            counted: window.counted,
            collection_is_meant: machine::is_collection_meant(system),
            facts,
            runs,
        }
    }

    /// The run at a load, if there is one.
    pub fn at(&self, load: u64) -> Option<&Run> {
        self.runs.iter().find(|run| run.load == load)
    }
}

/// Runs a window; `load` is the number that the run is known by.
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

/// Mean latency of a run with cleaning over that of one without.
fn ratio(without: &Run, with: &Run) -> f64 {
    let (one, other) = (&without.figures, &with.figures);
    compute_ratio((one.kept_up, one.latency.mean), (other.kept_up, other.latency.mean))
}

/// Latency over latency, of runs that kept up or did not. What did not keep up has a latency that grows with its length: against it
/// everything is faster, and it is slower than everything; between two of them nothing can be said.
fn compute_ratio((one_kept_up, one): (bool, f64), (other_kept_up, other): (bool, f64)) -> f64 {
    match (one_kept_up, other_kept_up) {
        (_, true) => other / one,
        (true, false) => f64::INFINITY,
        (false, false) => f64::NAN,
    }
}

/// Operations that are simulated: those of the window, but enough for a tail; fewer where a trial is cut down.
fn operations(window: &Window, scale: Scale) -> u64 {
    window.operations().max(40_000 * scale.turnover_percent.min(100) / 100)
}

#[cfg(test)]
mod tests {
    use super::compute_ratio;

    #[test]
    fn a_run_that_did_not_keep_up_is_never_the_faster_one() {
        assert_eq!(compute_ratio((true, 2.0), (true, 3.0)), 1.5);
        assert_eq!(compute_ratio((false, 200.0), (true, 3.0)), 0.015);
        assert_eq!(compute_ratio((true, 2.0), (false, 0.1)), f64::INFINITY);
        assert!(compute_ratio((false, 2.0), (false, 3.0)).is_nan());
    }
}
