//! Arguments of the verbs of experiments: their runs, results and logs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::GuestArgs;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan file.
    #[arg(required_unless_present = "resume")]
    pub plan: Option<PathBuf>,
    /// Directory of the run; must not hold another run. Default: senesce-runs/NAME-N.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only say what would be done: arms, cells, steps, space.
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with a run that was killed; its own plan is used.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "out", "repo", "trace", "dry_run"])]
    pub resume: Option<PathBuf>,
    /// Replay this repository (a path or a URL) instead of the plan's history.
    #[arg(long, value_name = "PATH|URL", conflicts_with = "trace")]
    pub repo: Option<String>,
    /// Read repositories of other users, too. By default only repositories of root, of the user who runs senesce and of
    /// the user who ran sudo are read.
    #[arg(long)]
    pub trust_repo: bool,
    /// Replay this size-only trace instead of the plan's history.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Override the number of pulls.
    #[arg(long, value_name = "N")]
    pub pulls: Option<u64>,
    /// Model this device (`senesce device list`, or a description in TOML): the volumes are disks in virtual time.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub device: Option<String>,
    /// The modelled device takes its time for real.
    #[arg(long, conflicts_with = "resume")]
    pub real_time: bool,
    /// Format named devices even if they carry a signature (never if they are mounted).
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub guest: GuestArgs,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Directory of the run; must not hold another run. Default: senesce-runs/demo-N.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replay this repository (a path or a URL) instead of a synthetic history.
    #[arg(long, value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Stop after this number of pulls. Default: 1000.
    #[arg(long, value_name = "N")]
    pub pulls: Option<u64>,
    /// Print the plan of the demo, and run nothing.
    #[arg(long, exclusive = true)]
    pub plan: bool,
    #[command(flatten)]
    pub guest: GuestArgs,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Directory of the run.
    pub run: PathBuf,
    /// Also hold native arms against those of the real git binary.
    #[arg(long)]
    pub equivalence: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").required(true))]
pub struct ExportArgs {
    /// Directory of the run.
    pub run: PathBuf,
    /// One table as CSV: cells, grep, layout, free_space, aging or circumstances.
    #[arg(long, value_name = "TABLE", group = "format")]
    pub csv: Option<String>,
    /// All tables as one JSON document.
    #[arg(long, group = "format")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the run.
    pub run: PathBuf,
    /// Where to write; default: report.html in the run's directory.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write every figure into this directory: as SVG and PNG, its data as CSV, and for papers
    /// as PDF and SVG of 84 and 178 mm.
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

/// The pace of a replay.
#[derive(Clone, Copy, Debug)]
pub struct PaceArg(pub senesce_experiment::ReplayPace);

impl std::str::FromStr for PaceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use senesce_experiment::ReplayPace;
        Ok(Self(match text {
            "max" => ReplayPace::Max,
            "recorded" => ReplayPace::Recorded(1.0),
            factor => match factor.parse::<f64>() {
                Ok(factor) if factor.is_finite() && (1e-6..=1e6).contains(&factor) => ReplayPace::Recorded(factor),
                _ => return Err("say max, recorded, or a factor between 0.000001 and 1000000".to_owned()),
            },
        }))
    }
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The operation log.
    pub log: PathBuf,
    /// Where: an existing empty directory, a block device or image:SIZE (with --fs), or garden:DIR, what `fs mkfs` made,
    /// in this process.
    #[arg(long, value_name = "PLACE")]
    pub on: String,
    /// The file system for images and devices.
    #[arg(long, value_enum)]
    pub fs: Option<FsArg>,
    /// Directory for the image and its mount point.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The repository that the log's contents come from, if it has moved or the log names a URL.
    #[arg(long, value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Read repositories of other users, too. By default only repositories of root, of the user who runs senesce and of
    /// the user who ran sudo are read.
    #[arg(long)]
    pub trust_repo: bool,
    /// What the tree at the end is compared with: a model in memory (default), or another directory.
    #[arg(long, value_name = "model|DIR", default_value = "model")]
    pub against: String,
    /// How fast: as it goes, as it was recorded, or that many times as fast (a recording's log only).
    #[arg(long, value_name = "max|recorded|FACTOR", default_value = "max")]
    pub pace: PaceArg,
    /// Threads; the recorded order is kept for every file and every directory, and the tree is the same.
    #[arg(long, value_name = "N", default_value = "1")]
    pub threads: std::num::NonZeroU8,
    /// Leave the image or the device's mount as it is at the end.
    #[arg(long)]
    pub keep: bool,
    /// Format a named device even if it carries a signature (never if it is mounted).
    #[arg(long)]
    pub force: bool,
    /// Replay setuid and setgid bits, security.* and trusted.* attributes (file capabilities) and device nodes, too.
    /// By default they are left out and counted, because they could give the author of a log root's rights.
    #[arg(long)]
    pub trust_log: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FsArg {
    Ext4,
    Xfs,
    Btrfs,
    F2fs,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(subcommand)]
    pub what: LogVerb,
}

#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// Print the steps, one line an operation.
    Show {
        /// The operation log.
        log: PathBuf,
        /// Only this step.
        #[arg(long, value_name = "N")]
        step: Option<u64>,
        /// At most so many steps.
        #[arg(short = 'n', long, value_name = "N")]
        steps: Option<u64>,
    },
    /// Print totals.
    Stat {
        /// The operation log.
        log: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read everything and check every checksum.
    Verify {
        /// The operation log.
        log: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct GrepArgs {
    /// The tree.
    pub path: PathBuf,
    /// Order of the entries of a directory.
    #[arg(long, value_enum, default_value = "readdir")]
    pub order: OrderArg,
    /// Run GNU grep instead of the scanner in this program.
    #[arg(long)]
    pub grep: bool,
    /// Runs that are not counted.
    #[arg(short, long, default_value_t = 0)]
    pub warmups: u64,
    /// Counted runs.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    Readdir,
    Sorted,
    Inode,
}

#[derive(Debug, Args)]
pub struct SynthArgs {
    /// Where to make the (bare) repository; must not exist.
    pub path: PathBuf,
    /// Files in the first commit.
    #[arg(long, default_value_t = 20_000)]
    pub files: u64,
    /// Commits after the first.
    #[arg(long, default_value_t = 1_000)]
    pub commits: u64,
    /// Everything follows from this number.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the statistics of the history beside the real ones that it follows.
    #[arg(long)]
    pub show: bool,
}
