//! Arguments of the verbs that make and keep aged volumes.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct AgeArgs {
    /// fsfb, mail, intrafile, interfile, renames, overwrite, profile:NAME, replay:LOG, synthetic, git:REPO, trace:FILE, or a PLAN.toml whose
    /// workload, history and seed count.
    pub workload: String,
    /// Where: a directory (if something is in it, below a new one in it), a block device, image:SIZE (with --fs), or
    /// garden:DIRECTORY or evergreen:FILE, an empty one in this process.
    #[arg(long, value_name = "PLACE")]
    pub on: String,
    /// The file system for images and devices.
    #[arg(long, value_enum)]
    pub fs: Option<super::FsArg>,
    /// More arguments for mkfs, such as "-m single".
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true, requires = "fs")]
    pub mkfs: Option<String>,
    /// When it ends: fullness=80%,turnover=2,layout-score=0.9 (all that is given holds), steps=100 (at the latest).
    /// Default: with the workload, also if only the fullness of one that fills the volume is given.
    #[arg(long, value_name = "AGE")]
    pub until: Option<senesce_experiment::Until>,
    /// A key of the workload's table in plans, such as rounds=100; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<NameValue>,
    /// Everything random follows from this number.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads that apply the operations of a profile. While there is space they do the same ones in any number; the layout is repeatable with
    /// one alone.
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// Of a garden: what is done besides, so that free space stays in one piece.
    #[arg(long, value_enum, default_value_t = super::GardeningArg::Auto)]
    pub gardening: super::GardeningArg,
    /// Read repositories of other users, too. By default only repositories of root, of the user who runs senesce and of
    /// the user who ran sudo are read.
    #[arg(long)]
    pub trust_repo: bool,
    /// Write an operation log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Keep the volume in this container (`senesce image restore`).
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep an image:SIZE as this image.
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Directory for the image and its mount point.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// Format a named device even if it carries a signature (never if it is mounted).
    #[arg(long)]
    pub force: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// An aged volume: a container of `senesce image`, or an image, which is only read; may be given again.
    #[arg(long, value_name = "CONTAINER|IMAGE", required_unless_present = "suite")]
    pub aged: Vec<PathBuf>,
    /// Also on an unaged twin of each: a fresh file system of the same kind and size with the same tree.
    #[arg(long)]
    pub unaged: bool,
    /// Runs on each volume.
    #[arg(short, long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Runs before them that do not count.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub warmups: u32,
    /// The figure is the number in the one group of this regular expression, where it first matches the command's stdout;
    /// default: wall seconds.
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<crate::verb::bench::Pattern>,
    /// A larger figure is a better one.
    #[arg(long, requires = "metric")]
    pub more_is_better: bool,
    /// The seconds also hold the writing back of what the command left in memory.
    #[arg(long, conflicts_with = "metric")]
    pub sync: bool,
    /// A run goes on with what the one before it left, instead of the volume restored.
    #[arg(long)]
    pub keep_state: bool,
    /// Directory for images and mount points.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// In place of a command: a built-in personality (`senesce personality list`) or a file; the figure is file operations
    /// per second.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["command", "metric", "keep_state"])]
    pub personality: Option<String>,
    #[command(flatten)]
    pub personality_options: PersonalityOptionArgs,
    /// In place of all that: a suite, which ages the volumes itself.
    #[arg(long, value_name = "PLAN", requires = "out", conflicts_with_all = ["aged", "unaged", "command", "personality", "metric", "sync", "keep_state", "json", "warmups", "runs", "dir"])]
    pub suite: Option<PathBuf>,
    /// Of a suite: the directory for its images, results and page.
    #[arg(long, value_name = "DIR", requires = "suite")]
    pub out: Option<PathBuf>,
    /// Of a suite: go on with the one in that directory.
    #[arg(long, requires = "suite")]
    pub resume: bool,
    /// The command with its arguments.
    #[arg(last = true, required_unless_present_any = ["personality", "suite"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// How a personality is run.
#[derive(Debug, Args)]
pub struct PersonalityOptionArgs {
    /// What a personality's sets of files are multiplied by.
    #[arg(long, requires = "personality", default_value_t = 1.0, value_name = "FACTOR")]
    pub scale: f64,
    /// File operations of a run; by default the personality's own.
    #[arg(long, requires = "personality", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// A run ends after so many seconds and not after its operations: the runs then do not do the same.
    #[arg(long, requires = "personality", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub seconds: Option<u64>,
    /// Files and choices follow from this number and that of the run.
    #[arg(long, requires = "personality", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct PersonalityArgs {
    #[command(subcommand)]
    pub verb: PersonalityVerb,
}

#[derive(Debug, Subcommand)]
pub enum PersonalityVerb {
    /// The built-in ones.
    List,
    /// One with every parameter, as its file states it.
    Show {
        /// A built-in one, or a file, which is checked.
        personality: String,
    },
}

#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    pub verb: ImageVerb,
}

#[derive(Debug, Subcommand)]
pub enum ImageVerb {
    /// Save an image or a device that is not in use into a container.
    Save(ImageSaveArgs),
    /// Make the volume again, byte for byte: a sparse image, or the contents of a device.
    Restore(ImageRestoreArgs),
    /// What containers hold and how it was aged.
    List {
        /// Containers, or directories with containers in them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check every byte of containers against their hashes.
    Verify {
        /// The containers.
        #[arg(required = true)]
        containers: Vec<PathBuf>,
        /// Threads; default: one for each processor.
        #[arg(long, value_name = "N")]
        threads: Option<std::num::NonZeroUsize>,
    },
}

#[derive(Debug, Args)]
pub struct ImageSaveArgs {
    /// The image or device.
    pub source: PathBuf,
    /// The container; it must not exist.
    pub container: PathBuf,
    /// A circumstance to keep with it, such as workload=fsfb; may be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<NameValue>,
    /// Leave out what deleted files left in free space: save a copy of the image that was mounted and trimmed (fstrim). It is
    /// made beside the container; needs root.
    #[arg(long)]
    pub trim: bool,
    /// zstd's level.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// Threads; default: one for each processor. The container does not depend on it.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct ImageRestoreArgs {
    /// The container.
    pub container: PathBuf,
    /// An image, which must not exist, or a block device.
    pub to: PathBuf,
    /// Replace an existing image; write to a device even if it carries a signature (never if it is in use).
    #[arg(long)]
    pub force: bool,
    /// Do not wait until an image is on the disk.
    #[arg(long)]
    pub no_sync: bool,
    /// Threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).multiple(false))]
pub struct FragmentArgs {
    /// A file (with --size a new one), or a directory: every file below it; with --free-space one of the volume.
    pub path: PathBuf,
    /// So many extents, neighbours merged.
    #[arg(long, value_name = "N", group = "target")]
    pub extents: Option<u64>,
    /// The layout score nearest to this one, 0 to 1.
    #[arg(long, value_name = "SCORE", group = "target")]
    pub layout_score: Option<f64>,
    /// Shares of the free bytes by size of free extents, such as 4KiB:20%,64KiB:30%,1MiB:50%.
    #[arg(long, value_name = "HISTOGRAM", group = "target")]
    pub free_space: Option<senesce_fragment::Histogram>,
    /// Make a new file of this size, of random bytes.
    #[arg(long, value_name = "SIZE", conflicts_with = "free_space")]
    pub size: Option<senesce_core::Bytes>,
    /// With --free-space: what shall be free; default: half of what is.
    #[arg(long, value_name = "SIZE", requires = "free_space")]
    pub free: Option<senesce_core::Bytes>,
    /// With --free-space: the distance from the histogram that is allowed, 0 (equal) to 1 (nothing in common).
    #[arg(long, value_name = "DISTANCE", default_value_t = 0.05, requires = "free_space")]
    pub within: f64,
    /// With --free-space: orders the holes.
    #[arg(long, default_value_t = 1, requires = "free_space")]
    pub seed: u64,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameValue {
    pub name: String,
    pub value: String,
}

impl std::str::FromStr for NameValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
            _ => Err(format!("{text:?} is not NAME=VALUE")),
        }
    }
}
