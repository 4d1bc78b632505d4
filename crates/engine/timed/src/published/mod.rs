//! All published experiments beside what of them is code here: set-ups, published values, and what comes out.
//!
//! An experiment has up to two [`Part`]s: its structure, counted, and its time, simulated. A part is found by its name, so one that is
//! new in either room is in the table by itself. A [`Record`] is what is kept of a part that ran: figures and the lines of
//! charts, in numbers that JSON has. A [`FigureLine`] is a figure in a table of tab-separated values, from which the docs' table is made.

mod charts;
mod circumstances;
mod lines;
mod record;
mod table;

use std::fmt;

use senesce_sim::CpuProfile;
use senesce_trials::Scale;

pub use charts::{Chart, Line, Place};
pub use lines::{FigureLine, render_docs_table, render_time_table, replace_docs_table};
pub use record::{Record, Tally, Told};
pub use table::{Cause, PUBLISHED, Published};

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
        match self.source().experiment().as_str() {
            "E1" => 100,
            "E2" => 60,
            "E13" => 70,
            "E12" => 30,
            "E4" => 25,
            "E5" | "E14" => 15,
            "E9" | "E10" | "E11" => 3,
            _ => 8,
        }
    }

    /// The part that is run for it: what is simulated of E1, E4 and E5 is counted, too, so their aggregates age once.
    pub fn source(self) -> Self {
        match self {
            Self::Structure(senesce_trials::Experiment::E1) => Self::Time(Experiment::E1),
            Self::Structure(senesce_trials::Experiment::E4) => Self::Time(Experiment::E4),
            Self::Structure(senesce_trials::Experiment::E5) => Self::Time(Experiment::E5),
            other => other,
        }
    }

    /// Runs it, in time with the table `paper20`, and gives all parts of which it is the [`source`](Self::source). Deterministic. Cost:
    /// see docs/results/garden-trials.md.
    pub fn run(self, scale: Scale) -> Result<Vec<Record>> {
        match self {
            Self::Structure(experiment) => Ok(vec![Record::of_structure(&experiment.run(scale)?)]),
            Self::Time(experiment) => {
                let outcome = experiment.run(scale, &CpuProfile::paper20())?;
                let structure = outcome.structure.as_ref().map(Record::of_structure);
                Ok(structure.into_iter().chain([Record::of_time(&outcome)]).collect())
            }
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.experiment(), self.kind())
    }
}
