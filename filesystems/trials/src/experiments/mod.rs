//! The structural part of the published experiments.

mod fullness;
mod naming;
mod objects;
mod oltp;
mod packing;
mod plateau;
mod pool;
mod random;
mod secondary;
mod tier;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{CleaningPolicy, Error, Fact, Figure, LoadKind, Result, Scale, Series, Setup, Trial};

pub use naming::find_experiment;
pub use oltp::{LONG_DAYS, LONG_TURNOVERS};
pub use plateau::Plateau;

/// A published experiment, with its number in the table of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Experiment {
    /// OLTP on disks for 62 days.
    E1,
    /// OLTP on the disks of an aggregate with a tier of SSDs.
    E2,
    /// OLTP on the SSDs of such an aggregate.
    E3,
    /// OLTP on flash, 85 % full.
    E4,
    /// Random overwrites on flash, 85 % full.
    E5,
    /// Contents that compress well.
    E9,
    /// The same contents after overwrites, and then recompaction.
    E10,
    /// Cold blocks in objects, and their cost.
    E11,
    /// Write chains against fullness.
    E12,
    /// Secondary volumes: large overwrites.
    E14,
}

/// A part of an experiment: one load on one aggregate under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The name within the experiment.
    pub name: String,
    /// The aggregate.
    pub setup: Setup,
    /// The load of the clients.
    pub load: LoadKind,
    /// The policy of cleaning.
    pub cleaning: CleaningPolicy,
    /// All gardening, in words.
    pub gardening: String,
    /// The counters.
    pub series: Series,
}

impl Stage {
    /// Makes a stage of the consistency points of `trial` from index `point` on.
    pub fn since(point: usize, trial: &Trial, name: &str, cleaning: CleaningPolicy) -> Self {
        let series = trial.series();
        let series = Series { points: series.points[point..].to_vec(), ..*series };
        let (setup, load, gardening) = (trial.setup().clone(), trial.load(), trial.tell_gardening());
        Self { name: name.to_owned(), setup, load, cleaning, gardening, series }
    }

    /// The settings, in words.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = self.setup.facts();
        facts.extend([Fact::new("load", self.load.tell()), Fact::new("gardening", self.gardening.clone())]);
        facts
    }
}

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment.
    pub experiment: Experiment,
    /// Its scale.
    pub scale: Scale,
    /// The parts with a series of consistency points. Empty for E9 to E11.
    pub stages: Vec<Stage>,
    /// The figures, with the statements of the paper.
    pub figures: Vec<Figure>,
    /// Differences from the published experiment.
    pub notes: Vec<String>,
}

impl Experiment {
    /// All experiments.
    pub const ALL: [Self; 10] =
        [Self::E1, Self::E2, Self::E3, Self::E4, Self::E5, Self::E9, Self::E10, Self::E11, Self::E12, Self::E14];

    /// The subject, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::E1 => "OLTP for 46 turnovers on 21 drives",
            Self::E2 => "OLTP on 21 disks behind 12 SSDs",
            Self::E3 => "OLTP on 12 SSDs before 21 disks",
            Self::E4 => "OLTP on 21 drives, 85 % full, aged to a plateau",
            Self::E5 => "random overwrites on 21 drives, 85 % full",
            Self::E9 => "what compression and compaction save",
            Self::E10 => "what overwriting leaves of that, and recompaction brings back",
            Self::E11 => "defragmentation of objects, at list prices",
            Self::E12 => "write chains against fullness",
            Self::E14 => "large overwrites in order, as of secondary volumes",
        }
    }

    /// Runs the experiment. Cost: see docs/results/garden-trials.md; minutes at full scale.
    pub fn run(self, scale: Scale) -> Result<Outcome> {
        match self {
            Self::E1 => Ok(oltp::judge_long(scale, oltp::run_long(scale)?)),
            Self::E2 => pool::run(scale),
            Self::E3 => tier::run(scale),
            Self::E4 => Ok(oltp::judge_plateau(scale, oltp::run_plateau(scale)?)),
            Self::E5 => Ok(random::judge(scale, random::run(scale)?)),
            Self::E9 => packing::save(scale),
            Self::E10 => packing::recompact(scale),
            Self::E11 => objects::run(scale),
            Self::E12 => fullness::run(scale),
            Self::E14 => secondary::run(scale),
        }
    }

    /// The settings of an experiment without stages: E9 to E11.
    pub fn facts(self, scale: Scale) -> Vec<Fact> {
        match self {
            Self::E9 => packing::facts_of_saving(scale),
            Self::E10 => packing::facts_of_overwriting(scale),
            Self::E11 => objects::facts(scale),
            Self::E1 | Self::E2 | Self::E3 | Self::E4 | Self::E5 | Self::E12 | Self::E14 => Vec::new(),
        }
    }

    /// Computes the figures of E1, E4 or E5 from stages that the caller ran in the same order as
    /// [`run`](Self::run). A caller can so use stages for a second purpose. Returns `None` for
    /// another experiment or another number of stages.
    pub fn judge(self, scale: Scale, stages: Vec<Stage>) -> Option<Outcome> {
        match self {
            Self::E1 => Some(oltp::judge_long(scale, stages.try_into().ok()?)),
            Self::E4 => Some(oltp::judge_plateau(scale, stages.try_into().ok()?)),
            Self::E5 => Some(random::judge(scale, stages.try_into().ok()?)),
            Self::E2 | Self::E3 | Self::E9 | Self::E10 | Self::E11 | Self::E12 | Self::E14 => None,
        }
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
        find_experiment(&Self::ALL, text)
    }
}

/// Runs `turnovers` more turnovers of a trial that may have had others; returns a stage of these
/// alone.
fn go_on(name: &str, trial: &mut Trial, cleaning: CleaningPolicy, turnovers: u64, scale: Scale) -> Result<Stage> {
    let before = trial.series().points.len();
    trial.set_cleaning(cleaning);
    trial.run(turnovers * 10 * scale.turnover_percent)?;
    Ok(Stage::since(before, trial, name, cleaning))
}

/// Runs a stage on a fresh aggregate without cleaning.
fn run_stage(name: &str, setup: &Setup, load: LoadKind, turnovers: u64, scale: Scale) -> Result<Stage> {
    go_on(name, &mut Trial::new(setup.clone(), load)?, CleaningPolicy::Off, turnovers, scale)
}
