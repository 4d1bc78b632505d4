//! Arguments of `campaign`.

use std::{num::NonZeroU64, path::PathBuf};

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct CampaignArgs {
    #[command(subcommand)]
    pub what: CampaignVerb,
}

#[derive(Debug, Subcommand)]
pub enum CampaignVerb {
    /// Check a grid and list its tasks in a new directory.
    ///
    /// Prints how to run the tasks. All machines of a cluster must see the directory under the same
    /// path.
    #[command(after_long_help = "Examples:\n  \
        senesce campaign plan campaigns/atlas.toml --out atlas --dry-run\n  \
        senesce campaign plan campaigns/atlas.toml --out atlas")]
    Plan {
        /// The grid file.
        grid: PathBuf,
        /// New directory of the campaign. If it exists, it must be empty.
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// Check the grid and the plan of every task. Write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Run one task, or continue it after a kill.
    ///
    /// If the task is finished, the command does nothing. Otherwise it cleans up after a killed
    /// attempt on this machine, and continues its work. The result is in DIR/tasks/N when it is
    /// complete.
    ///
    /// Exit codes: 0 the task is finished; 1 an arm failed, and the next attempt repeats it;
    /// 2 the campaign or the task does not exist; 3 the machine lacks something, or another process
    /// runs the task; 130 and 143 interrupted, and the next attempt continues.
    #[command(after_long_help = "Examples:\n  \
        senesce campaign task atlas 0\n  \
        seq 0 11 | parallel --jobs 2 senesce campaign task atlas")]
    Task(CampaignTaskArgs),
    /// Join the results of all tasks into one run, DIR/merged.
    ///
    /// `report`, `show` and `export` read it. Its tables have the same bytes for every order in
    /// which the tasks ran. Exit code 1: tasks are missing, or tasks differ in a circumstance, such
    /// as the kernel, so that their figures are not comparable.
    #[command(after_long_help = "Examples:\n  \
        senesce campaign merge atlas --dry-run\n  \
        senesce campaign merge atlas")]
    Merge {
        /// Directory of the campaign.
        dir: PathBuf,
        /// Merge the finished tasks, even if others are missing.
        #[arg(long)]
        partial: bool,
        /// Read the results of all tasks. Write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Write the page of a merged campaign: slowdowns by file system and workload.
    ///
    /// The page has a heat map for each device, and the order of the file systems fresh and aged.
    #[command(after_long_help = "Example:\n  \
        senesce campaign report atlas")]
    Report {
        /// Directory of the campaign.
        dir: PathBuf,
        /// File for the page. Default: DIR/merged/campaign.html.
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace a page that senesce did not write.
        #[arg(long)]
        force: bool,
        /// Render the page and print its path. Write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Submit all tasks without a result to a cluster.
    ///
    /// Writes job scripts into DIR/logs. Submits a job array for each range of MaxArraySize task
    /// numbers, and a merge that waits for all arrays. Prints the job numbers. Fails if tasks of
    /// the campaign are in the queue: use `resume` then.
    #[command(after_long_help = "Example:\n  \
        senesce campaign submit --slurm atlas --sbatch=--partition=storage --dry-run")]
    Submit(SubmitArgs),
    /// Print the finished, running, failed and waiting tasks, and the time left.
    #[command(after_long_help = "Example:\n  \
        senesce campaign status atlas")]
    Status {
        /// Directory of the campaign.
        dir: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Submit the tasks that have no result and are not in the queue.
    #[command(after_long_help = "Example:\n  \
        senesce campaign resume --slurm atlas")]
    Resume(SubmitArgs),
}

#[derive(Debug, Args)]
pub struct CampaignTaskArgs {
    /// Directory of the campaign.
    pub dir: PathBuf,
    /// Number of the task, from 0.
    pub number: u64,
    /// Directory on this machine for images and unfinished work.
    ///
    /// Default: DIR/work. A later attempt continues there if it names the same directory on the
    /// same machine, and the machine was not rebooted.
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Also read repositories of other users.
    #[arg(long)]
    pub trust_repo: bool,
}

#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// Directory of the campaign.
    pub dir: PathBuf,
    /// Submit to Slurm.
    #[arg(long, required = true)]
    pub slurm: bool,
    /// Print the job scripts. Write and submit nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Run at most N tasks at a time. Default: no limit.
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroU64>,
    /// Directory on the nodes for images and unfinished work.
    ///
    /// It may start with an environment variable of the node, such as '$TMPDIR'. Default: DIR/work.
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<String>,
    /// Pass an option to sbatch, such as --sbatch=--exclusive.
    ///
    /// Repeatable. For example --sbatch=--partition=storage, --sbatch=--gres=nvme:1. The job of the
    /// merge has these options, too.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
}
