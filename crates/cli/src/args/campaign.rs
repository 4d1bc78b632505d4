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
    /// Prints how to run the tasks. Machines of a cluster must share the directory.
    Plan {
        /// The grid file.
        grid: PathBuf,
        /// Directory of the campaign. It must not exist, or be empty.
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Run one task, or continue it after a kill.
    ///
    /// A finished task is kept, and the command does nothing. Work of a killed attempt on this
    /// machine is cleaned and continues. The result gets its name DIR/tasks/N when it is complete.
    ///
    /// Exit codes: 0 the task is finished; 1 an arm failed, and the next attempt repeats it;
    /// 2 there is no such campaign or task; 3 the machine lacks something, or another process runs
    /// the task; 130 and 143 interrupted, and the next attempt continues.
    Task(CampaignTaskArgs),
    /// Join the results of all tasks into one run, DIR/merged.
    ///
    /// `report`, `show` and `export` read it. The bytes of its tables do not depend on the order in
    /// which the tasks were done. Exit code 1: tasks are missing, or circumstances differ that make
    /// the figures incomparable.
    Merge {
        /// Directory of the campaign.
        dir: PathBuf,
        /// Merge the finished tasks if others are missing.
        #[arg(long)]
        partial: bool,
    },
    /// Write the page of a merged campaign: slowdowns by file system and workload.
    ///
    /// The page has a heat map for each device, and the order of the file systems fresh and aged.
    Report {
        /// Directory of the campaign.
        dir: PathBuf,
        /// File for the page. Default: DIR/merged/campaign.html.
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace a page that senesce did not write.
        #[arg(long)]
        force: bool,
    },
    /// Submit all tasks without a result to a cluster.
    ///
    /// Writes job scripts into DIR/logs, submits a job array for each window of MaxArraySize tasks,
    /// and a merge that waits for them. Prints the numbers of the jobs.
    Submit(SubmitArgs),
    /// Print which tasks are done, run or failed, and the time left.
    Status {
        /// Directory of the campaign.
        dir: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Submit again what is missing: tasks without a result that are not in the queue.
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
    /// Default: DIR/work. A later attempt continues there if it runs on the same machine.
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
    /// Run at most N tasks at a time.
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroU64>,
    /// Directory on the nodes for images and unfinished work.
    ///
    /// It may begin with a variable of the node, such as '$TMPDIR'. Default: DIR/work.
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<String>,
    /// Pass an option to sbatch, such as --sbatch=--exclusive.
    ///
    /// Repeatable. For example --sbatch=--partition=storage, --sbatch=--gres=nvme:1.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
}
