//! An operation log as a workload: it repeats recorded operations on any volume, any number of
//! times.
//!
//! [`plan_pieces`] turns the log's records into steps. It joins small ones, and keeps the completed
//! part of a failed one. [`LogReplay`] returns the steps, and removes old repetitions when space
//! runs out. This module reads no files: records come from an iterator, and each repetition
//! requests a new one.

mod log_steps;
#[cfg(test)]
mod tests;
mod workload;

pub use log_steps::{Piece, ReplayOptions, STEP_BYTES, ops_done, parse_beginning, plan_pieces};
pub use workload::LogReplay;
