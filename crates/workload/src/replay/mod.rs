//! An operation log as a workload: what was done once is done again, on any volume, as often as asked.
//!
//! [`plan_pieces`] makes steps of the log's records: small ones are put together, parts of a failed one are kept as far as
//! they were done. [`LogReplay`] gives them out and makes room where space ends. Reading files is not done here: records
//! come from an iterator, repetitions from asking for another one.

mod pieces;
#[cfg(test)]
mod tests;
mod workload;

pub use pieces::{Piece, ReplayOptions, STEP_BYTES, ops_done, parse_beginning, plan_pieces};
pub use workload::LogReplay;
