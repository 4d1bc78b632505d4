//! All published experiments beside our code for them: set-ups, published values, and our results.
//!
//! An experiment has up to two [`Part`]s: its structure, which is counted, and its time, which is
//! simulated. A part is found by its name, so a new one in either crate appears in the table
//! automatically. A [`Record`] is the stored result of a part: figures and the lines of charts, in
//! numbers that JSON can express. A [`FigureLine`] is a figure in a table of tab-separated values,
//! the source of the docs' table.

mod charts;
mod circumstances;
mod figure_lines;
mod record;
mod table;

use std::fmt;

use senesce_sim::CpuProfile;
use senesce_trials::Scale;

pub use charts::{Chart, Line, Place};
pub use figure_lines::{FigureLine, render_docs_table, render_time_table, replace_docs_table};
pub use record::{Record, ShownFigure, Tally};
pub use table::{Cause, PUBLISHED, Published};

use crate::{Experiment, Result};

/// A part of an experiment that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The requests to drives.
    Structure(senesce_trials::Experiment),
    /// Their times, in the simulation.
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

    /// The kind of measurement: structure or time.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Structure(_) => "structure",
            Self::Time(_) => "time",
        }
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Structure(experiment) => experiment.title(),
            Self::Time(experiment) => experiment.title(),
        }
    }

    /// Its approximate relative duration, so that the longest parts can start first.
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

    /// The part that runs for it. The simulations of E1, E4 and E5 also count, so that their
    /// aggregates age only once.
    pub fn source(self) -> Self {
        match self {
            Self::Structure(senesce_trials::Experiment::E1) => Self::Time(Experiment::E1),
            Self::Structure(senesce_trials::Experiment::E4) => Self::Time(Experiment::E4),
            Self::Structure(senesce_trials::Experiment::E5) => Self::Time(Experiment::E5),
            other => other,
        }
    }

    /// Runs it, in time with the table `paper20`. Returns the records of all parts whose
    /// [`source`](Self::source) it is. Deterministic. Cost: see docs/results/garden-trials.md.
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
