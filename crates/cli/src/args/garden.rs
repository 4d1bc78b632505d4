//! Arguments of what is done with gardens that are made for it.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct GardenArgs {
    #[command(subcommand)]
    pub verb: GardenVerb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum GardenVerb {
    /// Run the published experiments in memory and in virtual time, and hold what comes out against what was published.
    Reproduce(ReproduceArgs),
}

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Which: E1 to E14; all by default.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// How large: tiny (nothing but a test), small, eighth, quarter, full, or allocation areas and those of a consistency
    /// point, such as 128/2.
    #[arg(long, default_value = "eighth")]
    pub scale: String,
    /// Write a page, the table as JSON, and each part that ends, here; what is there already is not run again.
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
    /// The table as JSON.
    #[arg(long)]
    pub json: bool,
    /// Experiments that run at a time; as many as there are processors by default. Figures do not depend on it.
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
}
