//! `senesce campaign submit` and `resume`: job arrays of the tasks without a result.

use std::{collections::BTreeSet, env, fs};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::campaign::{Campaign, Progress};

use super::{
    shell_word,
    slurm::{self, Window},
};
use crate::{args::SubmitArgs, exit::usage, verb::run::world};

/// The tasks to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All tasks without a result. None may be in the queue.
    Missing,
    /// The tasks without a result that are not in the queue and do not run.
    NotQueued,
}

/// Submits the tasks, and a merge after them.
///
/// Errors: Slurm is not installed, or refuses a job; with [`Which::Missing`], jobs of the campaign
/// are in the queue.
pub fn submit(args: &SubmitArgs, which: Which) -> Result<()> {
    let campaign = Campaign::open(&args.dir)?;
    let dir = shell_word(&campaign.paths.dir);
    let progress = Progress::collect(&campaign, &world(false)?)?;
    let size = slurm::array_size()?;
    let queue = slurm::queue(&campaign)?;
    let queued: BTreeSet<u64> = queue.tasks.iter().map(|queued| queued.task).collect();
    if which == Which::Missing && !queued.is_empty() {
        let message = format!("{} tasks of the campaign are in the queue", queued.len());
        let hint = format!("senesce campaign resume --slurm {dir} submits the other tasks");
        return Err(usage(message, Some(&hint)));
    }
    let alive = progress.running.iter().filter(|running| running.is_alive == Some(true));
    let alive: BTreeSet<u64> = alive.map(|running| running.task).collect();
    let mut tasks = progress.missing;
    tasks.retain(|task| !queued.contains(task) && !alive.contains(task));
    if tasks.is_empty() {
        match queued.len() + alive.difference(&queued).count() {
            0 => println!("nothing to submit: all {} tasks are done; senesce campaign merge {dir}", campaign.count()),
            under_way => println!("nothing to submit: {under_way} tasks are in the queue or run, the others are done"),
        }
        return Ok(());
    }
    let program = env::current_exe().context("cannot find this program")?;
    if program.to_str().is_none() {
        return Err(usage("the path of this program is not UTF-8; job scripts cannot name it", None));
    }
    let windows = slurm::windows(&tasks, size);
    let script = |window: &Window| slurm::task_script(&campaign, window, args, &program);
    let merge = slurm::merge_script(&campaign, args, &program);
    if args.dry_run {
        windows.iter().for_each(|window| println!("{}", script(window)));
        print!("{merge}");
        return Ok(());
    }
    let write = |name: &str, text: &str| -> Result<_> {
        let path = campaign.paths.logs().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", Printable::new(&path)))?;
        Ok(path)
    };
    // First, because it must follow the arrays also if Slurm refuses one of them.
    let merge = write("merge.sh", &merge)?;
    let mut jobs: Vec<u64> = Vec::new();
    let mut refused = None;
    for window in &windows {
        let path = write(&format!("tasks-{}.sh", window.first), &script(window));
        // A limit holds for one array. So the next one waits.
        let before: Vec<u64> = jobs.last().copied().filter(|_| args.jobs.is_some()).into_iter().collect();
        match path.and_then(|path| slurm::submit(&campaign, &path, &before)) {
            Ok(job) => {
                println!("job {job}: tasks {} + [{}]", window.first, window.array);
                jobs.push(job);
            }
            Err(error) => {
                refused = Some((window.first, error));
                break;
            }
        }
    }
    if jobs.is_empty()
        && let Some((_, error)) = refused
    {
        return Err(error);
    }
    // It also joins the results of earlier jobs, and no two merges run at a time.
    let before: Vec<u64> = queue.jobs.into_iter().chain(jobs).collect();
    let merge = slurm::submit(&campaign, &merge, &before).map(|job| println!("job {job}: merge"));
    if let Some((first, error)) = refused {
        if merge.is_err() {
            println!("the merge is not submitted");
        }
        let remaining = tasks.iter().filter(|task| **task >= first).count();
        println!("{remaining} tasks remain: senesce campaign resume --slurm {dir}");
        return Err(error);
    }
    merge?;
    println!("{} tasks are submitted; senesce campaign status {dir}", tasks.len());
    Ok(())
}
