//! Arguments of the file systems of our own.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use senesce_core::Bytes;

#[derive(Debug, Args)]
pub struct FsArgs {
    #[command(subcommand)]
    pub verb: FsVerb,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum FsVerb {
    /// Make an empty one in a new directory, as images.
    Mkfs(FsMkfsArgs),
    /// Mount it, until it is unmounted or interrupted.
    Mount(FsMountArgs),
    /// Check it, as it lies and as opening makes it; changes nothing.
    Check(FsLookArgs),
    /// What it holds and has left; changes nothing.
    Stat(FsLookArgs),
}

/// The file systems of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Copy on write, on drives in RAID-4 with a log; every block knows what it is.
    Garden,
}

#[derive(Debug, Args)]
pub struct FsMkfsArgs {
    /// Which.
    pub engine: EngineKind,
    /// The directory to make.
    pub place: PathBuf,
    /// What all drives hold together, without parity. The images are sparse.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub size: Bytes,
    /// Drives that hold data.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub data_drives: u16,
    /// No drive for parity: what is damaged is noticed, and not put right.
    #[arg(long)]
    pub no_parity: bool,
    /// The log: operations wait here for the next consistency point.
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    pub log_size: Bytes,
    /// The name of its first volume.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub volume: String,
    /// What its identity and the order of names in directories follow from; the time of day by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct FsMountArgs {
    /// The directory that `fs mkfs` made.
    pub place: PathBuf,
    /// Where to mount it.
    pub point: PathBuf,
    /// Which volume.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub volume: String,
    /// Threads that serve.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,
    /// Take no changes, and make none.
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Debug, Args)]
pub struct FsLookArgs {
    /// The directory that `fs mkfs` made.
    pub place: PathBuf,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}
