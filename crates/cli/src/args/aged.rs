//! Arguments of the verbs that age volumes and measure aged ones.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

use super::complete;

#[derive(Debug, Args)]
pub struct AgeArgs {
    /// fsfb, mail, profile:NAME, git:REPO, PLAN.toml and others.
    ///
    /// fsfb, mail, intrafile, interfile, renames, overwrite, profile:NAME, replay:LOG, synthetic,
    /// git:REPO, trace:FILE, or a PLAN.toml whose workload, history and seed count.
    #[arg(add = complete::workloads())]
    pub workload: String,
    /// Directory, device, image:SIZE, garden:DIR, evergreen:FILE.
    ///
    /// If a directory is not empty, a new directory in it is aged. fsfb and profile:NAME
    /// fill the whole file system of the directory. Unless the directory is a mount point, they
    /// need --until fullness, --set with a fullness, or --force. A device or image:SIZE needs --fs.
    /// garden:DIRECTORY and evergreen:FILE name an empty garden or evergreen, which this process
    /// opens.
    #[arg(long, value_name = "PLACE", add = complete::places())]
    pub on: String,
    /// File system: ext4, xfs, btrfs, f2fs, nilfs2, jfs, reiserfs.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub fs: Option<super::FsArg>,
    /// More arguments of mkfs, such as "-m single".
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true, requires = "fs")]
    pub mkfs: Option<String>,
    /// Stop at this age, such as turnover=2 or fullness=80%.
    ///
    /// fullness=80%,turnover=2,layout-score=0.9: stops when all given values are reached. steps=100
    /// stops at the latest then. Default: the end of the workload. fullness alone also sizes a
    /// workload that fills the volume.
    #[arg(long, value_name = "AGE")]
    pub until: Option<senesce_experiment::Until>,
    /// Set a key of the workload, such as rounds=100. Repeatable.
    ///
    /// docs/reference/plan-keys.md lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<NameValue>,
    /// Seed of all random choices.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads for the operations of a profile.
    ///
    /// While there is space, any number of threads does the same operations. Only one thread makes
    /// the same layout again.
    #[arg(long, default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// Garden: background work, as of `fs mount`.
    #[arg(long, value_enum, default_value_t = super::GardeningArg::Auto, hide_possible_values = true)]
    pub gardening: super::GardeningArg,
    /// Also read repositories of other users.
    ///
    /// By default senesce reads only repositories of root, of the user who runs senesce and of the
    /// user who ran sudo.
    #[arg(long)]
    pub trust_repo: bool,
    /// Write an operation log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Save the volume in this container.
    ///
    /// `senesce image restore` and `senesce bench --aged` read it.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep an image:SIZE as this image.
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    /// Directory for the image and its mount point.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// Format a device with a signature, or fill a shared file system.
    ///
    /// A mounted device is never formatted.
    #[arg(long)]
    pub force: bool,
    /// Check the workload and the place. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub verb: Option<BenchVerb>,
    /// A container or image with an aged volume. Repeatable.
    ///
    /// A container of `senesce image`, or an image. It is only read.
    #[arg(long, value_name = "FILE", required_unless_present = "suite")]
    pub aged: Vec<PathBuf>,
    /// Also run on a fresh copy of each volume.
    ///
    /// A new file system of the same kind and size with the same tree.
    #[arg(long)]
    pub unaged: bool,
    /// Counted runs on each volume.
    #[arg(short, long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Runs before them that are not counted.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub warmups: u32,
    /// Take the figure from stdout. Default: wall seconds.
    ///
    /// The figure is the number in the one group of the expression, where it first matches the
    /// stdout of the command.
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<crate::verb::bench::Pattern>,
    /// A larger figure is better. Default: a smaller one.
    #[arg(long, requires = "metric")]
    pub more_is_better: bool,
    /// Include the time to write cached data back.
    #[arg(long, conflicts_with = "metric")]
    pub sync: bool,
    /// Continue each run with the volume of the run before it.
    ///
    /// By default every run starts with the volume restored.
    #[arg(long)]
    pub keep_state: bool,
    /// Directory for images and mount points.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// Check volumes, command and space. Write nothing.
    ///
    /// With --suite, checks the plan and the directory of --out.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a page. A suite always writes one.
    #[arg(long, value_name = "FILE", conflicts_with = "suite")]
    pub html: Option<PathBuf>,
    /// Run a personality (`senesce bench personality list`).
    ///
    /// A built-in personality or a file, in place of a command. The figure is file operations per
    /// second.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["command", "metric", "keep_state"], add = complete::personalities())]
    pub personality: Option<String>,
    #[command(flatten)]
    pub personality_options: PersonalityOptionArgs,
    /// Run a suite, which ages the volumes itself.
    #[arg(long, value_name = "PLAN", requires = "out", conflicts_with_all = ["aged", "unaged", "command", "personality", "metric", "sync", "keep_state", "json", "warmups", "runs", "dir"])]
    pub suite: Option<PathBuf>,
    /// Suite: directory for images, results and page.
    #[arg(short, long, value_name = "DIR", requires = "suite")]
    pub out: Option<PathBuf>,
    /// Suite: continue the one in that directory.
    #[arg(long, requires = "suite")]
    pub resume: bool,
    /// The command with its arguments.
    #[arg(last = true, required_unless_present_any = ["personality", "suite"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// A verb of `bench`.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// List or print personalities: mail, file, web and database servers.
    #[command(after_long_help = "Examples:\n  \
        senesce bench personality list\n  \
        senesce bench personality show varmail > mine.toml     every parameter; then bench --personality mine.toml")]
    Personality(PersonalityArgs),
}

/// Options of a personality.
#[derive(Debug, Args)]
pub struct PersonalityOptionArgs {
    /// Multiply the numbers of files. Default: 1.
    #[arg(long, requires = "personality", value_name = "FACTOR")]
    pub scale: Option<f64>,
    /// File operations of a run. Default: the personality's.
    #[arg(long, requires = "personality", conflicts_with = "seconds", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Stop a run after this time, not after its operations.
    ///
    /// The runs then differ in their operations.
    #[arg(long, requires = "personality", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub seconds: Option<u64>,
    /// Seed of its files and choices. Default: 1.
    ///
    /// The number of the run is added.
    #[arg(long, requires = "personality", value_name = "N")]
    pub seed: Option<u64>,
}

impl PersonalityOptionArgs {
    /// The name of an option that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--scale", self.scale.is_some()),
            ("--operations", self.operations.is_some()),
            ("--seconds", self.seconds.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

#[derive(Debug, Args)]
pub struct PersonalityArgs {
    #[command(subcommand)]
    pub verb: PersonalityVerb,
}

#[derive(Debug, Subcommand)]
pub enum PersonalityVerb {
    /// List the built-in personalities.
    #[command(after_long_help = "Example:\n  \
        senesce bench personality list")]
    List,
    /// Print the file of a personality, with every parameter.
    #[command(after_long_help = "Example:\n  \
        senesce bench personality show varmail > mine.toml")]
    Show {
        /// A built-in personality, or a file, which is checked.
        #[arg(add = complete::personalities())]
        personality: String,
    },
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("target").required(true).multiple(false))]
pub struct FragmentArgs {
    /// A file, or a directory with all files below it.
    ///
    /// With --size a new file. With --free-space a directory of the volume.
    pub path: PathBuf,
    /// Extents of each file, neighbours merged.
    #[arg(long, value_name = "N", group = "target")]
    pub extents: Option<u64>,
    /// The nearest layout score, 0 to 1.
    #[arg(long, value_name = "SCORE", group = "target")]
    pub layout_score: Option<f64>,
    /// Shares of free bytes by extent size: 4KiB:20%,1MiB:80%.
    #[arg(long, value_name = "HISTOGRAM", group = "target")]
    pub free_space: Option<senesce_fragment::Histogram>,
    /// Make a new file of this size, of random bytes.
    #[arg(long, value_name = "SIZE", conflicts_with = "free_space")]
    pub size: Option<senesce_core::Bytes>,
    /// Free space to keep. Default: half of it.
    #[arg(long, value_name = "SIZE", requires = "free_space")]
    pub free: Option<senesce_core::Bytes>,
    /// Allowed distance, 0 (equal) to 1. Default: 0.05.
    ///
    /// The distance of the free space from the histogram. 1: nothing in common.
    #[arg(long, value_name = "DISTANCE", requires = "free_space")]
    pub within: Option<f64>,
    /// Seed of the order of free extents. Default: 1.
    #[arg(long, requires = "free_space")]
    pub seed: Option<u64>,
    /// Check the files and the target. Write nothing.
    ///
    /// The pieces of free space are not checked: only the allocation shows them.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
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
