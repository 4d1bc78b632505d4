//! Arguments of the file systems of our own.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use senesce_core::Bytes;

use super::{
    AlsoArg, FsCloneArgs, FsDefragArgs, FsDiffArgs, FsDumpArgs, FsNewObjectsArgs, FsObjectsArgs, FsOfVolumeArgs,
    FsOnlineArgs, FsPackArgs, FsRecompactArgs, FsSnapshotArgs, FsTreeArgs, PricesArg,
};

#[derive(Debug, Args)]
pub struct FsArgs {
    #[command(subcommand)]
    pub verb: FsVerb,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum FsVerb {
    /// Make an empty one: in a new directory, as images, on drives that are named, or on one file or device.
    Mkfs(FsMkfsArgs),
    /// Mount a volume until it is unmounted or interrupted. Exit code 7: the unmount succeeded, but a drive is missing or not filled,
    /// or a copy of the log is lost.
    Mount(FsMountArgs),
    /// Check the state on the devices, and the state after a replay of the log; also of a mount. Changes nothing without --repair.
    Check(FsCheckArgs),
    /// What it holds and has left; changes nothing.
    Stat(FsStatArgs),
    /// What a mount counts, as JSON: requests to its drives by kind, gardening, objects.
    Figures(FsPlaceArgs),
    /// Put a new drive in the place of one that is missing, and fill it from the others.
    Replace(FsReplaceArgs),
    /// Go on filling new drives where it was interrupted.
    Rebuild(FsLookArgs),
    /// Its volumes: make one more, list them, delete one.
    Volume(FsVolumeArgs),
    /// The snapshots of a volume: make one, list them, delete one, make the volume what one of them is.
    Snapshot(FsSnapshotArgs),
    /// Make a volume of a snapshot; nothing is copied, and both go their own ways.
    Clone(FsCloneArgs),
    /// What became of files between two snapshots of a volume, or between one and the volume as it is; changes nothing.
    Diff(FsDiffArgs),
    /// Find blocks of a volume's files that hold the same, and let them share one.
    Dedup(FsOfVolumeArgs),
    /// Write files together again whose blocks lie scattered; only places change, nothing that a file or snapshot holds.
    Defrag(FsDefragArgs),
    /// Write together what is left of blocks that held chunks of many; for volumes that are made with --compress.
    Recompact(FsRecompactArgs),
    /// Clean allocation areas whose blocks lie scattered, and put pointers to old places right.
    Clean(FsCleanArgs),
    /// Make everything durable that was written to a mount of either engine; it stays mounted.
    ///
    /// FUSE passes neither sync(1) nor syncfs(2) on. Returns when the writes before it are durable. Unless root runs it, it does not wait for
    /// pages of files that other users have open or mapped.
    #[command(after_help = "Example:\n  senesce fs sync /mnt/garden")]
    Sync(FsSyncArgs),
    /// Write cold blocks to objects, and delete the objects that nothing needs; contents stay what they are.
    Tier(FsTierArgs),
    /// Serve a mount for a run, which began it and holds it.
    #[command(hide = true)]
    Serve(FsServeArgs),
    /// Hold every block against its trailer, its map and its parity, and put right what one drive has wrong.
    Scrub(FsScrubArgs),
    /// Show any structure as it lies on the devices, damaged or not; changes nothing.
    #[command(after_help = "Examples:\n  \
        senesce fs dump /srv/garden superblock\n  \
        senesce fs dump /srv/garden file main /src/lib.rs     its inode, and where its blocks lie\n  \
        senesce fs dump /srv/garden pvbn 70213 --hex          a block, its trailer, who names it\n  \
        senesce fs dump /srv/garden log --most 20 --json")]
    Dump(FsDumpArgs),
}

/// The file systems of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Copy on write, on drives in RAID-4 with a log; every block knows what it is.
    Garden,
    /// A B-epsilon-tree on one file or device: what is read together lies together in big nodes, and stays so.
    Evergreen,
}

/// What drives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MediumArg {
    /// Disks.
    Hdd,
    /// Flash.
    Ssd,
}

/// Where an aggregate lies.
#[derive(Clone, Debug, Args)]
pub struct FsPlaceArgs {
    /// The directory that `fs mkfs` made, or one file or device that holds a drive and behind it the log; also as
    /// garden:DIRECTORY, or where it is mounted.
    #[arg(value_name = "DIRECTORY", required_unless_present = "drive")]
    pub place: Option<PathBuf>,
    /// In place of a directory: its drives, files or block devices, once for each and in any order; one of each group with
    /// parity may be missing.
    #[arg(long, value_name = "FILE|DEVICE", requires = "log", conflicts_with = "place")]
    pub drive: Vec<PathBuf>,
    /// With --drive: the log. Two copies on two devices are named one by one; one that is named alone holds both.
    #[arg(long, value_name = "FILE|DEVICE", requires = "drive")]
    pub log: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FsMkfsArgs {
    /// Which.
    pub engine: EngineKind,
    /// Its drives and log; the directory is made.
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// What all drives that are made hold together, without parity; 1GiB by default. Their images are sparse.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Drives of a RAID group that hold data: 4 by default; with --drive all but one, and more drives make more groups.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub data_drives: Option<u16>,
    /// What the drives are.
    #[arg(long, value_enum, default_value_t = MediumArg::Hdd)]
    pub medium: MediumArg,
    /// A flash pool: besides the disks a RAID group of SSDs is made that holds so much, without parity; in a directory of as many drives.
    /// What is written here and there goes there, and to the disks when it is cold.
    #[arg(long, value_name = "SIZE")]
    pub flash_size: Option<Bytes>,
    /// The same with --drive: an SSD of that group, once for each. Later verbs are given them with --drive.
    #[arg(long, value_name = "FILE|DEVICE", requires = "drive")]
    pub flash_drive: Vec<PathBuf>,
    /// No drive for parity: what is damaged is noticed, and not put right.
    #[arg(long)]
    pub no_parity: bool,
    /// The log, if it is made: operations wait here for the next consistency point. 32MiB by default; on one file or device a
    /// sixteenth of it, 1MiB to 32MiB.
    #[arg(long, value_name = "SIZE")]
    pub log_size: Option<Bytes>,
    /// The name of its first volume; main by default.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    #[command(flatten)]
    pub pack: FsPackArgs,
    /// What its identity and the order of names in directories follow from; the time of day by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The identity of the aggregate, 32 hexadecimal digits; it follows from the seed by default.
    #[arg(long, value_name = "UUID")]
    pub uuid: Option<String>,
    /// Take also drives and logs that hold something (never if they are in use): what they hold is lost.
    #[arg(long)]
    pub force: bool,
    /// On one file or device: it holds zeros already, and none are written (of an evergreen: where its log will be, at least).
    #[arg(long)]
    pub zeroed: bool,
    #[command(flatten)]
    pub tree: FsTreeArgs,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsMountArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Where to mount it.
    #[arg(value_name = "POINT")]
    pub point: PathBuf,
    /// Which volume; main by default.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// A snapshot of it, as it was; takes no changes.
    #[arg(long, value_name = "NAME")]
    pub snapshot: Option<String>,
    /// Another volume of the garden, or with /SNAPSHOT a snapshot as it was, and where to mount it; may be repeated.
    /// One process serves all of them, and ends when the last is unmounted.
    #[arg(long, value_name = "VOLUME[/SNAPSHOT]=POINT")]
    pub also: Vec<AlsoArg>,
    /// Take no changes, and make none.
    #[arg(long)]
    pub read_only: bool,
    /// Of a garden that is refused because the superblocks of its last consistency point are damaged: go back to the point before.
    /// What was done since is lost, and what was written over since is damaged; with --read-only nothing is changed.
    #[arg(long)]
    pub older_point: bool,
    /// If no copy of a garden's log can be read: open it at its last consistency point, and replay every later operation that can be
    /// read. Later acknowledged operations are lost; the mount reports them. A garden that was unmounted loses nothing and does not
    /// need this option. Devices named as the log become copies of it again. One that holds something else is refused without --force.
    #[arg(long)]
    pub without_log: bool,
    /// With --without-log: overwrite a device named as the log even if it holds other data. A drive, and the log of another garden,
    /// are always refused.
    #[arg(long, requires = "without_log")]
    pub force: bool,
    /// Gardening goes by what processors, drives, the log and clients leave it: as much as nobody feels. Areas, pointers, compacted blocks
    /// and parity are gone through while there is time.
    #[arg(long)]
    pub by_load: bool,
    /// Say every so many seconds, on stderr, what gardening by load does.
    #[arg(long, value_name = "SECONDS", requires = "by_load", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub tell_every: Option<u64>,
    /// With --by-load and --objects: by whose price list objects are written anew where that costs less than a month of what it saves;
    /// none are otherwise.
    #[arg(long, value_enum, value_name = "LIST", requires_all = ["by_load", "objects"])]
    pub prices: Option<PricesArg>,
    /// With --by-load and --objects: what was not written or moved for so many consistency points, and what only snapshots use, goes to
    /// objects.
    #[arg(long, value_name = "POINTS", default_value_t = 64, requires_all = ["by_load", "objects"])]
    pub tier_age: u16,
    /// Of an evergreen: when it has been unmounted, write there what was read, written and flushed meanwhile, as JSON; `senesce inspect
    /// --tree` draws it.
    #[arg(long, value_name = "FILE")]
    pub figures: Option<PathBuf>,
    #[command(flatten)]
    pub objects: FsObjectsArgs,
    #[command(flatten)]
    pub how: FsServedArgs,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsServeArgs {
    /// The file or device.
    #[arg(value_name = "DEVICE", required_unless_present = "in_memory")]
    pub device: Option<PathBuf>,
    /// Where to mount it.
    #[arg(value_name = "POINT")]
    pub point: PathBuf,
    /// In place of a device: an empty file system in memory that may hold so much.
    #[arg(long, value_name = "SIZE")]
    pub in_memory: Option<Bytes>,
    /// What the list of mounts calls it.
    #[arg(long, value_name = "NAME")]
    pub source: String,
    #[command(flatten)]
    pub how: FsServedArgs,
}

/// How a volume is served.
#[derive(Clone, Debug, Args)]
pub struct FsServedArgs {
    /// Threads that serve.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,
    /// What is done beside serving so that free space stays in one piece, and files do.
    #[arg(long, value_enum, default_value_t = GardeningArg::Auto)]
    pub gardening: GardeningArg,
    /// Blocks that are kept in memory as the drives have them.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub cache: Bytes,
    /// A consistency point, or a checkpoint, is made at the latest so many seconds after a change.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub point_every: u64,
    /// Operations are acknowledged when they are done in memory, as other file systems have it: durable is what was synced, and what is a
    /// second old or so. `kernel`, the usual one, lets the kernel keep writes for itself besides, which is good for small ones;
    /// with `engine` it hands them over at once, which is good for large ones; `direct` is `engine`, and who makes a file and opens it to write
    /// only writes past the kernel's pages (from Linux 6.18 on), but not for files that others write to through a mapping meanwhile.
    #[arg(long, value_name = "WHO", num_args = 0..=1, require_equals = true, default_missing_value = "kernel")]
    pub write_back: Option<WriteBackArg>,
    /// Options of the mount: `suid` enables setuid and setgid bits and file capabilities, `dev` enables device nodes.
    /// Default: neither, because a file system may come from a stranger.
    #[arg(short = 'o', long, value_enum, value_name = "OPTION", value_delimiter = ',')]
    pub options: Vec<MountOptionArg>,
}

/// An option of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MountOptionArg {
    /// Setuid and setgid bits and file capabilities have an effect.
    Suid,
    /// Device nodes can be opened.
    Dev,
}

/// Who keeps what is written for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// The kernel, and then the engine.
    Kernel,
    /// The engine alone.
    Engine,
    /// The engine alone, and new files fill no pages of the kernel's.
    Direct,
}

#[derive(Debug, Args)]
pub struct FsLookArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// As JSON.
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
    /// Of a garden: also what each drive was asked for to open it. JSON has it in any case.
    #[arg(long, short)]
    pub verbose: bool,
}

#[derive(Debug, Args)]
pub struct FsCheckArgs {
    #[command(flatten)]
    pub what: FsWithObjectsArgs,
    /// Repair it with all that can still be read, and report what is lost. Of a garden: labels, superblocks, copies of the log, blocks and
    /// parity.
    #[arg(long)]
    pub repair: bool,
    /// Report what --repair would do, and write nothing.
    #[arg(long, requires = "repair")]
    pub dry_run: bool,
    /// With --repair, of a garden: also if no copy of the log can be read. Operations that only the log held are lost.
    #[arg(long, requires = "repair")]
    pub without_log: bool,
    /// With --without-log: overwrite a device named as the log even if it holds other data. A drive, and the log of another garden,
    /// are always refused.
    #[arg(long, requires = "without_log")]
    pub force: bool,
    #[command(flatten)]
    pub online: FsOnlineArgs,
}

#[derive(Debug, Args)]
pub struct FsSyncArgs {
    /// Where it is mounted, or any file or directory of the mount.
    #[arg(value_name = "POINT", required = true)]
    pub points: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct FsTierArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    #[command(flatten)]
    pub objects: FsNewObjectsArgs,
    /// Cold is what was not written or moved for so many consistency points, and what only snapshots use.
    #[arg(long, value_name = "POINTS", default_value_t = 64)]
    pub age: u16,
    /// Also write the living blocks of objects anew where that costs less, by this price list, than a month of what it saves.
    #[arg(long, value_enum, value_name = "LIST")]
    pub prices: Option<PricesArg>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsReplaceArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// The number of the drive, as `fs stat` tells it.
    #[arg(value_name = "NUMBER")]
    pub number: u32,
    /// The new drive, a file or block device; of a directory by default a new image in it.
    #[arg(long, value_name = "FILE|DEVICE")]
    pub with: Option<PathBuf>,
    /// Take a new drive that holds something (never if it is in use): what it holds is lost.
    #[arg(long)]
    pub force: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// What is done for a garden besides what its users ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GardeningArg {
    /// As the media want it: nothing on disks or flash alone; in a flash pool cold blocks leave the flash, and its areas are cleaned.
    #[default]
    Auto,
    /// Nothing.
    Off,
    /// Continuous cleaning of segments: areas are emptied just before they are wanted, and pointers that reads find old are put right.
    Csc,
    /// Write after read: what is read in order and lies apart is written together again, as long as processors and drives have time.
    War,
    /// Both.
    All,
    /// As the media want it for small writes here and there: on disks alone that is `csc`; else as `auto`.
    Oltp,
    /// As the media want it for what is written once and read in order: on disks alone that is `war`; else as `auto`.
    Backup,
}

#[derive(Debug, Args)]
pub struct FsCleanArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// The allocation areas that are done: where an interrupted one ended.
    #[arg(long, value_name = "AREAS", default_value_t = 0)]
    pub from: u64,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsScrubArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// The stripe to begin with: where an interrupted one ended.
    #[arg(long, value_name = "STRIPE", default_value_t = 0)]
    pub from: u64,
    /// As JSON.
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
    /// Make an empty one.
    Create(FsVolumeCreateArgs),
    /// Their names, sizes and what they have left; changes nothing.
    List(FsLookArgs),
    /// Delete one that has no snapshots: all that it holds is lost.
    Delete(FsOfVolumeArgs),
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsVolumeCreateArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// Its name.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How much it may hold; by default as much as the garden. Volumes share the space: together they may promise more.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// How many files and directories it may hold; by default one for every two blocks.
    #[arg(long, value_name = "N")]
    pub inodes: Option<u64>,
    #[command(flatten)]
    pub pack: FsPackArgs,
    /// What the order of names in its directories follows from; its name by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
