//! Arguments of mounts of the file systems of this project.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use senesce_core::Bytes;

use super::{AlsoArg, FsObjectsArgs, FsPlaceArgs, GardeningArg, PricesArg};

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct FsMountArgs {
    #[command(flatten)]
    pub place: FsPlaceArgs,
    /// The mount point.
    #[arg(value_name = "POINT")]
    pub point: PathBuf,
    /// The volume. Default: main.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Mount a snapshot of the volume, read-only.
    #[arg(long, value_name = "NAME")]
    pub snapshot: Option<String>,
    /// Mount another volume or snapshot, too. Repeatable.
    ///
    /// The form is VOLUME=POINT or VOLUME/SNAPSHOT=POINT. One process serves all of them, and exits
    /// after the last unmount.
    #[arg(long, value_name = "VOLUME=POINT")]
    pub also: Vec<AlsoArg>,
    /// Accept no changes, and write nothing.
    #[arg(long)]
    pub read_only: bool,
    /// Garden: use the checkpoint before the last one.
    ///
    /// For a garden that is refused because the superblocks of its last checkpoint (consistency
    /// point) are damaged. Later changes are lost, and blocks that were overwritten since are
    /// damaged. With --read-only nothing is changed.
    #[arg(long = "previous-checkpoint", alias = "older-point")]
    pub previous_checkpoint: bool,
    /// Garden: mount although no copy of the log is readable.
    ///
    /// Opens the garden at its last checkpoint, and replays every later operation that can be read.
    /// Later acknowledged operations are lost; the mount reports them. A garden that was unmounted
    /// loses nothing and does not need this option. Devices named as the log become copies of it
    /// again. A device that holds other data is refused without --force.
    #[arg(long)]
    pub without_log: bool,
    /// With --without-log: overwrite other data on a log.
    ///
    /// Applies to a device named as the log. A drive, and the log of another garden, are always
    /// refused.
    #[arg(long, requires = "without_log")]
    pub force: bool,
    /// Garden: adapt background work to the load.
    ///
    /// Background work uses the time that clients leave of processors, drives and log. It covers
    /// areas, pointers, compacted blocks and parity.
    #[arg(long = "adaptive", alias = "by-load")]
    pub by_load: bool,
    /// Print the adaptive work at this interval, to stderr.
    #[arg(long = "report-interval", alias = "tell-every", value_name = "SECONDS", requires = "by_load", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub tell_every: Option<u64>,
    /// Adaptive: rewrite objects where this price list favours it.
    ///
    /// The live blocks of an object are written again if that costs less than it saves in a month.
    /// Default: no object is rewritten.
    #[arg(long, value_enum, value_name = "LIST", hide_possible_values = true, requires_all = ["by_load", "objects"])]
    pub prices: Option<PricesArg>,
    /// Adaptive: age of cold blocks, in checkpoints.
    ///
    /// Blocks that were not written or moved for this number of checkpoints move to objects, and
    /// blocks that only snapshots use.
    #[arg(long, value_name = "N", default_value_t = 64, requires_all = ["by_load", "objects"])]
    pub tier_age: u16,
    /// Evergreen: write counters to FILE after the unmount.
    ///
    /// Reads, writes and flushes as JSON. `senesce inspect --tree PAGE --flushes FILE` draws them.
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
    /// The mount point.
    #[arg(value_name = "POINT")]
    pub point: PathBuf,
    /// In place of a device: an empty file system of this size in memory.
    #[arg(long, value_name = "SIZE")]
    pub in_memory: Option<Bytes>,
    /// The source in the list of mounts.
    #[arg(long, value_name = "NAME")]
    pub source: String,
    #[command(flatten)]
    pub how: FsServedArgs,
}

/// Options of the process that serves a volume.
#[derive(Clone, Debug, Args)]
pub struct FsServedArgs {
    /// Threads that serve.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,
    /// Background work: auto, off, csc, war, all.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = GardeningArg::Auto, hide_possible_values = true, long_help = GARDENING)]
    pub gardening: GardeningArg,
    /// Memory for blocks of the drives.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub cache: Bytes,
    /// Longest time from a change to its checkpoint.
    #[arg(long = "checkpoint-interval", alias = "point-every", value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub checkpoint_interval: u64,
    /// Acknowledge writes in memory: kernel, engine or direct.
    ///
    /// Synced writes are durable, and so are writes that are about a second old.
    /// kernel (default): the kernel also caches writes; good for small writes. engine: the kernel
    /// passes writes on at once; good for large writes. direct: as engine, and a program that
    /// creates a file and opens it only for writing bypasses the page cache (from Linux 6.18 on).
    /// Not for files that other programs write through a mapping.
    #[arg(long, value_name = "CACHE", num_args = 0..=1, require_equals = true, default_missing_value = "kernel", hide_possible_values = true)]
    pub write_back: Option<WriteBackArg>,
    /// Mount options: suid, dev.
    ///
    /// suid enables setuid and setgid bits and file capabilities, dev enables device nodes.
    /// Default: neither, because a file system may come from an unknown source.
    #[arg(short = 'o', long, value_enum, value_name = "OPTION", value_delimiter = ',', hide_possible_values = true)]
    pub options: Vec<MountOptionArg>,
}

/// The values of `--gardening`.
const GARDENING: &str = "\
Background work that keeps free space and files contiguous:
auto: by medium: nothing on disks or flash alone; in a flash pool, cold blocks move to the disks;
off: nothing;
csc: continuous segment cleaning: areas are emptied just before they are needed;
war: write after read: files that are read in order are written together, while drives are idle;
all: csc and war;
oltp: for small scattered writes: csc on disks alone, else auto;
backup: for files that are written once and read in order: war on disks alone, else auto";

/// An option of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MountOptionArg {
    /// Setuid and setgid bits and file capabilities have an effect.
    Suid,
    /// Device nodes can be opened.
    Dev,
}

/// The cache that holds acknowledged writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WriteBackArg {
    /// The kernel, and then the engine.
    Kernel,
    /// Only the engine.
    Engine,
    /// Only the engine, and new files fill no pages of the kernel.
    Direct,
}
