//! Published experiments in time: what the drives of a garden were asked for is collected while it works, and played to the simulation.
//!
//! - [`TapedDrive`] writes down requests, [`compute_operation`] and [`compute_point`] make a trace of them.
//! - [`TimedTrial`] is a trial of `senesce-trials` on such drives: it ages, and collects a [`Window`] of consistency points.
//! - [`PackedTrial`] is the same for contents that are packed, and recompacted.
//! - [`machine`] describes the systems, [`calibrate`] fits the table of processors to one published figure, and to that alone.
//! - [`Experiment`] puts it together; an [`Outcome`] has figures of ours beside published ones.
//! - [`published`] is the table of all experiments, whatever of them is structure or time.
//!
//! Pure: no files, clocks or threads. What is in milliseconds, cores or GiB/s here is a *model's*. docs/results/timed.md has the figures.

mod calibrate;
mod collect;
mod error;
mod experiments;
pub mod machine;
mod packed;
pub mod published;
mod tape;
mod timed;

pub use calibrate::{Calibration, MAXIMUM_PER_SECOND, calibrate};
pub use collect::{compute_cleaning_events, compute_operation, compute_point};
pub use error::{Error, Result};
pub use experiments::{Experiment, Outcome, Run, Stage};
pub use packed::PackedTrial;
pub use tape::{Entry, Tape, TapedDrive};
pub use timed::{TimedTrial, Window};
