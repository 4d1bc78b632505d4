//! Published experiments in time: it records the requests of a garden's drives, and simulates them.
//!
//! - [`TracingDrive`] records requests; [`compute_operation`] and [`compute_point`] turn them into
//!   a trace.
//! - [`TimedTrial`] is a trial of `senesce-trials` on such drives: it ages, and collects a
//!   [`Window`] of consistency points.
//! - [`PackedTrial`] is the same for contents that are packed, and recompacted.
//! - [`published_machines`] describes the systems; [`calibrate`] fits the table of processor times
//!   to a single published figure.
//! - [`Experiment`] combines them; an [`Outcome`] has our figures beside published ones.
//! - [`published`] is the table of all experiments, in structure and in time.
//!
//! Pure: no files, clocks or threads. All milliseconds, cores and GiB/s here are those of a
//! *model*. docs/results/timed.md has the figures.

mod calibrate;
mod error;
mod experiments;
mod io_trace;
mod packed_garden;
pub mod published;
pub mod published_machines;
mod trace_operations;
mod traced_garden;

pub use calibrate::{Calibration, MAXIMUM_PER_SECOND, calibrate};
pub use error::{Error, Result};
pub use experiments::{Experiment, Outcome, Run, Stage};
pub use io_trace::{Entry, IoTrace, TracingDrive};
pub use packed_garden::PackedTrial;
pub use trace_operations::{compute_cleaning_events, compute_operation, compute_point};
pub use traced_garden::{TimedTrial, Window};
