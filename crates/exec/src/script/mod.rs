//! Scripts: the threads of a program on real files, each call timed.
//!
//! [`make_script_files`] makes what is there at the beginning, [`run_script`] lets the threads do their calls. What it is
//! not: it chooses nothing; files and calls come from whoever knows the program.

mod caller;
mod files;
mod run;
mod semaphores;
#[cfg(test)]
mod tests;

pub use files::make_script_files;
pub use run::{FlowTally, ScriptEnd, ScriptLimits, run_script};
