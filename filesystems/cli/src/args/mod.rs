//! The command line, as typed.

mod dump;
mod evergreen;
mod fs;
mod garden;
mod mount;
mod mounted;
mod objects;
mod volume_names;

use clap::{Parser, Subcommand};

pub use dump::*;
pub use evergreen::*;
pub use fs::*;
pub use garden::*;
pub use mount::*;
pub use mounted::*;
pub use objects::*;
pub use senesce_cli::GardeningArg;
pub use volume_names::*;

/// Makes, mounts, checks and repairs the file systems of senesce, and runs published experiments.
#[derive(Debug, Parser)]
#[command(
    name = "senesce-fs",
    version = senesce_cli::VERSION,
    propagate_version = true,
    max_term_width = 100,
    after_help = "`senesce fs` and `senesce garden` are the same commands. `senesce help exit-codes` lists the exit codes."
)]
pub struct Cli {
    /// Print no progress.
    #[arg(short, long, global = true, display_order = 900)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// A verb of `senesce fs` or of `senesce garden`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(flatten)]
    Fs(Box<FsVerb>),
    #[command(flatten)]
    Garden(GardenVerb),
}
