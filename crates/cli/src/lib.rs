//! The command line of the laboratory: one file per verb. The only crate of the laboratory that
//! prints, and that reads the environment and the clock of the machine.
//!
//! It imports no engine. The programs `senesce` and `senesce-fs` are built on it. They differ in
//! [`Engines`]: `senesce` asks `senesce-fs` as a child process, or hands the whole command over.

// First, for its macros.
#[macro_use]
pub mod out;

mod args;
pub mod chains;
pub mod clock;
mod engines;
pub mod exit;
mod fit;
mod machine;
mod near;
mod program;
pub mod progress;
pub mod schema;
pub mod table;
mod verb;

pub use args::{GardeningArg, SchemaOf};
pub use engines::{Beside, Engines, HANDED_OVER, VERSION, choose};
pub use fit::{fit, fit_to};
pub use program::{run_handed_over, run_program};
pub use verb::{
    fresh::check_new, guest::trust_owners, home::with_home, output::check_output_directory, run::registry_dir,
};
