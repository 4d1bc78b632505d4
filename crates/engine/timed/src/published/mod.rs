//! All published experiments beside what of them is code here: set-ups, published values, and what comes out.
//!
//! An experiment has up to two [`Part`]s: its structure, counted, and its time, simulated. A part is found by its name, so one that is
//! new in either room is in the table by itself. A [`Record`] is what is kept of a part that ran: figures and the lines of
//! charts, in numbers that JSON has.

mod charts;
mod record;
mod table;

use std::fmt;

use senesce_sim::CpuProfile;
use senesce_trials::Scale;

pub use charts::{Chart, Line, Place};
pub use record::{Record, Told};
pub use table::{PUBLISHED, Published};

use crate::{Experiment, Result};

/// A part of an experiment that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What drives are asked for.
    Structure(senesce_trials::Experiment),
    /// How long it takes, in the simulation.
    Time(Experiment),
}

impl Part {
    /// Its experiment's name.
    pub fn experiment(self) -> String {
        match self {
            Self::Structure(experiment) => experiment.to_string(),
            Self::Time(experiment) => experiment.to_string(),
        }
    }

    /// What is measured: structure or time.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Structure(_) => "structure",
            Self::Time(_) => "time",
        }
    }

    /// What it is about.
    pub fn title(self) -> &'static str {
        match self {
            Self::Structure(experiment) => experiment.title(),
            Self::Time(experiment) => experiment.title(),
        }
    }

    /// About how long it takes beside the others, so that the longest can be begun first.
    pub fn weight(self) -> u32 {
        match (self.experiment().as_str(), self.kind()) {
            ("E1", "time") => 100,
            ("E1", _) => 80,
            ("E2" | "E12", _) => 40,
            ("E14", _) | ("E4" | "E13", "time") => 25,
            ("E4", _) => 20,
            _ => 10,
        }
    }

    /// Runs it, in time with the table `paper20`. Deterministic. Cost: see docs/garden-trials.md.
    pub fn run(self, scale: Scale) -> Result<Record> {
        match self {
            Self::Structure(experiment) => Ok(Record::of_structure(&experiment.run(scale)?)),
            Self::Time(experiment) => Ok(Record::of_time(&experiment.run(scale, &CpuProfile::paper20())?)),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.experiment(), self.kind())
    }
}
