//! Arguments of `garden`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct GardenArgs {
    #[command(subcommand)]
    pub verb: GardenVerb,
}

/// A verb of `garden`.
#[derive(Debug, Subcommand)]
pub enum GardenVerb {
    /// Run the published experiments in memory, and compare the figures.
    #[command(after_long_help = "Examples:\n  \
        senesce garden reproduce E1 --scale tiny                 a smoke test of one experiment\n  \
        senesce garden reproduce --dry-run                       list the parts")]
    Reproduce(ReproduceArgs),
}

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Experiments: E1 to E14. Default: all.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Scale: tiny, small, eighth, quarter, full, or AREAS/POINT.
    ///
    /// tiny is a smoke test, whose figures are not judged. AREAS/POINT, such as 128/2, is the
    /// number of allocation areas, and that of the areas of a consistency point.
    #[arg(long, default_value = "eighth")]
    pub scale: String,
    /// Directory for a page, the table as JSON and each part.
    ///
    /// Parts that are in it already are not run again.
    #[arg(short, long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
    /// Print the parts that would run. Run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the table as JSON.
    #[arg(long)]
    pub json: bool,
    /// Experiments at a time. Default: one for each processor.
    ///
    /// Figures do not depend on it.
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}
