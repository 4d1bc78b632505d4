//! Arguments of what is done with a volume of a garden and its snapshots.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use senesce_core::Bytes;

/// The drives of an aggregate, in place of its directory.
#[derive(Clone, Debug, Args)]
pub struct FsDrivesArgs {
    /// In place of a directory: its drives, files or block devices, once for each and in any order; one of each group with
    /// parity may be missing.
    #[arg(long, value_name = "FILE|DEVICE", requires = "log")]
    pub drive: Vec<PathBuf>,
    /// With --drive: the log; once for each of its copies, if they are on two devices.
    #[arg(long, value_name = "FILE|DEVICE", requires = "drive")]
    pub log: Vec<PathBuf>,
}

/// A volume of a garden.
#[derive(Debug, Args)]
pub struct FsOfVolumeArgs {
    /// The directory that `fs mkfs` made, not with --drive; the volume.
    #[arg(value_names = ["DIRECTORY", "VOLUME"], num_args = 1..=2, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// How contents of a volume are made smaller.
#[derive(Debug, Args)]
pub struct FsPackArgs {
    /// Compress what files hold, so many bytes together (8KiB if nothing is said, 16KiB or 32KiB), and let partial blocks share a block. To
    /// write over one block all that were compressed with it are read and written.
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "8KiB")]
    pub compress: Option<Bytes>,
}

#[derive(Debug, Args)]
pub struct FsRecompactArgs {
    #[command(flatten)]
    pub of: FsOfVolumeArgs,
    /// Look into a block if fewer than this many percent of its chunks are left.
    #[arg(long, value_name = "PERCENT", default_value_t = senesce_garden::RECOMPACTED_BELOW_PERCENT, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub below: u64,
}

/// A snapshot of a volume of a garden.
#[derive(Debug, Args)]
pub struct FsOfSnapshotArgs {
    /// The directory that `fs mkfs` made, not with --drive; the volume; the snapshot.
    #[arg(value_names = ["DIRECTORY", "VOLUME", "NAME"], num_args = 1..=3, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsCloneArgs {
    /// The directory that `fs mkfs` made, not with --drive; the volume; its snapshot; the name of the new volume.
    #[arg(value_names = ["DIRECTORY", "VOLUME", "SNAPSHOT", "NAME"], num_args = 1..=4, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsDiffArgs {
    /// The directory that `fs mkfs` made, not with --drive; the volume; the earlier snapshot; the later one, by default the
    /// volume as it is.
    #[arg(value_names = ["DIRECTORY", "VOLUME", "FROM", "TO"], num_args = 1..=4, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Files of a volume that are to lie better.
#[derive(Debug, Args)]
pub struct FsDefragArgs {
    /// The directory that `fs mkfs` made, not with --drive; files and directories in the volume with all below them, by
    /// default all of it. Or the file or device of an evergreen, which is swept as a whole.
    #[arg(value_names = ["DIRECTORY", "PATH"], num_args = 0..)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// Which volume.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub volume: OsString,
    /// Only report how files are placed, and how they would be. For an evergreen, all that would be written is kept in memory.
    #[arg(long)]
    pub dry_run: bool,
    /// Write blocks as if their bytes were new, as other file systems do: snapshots keep the old ones, and what is shared is no longer.
    #[arg(long)]
    pub traditional: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsSnapshotArgs {
    #[command(subcommand)]
    pub verb: FsSnapshotVerb,
}

#[derive(Debug, Subcommand)]
pub enum FsSnapshotVerb {
    /// Keep a volume as it is, under a name; nothing is copied.
    Create(FsOfSnapshotArgs),
    /// The snapshots of a volume, the oldest first, and what they hold; changes nothing.
    List(FsOfVolumeArgs),
    /// Delete one, and make free what only it used.
    Delete(FsOfSnapshotArgs),
    /// Make the volume what a snapshot of it is: what came later and no snapshot has is lost.
    Restore(FsOfSnapshotArgs),
}
