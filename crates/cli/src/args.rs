//! The command line, as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The laboratory for file system aging: ages file systems, measures what the age costs, and shows it.
#[derive(Debug, Parser)]
#[command(
    name = "senesce",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done · 1 failed · 2 usage (command line, plan) · 3 environment (root, kernel, tools, \
                  space) · 4 internal error · 5 `compare --fail-if` holds · 130, 143 interrupted by a signal (resume with --resume)\n\n\
                  Results go to stdout, progress to stderr. Sizes are powers of 1024 (4k, 5GiB)."
)]
pub struct Cli {
    /// No progress on stderr.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// How aged is this file system, where, why, and what does it cost? Writes nothing to it.
    #[command(after_help = "Examples:\n  \
        sudo senesce inspect /srv/data                        one screen\n  \
        sudo senesce inspect / --html root.html --idle        a page with a map, at idle I/O priority\n  \
        senesce inspect disk.img                              an image that is not mounted\n  \
        senesce inspect ~/src --device nvme --json | jq '.costs'")]
    Inspect(InspectArgs),
    /// The block requests of one device while a command runs: layout score, seeks, sizes, modelled cost.
    #[command(after_help = "Examples:\n  \
        sudo senesce trace --on /srv/data -- grep -r nothing /srv/data\n  \
        sudo senesce trace --on /dev/sdb -d hdd-7200,nvme --requests trace.csv -- tar cf /dev/null /srv\n  \
        blkparse -i sdb | senesce trace --blkparse /dev/stdin --json\n\n\
        Needs tracefs, so root. Other users of the device are seen too. The command's own stdout goes to stderr.")]
    Trace(TraceArgs),
    /// Two runs, or two trees, against each other: ratios with intervals, and whether chance explains them.
    #[command(after_help = "Examples:\n  \
        senesce compare before after                          the last checkpoint of each arm\n  \
        senesce compare before after --all --fail-if '+5%'    ends with code 5 if B costs over 5% more\n  \
        senesce compare /mnt/aged /mnt/fresh -w 1 -r 10       grep tests in turn, caches as they are\n\n\
        With four figures or more on each side the whole 95% interval must lie beyond the limit, else the median.")]
    Compare(CompareArgs),
    /// The devices that costs are modelled for.
    #[command(after_help = "Examples:\n  senesce device list\n  senesce device show hdd-7200")]
    Device(DeviceArgs),
    /// What files of a machine are like, as profiles to age volumes by.
    #[command(after_help = "Examples:\n  \
        senesce profile show agrawal                          a picture of a built-in profile\n  \
        senesce profile capture /home -o home.toml            sizes, depths and ages of all files; reads no content\n  \
        senesce profile merge home.toml srv.toml -o ours.toml\n  \
        senesce profile diff home.toml agrawal")]
    Profile(ProfileArgs),
    /// Run an experiment from a plan file.
    #[command(after_help = "Examples:\n  \
        senesce run plans/quick-start.toml --dry-run     what it would do, and the space it needs\n  \
        sudo senesce run plans/quick-start.toml          run it; the report's path is printed at the end\n  \
        sudo senesce run plans/quick-start.toml --repo ~/linux --out /data/linux-run\n  \
        sudo senesce run plans/quick-start.toml --device hdd-7200     on a disk that is not there\n  \
        sudo senesce run --resume /data/linux-run        go on after a kill or a power cut")]
    Run(RunArgs),
    /// Print the summary of a run.
    #[command(after_help = "Examples:\n  senesce show demo\n  senesce show demo --equivalence")]
    Show(ShowArgs),
    /// Write result tables as CSV or JSON.
    #[command(after_help = "Examples:\n  \
        senesce export demo --csv grep > grep.csv\n  \
        senesce export demo --json | jq '.grep[0]'")]
    Export(ExportArgs),
    /// Write the HTML report and the figures of a run.
    #[command(after_help = "Example:\n  senesce report demo --out aging.html --figures figures")]
    Report(ReportArgs),
    /// Apply an operation log to a volume, and compare the resulting trees.
    #[command(after_help = "Examples:\n  \
        senesce replay demo/arms/ext4/oplog.senesce-log --on /mnt/scratch/empty-dir\n  \
        sudo senesce replay LOG --on image:2GiB --fs xfs --against model")]
    Replay(ReplayArgs),
    /// Look into an operation log.
    #[command(after_help = "Examples:\n  \
        senesce log show demo/arms/ext4/oplog.senesce-log -n 3\n  \
        senesce log stat LOG --json\n  \
        senesce log verify LOG")]
    Log(LogArgs),
    /// One grep test of a tree: seconds per GiB, with the caches as they are.
    #[command(after_help = "Examples:\n  senesce grep /srv/data --order sorted\n  senesce grep /srv/data --grep")]
    Grep(GrepArgs),
    /// Make a synthetic git history.
    #[command(after_help = "Examples:\n  \
        senesce synth /tmp/history.git --files 2000 --commits 500 --show")]
    Synth(SynthArgs),
    /// Remove the mounts, loop devices, images and temporary files that a killed run left.
    #[command(after_help = "Examples:\n  \
        sudo senesce clean          after every run of this machine that no longer lives\n  \
        sudo senesce clean demo     after this one")]
    Clean(CleanArgs),
    /// Print the JSON schema of plan files.
    Schema,
    /// Print a shell completion script.
    #[command(after_help = "Example:\n  senesce completions bash > /etc/bash_completion.d/senesce")]
    Completions(CompletionsArgs),
    /// Print the man page.
    #[command(after_help = "Example:\n  senesce man | man -l -")]
    Man,
    /// Be the server or the guard of a disk in virtual time; started by a run.
    #[command(hide = true)]
    VdiskServe,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// A directory of a mounted file system, or a device or image with one, mounted or not.
    pub path: PathBuf,
    /// Read ext4 straight from the device, past its mount if it is mounted.
    #[arg(long)]
    pub offline: bool,
    /// A device to model: a preset (`senesce device list`) or a description in TOML. The first one ranks the losers.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', default_values = ["hdd-7200", "sata-ssd", "nvme"])]
    pub device: Vec<String>,
    /// Readahead to model, KiB; default: that of the file system's device.
    #[arg(long, value_name = "KIB")]
    pub read_ahead_kib: Option<u32>,
    /// Write a page with an interactive map.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// Ask the kernel with this many threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Give way to all other I/O.
    #[arg(long)]
    pub idle: bool,
}

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The device to trace, or a path on its file system.
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
    /// Fail (code 5) if B costs this much more (+5%) or less (-5%) than A.
    #[arg(long, value_name = "±PERCENT%", allow_hyphen_values = true)]
    pub fail_if: Option<FailIf>,
    /// Trees: grep tests of each that are not counted.
    #[arg(short, long, default_value_t = 0)]
    pub warmups: u64,
    /// Trees: grep tests of each that are counted.
    #[arg(short, long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
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
        /// Also the effective bandwidth of random reads by size, and the natural transfer sizes that follow.
        #[arg(long, conflicts_with = "toml")]
        curve: bool,
    },
    /// Measure a device's effective bandwidth by read size (it is only read) and fit a description to it.
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
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        reads: u32,
        /// The largest read.
        #[arg(long, default_value = "64MiB")]
        largest: senesce_core::Bytes,
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
    /// Make a profile of the files below a directory. No content is read, no mount is crossed, nothing is written there.
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
    /// A directory.
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
    /// What ages are counted to, seconds since 1970; default: now. Volumes aged by senesce end at 1704067200.
    #[arg(long, value_name = "SECONDS")]
    pub now: Option<u64>,
    /// Also count the extents of every file.
    #[arg(long)]
    pub extents: bool,
    /// Ask the kernel with this many threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

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
    /// Also write every chart as SVG and PNG into this directory.
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The operation log.
    pub log: PathBuf,
    /// Where: an existing empty directory, a block device, or image:SIZE (with --fs).
    #[arg(long, value_name = "PLACE")]
    pub on: String,
    /// The file system for images and devices.
    #[arg(long, value_enum)]
    pub fs: Option<FsArg>,
    /// Directory for the image and its mount point.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,
    /// The repository that the log's contents come from, if it has moved.
    #[arg(long, value_name = "PATH")]
    pub repo: Option<PathBuf>,
    /// What the tree at the end is compared with: a model in memory (default), or another directory.
    #[arg(long, value_name = "model|DIR", default_value = "model")]
    pub against: String,
    /// Leave the image or the device's mount as it is at the end.
    #[arg(long)]
    pub keep: bool,
    /// Format a named device even if it carries a signature (never if it is mounted).
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FsArg {
    Ext4,
    Xfs,
    Btrfs,
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

#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directories of runs; all runs that were started on this machine by default.
    pub runs: Vec<PathBuf>,
    /// Also remove the snapshots that `run --resume` would go on from: their arms then begin again.
    #[arg(long)]
    pub snapshots: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}
