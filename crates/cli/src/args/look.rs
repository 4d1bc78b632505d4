//! Arguments of the verbs that measure file systems, programs and devices as they are.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use senesce_core::{Bytes, statistics::Outcome};
use senesce_defrag::{Order, Strategy};
use senesce_report::MapColour;
use senesce_store::Role;

use super::{GuestArg, complete};
use crate::verb::compare::FigurePattern;

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Directory, device, image, garden:DIRECTORY or evergreen:FILE.
    ///
    /// A directory of a mounted file system; a device or image with a file system, mounted or not;
    /// or a file system that `senesce fs mkfs` made.
    #[arg(add = complete::places_to_inspect())]
    pub path: PathBuf,
    /// The volume of a garden. Default: the first.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Read ext4 straight from the device, without its mount.
    #[arg(long)]
    pub offline: bool,
    /// Model this device. Default: the disk below PATH first.
    ///
    /// A preset (`senesce device list`) or a description in TOML. The verdict and the ranking of
    /// files and directories use the first one. Default: hdd-7200, sata-ssd and nvme, with the
    /// model of the disk below PATH first; an unknown disk is judged as hdd-7200 and as nvme.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', add = complete::devices())]
    pub device: Vec<String>,
    /// Readahead to model, in KiB. Default: the kernel's.
    ///
    /// The kernel's default for the file system is 128 KiB; for Btrfs it is 4096 KiB. The setting
    /// of the device has no effect.
    #[arg(long, value_name = "KIB")]
    pub read_ahead_kib: Option<u32>,
    /// Write a page with an interactive map.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the map as a picture (SVG).
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Colours: tree (default), directory, file, age, extents, free.
    ///
    /// tree: the place in the tree of directories. extents: the number of extents of a file.
    /// free: the sizes of free extents.
    #[arg(long, value_name = "WHAT", default_value = "tree", hide_default_value = true, requires = "map", add = ArgValueCandidates::new(complete::map_colours))]
    pub map_by: MapColour,
    /// Draw the tree of an evergreen: a page, or a picture (.svg).
    ///
    /// It shows levels, waiting messages and the places of leaves. Without --html and --map,
    /// nothing else is read, and damage does not matter.
    #[arg(long, value_name = "FILE")]
    pub tree: Option<PathBuf>,
    /// Add the flushes that `fs mount --figures` wrote to the tree.
    #[arg(long, alias = "figures", value_name = "FILE", requires = "tree")]
    pub flushes: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Threads. Default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Read at idle I/O priority, with pauses for others.
    ///
    /// After every 1,024 entries it pauses up to two seconds, while other programs wait for I/O.
    #[arg(long)]
    pub idle: bool,
    /// Mount an unmounted image in a guest.
    ///
    /// A damaged or forged image then cannot reach the kernel of this machine. Default unless you
    /// are root, and for old file systems. A guest has no devices of this machine.
    #[arg(long, value_enum, value_name = "KIND")]
    pub guest: Option<GuestArg>,
    /// Memory of the guest. Default: 1GiB.
    #[arg(long, value_name = "SIZE")]
    pub guest_memory: Option<Bytes>,
    #[command(flatten)]
    pub limits: InspectLimitArgs,
}

/// Limits of `inspect`, and options for scripts.
#[derive(Debug, Args)]
pub struct InspectLimitArgs {
    /// List N directories and N files that lose most. Default: 10.
    #[arg(long, value_name = "N", default_value_t = senesce_inspect::DEFAULT_TOP, hide_default_value = true, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1_000_000))]
    pub top: usize,
    /// Fail if reading takes this much longer than in a fresh copy.
    ///
    /// +100%: a read of the whole tree takes over twice as long. Exit code 5 if it does on the
    /// disk below PATH, 6 if the disk is not known and its models differ. A loss of less than a
    /// second passes.
    #[arg(long, value_name = "+PERCENT%", allow_hyphen_values = true, value_parser = parse_slowdown)]
    pub fail_if: Option<FailIf>,
    /// Give up after this time, without figures.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_seconds: Option<u64>,
    /// Replace FILE.prom atomically with figures for Prometheus.
    ///
    /// For the textfile collector of node_exporter. If the inspection fails, the file says so.
    /// Prints nothing to stdout; add --json for figures.
    #[arg(long, value_name = "FILE.prom")]
    pub metrics: Option<PathBuf>,
    /// Leave the map out of the JSON, which is most of it.
    #[arg(long, requires = "json", conflicts_with_all = ["html", "map"])]
    pub no_map: bool,
    /// Replace files that senesce did not write.
    #[arg(long)]
    pub force: bool,
    /// Check PATH and the output files. Read no entries, write nothing.
    ///
    /// For a garden or an evergreen, it reads the metadata: only this shows whether it can be
    /// inspected.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
}

/// A limit of a slowdown: `+100%`.
fn parse_slowdown(text: &str) -> Result<FailIf, String> {
    let limit = text.parse::<FailIf>().ok().filter(|limit| limit.percent > 0.0);
    let number = text.trim_start_matches('+').trim_end_matches('%');
    let example = match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 => format!("write +{number}%"),
        _ => "write +100% (takes over twice as long)".to_owned(),
    };
    limit.ok_or_else(|| format!("{text:?} is no limit; {example}"))
}

#[derive(Debug, Args)]
pub struct DefragArgs {
    /// Directory of a mounted ext4, XFS or Btrfs.
    ///
    /// Only files in it and its subdirectories move.
    pub path: PathBuf,
    /// Print what would move and the gain. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Order: readdir (default), sorted, inode, list:FILE.
    ///
    /// The order in which programs read the files:
    /// readdir: as the file system lists them (grep -r, tar);
    /// sorted: by name (rsync, shell globs);
    /// inode: by inode number (cp -r of GNU);
    /// list:FILE: as FILE lists them, a path from PATH in each line.
    #[arg(long, value_name = "ORDER", default_value = "readdir", hide_default_value = true, verbatim_doc_comment)]
    pub order: Order,
    /// What to improve: order, pieces or both.
    ///
    /// order: files that are read one after the other become adjacent;
    /// pieces: shattered ranges of large files become contiguous.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "order,pieces", verbatim_doc_comment)]
    pub strategy: Vec<Strategy>,
    /// With the strategy pieces: keep pieces of this size.
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub piece_size: Bytes,
    /// Make free space contiguous instead. ext4, XFS, Btrfs; root.
    ///
    /// Moves contents out of ranges that are mostly free, into free space elsewhere. Moves at most
    /// a quarter of the free space and 1 GiB, unless --budget states another limit.
    #[arg(long, conflicts_with_all = ["strategy", "order", "force", "device"])]
    pub free_space: bool,
    /// Move at most this much, such as 10GiB. Default: no limit.
    ///
    /// Counts contents; metadata is extra. Batches with the most pieces per byte come first.
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<Bytes>,
    /// Stop after this time. Default: no limit.
    #[arg(long, value_name = "SECONDS")]
    pub max_seconds: Option<u64>,
    /// Work while no other program waits for I/O.
    ///
    /// Reads and writes at idle I/O priority, and waits while other programs wait for I/O.
    #[arg(long)]
    pub idle: bool,
    /// ext4: also move files with an execute bit.
    ///
    /// While a step moves such a file, starting it fails.
    #[arg(long)]
    pub programs: bool,
    /// Continue a run that was stopped.
    ///
    /// Plans again, and skips files that are in order. Moves the other files even if these moves
    /// alone are not worth it. Needs no record of the stopped run.
    #[arg(long, conflicts_with = "dry_run")]
    pub resume: bool,
    /// Move the files even if it is not worth it.
    ///
    /// Also if the kind of disk is not known.
    #[arg(long, conflicts_with = "dry_run")]
    pub force: bool,
    /// Model this device. Default: the disk that stores PATH.
    ///
    /// A preset (`senesce device list`) or a description in TOML. The first one decides whether the
    /// moves are worth it.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', add = complete::devices())]
    pub device: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Threads. Default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Device, or a path on its file system. Default: `.`
    ///
    /// Default: the device of the file system that holds the current directory.
    #[arg(long, value_name = "PATH")]
    pub on: Option<PathBuf>,
    /// Read the output of blkparse instead of tracing.
    #[arg(long, value_name = "FILE")]
    pub blkparse: Option<PathBuf>,
    /// Model the cost of the reads on these devices.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', default_values = ["hdd-7200"], add = complete::devices())]
    pub device: Vec<String>,
    /// Write every request as a line of CSV.
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// Check the device and the output files. Run no command, write nothing.
    ///
    /// To check the rights, it starts a trace of the device and stops it immediately.
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// The command to run.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Directory of a run, a tree, or a file of `inspect --json`.
    ///
    /// Two runs: compares all figures that both have. Two inspections: compares the layouts and
    /// their modelled costs. Two trees: runs grep tests in turn.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub a: PathBuf,
    /// Another of the same kind.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub b: PathBuf,
    /// Fail if B costs this much more (+5%) or less (-5%).
    ///
    /// Exit code 5 if a figure is beyond the limit, 6 if that is undecided.
    #[arg(long, value_name = "±PERCENT%", allow_hyphen_values = true)]
    pub fail_if: Option<FailIf>,
    /// Gate wall times, too. Default: only exact figures.
    #[arg(long, requires = "fail_if")]
    pub measured: bool,
    /// An undecided gate: undecided (default), pass, fail.
    ///
    /// The exit codes are 6, 0 and 5.
    #[arg(long, value_name = "OUTCOME", default_value = "undecided", hide_default_value = true, value_parser = parse_outcome, requires = "fail_if")]
    pub on_undecided: Outcome,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Trees: grep tests of each that are not counted. Default: 0.
    #[arg(short, long)]
    pub warmups: Option<u64>,
    /// Trees: grep tests of each that are counted. Default: 5.
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// Trees: drop caches before every grep test. Needs root.
    #[arg(long)]
    pub cold: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The rows of two runs that are compared.
#[derive(Debug, Args)]
pub struct SelectArgs {
    /// Compare all checkpoints that both have.
    ///
    /// Default: only the last one.
    #[arg(long)]
    pub all: bool,
    /// Only figures whose names match. Repeatable.
    ///
    /// Upper and lower case are equal. Gates matching wall times, too.
    #[arg(long, value_name = "REGEX")]
    pub figure: Vec<FigurePattern>,
    /// Only these volumes: full, empty, unaged.
    ///
    /// full is the nearly full volume, empty the roomy one, unaged the fresh copy. cured-full and
    /// cured-empty are the volumes after a cure. The gate leaves out unaged by default.
    #[arg(long, value_name = "ROLE", value_delimiter = ',', value_parser = parse_role)]
    pub role: Vec<Role>,
    /// Only these arms.
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub arm: Vec<String>,
}

pub(super) fn parse_outcome(text: &str) -> Result<Outcome, String> {
    match text {
        "undecided" => Ok(Outcome::Undecided),
        "pass" => Ok(Outcome::Pass),
        "fail" => Ok(Outcome::Fail),
        _ => Err("write undecided, pass or fail".to_owned()),
    }
}

pub(super) fn parse_role(text: &str) -> Result<Role, String> {
    let names = || Role::ALL.map(Role::name).join(", ");
    Role::of_name(text).ok_or_else(|| format!("{text:?} is no volume: {}", names()))
}

/// A limit such as `+5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailIf {
    /// More than 0: costs more than this; less than 0: costs less.
    pub percent: f64,
}

impl std::str::FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').filter(|number| number.starts_with(['+', '-']));
        let percent = number.and_then(|number| number.parse::<f64>().ok()).filter(|percent| percent.is_finite());
        match percent {
            Some(percent) if percent != 0.0 && percent > -100.0 => Ok(Self { percent }),
            _ => Err(format!("{text:?} is no limit; write +5% (costs more) or -5% (costs less)")),
        }
    }
}

impl std::fmt::Display for FailIf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:+}%", self.percent)
    }
}

#[derive(Debug, Args)]
pub struct DeviceArgs {
    #[command(subcommand)]
    pub verb: DeviceVerb,
}

#[derive(Debug, Subcommand)]
pub enum DeviceVerb {
    /// List the built-in devices.
    #[command(after_long_help = "Example:\n  senesce device list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the constants of a device, each with its source.
    #[command(after_long_help = "Examples:\n  \
        senesce device show hdd-7200\n  \
        senesce device show nvme --toml > mine.toml")]
    Show {
        /// A built-in device, or a description in TOML.
        #[arg(add = complete::devices())]
        device: String,
        /// Print its description in TOML, to start your own from.
        #[arg(long)]
        toml: bool,
        /// Also print the bandwidth of random reads by size.
        ///
        /// With the natural transfer sizes that follow.
        #[arg(long, conflicts_with = "toml")]
        curve: bool,
    },
    /// Measure a device, which is only read, and fit a description to it.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce device calibrate /dev/nvme0n1 --out mine.toml\n  \
        sudo senesce device calibrate /dev/sdb --base hdd-7200 --out big.toml     a disk without a built-in model\n  \
        senesce inspect / --device mine.toml")]
    Calibrate {
        /// A block device, or a large file without holes.
        path: PathBuf,
        /// The description to start from, of the same kind of device.
        #[arg(long, value_name = "DEVICE", default_value = "nvme", add = complete::devices())]
        base: String,
        /// The name of the fitted description.
        #[arg(long, default_value = "calibrated")]
        name: String,
        /// Reads of each size.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
        reads: u32,
        /// Seconds for each size, after at least ten reads.
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
        seconds: Option<u32>,
        /// The largest read. Default: 512 MiB.
        ///
        /// At most an eighth of the device.
        #[arg(long)]
        largest: Option<senesce_core::Bytes>,
        /// File for the fitted description.
        #[arg(short, long, value_name = "FILE")]
        out: PathBuf,
        /// Check the device and the files. Read and write nothing.
        #[arg(long)]
        dry_run: bool,
        /// Print the measured, modelled and fitted curves as JSON.
        #[arg(long)]
        json: bool,
        /// Draw the curves on a page.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Draw the curves as a picture.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}
