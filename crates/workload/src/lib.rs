//! Workloads: they turn a seed, parameters and feedback into steps of operations.
//!
//! A workload is pure: it never touches a file system, a clock or a thread. Repositories, traces
//! and logs enter through traits and iterators. [`Feedback`] is its only other input.

pub mod fsfb;
mod generated_paths;
pub mod git;
pub mod mail;
#[cfg(test)]
mod measured_volume;
pub mod micro;
pub mod overwrite;
pub mod personality;
pub mod profile;
pub mod replay;
mod retry;
pub mod synthetic;
pub mod trace;
mod workload;

pub use workload::{Feedback, Workload, WorkloadError};
