//! Scripts: the threads of a program on real files, with the time of each call.
//!
//! [`make_script_files`] makes the initial files, [`run_script`] runs the calls of the threads. The
//! caller chooses files and calls.

mod caller;
mod files;
mod run;
mod semaphores;
#[cfg(test)]
mod tests;

pub use files::make_script_files;
pub use run::{FlowTally, ScriptEnd, ScriptLimits, run_script};
