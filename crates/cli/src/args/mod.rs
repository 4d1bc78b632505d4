//! The command line, as typed.

mod aged;
mod dump;
mod evergreen;
mod experiment;
mod fs;
mod garden;
mod guest;
mod live;
mod look;
mod objects;
mod record;
mod words;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use aged::*;
pub use dump::*;
pub use evergreen::*;
pub use experiment::*;
pub use fs::*;
pub use garden::*;
pub use guest::*;
pub use live::*;
pub use look::*;
pub use objects::*;
pub use record::*;
pub use words::*;

/// The laboratory for file system aging: ages file systems, measures what the age costs, and shows it.
#[derive(Debug, Parser)]
#[command(
    name = "senesce",
    version = env!("SENESCE_VERSION"),
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done · 1 failed · 2 usage (command line, plan) · 3 environment (root, kernel, tools, \
                  space) · 4 internal error · 5 a gate fails (`compare --fail-if`) · 6 a gate is undecided · 130, 143 interrupted by a signal (`run --resume` continues a run)\n\n\
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
        senesce inspect garden:/srv/garden --map map.svg      a volume that `senesce fs mkfs` made\n  \
        senesce inspect ~/src --device nvme --json | jq '.costs'")]
    Inspect(InspectArgs),
    /// Put the files of an aged file system into the order in which they are read, online. Names, inodes and times stay.
    #[command(after_help = "Examples:\n  \
        sudo senesce defrag /srv/data --dry-run               what would move, and what that would gain; writes nothing\n  \
        sudo senesce defrag /srv/data                         moves the files, if that is worth it\n  \
        sudo senesce defrag /srv/data --budget 10GiB --idle   the best 10 GiB, while no other program waits for I/O\n  \
        sudo senesce defrag /home --order sorted --max-seconds 3600\n  \
        senesce defrag ~/src --dry-run --json | jq '.worth'\n\n\
        On ext4, XFS with reflink and Btrfs, mounted and in use. A kill or a power cut at any moment loses nothing and leaves\n\
        nothing behind; a second run continues.")]
    Defrag(DefragArgs),
    /// The block requests of one device while a command runs: layout score, seeks, sizes, modelled cost.
    #[command(after_help = "Examples:\n  \
        sudo senesce trace --on /srv/data -- sh -c 'tar cf - /srv/data | cat > /dev/null'\n  \
        sudo senesce trace --on /dev/sdb -d hdd-7200,nvme --requests trace.csv -- cp -r /srv /mnt/copy\n  \
        blkparse -i sdb | senesce trace --blkparse /dev/stdin --json\n\n\
        Needs root. Other users of the device are seen too, and reads from memory are not: drop caches first. The command's own stdout goes to stderr.")]
    Trace(TraceArgs),
    /// Compare two runs or two trees: ratios with intervals, and whether chance explains them.
    #[command(after_help = "Examples:\n  \
        senesce compare before after                          the last checkpoint of each arm\n  \
        senesce compare before after --all --fail-if '+5%'    exits with code 5 if B costs over 5% more\n  \
        senesce compare a b --fail-if '+5%' --figure 'grep|score' --role full --arm xfs\n  \
        senesce compare /mnt/aged /mnt/fresh -w 1 -r 10       grep tests in turn, caches as they are\n\n\
        The gate (--fail-if) compares layout, requests and modelled seconds of the full and empty volumes exactly.\n\
        --measured or --figure adds wall times. A wall time fails if a Mann-Whitney test (p below 1%, corrected for the\n\
        number of figures) and the whole 95% interval are beyond the limit. It passes if both (p below 5%) are within it.\n\
        Otherwise, or with fewer than four values on a side, it is undecided (exit code 6).")]
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
    /// Run the demo: how git pulls age ext4, XFS and Btrfs, on modelled disks.
    #[command(after_help = "Examples:\n  \
        sudo senesce demo                                the report's path is printed after the first file system\n  \
        sudo senesce demo --repo ~/linux --out /data/demo\n  \
        senesce demo --plan > mine.toml                  a plan of your own to begin with\n\n\
        It needs root, about 5 GiB below the directory of the run, and one to two minutes. The disks are modelled:\n\
        no drive of the machine is formatted, and none is measured.")]
    Demo(DemoArgs),
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
    /// Record what programs do to a directory, as an operation log that can be replayed anywhere.
    #[command(after_help = "Examples:\n  \
        sudo senesce record --dir src --mount /mnt/rec --log build.senesce-log -- make\n  \
        sudo senesce record --dir data --mount /mnt/rec --log day.senesce-log --anonymize     until Ctrl-C\n  \
        sudo senesce record --dir src --mount /mnt/rec --log l --keep-contents --overhead -- make -j2\n  \
        strace -f -y -ttt -o t.txt make; senesce record --import-strace t.txt --dir $PWD --log build.senesce-log\n\n\
        The command runs in the mount; its own stdout goes to stderr.")]
    Record(RecordArgs),
    /// Apply an operation log to a volume, and compare the resulting trees.
    #[command(after_help = "Examples:\n  \
        senesce replay demo/arms/ext4/oplog.senesce-log --on /mnt/scratch/empty-dir\n  \
        sudo senesce replay LOG --on image:2GiB --fs xfs --against model\n  \
        senesce replay build.senesce-log --on empty-dir --threads 4 --against BACKING\n  \
        senesce replay day.senesce-log --on empty-dir --pace 60           an hour's work in a minute")]
    Replay(ReplayArgs),
    /// Age a volume or directory by a workload, without an experiment, and say what was reached.
    #[command(after_help = "Examples:\n  \
        sudo senesce age fsfb --on image:5GiB --fs ext4 --until turnover=3 --save aged.senesce-image\n  \
        sudo senesce age profile:agrawal --on /dev/sdb1 --fs xfs --until fullness=80%\n  \
        senesce age mail --on /mnt/scratch/empty-dir --set cycles=10 --log mail.senesce-log\n  \
        senesce age git:~/linux --on /mnt/scratch --set pulls=500 --until layout-score=0.9\n  \
        senesce age fsfb --on garden:/srv/garden --until turnover=2\n\n\
        A directory that holds something is aged below a new one in it; nothing else is touched.")]
    Age(AgeArgs),
    /// Any command on aged volumes and on unaged twins of them, in turn: what the age costs it, and who is better.
    #[command(after_help = "Examples:\n  \
        sudo senesce bench --aged ext4.senesce-image --aged xfs.senesce-image --unaged -- sh -c 'tar cf - . | cat > /dev/null'\n  \
        sudo senesce bench --aged aged.img --unaged --sync -- cp -r {}/src {}/copy\n  \
        sudo senesce bench --aged A --unaged --metric '(\\d+) transactions' --more-is-better -- ~/db-bench.sh {}\n  \
        sudo senesce bench --aged A --unaged --personality varmail --scale 0.2\n  \
        sudo senesce bench --suite plans/atc18-filebench-small.toml --out filebench\n\n\
        The command runs in the volume; SENESCE_VOLUME and every {} in its arguments are its path.\n\
        Every run begins with the same volume, restored, and with cold caches.")]
    Bench(BenchArgs),
    /// What servers do to files, as benchmarks: mail, files, web, database.
    #[command(after_help = "Examples:\n  \
        senesce personality list\n  \
        senesce personality show varmail > mine.toml     every parameter; then bench --personality mine.toml")]
    Personality(PersonalityArgs),
    /// Bring a file or the free space of a volume to a fragmentation that is asked for, and verify it.
    #[command(after_help = "Examples:\n  \
        senesce fragment table.db --extents 1000               the same contents in 1000 extents\n  \
        senesce fragment new.dat --size 1GiB --layout-score 0.9\n  \
        sudo senesce fragment /mnt/scratch --free-space 4KiB:20%,64KiB:30%,1MiB:50% --free 2GiB\n\n\
        On ext4, XFS and Btrfs. A file gets a new inode; nothing is replaced unless the target is reached.\n\
        --free-space fills the volume for a moment, and leaves a filler file on it.")]
    Fragment(FragmentArgs),
    /// Keep aged volumes: save one, restore it in seconds as often as it is needed.
    #[command(after_help = "Examples:\n  \
        senesce image save aged.img aged.senesce-image --set workload=fsfb\n  \
        senesce image restore aged.senesce-image test.img     equal byte for byte, sparse\n  \
        sudo senesce image restore aged.senesce-image /dev/sdb1\n  \
        senesce image list ~/images\n  \
        senesce image verify aged.senesce-image")]
    Image(ImageArgs),
    /// File systems of our own, whose every block can be looked at: make one, mount it, check it.
    #[command(after_help = "Examples:\n  \
        senesce fs mkfs garden /srv/garden --size 4GiB\n  \
        sudo senesce fs mount /srv/garden /mnt/garden          until Ctrl-C or umount\n  \
        senesce fs check /srv/garden                           also after a kill; changes nothing\n  \
        senesce fs stat /srv/garden --json\n  \
        senesce fs scrub /srv/garden                           every block and parity, and put right what can be\n  \
        senesce fs snapshot create /srv/garden main monday     and `fs diff /srv/garden main monday` later\n  \
        senesce fs replace /srv/garden 2                       a new drive for the missing one; rebuild goes on\n  \
        sudo senesce fs mkfs garden --drive /dev/sdb --drive /dev/sdc --drive /dev/sdd --log /dev/nvme0n1p3")]
    Fs(FsArgs),
    /// The published experiments with the garden, run here.
    #[command(after_help = "Examples:\n  \
        senesce garden reproduce --out published               all of them, on every processor; again to go on\n  \
        senesce garden reproduce E5 E12 --scale small          a first look, in minutes\n  \
        senesce garden reproduce E4 --json | jq '.experiments[3].parts[].figures'\n\n\
        Aggregates are in memory; nothing is mounted. Structure is counted, time is a model's.")]
    Garden(GardenArgs),
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
        sudo senesce clean          every run in your list whose process no longer exists\n  \
        sudo senesce clean demo     the run in the directory demo\n  \
        sudo senesce clean --dry-run   print what would be removed\n\n\
        The list of runs is in /var/lib/senesce for root and in ~/.local/state/senesce for other users;\n\
        SENESCE_REGISTRY names another directory. Only you and root may have write permission for it.\n\
        Exit code 1: a resource could not be removed, or a journal was refused.")]
    Clean(CleanArgs),
    /// List the kernels that runs can use: this machine's and guests, their file systems, and what is missing.
    #[command(after_help = "Examples:\n  senesce kernels\n  senesce kernels --json | jq '.kernels[].file_systems'")]
    Kernels(KernelsArgs),
    /// Print the JSON schema of plan files, of suites or of personalities.
    Schema {
        /// Which.
        #[arg(long, value_enum, default_value_t = SchemaOf::Plan)]
        of: SchemaOf,
        /// Print the keys of a plan as Markdown instead.
        #[arg(long, conflicts_with = "of")]
        markdown: bool,
    },
    /// Print a shell completion script.
    #[command(after_help = "Example:\n  senesce completions bash > /etc/bash_completion.d/senesce")]
    Completions(CompletionsArgs),
    /// Print the man page.
    #[command(after_help = "Examples:\n  senesce man | man -l -\n  senesce man --markdown > commands.md")]
    Man {
        /// Print Markdown: the long help of every command and subcommand.
        #[arg(long)]
        markdown: bool,
    },
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

/// What a schema is of.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum SchemaOf {
    /// What `run` takes.
    Plan,
    /// What `bench --suite` takes.
    Suite,
    /// What `bench --personality` takes.
    Personality,
}

#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directories of runs; all runs that were started on this machine by default.
    pub runs: Vec<PathBuf>,
    /// Print each resource that would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove the snapshots that `run --resume` would go on from: their arms then begin again.
    #[arg(long)]
    pub snapshots: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}
