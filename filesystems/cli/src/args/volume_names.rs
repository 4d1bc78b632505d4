//! Arguments of verbs on a volume of a garden and its snapshots.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use senesce_core::Bytes;

/// The drives of an aggregate, in place of its directory.
#[derive(Clone, Debug, Args)]
pub struct FsDrivesArgs {
    /// A drive, in place of PLACE. Repeatable.
    ///
    /// A file or block device, once for each drive and in any order. One drive of each group with
    /// parity may be missing.
    #[arg(long, value_name = "FILE", requires = "log")]
    pub drive: Vec<PathBuf>,
    /// With --drive: the log. Repeatable.
    ///
    /// Once for each of its copies, if they are on two devices.
    #[arg(long, value_name = "FILE", requires = "drive")]
    pub log: Vec<PathBuf>,
}

/// A volume of a garden.
#[derive(Debug, Args)]
pub struct FsOfVolumeArgs {
    /// The garden (not with --drive), then the volume.
    ///
    /// The volume is main by default, except for `volume delete`.
    #[arg(value_names = ["PLACE", "VOLUME"], num_args = 0..=2)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A volume of a garden to change.
#[derive(Debug, Args)]
pub struct FsChangeVolumeArgs {
    #[command(flatten)]
    pub of: FsOfVolumeArgs,
    #[command(flatten)]
    pub trial: FsTrialArgs,
}

/// The dry run of a change.
#[derive(Clone, Copy, Debug, Args)]
pub struct FsTrialArgs {
    /// Check the command, and print its effect. Change nothing.
    ///
    /// The command works on a copy in memory. It fails if more than 256MiB of a drive change.
    /// A mounted garden makes a consistency point first.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
}

/// Compression of a volume.
#[derive(Debug, Args)]
pub struct FsPackArgs {
    /// Compress contents in units of 8KiB, 16KiB or 32KiB.
    ///
    /// Default unit: 8KiB. Partial blocks share a block. To overwrite one block, the whole unit is
    /// read and written.
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "8KiB")]
    pub compress: Option<Bytes>,
}

#[derive(Debug, Args)]
pub struct FsRecompactArgs {
    #[command(flatten)]
    pub of: FsOfVolumeArgs,
    /// Merge blocks with fewer than this percentage of chunks.
    #[arg(long, value_name = "PERCENT", default_value_t = senesce_garden::RECOMPACTED_BELOW_PERCENT, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub below: u64,
    #[command(flatten)]
    pub trial: FsTrialArgs,
}

/// A snapshot of a volume of a garden.
#[derive(Debug, Args)]
pub struct FsOfSnapshotArgs {
    /// The garden (not with --drive), volume (default: main) and snapshot.
    #[arg(value_names = ["PLACE", "VOLUME", "NAME"], num_args = 1..=3, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    #[command(flatten)]
    pub trial: FsTrialArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsCloneArgs {
    /// The garden (not with --drive) and names.
    ///
    /// Volume, snapshot and the name of the new volume.
    #[arg(value_names = ["PLACE", "VOLUME", "SNAPSHOT", "NAME"], num_args = 1..=4, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    #[command(flatten)]
    pub trial: FsTrialArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsDiffArgs {
    /// The garden (not with --drive), volume and snapshots.
    ///
    /// FROM is the earlier snapshot, TO the later one. Default of TO: the volume as it is.
    #[arg(value_names = ["PLACE", "VOLUME", "FROM", "TO"], num_args = 1..=4, required = true)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Files of a volume to defragment.
#[derive(Debug, Args)]
pub struct FsDefragArgs {
    /// The garden (not with --drive), then paths in the volume.
    ///
    /// Each path stands for all files below it. Default: all files. The file or device of an
    /// evergreen is defragmented as a whole.
    #[arg(value_names = ["PLACE", "PATH"], num_args = 0..)]
    pub words: Vec<OsString>,
    #[command(flatten)]
    pub drives: FsDrivesArgs,
    /// The volume.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub volume: OsString,
    /// Print the layout before and after. Write nothing.
    ///
    /// For an evergreen, all new contents are kept in memory.
    #[arg(long)]
    pub dry_run: bool,
    /// Copy blocks, as other file systems do.
    ///
    /// Snapshots keep the old blocks, and shared blocks are shared no longer.
    #[arg(long)]
    pub traditional: bool,
    /// Print JSON.
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
    /// Make a snapshot of a volume. No data is copied.
    #[command(after_long_help = "Example:\n  \
        senesce fs snapshot create /srv/garden main monday")]
    Create(FsOfSnapshotArgs),
    /// Print the snapshots of a volume and their sizes, the oldest first. Changes nothing.
    #[command(after_long_help = "Example:\n  \
        senesce fs snapshot list /srv/garden main")]
    List(FsOfVolumeArgs),
    /// Delete a snapshot, and free the blocks that only it used.
    #[command(after_long_help = "Example:\n  \
        senesce fs snapshot delete /srv/garden main monday --dry-run")]
    Delete(FsOfSnapshotArgs),
    /// Set a volume back to a snapshot. Later changes are lost, unless another snapshot has them.
    #[command(after_long_help = "Examples:\n  \
        senesce fs snapshot restore /srv/garden main monday --dry-run     check it first\n  \
        senesce fs snapshot restore /srv/garden main monday")]
    Restore(FsOfSnapshotArgs),
}
