//! Arguments of the verbs of experiments: their runs, results and logs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use senesce_experiment::plan::Setting;
use senesce_volume::FileSystemKind;

use super::{GuestArgs, complete};

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The plan file.
    #[arg(required_unless_present = "resume")]
    pub plan: Option<PathBuf>,
    /// Directory of the run. Default: senesce-runs/NAME-N.
    ///
    /// It must not exist, or be empty.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print arms, cells, steps and space. Run nothing.
    ///
    /// Refuses what the run would refuse before its first volume.
    #[arg(long)]
    pub dry_run: bool,
    /// Continue a run that was killed, or repeat its failed arms.
    ///
    /// The run continues with its own plan at its last checkpoint. An arm that failed starts again
    /// from the beginning. Complete arms stay as they are.
    #[arg(
        long, value_name = "DIR", add = ArgValueCandidates::new(complete::runs),
        conflicts_with_all = ["plan", "out", "repo", "trace", "dry_run", "pulls", "runs", "seed", "device", "real_time", "set"]
    )]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Format devices of the plan that carry a signature.
    ///
    /// A mounted device is never formatted.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// Changes to a plan for one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ChangeArgs {
    /// Replay this repository instead of the plan's history.
    #[arg(long, value_name = "PATH|URL", conflicts_with = "trace")]
    pub repo: Option<String>,
    /// Also read repositories of other users.
    ///
    /// By default senesce reads only repositories of root, of the user who runs senesce and of the
    /// user who ran sudo.
    #[arg(long)]
    pub trust_repo: bool,
    /// Replay this size-only trace instead of the plan's history.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Override the number of pulls.
    #[arg(long, value_name = "N")]
    pub pulls: Option<u64>,
    /// Override the runs of each measurement.
    ///
    /// The plan key is repetitions; --repetitions is the same option.
    #[arg(long, visible_alias = "repetitions", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Override the seed of the plan.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Make the volumes modelled disks of this kind.
    ///
    /// A preset (`senesce device list`) or a description in TOML. The disks run in virtual time. No
    /// real device is named here: the plan names them.
    #[arg(long, value_name = "NAME", add = complete::devices())]
    pub device: Option<String>,
    /// Let the modelled device take its time for real.
    #[arg(long)]
    pub real_time: bool,
    /// Override a key, such as measure.every=10. Repeatable.
    ///
    /// The key starts at the root of the plan: workload.fsfb.rounds=100. A number names an entry of
    /// a list: file_system.0.mount=noatime. Entries of a list count from 0. The value is in
    /// TOML syntax. A text needs no quotes. The run keeps the changed plan, and its description
    /// lists the changes. An option such as --seed excludes a setting of its key.
    /// docs/reference/plan-keys.md lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Directory of the run. Default: senesce-runs/demo-N.
    ///
    /// It must not exist, or be empty.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replay this repository instead of a synthetic history.
    #[arg(long, value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Stop after this number of pulls. Default: 400.
    #[arg(long, value_name = "N")]
    pub pulls: Option<u64>,
    /// Print arms, cells, steps and space. Run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the plan of the demo. Run nothing.
    #[arg(long, exclusive = true)]
    pub plan: bool,
    #[command(flatten)]
    pub guest: GuestArgs,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Directory of the run.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub run: PathBuf,
    /// Print only these arms.
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    pub arm: Vec<String>,
    /// Also compare native arms with those of the git binary.
    #[arg(long, conflicts_with = "json")]
    pub equivalence: bool,
    /// Print all tables as JSON, as `export --json` does.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").required(true))]
pub struct ExportArgs {
    /// Directory of the run.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub run: PathBuf,
    /// Print one table as CSV.
    ///
    /// Tables: cells, grep, load, layout, modelled, trace, trace_buckets, maps, free_space, aging,
    /// latency, steps, cures, circumstances. docs/reference/tables.md explains their columns.
    /// With --out, `all` names every table.
    #[arg(long, value_name = "TABLE", group = "format", add = ArgValueCandidates::new(complete::tables))]
    pub csv: Option<String>,
    /// With --csv: write TABLE.csv into this directory.
    ///
    /// It must not exist, or be empty.
    #[arg(short, long, value_name = "DIR", conflicts_with = "json")]
    pub out: Option<PathBuf>,
    /// Print all tables as one JSON document.
    #[arg(long, group = "format")]
    pub json: bool,
    /// With --out: print the files. Write nothing.
    #[arg(long, requires = "out")]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the run.
    #[arg(add = ArgValueCandidates::new(complete::runs))]
    pub run: PathBuf,
    /// File for the page. Default: report.html in RUN.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write every figure into this directory.
    ///
    /// As SVG and PNG, its data as CSV, and for papers as PDF and SVG, 84 and 178 mm wide.
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Also show the change since this earlier run.
    ///
    /// Shows ratios of read costs and of adjacent files, with intervals. `compare` has all figures,
    /// and a gate.
    #[arg(long, value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub baseline: Option<PathBuf>,
    /// Replace a page that senesce did not write.
    #[arg(long)]
    pub force: bool,
    /// Read the run and print the files. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
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
                _ => return Err("write max, recorded, or a factor between 0.000001 and 1000000".to_owned()),
            },
        }))
    }
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The operation log.
    pub log: PathBuf,
    /// Empty directory, device, image:SIZE or garden:DIR.
    ///
    /// A device or image needs --fs. garden:DIR is what `fs mkfs` made; it is opened in this
    /// process.
    #[arg(long, value_name = "PLACE", add = complete::places())]
    pub on: String,
    /// File system: ext4, xfs, btrfs, f2fs, nilfs2, jfs, reiserfs.
    #[arg(long, value_enum, hide_possible_values = true)]
    pub fs: Option<FsArg>,
    /// Directory for the image and its mount point.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The repository with the contents of the log.
    ///
    /// Needed if it has moved, or if the log names a URL.
    #[arg(long, value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Also read repositories of other users.
    ///
    /// By default senesce reads only repositories of root, of the user who runs senesce and of the
    /// user who ran sudo.
    #[arg(long)]
    pub trust_repo: bool,
    /// Compare the final tree with a model or a directory.
    ///
    /// The model is a tree in memory to which the same operations are applied.
    #[arg(long, value_name = "model|DIR", default_value = "model")]
    pub against: String,
    /// Speed: max, recorded, or a factor such as 60.
    ///
    /// 60 replays 60 times as fast as recorded. Only the log of a recording has times.
    #[arg(long, value_name = "PACE", default_value = "max")]
    pub pace: PaceArg,
    /// Threads. The resulting tree does not depend on them.
    ///
    /// The recorded order is kept for every file and every directory.
    #[arg(long, value_name = "N", default_value = "1")]
    pub threads: std::num::NonZeroU8,
    /// Keep the volume of --on image:SIZE as this image file.
    ///
    /// `senesce inspect FILE` reads it without a mount.
    #[arg(long, value_name = "FILE", conflicts_with = "keep")]
    pub image: Option<PathBuf>,
    /// Leave the image or the mounted device as it is.
    ///
    /// The image and its mount point are below --dir. The replay prints the `senesce clean` command
    /// that removes them.
    #[arg(long)]
    pub keep: bool,
    /// Format a device that carries a signature.
    ///
    /// A mounted device is never formatted.
    #[arg(long)]
    pub force: bool,
    /// Also replay setuid bits, privileges and device nodes.
    ///
    /// These are setuid and setgid bits, security.* and trusted.* attributes (file capabilities)
    /// and device nodes. By default they are skipped and counted, because they could give the
    /// author of a log root's rights.
    #[arg(long)]
    pub trust_log: bool,
    /// Check the log and the place. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FsArg {
    Ext4,
    Xfs,
    Btrfs,
    F2fs,
    Nilfs2,
    Jfs,
    Reiserfs,
}

impl FsArg {
    /// The names, for a hint.
    pub const NAMES: &str = "ext4, xfs, btrfs, f2fs, nilfs2, jfs or reiserfs";

    pub fn kind(self) -> FileSystemKind {
        match self {
            Self::Ext4 => FileSystemKind::Ext4,
            Self::Xfs => FileSystemKind::Xfs,
            Self::Btrfs => FileSystemKind::Btrfs,
            Self::F2fs => FileSystemKind::F2fs,
            Self::Nilfs2 => FileSystemKind::Nilfs2,
            Self::Jfs => FileSystemKind::Jfs,
            Self::Reiserfs => FileSystemKind::Reiserfs,
        }
    }
}

#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(subcommand)]
    pub what: LogVerb,
}

#[derive(Debug, Subcommand)]
pub enum LogVerb {
    /// Print the steps, one operation per line.
    #[command(after_long_help = "Examples:\n  \
        senesce log show LOG -n 3          the first three steps\n  \
        senesce log show LOG --step 12")]
    Show {
        /// The operation log.
        log: PathBuf,
        /// Print only this step.
        #[arg(long, value_name = "N")]
        step: Option<u64>,
        /// Print at most this number of steps.
        #[arg(short = 'n', long, value_name = "N")]
        steps: Option<u64>,
    },
    /// Print totals.
    #[command(after_long_help = "Example:\n  \
        senesce log stat LOG")]
    Stat {
        /// The operation log.
        log: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read everything and check every checksum.
    #[command(after_long_help = "Example:\n  \
        senesce log verify LOG")]
    Verify {
        /// The operation log.
        log: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct GrepArgs {
    /// The tree.
    pub path: PathBuf,
    /// Order in directories: readdir (default), sorted, inode.
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        default_value = "readdir",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub order: OrderArg,
    /// Run GNU grep instead of the scanner of senesce.
    #[arg(long)]
    pub grep: bool,
    /// Runs that are not counted.
    #[arg(short, long, default_value_t = 0)]
    pub warmups: u64,
    /// Counted runs.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Print JSON.
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
    /// Path of the new bare repository. It must not exist.
    #[arg(required_unless_present = "like")]
    pub path: Option<PathBuf>,
    /// Fit a model to the history of this repository, a path or URL.
    ///
    /// Prints how near a synthetic history comes. The model has counts, shares and sizes, but no
    /// names and no contents.
    #[arg(long, value_name = "REPO", conflicts_with = "model")]
    pub like: Option<String>,
    /// The new file for the model of --like. It must not exist.
    #[arg(short, long, value_name = "FILE", requires = "like")]
    pub out: Option<PathBuf>,
    /// Follow the model in this file instead of the history of Linux.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Files in the first commit. Default: 20000, or as the model states.
    #[arg(long, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    pub files: Option<u64>,
    /// Commits after the first. Default: 1000, or as the model states.
    #[arg(long)]
    pub commits: Option<u64>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print statistics beside those of the history of Linux.
    #[arg(long)]
    pub show: bool,
    /// Directory for the copy of the repository of --like.
    #[arg(long, default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// Use a repository of another user. Git can run commands of its owner.
    #[arg(long)]
    pub trust_repo: bool,
    /// Check the path and the parameters. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
}
