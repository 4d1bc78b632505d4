//! The command line, as typed.

mod aged;
mod bundle;
mod campaign;
mod complete;
mod experiment;
mod forecast;
mod gardening;
mod gate;
mod groups;
mod guest;
mod help;
mod image;
mod look;
mod profile;
mod record;
mod schema;
mod tips;

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind};
use clap_complete::engine::ArgValueCandidates;

pub use aged::*;
pub use bundle::*;
pub use campaign::*;
pub use experiment::*;
pub use forecast::*;
pub use gardening::*;
pub use gate::*;
pub use groups::EXIT_CODES;
pub use guest::*;
pub use image::*;
pub use look::*;
pub use profile::*;
pub use record::*;
pub use schema::*;

use crate::{engines::engines, fit::help_columns};

/// The most columns of a help, in a wider terminal too. A help in Markdown has as many.
pub const MOST_COLUMNS: usize = 100;

/// Ages file systems, measures what the age costs, and shows it.
#[derive(Debug, Parser)]
#[command(
    name = "senesce",
    version = crate::VERSION,
    propagate_version = true,
    max_term_width = MOST_COLUMNS,
    after_help = "`senesce VERB -h` lists the options of a verb, `senesce VERB --help` explains them.",
    after_long_help = "Exit codes: 0 done · 1 failed · 2 usage, not found · 3 environment (root, kernel, tools, space) \
                       · 4 internal error · 5 a gate fails · 6 a gate is undecided · 7 a mount lacks a drive \
                       · 130, 143 interrupted (`senesce help exit-codes`)\n\n\
                       Results go to stdout, progress to stderr.\n\n\
                       Sizes: K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024; KB, MB, GB, TB are powers of 1000."
)]
pub struct Cli {
    /// Print no progress.
    #[arg(short, long, global = true, display_order = 900)]
    pub quiet: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The text of `senesce help exit-codes`, as wide as the terminal.
pub fn exit_codes() -> String {
    help::reflow(EXIT_CODES, help_columns(MOST_COLUMNS))
}

impl Cli {
    /// The command line with its verbs in groups. Its help has 100 columns.
    pub fn grouped() -> clap::Command {
        Self::grouped_in(MOST_COLUMNS)
    }

    fn grouped_in(columns: usize) -> clap::Command {
        groups::group(engines().extend(Self::command()), columns)
    }

    /// The command line with a help of this number of columns.
    fn for_screen(columns: usize) -> clap::Command {
        help::fit_texts(Self::grouped_in(columns), columns).term_width(columns)
    }

    /// Reads the command line.
    ///
    /// Errors: it is wrong, or it asks for help or the version.
    pub fn read(arguments: &[OsString]) -> Result<(Self, ArgMatches), clap::Error> {
        match Self::parse_with(engines().extend(Self::command()), arguments) {
            // All help texts are fitted only if one of them may be printed.
            Err(error) if error.kind() != ErrorKind::DisplayVersion => {
                Self::parse_with(Self::for_screen(help_columns(MOST_COLUMNS)), arguments)
            }
            read => read,
        }
    }

    fn parse_with(mut command: clap::Command, arguments: &[OsString]) -> Result<(Self, ArgMatches), clap::Error> {
        let matches = command.try_get_matches_from_mut(arguments);
        let matches = matches.map_err(|error| tips::improve(error, &command, arguments))?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok((cli, matches))
    }
}

/// A verb. Its place in the help is in `groups.rs`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show how aged a file system is, where, why, and the cost. Writes nothing to it.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce inspect /srv/data                        one screen\n  \
        sudo senesce inspect / --html root.html --idle        a page with a map, at idle I/O priority\n  \
        senesce inspect disk.img                              an image that is not mounted\n  \
        senesce inspect garden:/srv/garden --map map.svg      a volume that `senesce fs mkfs` made\n  \
        senesce inspect ~/src --device nvme --json | jq '.costs'")]
    Inspect(InspectArgs),
    /// Move files of a mounted file system into the order in which they are read.
    ///
    /// Names, inodes and times stay.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce defrag /srv/data --dry-run               print what would move and the gain; writes nothing\n  \
        sudo senesce defrag /srv/data                         moves the files, if that is worth it\n  \
        sudo senesce defrag /srv/data --budget 10GiB --idle   the best 10 GiB, while no other program waits for I/O\n  \
        sudo senesce defrag /home --order sorted --max-seconds 3600\n  \
        senesce defrag ~/src --dry-run --json | jq '.worth'\n\n\
        On ext4, XFS with reflink and Btrfs, mounted and in use. A kill at any moment loses nothing and leaves\n\
        nothing in the file system; a second run continues. The same is true of a power cut,\n\
        except that on ext4 it can lose a write that another program synced during a step (docs/how-to/defrag.md).")]
    Defrag(DefragArgs),
    /// Trace the block requests of a device during a command: layout score, seeks, cost.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce trace --on /srv/data -- sh -c 'tar cf - /srv/data | cat > /dev/null'\n  \
        sudo senesce trace --on /dev/sdb -d hdd-7200,nvme --requests trace.csv -- cp -r /srv /mnt/copy\n  \
        blkparse -i sdb | senesce trace --blkparse /dev/stdin --json\n\n\
        Needs root. The trace also contains requests of other programs. It contains no reads from memory: drop caches first.\n\
        The stdout of the command goes to stderr.")]
    Trace(TraceArgs),
    /// Compare two runs, two inspections or two trees: ratios, intervals and a gate for CI.
    #[command(after_long_help = "Examples:\n  \
        senesce compare before after                          the last checkpoint of each arm\n  \
        senesce compare before after --all --fail-if '+5%'    exits with code 5 if B costs over 5% more\n  \
        senesce compare a b --fail-if '+5%' --figure 'grep|score' --role full --arm xfs\n  \
        senesce compare a.json b.json                         two files of `inspect --json --no-map`\n  \
        senesce compare /mnt/aged /mnt/fresh -w 1 -r 10       grep tests in turn, caches as they are\n\n\
        The gate (--fail-if) compares layout, requests and modelled seconds of the full and empty volumes exactly.\n\
        --measured or --figure adds wall times. A wall time fails if a Mann-Whitney test (p below 1%, corrected for the\n\
        number of figures) and the whole 95% interval are beyond the limit. It passes if both (p below 5%) are within it.\n\
        Otherwise, or with fewer than four values on a side, it is undecided (exit code 6).")]
    Compare(CompareArgs),
    /// Fail if a run is worse than a baseline; for pull requests and `git bisect run`.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce gate ci.toml --save-baseline ci-baseline.json    commit this file\n  \
        sudo senesce gate ci.toml --baseline ci-baseline.json --github --junit gate.xml\n  \
        senesce gate after --baseline before --tolerance 2            two runs\n  \
        senesce gate after --baseline ci-baseline.json --markdown -   a table for a pull request\n  \
        git bisect run sudo senesce gate ci.toml --baseline ci-baseline.json --bisect\n\n\
        Layout, requests, modelled and virtual seconds of the full and empty volumes are compared exactly, or with a\n\
        tolerance. An improvement is printed, and does not fail. Exit code 5: a regression; 6: undecided.\n\
        A run of another history, seed, workload or volume size is refused. Other circumstances that differ are listed.")]
    Gate(GateArgs),
    /// Forecast the cost of a volume, and the date at which it is twice as slow.
    #[command(after_long_help = "Examples:\n  \
        senesce inspect /srv --json --no-map > srv-$(date +%F).json   once a day or week\n  \
        senesce forecast srv-*.json\n  \
        senesce forecast srv-*.json --at 2027-06-01 --threshold 1.5\n  \
        senesce forecast demo --arm ext4 --at 5000            a run, at a later checkpoint\n  \
        senesce forecast srv-*.json --json | jq '.forecasts[0].crossing'\n\n\
        Needs four inspections or checkpoints after the last cure. A forecast reaches twice as far as they do.\n\
        The interval is from the errors on other histories, whose later costs are known: docs/how-to/forecast.md.")]
    Forecast(ForecastArgs),
    /// List the devices that costs are modelled for, show one, or fit one to a disk.
    #[command(after_long_help = "Examples:\n  \
        senesce device list\n  \
        senesce device show hdd-7200\n  \
        sudo senesce device calibrate /dev/nvme0n1 --out mine.toml\n  \
        senesce inspect / --device mine.toml                  the fitted model")]
    Device(DeviceArgs),
    /// Show, make and compare profiles: sizes, depths and ages of the files of a machine.
    #[command(after_long_help = "Examples:\n  \
        senesce profile show agrawal                          a picture of a built-in profile\n  \
        senesce profile capture /home -o home.toml            sizes, depths and ages of all files; reads no content\n  \
        senesce profile merge home.toml srv.toml -o ours.toml\n  \
        senesce profile diff home.toml agrawal")]
    Profile(ProfileArgs),
    /// Run the demo: git pulls age ext4, XFS and Btrfs on modelled disks, in about 90 s.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce demo                                the report's path is printed after the first file system\n  \
        sudo senesce demo --repo ~/linux --out /data/demo\n  \
        senesce demo --plan > mine.toml                  the plan, to start your own from\n\n\
        It needs root, about 1 GiB below the directory of the run, and about 90 s on two cores without other\n\
        work. The disks are modelled: no drive of the machine is formatted or measured. Two runs on one kernel\n\
        have the same modelled costs, unless other programs start writeback, for example if memory is short.")]
    Demo(DemoArgs),
    /// Run an experiment from a plan file, or resume one.
    #[command(after_long_help = "Examples:\n  \
        senesce run plans/quick-start.toml --dry-run     print the steps and the space they need\n  \
        sudo senesce run plans/quick-start.toml          run it; the report's path is printed at the end\n  \
        sudo senesce run plans/quick-start.toml --repo ~/linux --out /data/linux-run\n  \
        sudo senesce run plans/quick-start.toml --device hdd-7200     on a modelled disk\n  \
        sudo senesce run --resume /data/linux-run        continue after a kill or a power cut")]
    Run(RunArgs),
    /// Run a grid of experiments on many machines, and merge the results.
    ///
    /// A grid is a file that lists plans, file systems, kernels, devices and seeds. Every
    /// combination is a task. A user or a scheduler can run the tasks in any order, on any machine.
    #[command(after_long_help = "Examples:\n  \
        senesce campaign plan grid.toml --out /shared/grid    check the grid, list its tasks\n  \
        sudo senesce campaign task /shared/grid 0             run one task, or continue it after a kill\n  \
        seq 0 11 | parallel --jobs 2 senesce campaign task /shared/grid\n  \
        senesce campaign submit --slurm /shared/grid --jobs 20 --scratch '$TMPDIR'\n  \
        senesce campaign status /shared/grid\n  \
        senesce campaign merge /shared/grid && senesce report /shared/grid/merged")]
    Campaign(CampaignArgs),
    /// Print the summary of a run.
    #[command(after_long_help = "Examples:\n  \
        senesce show demo\n  \
        senesce show demo --json | jq '.grep[0]'\n  \
        senesce show demo --equivalence")]
    Show(ShowArgs),
    /// Write result tables of a run as CSV or JSON.
    #[command(after_long_help = "Examples:\n  \
        senesce export demo --csv grep > grep.csv\n  \
        senesce export demo --csv all --out tables       a file for each table\n  \
        senesce export demo --json | jq '.grep[0]'")]
    Export(ExportArgs),
    /// Write the HTML report of a run, and its figures as files.
    #[command(
        after_long_help = "Examples:\n  senesce report demo --out aging.html --figures figures\n  senesce report after --baseline before"
    )]
    Report(ReportArgs),
    /// Write a run into one file for reviewers: plan, results, figures, checksums.
    #[command(after_long_help = "Examples:\n  \
        senesce bundle demo -o demo.senesce-bundle            equal byte for byte if it is made again\n  \
        senesce bundle demo --inputs --licence CC-BY-4.0\n  \
        tar --zstd -xf demo.senesce-bundle                    unpacks it into the directory bundle\n\n\
        The file is a tar archive, compressed by zstd, with RO-Crate metadata. It has the plan, the tables as Parquet, the\n\
        report, the figures as SVG, PNG and PDF, and LaTeX for them. It also has the circumstances, the operation\n\
        logs, and how to cite.\n\
        Logs have the names of the files of the workload. Read docs/how-to/bundle.md before you publish a bundle.")]
    Bundle(BundleArgs),
    /// Verify a bundle: every checksum, the list of files, the plan and the tables.
    #[command(after_long_help = "Examples:\n  \
        senesce verify-bundle demo.senesce-bundle\n  \
        senesce verify-bundle demo.senesce-bundle --json | jq .whole\n\n\
        Writes nothing. Exit codes: 0 the bundle is whole; 1 it is damaged; 2 it is no bundle, or one of a newer senesce.")]
    VerifyBundle(VerifyBundleArgs),
    /// Run the plan of a bundle again, and compare the results figure by figure.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce rerun demo.senesce-bundle --out again\n  \
        sudo senesce rerun linux.senesce-bundle --repo ~/linux --json > rerun.json\n  \
        senesce rerun demo.senesce-bundle --against again     compares again, and runs nothing\n\n\
        Circumstances that differ come first. Layout, requests, modelled and virtual seconds are compared with the tolerances\n\
        of `gate`. Wall times are listed, and do not decide. A plan that names a device or a directory is refused.\n\
        Exit codes: 0 equal, or within the tolerances; 5 a figure differs; 6 a figure is missing, or its values do not decide;\n\
        1 the bundle is damaged, or the run failed.")]
    Rerun(RerunArgs),
    /// Record what programs do to a directory, as an operation log for `replay`.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce record --on src --mount /mnt/rec --log build.senesce-log -- make\n  \
        sudo senesce record --on data --mount /mnt/rec --log day.senesce-log --anonymize     until Ctrl-C\n  \
        sudo senesce record --on src --mount /mnt/rec --log l --keep-contents --overhead -- make -j2\n  \
        strace -f -y -ttt -o t.txt make; senesce record --import-strace t.txt --on $PWD --log build.senesce-log\n\n\
        The command runs in the mount. Its stdout goes to stderr.")]
    Record(RecordArgs),
    /// Apply an operation log to a volume, and compare the resulting trees.
    #[command(after_long_help = "Examples:\n  \
        senesce replay demo/arms/ext4/oplog.senesce-log --on /mnt/scratch/empty-dir\n  \
        sudo senesce replay LOG --on image:2GiB --fs xfs --image xfs.img   then `senesce inspect xfs.img`\n  \
        senesce replay build.senesce-log --on empty-dir --threads 4\n  \
        senesce replay build.senesce-log --on empty-dir --against BACKING  after `record --keep-contents`\n  \
        senesce replay day.senesce-log --on empty-dir --pace 60            an hour's work in a minute")]
    Replay(ReplayArgs),
    /// Age a volume or directory by a workload, and print the age that it reached.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce age fsfb --on image:5GiB --fs ext4 --until turnover=3 --save aged.senesce-image\n  \
        sudo senesce age profile:agrawal --on /dev/sdb1 --fs xfs --until fullness=80%\n  \
        senesce age mail --on /mnt/scratch/empty-dir --set cycles=10 --log mail.senesce-log\n  \
        senesce age git:~/linux --on /mnt/scratch --set pulls=500 --until layout-score=0.9\n  \
        senesce age fsfb --on garden:/srv/garden --until turnover=2\n\n\
        If a directory is not empty, a new directory in it is aged. The rest stays as it is.\n\
        fsfb and profile:NAME fill the whole file system of a directory, fsfb to 95%. So does overwrite with\n\
        fill_percent.\n\
        The full-disk editions of git do so, too.\n\
        With their default parameters, mail needs 1.4 GiB and overwrite 1.0 GiB. --set files=N makes mail smaller.")]
    Age(AgeArgs),
    /// Time a command on aged volumes and on fresh twins of them, in turn.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce bench --aged ext4.senesce-image --aged xfs.senesce-image --unaged -- sh -c 'tar cf - . | cat > /dev/null'\n  \
        sudo senesce bench --aged aged.img --unaged --sync --html bench.html -- cp -r {}/src {}/copy\n  \
        sudo senesce bench --aged A --unaged --metric '(\\d+) transactions' --more-is-better -- ~/db-bench.sh {}\n  \
        sudo senesce bench --aged A --unaged --personality varmail --scale 0.2\n  \
        sudo senesce bench --suite plans/atc18-filebench-small.toml --out filebench\n\n\
        The command runs in the volume; SENESCE_VOLUME and every {} in its arguments are its path.\n\
        Every run starts with the same volume, restored, and with cold caches.")]
    Bench(BenchArgs),
    /// The earlier name of `bench personality`.
    #[command(hide = true)]
    Personality(PersonalityArgs),
    /// Bring a file or the free space of a volume to a given fragmentation, and verify it.
    #[command(after_long_help = "Examples:\n  \
        senesce fragment table.db --extents 1000               the same contents in 1000 extents\n  \
        senesce fragment new.dat --size 1GiB --layout-score 0.9\n  \
        sudo senesce fragment /mnt/scratch --free-space 4KiB:20%,64KiB:30%,1MiB:50% --free 2GiB\n\n\
        On ext4, XFS and Btrfs. A file gets a new inode; nothing is replaced unless the target is reached.\n\
        --free-space fills the volume for a moment, and leaves a filler file on it.")]
    Fragment(FragmentArgs),
    /// Save aged volumes in containers, and restore them in seconds.
    #[command(after_long_help = "Examples:\n  \
        senesce image save aged.img aged.senesce-image --set workload=fsfb\n  \
        senesce image restore aged.senesce-image test.img     equal byte for byte, sparse\n  \
        sudo senesce image restore aged.senesce-image /dev/sdb1\n  \
        senesce image list ~/images\n  \
        senesce image verify aged.senesce-image")]
    Image(ImageArgs),
    /// Make, mount, check and repair the file systems garden and evergreen.
    #[command(after_long_help = "Examples:\n  \
        senesce fs mkfs garden /srv/garden --size 4GiB\n  \
        sudo senesce fs mount /srv/garden /mnt/garden          until Ctrl-C or umount\n  \
        senesce fs check /srv/garden                           also after a kill; changes nothing\n  \
        senesce fs stat /srv/garden --json\n  \
        senesce fs scrub /srv/garden                           read and repair every block and parity\n  \
        senesce fs snapshot create /srv/garden main monday     and `fs diff /srv/garden main monday` later\n  \
        senesce fs replace /srv/garden 2                       a new drive for the missing one\n  \
        sudo senesce fs mkfs garden --drive /dev/sdb --drive /dev/sdc --drive /dev/sdd --log /dev/nvme0n1p3")]
    Fs,
    /// Run the published experiments of the garden here, and compare the figures.
    #[command(after_long_help = "Examples:\n  \
        senesce garden reproduce --out published               all of them; the same command continues\n  \
        senesce garden reproduce E5 E12 --scale small          first figures, in minutes\n  \
        senesce garden reproduce E4 --json | jq '.experiments[3].parts[].figures'\n\n\
        Aggregates are in memory; nothing is mounted. Structure is counted, time is modelled.")]
    Garden,
    /// Print, sum up or verify an operation log.
    #[command(after_long_help = "Examples:\n  \
        senesce log show demo/arms/ext4/oplog.senesce-log -n 3    the first three steps\n  \
        senesce log stat LOG --json\n  \
        senesce log verify LOG")]
    Log(LogArgs),
    /// Read a whole tree once, and print seconds per GiB. Caches stay as they are.
    #[command(after_long_help = "Examples:\n  senesce grep /srv/data --order sorted\n  senesce grep /srv/data --grep")]
    Grep(GrepArgs),
    /// Make a synthetic git history, like that of Linux or of any repository.
    #[command(after_long_help = "Examples:\n  \
        senesce synth /tmp/history.git --files 2000 --commits 500 --show\n  \
        senesce synth --like ~/project --out project.toml    fit a model, and print how near it comes\n  \
        senesce synth /tmp/history.git --model project.toml  a history that follows the model")]
    Synth(SynthArgs),
    /// Remove the mounts, loop devices, images and temporary files that a killed run left.
    ///
    /// Prints each resource with its outcome. Without RUN, only runs in the caller's own list are
    /// cleaned.
    #[command(after_long_help = "Examples:\n  \
        sudo senesce clean --dry-run   print each resource that would be removed\n  \
        sudo senesce clean             clean every run in your list whose process no longer exists\n  \
        sudo senesce clean demo        clean the run in the directory demo\n\n\
        The list of runs is in /var/lib/senesce/runs for root, else in ~/.local/state/senesce/runs;\n\
        SENESCE_REGISTRY names another directory. Only you and root may have write permission for it.\n\
        Exit code 1: a resource could not be removed, or a journal was refused.")]
    Clean(CleanArgs),
    /// List the kernels that runs can use.
    ///
    /// This machine's kernel and guests, with their file systems, and what is missing.
    #[command(
        after_long_help = "Examples:\n  senesce kernels\n  senesce kernels --json | jq '.kernels[].file_systems'"
    )]
    Kernels(KernelsArgs),
    /// Print the JSON schema of plans, suites, personalities and of every JSON output.
    ///
    /// Also prints the list of metrics.
    #[command(after_long_help = schema::list_kinds() + "\nExamples:\n  \
        senesce schema > plan.schema.json\n  \
        senesce schema --of inspect > inspect.schema.json")]
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    ///
    /// The script asks senesce for values: devices, profiles, workloads, tables and runs.
    #[command(after_long_help = "Examples:\n  \
        senesce completions bash > /etc/bash_completion.d/senesce\n  \
        senesce completions zsh > ~/.zfunc/_senesce\n  \
        senesce completions fish > ~/.config/fish/completions/senesce.fish")]
    Completions(CompletionsArgs),
    /// Print a man page, or write one for every verb.
    #[command(after_long_help = "Examples:\n  \
        senesce man | man -l -\n  \
        senesce man inspect | man -l -\n  \
        senesce man --out /usr/local/share/man/man1 --dry-run\n  \
        senesce man --markdown > commands.md")]
    Man(ManArgs),
    /// Explain the exit codes.
    #[command(hide = true, long_about = EXIT_CODES, aliases = ["exitcodes", "exit-code", "exitcode", "exit_codes", "exit"])]
    ExitCodes,
    /// Be the server or the guard of a disk in virtual time; started by a run.
    #[command(hide = true)]
    VdiskServe,
    /// Guard the processes of a guest kernel; started by a run.
    #[command(hide = true)]
    GuestGuard(GuestGuardArgs),
    /// Be process 1 of a guest kernel; started by the kernel.
    #[command(hide = true)]
    GuestInit(GuestInitArgs),
}

#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directories of runs. Default: all runs in your list.
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(complete::runs))]
    pub runs: Vec<PathBuf>,
    /// Print each resource that would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove the snapshots that `run --resume` needs.
    ///
    /// Without them, `run --resume` starts the arms from the beginning.
    #[arg(long)]
    pub snapshots: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: ShellArg,
}

/// The shells with completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellArg {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The verb, such as `fs mount`. Default: the page of senesce.
    #[arg(value_name = "VERB")]
    pub verb: Vec<String>,
    /// Write a page for every verb into this directory.
    #[arg(short, long, value_name = "DIR", conflicts_with = "verb")]
    pub out: Option<PathBuf>,
    /// With --out: print the number of pages. Write nothing.
    #[arg(long, requires = "out")]
    pub dry_run: bool,
    /// Print the long help of every verb as Markdown.
    #[arg(long, conflicts_with_all = ["verb", "out"])]
    pub markdown: bool,
}
