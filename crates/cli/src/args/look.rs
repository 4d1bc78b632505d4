//! Arguments of the verbs that look at what is there: file systems, programs, devices, profiles.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use senesce_core::{Bytes, statistics::Outcome};
use senesce_defrag::{Order, Strategy};
use senesce_report::MapColour;
use senesce_store::Role;

use crate::verb::compare::FigurePattern;

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A directory of a mounted file system, a device or image with one, mounted or not;
    /// garden:DIRECTORY or evergreen:FILE.
    pub path: PathBuf,
    /// Of a garden: which volume; the first by default.
    #[arg(long, value_name = "NAME")]
    pub volume: Option<String>,
    /// Read ext4 straight from the device, past its mount if it is mounted.
    #[arg(long)]
    pub offline: bool,
    /// A device to model: a preset (`senesce device list`) or a description in TOML. The verdict
    /// and the ranking of the losers use the first one. Default: hdd-7200, sata-ssd and nvme, with
    /// the model of the disk below PATH first; an unknown disk is judged as hdd-7200 and as nvme.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Readahead to model, KiB; default: the kernel's for the file system (128; Btrfs 4096),
    /// whatever the device has set.
    #[arg(long, value_name = "KIB")]
    pub read_ahead_kib: Option<u32>,
    /// Write a page with an interactive map.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the map as a picture (SVG).
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// What the picture's colours say: tree (place in it), directory, file, age, free.
    #[arg(long, value_name = "WHAT", default_value = "tree", requires = "map")]
    pub map_by: MapColour,
    /// Of an evergreen: draw its tree (levels, what waits in them, where leaves lie), as a page, or
    /// as a picture if the name ends in .svg. Alone, nothing else is looked at, and damage does not
    /// matter.
    #[arg(long, value_name = "FILE")]
    pub tree: Option<PathBuf>,
    /// What `senesce fs mount --figures` wrote: flushes that the picture of the tree is to tell of.
    #[arg(long, value_name = "FILE", requires = "tree")]
    pub figures: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// Ask the kernel with this many threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// Give way to all other I/O.
    #[arg(long)]
    pub idle: bool,
}

#[derive(Debug, Args)]
pub struct DefragArgs {
    /// A directory of a mounted ext4, XFS or Btrfs. Only files in it and its subdirectories move.
    pub path: PathBuf,
    /// Print what would move and what that would gain. Writes nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The order in which programs read the files:
    /// readdir: as the file system lists them (grep -r, tar);
    /// sorted: by name (rsync, shell globs);
    /// inode: by inode number (cp -r of GNU);
    /// list:FILE: as FILE lists them, a path from PATH in each line.
    #[arg(long, value_name = "ORDER", default_value = "readdir", verbatim_doc_comment)]
    pub order: Order,
    /// What to improve:
    /// order: files that are read one after the other become adjacent;
    /// pieces: shattered ranges of large files become contiguous.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "order,pieces", verbatim_doc_comment)]
    pub strategy: Vec<Strategy>,
    /// With the strategy pieces: a piece of at least SIZE stays.
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub piece_size: Bytes,
    /// Make free space contiguous instead: move contents out of ranges that are mostly free, into free space elsewhere.
    /// Moves at most a quarter of the free space and 1 GiB, unless --budget states another limit. Needs root; ext4 and XFS.
    #[arg(long, conflicts_with_all = ["strategy", "order", "force", "device"])]
    pub free_space: bool,
    /// Move at most SIZE of contents, such as 10GiB; metadata is extra. Batches with the most pieces per byte come first.
    /// Default: no limit.
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<Bytes>,
    /// Stop SECONDS after the start of the command. Default: no limit.
    #[arg(long, value_name = "SECONDS")]
    pub max_seconds: Option<u64>,
    /// Read and write at idle I/O priority, and wait while other programs wait for I/O.
    #[arg(long)]
    pub idle: bool,
    /// ext4 only: also move files with an execute bit. While a step moves such a file, starting it fails.
    #[arg(long)]
    pub programs: bool,
    /// Move the files even if the moves are not worth it, or the kind of disk is not known.
    #[arg(long, conflicts_with = "dry_run")]
    pub force: bool,
    /// A device to model: a preset (`senesce device list`) or a description in TOML. The first one
    /// decides whether the moves are worth it. Default: the disk that stores PATH.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Read the maps of files with this many threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The device to trace, or a path on its file system; default: the device of the current
    /// directory's file system.
    #[arg(long, value_name = "PATH")]
    pub on: Option<PathBuf>,
    /// Read what `blkparse` printed instead of tracing.
    #[arg(long, value_name = "FILE")]
    pub blkparse: Option<PathBuf>,
    /// Model what the reads would cost on these devices.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', default_values = ["hdd-7200"])]
    pub device: Vec<String>,
    /// Write every request as a line of CSV.
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// The command to run.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A run's directory, or a tree.
    pub a: PathBuf,
    /// Another of the same kind.
    pub b: PathBuf,
    /// Runs: all checkpoints that both have, not only the last.
    #[arg(long)]
    pub all: bool,
    /// Exit with code 5 if B costs over this much more (+5%) or less (-5%) than A, and with code 6
    /// if that is undecided.
    #[arg(long, value_name = "±PERCENT%", allow_hyphen_values = true)]
    pub fail_if: Option<FailIf>,
    /// Gate wall times, too. Default: only figures without noise.
    #[arg(long, requires = "fail_if")]
    pub measured: bool,
    /// The outcome of a gate that is undecided: undecided (code 6), pass (code 0), fail (code 5).
    #[arg(long, value_name = "OUTCOME", default_value = "undecided", value_parser = parse_outcome, requires = "fail_if")]
    pub on_undecided: Outcome,
    /// Runs: only figures whose names match this regular expression, in upper or lower case. May be
    /// repeated. Gates matching wall times, too.
    #[arg(long, value_name = "REGEX")]
    pub figure: Vec<FigurePattern>,
    /// Runs: only these volumes: full, empty, unaged, cured-full, cured-empty. The gate leaves out unaged by default.
    #[arg(long, value_name = "ROLE", value_delimiter = ',', value_parser = parse_role)]
    pub role: Vec<Role>,
    /// Runs: only these arms.
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub arm: Vec<String>,
    /// Trees: grep tests of each that are not counted.
    #[arg(short, long, default_value_t = 0)]
    pub warmups: u64,
    /// Trees: grep tests of each that are counted.
    #[arg(short, long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Trees: drop the machine's caches before every grep test (needs root).
    #[arg(long)]
    pub cold: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

fn parse_outcome(text: &str) -> Result<Outcome, String> {
    match text {
        "undecided" => Ok(Outcome::Undecided),
        "pass" => Ok(Outcome::Pass),
        "fail" => Ok(Outcome::Fail),
        _ => Err("write undecided, pass or fail".to_owned()),
    }
}

fn parse_role(text: &str) -> Result<Role, String> {
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
    /// The devices that are built in.
    List,
    /// A device's constants, each with its source.
    Show {
        /// A built-in device, or the path of a description.
        device: String,
        /// As the TOML it is described by: a beginning for your own.
        #[arg(long)]
        toml: bool,
        /// Also the effective bandwidth of random reads by size, and the natural transfer sizes
        /// that follow.
        #[arg(long, conflicts_with = "toml")]
        curve: bool,
    },
    /// Measure a device's effective bandwidth by read size (it is only read) and fit a description
    /// to it.
    Calibrate {
        /// A block device, or a large file whose every block is written.
        path: PathBuf,
        /// The description to begin with; of the same kind of device.
        #[arg(long, value_name = "DEVICE", default_value = "nvme")]
        base: String,
        /// The name of the fitted description.
        #[arg(long, default_value = "calibrated")]
        name: String,
        /// Reads of each size.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
        reads: u32,
        /// Go on to the next size after so many seconds, with ten reads at least.
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
        seconds: Option<u32>,
        /// The largest read; default: 512 MiB, or an eighth of the device if that is less.
        #[arg(long)]
        largest: Option<senesce_core::Bytes>,
        /// Where the fitted description is written.
        #[arg(short, long, value_name = "FILE")]
        out: PathBuf,
        /// Print the measured curve, the models' and the fitted one as JSON.
        #[arg(long)]
        json: bool,
        /// Draw them on a page that needs nothing else.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Draw them as a picture.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(subcommand)]
    pub verb: ProfileVerb,
}

#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// The profiles that are built in.
    List,
    /// A picture of a profile: sizes, depths and ages as bars.
    Show {
        /// A built-in profile, or the path of one.
        profile: String,
        /// As the TOML it is described by: a beginning for your own.
        #[arg(long)]
        toml: bool,
    },
    /// Make a profile of the files below a directory, or of an unmounted ext4. No content is read,
    /// no mount is crossed, nothing is written there.
    Capture(ProfileCaptureArgs),
    /// Make one profile of several; each counts as many files as it has.
    Merge {
        /// Built-in profiles, or paths.
        #[arg(required = true, num_args = 2..)]
        profiles: Vec<String>,
        /// Name of the result.
        #[arg(long, default_value = "merged")]
        name: String,
        /// Where it is written; default: stdout.
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// How far one profile is from another, in the bins of the second.
    Diff {
        /// A profile.
        found: String,
        /// What it is held against.
        wanted: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct ProfileCaptureArgs {
    /// A directory; or a device or image with an ext4 that is not mounted, which is read without
    /// mounting it.
    pub path: PathBuf,
    /// Where the profile is written; default: stdout.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name of the profile.
    #[arg(long, default_value = "captured")]
    pub name: String,
    /// Use the bins of this profile, so that `diff` compares exactly.
    #[arg(long, value_name = "PROFILE")]
    pub like: Option<String>,
    /// What ages are counted to, seconds since 1970; default: now. Volumes aged by senesce end at
    /// 1704067200.
    #[arg(long, value_name = "SECONDS")]
    pub now: Option<u64>,
    /// Also count the extents of every file.
    #[arg(long)]
    pub extents: bool,
    /// Ask the kernel with this many threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}
