//! Arguments of the file systems of this project.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use senesce_core::Bytes;

use super::{
    FsChangeVolumeArgs, FsCloneArgs, FsDefragArgs, FsDiffArgs, FsDumpArgs, FsMountArgs, FsNewObjectsArgs,
    FsObjectsArgs, FsOnlineArgs, FsPackArgs, FsRecompactArgs, FsServeArgs, FsSnapshotArgs, FsTreeArgs, FsTrialArgs,
    PricesArg,
};

#[derive(Debug, Args)]
pub struct FsArgs {
    #[command(subcommand)]
    pub verb: FsVerb,
}

/// A verb of `fs`.
#[derive(Debug, Subcommand)]
pub enum FsVerb {
    /// Make an empty file system: in a new directory, on drives, or on one file.
    #[command(after_long_help = "Examples:\n  \
        senesce fs mkfs garden /srv/garden --size 10GiB           drives as files in a directory\n  \
        sudo senesce fs mkfs garden --drive /dev/sdb --drive /dev/sdc --drive /dev/sdd --log /dev/sde\n  \
        senesce fs mkfs evergreen e.img --size 1GiB --dry-run")]
    Mkfs(FsMkfsArgs),
    /// Mount a volume until it is unmounted or interrupted.
    ///
    /// Exit code 7: the unmount succeeded, but a drive is missing or not rebuilt, or a copy of the
    /// log is lost.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce fs mount /srv/garden /mnt/garden          until Ctrl-C or umount\n  \
        sudo senesce fs mount evergreen:/srv/e.img /mnt/e")]
    Mount(FsMountArgs),
    /// Check the file system and its log, mounted or not. Changes nothing without --repair.
    ///
    /// Checks the state on the devices, and the state after a replay of the log.
    #[command(after_long_help = "Examples:\n  \
        senesce fs check /srv/garden\n  \
        senesce fs check /srv/garden --repair --dry-run         print the repairs; write nothing")]
    Check(FsCheckArgs),
    /// Print contents and free space. Changes nothing.
    #[command(after_long_help = "Example:\n  \
        senesce fs stat /mnt/garden")]
    Stat(FsStatArgs),
    /// Print counters of a mount as JSON: requests to drives by kind, gardening, objects.
    #[command(after_long_help = "Example:\n  \
        senesce fs figures /mnt/garden | jq '.drives'")]
    Figures(FsPlaceArgs),
    /// Replace a missing drive by a new one, and fill it from the others.
    #[command(after_long_help = "Examples:\n  \
        senesce fs replace /srv/garden 2\n  \
        sudo senesce fs replace /srv/garden 2 --with /dev/sdf --dry-run")]
    Replace(FsReplaceArgs),
    /// Continue to fill new drives after an interruption.
    #[command(after_long_help = "Example:\n  \
        senesce fs rebuild /srv/garden")]
    Rebuild(FsRebuildArgs),
    /// Create, list or delete volumes.
    Volume(FsVolumeArgs),
    /// Create, list, delete or restore snapshots of a volume.
    Snapshot(FsSnapshotArgs),
    /// Make a volume from a snapshot. No data is copied.
    #[command(after_long_help = "Example:\n  \
        senesce fs clone /srv/garden main monday copy")]
    Clone(FsCloneArgs),
    /// Print the files that differ between two snapshots of a volume. Changes nothing.
    #[command(after_long_help = "Example:\n  \
        senesce fs diff /srv/garden main monday tuesday")]
    Diff(FsDiffArgs),
    /// Let blocks of a volume with equal contents share one block.
    #[command(after_long_help = "Example:\n  \
        senesce fs dedup /srv/garden main --dry-run             print the gain; change nothing")]
    Dedup(FsChangeVolumeArgs),
    /// Write files with scattered blocks together again. Contents and snapshots stay.
    #[command(after_long_help = "Examples:\n  \
        senesce fs defrag /srv/garden --dry-run\n  \
        senesce fs defrag evergreen:e.img")]
    Defrag(FsDefragArgs),
    /// Merge partly used compressed blocks of a volume made with --compress.
    #[command(after_long_help = "Example:\n  \
        senesce fs recompact /srv/garden main --below 75")]
    Recompact(FsRecompactArgs),
    /// Empty allocation areas with scattered blocks, and correct pointers to old places.
    #[command(after_long_help = "Example:\n  \
        senesce fs clean /srv/garden --dry-run")]
    Clean(FsCleanArgs),
    /// Make all writes to a mount durable. It stays mounted.
    ///
    /// FUSE passes neither sync(1) nor syncfs(2) to the server. Returns when the writes before it
    /// are durable. Unless root runs it, it does not wait for pages of files that other users have
    /// open or mapped.
    #[command(after_long_help = "Example:\n  senesce fs sync /mnt/garden")]
    Sync(FsSyncArgs),
    /// Write cold blocks to objects, and delete objects that are not needed.
    ///
    /// Contents stay the same.
    #[command(after_long_help = "Examples:\n  \
        senesce fs tier /srv/garden --objects /srv/objects --dry-run\n  \
        senesce fs tier /srv/garden --objects s3://lab/garden --prices s3")]
    Tier(FsTierArgs),
    /// Print the layout of a file system that is not mounted, for `senesce`.
    #[command(hide = true)]
    Survey(FsSurveyArgs),
    /// Serve a mount for a run, which started it and holds it.
    #[command(hide = true)]
    Serve(FsServeArgs),
    /// Read every block, compare it with its checksums and parity, and repair one drive.
    #[command(after_long_help = "Example:\n  \
        senesce fs scrub /srv/garden")]
    Scrub(FsScrubArgs),
    /// Print any structure on the devices, damaged or not. Changes nothing.
    #[command(after_long_help = "Examples:\n  \
        senesce fs dump /srv/garden superblock\n  \
        senesce fs dump /srv/garden file main /src/lib.rs     its inode, and the places of its blocks\n  \
        senesce fs dump /srv/garden pvbn 70213 --hex          a block, its trailer, and the owner of the block\n  \
        senesce fs dump /srv/garden log --most 20 --json")]
    Dump(FsDumpArgs),
}

/// The file systems of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Copy on write, on drives in RAID-4 with a log.
    Garden,
    /// A B-epsilon-tree on one file or device: neighbours in a directory stay neighbours.
    Evergreen,
}

/// The medium of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MediumArg {
    /// Disks.
    Hdd,
    /// Flash.
    Ssd,
}

/// The place of an aggregate.
#[derive(Clone, Debug, Args)]
pub struct FsPlaceArgs {
    /// Directory, file, device or mount point.
    ///
    /// One of these:
    /// the directory that `fs mkfs` made, also as garden:DIRECTORY;
    /// a file or device with a drive and, after it, the log;
    /// a mount point.
    #[arg(value_name = "PLACE", required_unless_present = "drive", verbatim_doc_comment)]
    pub place: Option<PathBuf>,
    /// A drive, in place of PLACE. Repeatable.
    ///
    /// A file or block device, once for each drive and in any order. One drive of each group with
    /// parity may be missing.
    #[arg(long, value_name = "FILE", requires = "log", conflicts_with = "place")]
    pub drive: Vec<PathBuf>,
    /// With --drive: the log. Repeatable.
    ///
    /// If the two copies of the log are on two devices, name both. A single device has both copies.
    #[arg(long, value_name = "FILE", requires = "drive")]
    pub log: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FsMkfsArgs {
    /// The file system.
    #[arg(hide_possible_values = false)]
    pub engine: EngineKind,
    /// Its drives and log; the directory is made.
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Size of all new drives, without parity. Default: 1GiB.
    ///
    /// Their images are sparse.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Data drives of a RAID group. Default: 4.
    ///
    /// With --drive: all but one, and more drives make more groups.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub data_drives: Option<u16>,
    /// The medium of the drives.
    #[arg(long, value_enum, default_value_t = MediumArg::Hdd)]
    pub medium: MediumArg,
    /// Add a RAID group of SSDs of this size (flash pool).
    ///
    /// Size without parity; in a directory, with the same number of drives. Small scattered writes
    /// are placed on it, and move to the disks when they are cold.
    #[arg(long, value_name = "SIZE")]
    pub flash_size: Option<Bytes>,
    /// With --drive: an SSD of that group. Repeatable.
    ///
    /// Later verbs name it with --drive.
    #[arg(long, value_name = "FILE", requires = "drive")]
    pub flash_drive: Vec<PathBuf>,
    /// Make no drive for parity: damage is found, not repaired.
    #[arg(long)]
    pub no_parity: bool,
    /// Size of the log. Default: 32MiB.
    ///
    /// Operations wait here for the next consistency point. Default on one file or device: a
    /// sixteenth of it, 1MiB to 32MiB.
    #[arg(long, value_name = "SIZE")]
    pub log_size: Option<Bytes>,
    /// Name of the first volume. Default: main.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    #[command(flatten)]
    pub pack: FsPackArgs,
    /// Seed of identity and name order. Default: the time.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Identity, 32 hexadecimal digits. Default: from the seed.
    #[arg(long, value_name = "UUID")]
    pub uuid: Option<String>,
    /// Overwrite drives and logs that hold data.
    ///
    /// Their contents are lost. Devices in use are never overwritten.
    #[arg(long)]
    pub force: bool,
    /// The file or device holds only zeros: write none.
    ///
    /// For an evergreen, at least the place of its log must hold zeros.
    #[arg(long)]
    pub zeroed: bool,
    #[command(flatten)]
    pub tree: FsTreeArgs,
    /// Check the place and the options. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct FsLookArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsWithObjectsArgs {
    #[command(flatten)]
    pub look: FsLookArgs,
    #[command(flatten)]
    pub objects: FsObjectsArgs,
}

#[derive(Debug, Args)]
pub struct FsStatArgs {
    #[command(flatten)]
    pub what: FsWithObjectsArgs,
    /// Garden: also print the requests to each drive while it was opened.
    ///
    /// JSON always has them.
    #[arg(long, short)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct FsCheckArgs {
    #[command(flatten)]
    pub what: FsWithObjectsArgs,
    /// Repair from all readable data, and report losses.
    ///
    /// In a garden: labels, superblocks, copies of the log, blocks and parity.
    #[arg(long)]
    pub repair: bool,
    /// With --repair: print the repairs. Write nothing.
    #[arg(long, requires = "repair")]
    pub dry_run: bool,
    /// With --repair: also if no log of a garden is readable.
    ///
    /// Operations that only the log held are lost.
    #[arg(long, requires = "repair")]
    pub without_log: bool,
    /// With --without-log: overwrite other data on a log.
    ///
    /// Applies to a device named as the log. A drive, and the log of another garden, are always
    /// refused.
    #[arg(long, requires = "without_log")]
    pub force: bool,
    #[command(flatten)]
    pub online: FsOnlineArgs,
}

#[derive(Debug, Args)]
pub struct FsSyncArgs {
    /// Mount point, or any path below it.
    #[arg(value_name = "POINT", required = true)]
    pub points: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FsTierArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    #[command(flatten)]
    pub objects: FsNewObjectsArgs,
    /// Age of cold blocks, in consistency points.
    ///
    /// Blocks that were not written or moved for this number of consistency points are cold, and
    /// blocks that only snapshots use.
    #[arg(long, value_name = "POINTS", default_value_t = 64)]
    pub age: u16,
    /// Also rewrite objects where prices favour it: s3, azure.
    ///
    /// The live blocks of an object are written again if that costs less than it saves in a month.
    #[arg(long, value_enum, value_name = "LIST", hide_possible_values = true)]
    pub prices: Option<PricesArg>,
    #[command(flatten)]
    pub trial: FsTrialArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsReplaceArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// The number of the drive; `fs stat` prints it.
    #[arg(value_name = "NUMBER")]
    pub number: u32,
    /// The new drive. Default: a new image in DIRECTORY.
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// Overwrite a new drive that holds data.
    ///
    /// Its contents are lost. A drive in use is never overwritten.
    #[arg(long)]
    pub force: bool,
    /// Check the garden and the new drive. Write nothing.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsRebuildArgs {
    #[command(flatten)]
    pub look: FsLookArgs,
    /// Print the drives that would be filled. Write nothing.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct FsSurveyArgs {
    /// A garden or an evergreen, with or without `garden:` or `evergreen:`.
    #[arg(value_name = "PLACE")]
    pub place: PathBuf,
    /// The volume of a garden. Default: the first.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Print JSON: every file, directory and free extent.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsCleanArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Start after this number of allocation areas.
    ///
    /// An interrupted run prints the number.
    #[arg(long, value_name = "AREAS", default_value_t = 0)]
    pub from: u64,
    #[command(flatten)]
    pub trial: FsTrialArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsScrubArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Start at this stripe.
    ///
    /// An interrupted run prints the number.
    #[arg(long, value_name = "STRIPE", default_value_t = 0)]
    pub from: u64,
    #[command(flatten)]
    pub trial: FsTrialArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsVolumeArgs {
    #[command(subcommand)]
    pub verb: FsVolumeVerb,
}

#[derive(Debug, Subcommand)]
pub enum FsVolumeVerb {
    /// Make an empty volume.
    #[command(after_long_help = "Example:\n  \
        senesce fs volume create /srv/garden home --size 4GiB --compress")]
    Create(FsVolumeCreateArgs),
    /// Print names, sizes and free space of all volumes. Changes nothing.
    #[command(after_long_help = "Example:\n  \
        senesce fs volume list /srv/garden")]
    List(FsLookArgs),
    /// Delete a volume without snapshots. Its contents are lost.
    #[command(after_long_help = "Example:\n  \
        senesce fs volume delete /srv/garden home --dry-run      print the space that this frees")]
    Delete(FsChangeVolumeArgs),
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsVolumeCreateArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Its name.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Largest size. Default: the size of the garden.
    ///
    /// Volumes share the space: the sum of their sizes may be larger.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Limit of files and directories. Default: one for two blocks.
    #[arg(long, value_name = "N")]
    pub inodes: Option<u64>,
    #[command(flatten)]
    pub pack: FsPackArgs,
    /// Seed of the order of names. Default: its name.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Check the garden and the volume. Make nothing.
    #[arg(long)]
    pub dry_run: bool,
}
