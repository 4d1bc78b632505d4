//! The adapter of Slurm: executes its programs, reads its limits and its queue, and writes job
//! scripts.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use senesce_experiment::campaign::Campaign;
use senesce_volume::Error as VolumeError;

use crate::verb::shell::{quote, shell_word};
use crate::{args::SubmitArgs, exit::failed};

/// The Debian package of the programs.
const PACKAGE: &str = "slurm-client";

/// Slurm's default of MaxArraySize: the largest index of an array plus one.
const USUAL_ARRAY_SIZE: u64 = 1001;

/// The queue of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Tasks, sorted. One whose job only completes is not among them.
    pub tasks: Vec<Queued>,
    /// The numbers of all jobs, also of merges.
    pub jobs: BTreeSet<u64>,
}

/// A task in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its number.
    pub task: u64,
    /// Its state, such as `PENDING` or `RUNNING`.
    pub state: String,
}

/// One job array. The task of index I has the number `first` + I.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The task of index 0.
    pub first: u64,
    /// The indices, as sbatch expects them: `0-4,7`.
    pub array: String,
}

/// Runs a program of Slurm, and returns its output.
///
/// Errors: the program is not installed; it fails.
fn call(program: &'static str, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow::Error::from(VolumeError::ToolMissing { tool: program.to_owned(), package: PACKAGE })
            }
            _ => anyhow::Error::from(error).context(format!("cannot run {program}")),
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{program} {} failed: {}", arguments.join(" "), said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the largest number of indices of an array.
pub fn array_size() -> Result<u64> {
    let size = parse_array_size(&call("scontrol", &["show", "config"])?);
    match size {
        0 => Err(failed("this cluster has no job arrays: MaxArraySize is 0")),
        size => Ok(size),
    }
}

fn parse_array_size(config: &str) -> u64 {
    let lines = config.lines().filter_map(|line| line.split_once('='));
    let mut sizes = lines.filter(|(key, _)| key.trim() == "MaxArraySize");
    sizes.next().and_then(|(_, size)| size.trim().parse().ok()).unwrap_or(USUAL_ARRAY_SIZE)
}

/// What this user has in the queue for a campaign.
pub fn queue(campaign: &Campaign) -> Result<Queue> {
    let lines = call("squeue", &["--me", "--noheader", "--array", "--format=%j|%F|%K|%T"])?;
    Ok(parse_queue(campaign.id(), &lines))
}

fn parse_queue(id: &str, lines: &str) -> Queue {
    let prefix = format!("senesce-{id}-");
    let mut queue = Queue::default();
    for line in lines.lines() {
        let mut fields = line.trim().split('|');
        let Some(first) = fields.next().and_then(|name| name.strip_prefix(&prefix)) else { continue };
        queue.jobs.extend(fields.next().and_then(|job| job.parse::<u64>().ok()));
        let mut parse_next = || fields.next()?.parse::<u64>().ok();
        let (Ok(first), Some(index)) = (first.parse::<u64>(), parse_next()) else { continue };
        let state = fields.next().unwrap_or_default().to_owned();
        // Its process has ended. If the task has no result, it needs another job.
        if state != "COMPLETING" {
            queue.tasks.push(Queued { task: first.saturating_add(index), state });
        }
    }
    queue.tasks.sort_by_key(|queued| queued.task);
    queue
}

/// Cuts sorted tasks into job arrays of at most `size` indices.
pub fn windows(tasks: &[u64], size: u64) -> Vec<Window> {
    let chunks = tasks.chunk_by(|a, b| a / size == b / size);
    chunks
        .map(|chunk| {
            let first = chunk[0] / size * size;
            let mut array = String::new();
            for range in chunk.chunk_by(|a, b| a + 1 == *b) {
                let (from, to) = (range[0] - first, range[range.len() - 1] - first);
                let comma = if array.is_empty() { "" } else { "," };
                let _ = match from == to {
                    true => write!(array, "{comma}{from}"),
                    false => write!(array, "{comma}{from}-{to}"),
                };
            }
            Window { first, array }
        })
        .collect()
}

/// The job script of an array.
pub fn task_script(campaign: &Campaign, window: &Window, args: &SubmitArgs, program: &Path) -> String {
    let throttle = args.jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
    let mut script = head(&format!("senesce-{}-{}", campaign.id(), window.first), &args.sbatch);
    let _ = writeln!(script, "#SBATCH --array={}{throttle}", window.array);
    script.push_str("#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=logs/%A_%a.log\n");
    let scratch = args.scratch.as_ref().map_or_else(String::new, |dir| format!(" --scratch {}", scratch_word(dir)));
    // `exec` replaces the shell by the program, so that the program receives the signals of Slurm.
    let _ = writeln!(
        script,
        "exec {} --quiet campaign task {} \"$(({} + SLURM_ARRAY_TASK_ID))\"{scratch}",
        shell_word(program),
        shell_word(&campaign.paths.dir),
        window.first,
    );
    script
}

/// The job script of the merge.
pub fn merge_script(campaign: &Campaign, args: &SubmitArgs, program: &Path) -> String {
    let mut script = head(&format!("senesce-{}-merge", campaign.id()), &args.sbatch);
    script.push_str("#SBATCH --output=logs/merge-%j.log\n");
    let _ = writeln!(script, "exec {} campaign merge {}", shell_word(program), shell_word(&campaign.paths.dir));
    script
}

fn head(name: &str, options: &[String]) -> String {
    let mut head = format!("#!/bin/bash\n#SBATCH --job-name={name}\n");
    for option in options {
        let _ = writeln!(head, "#SBATCH {option}");
    }
    head
}

/// Quotes a directory as a word of a shell. The node expands a variable at its start.
fn scratch_word(dir: &str) -> String {
    let variable = dir.strip_prefix('$').map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        rest.split_at(end)
    });
    match variable {
        Some((name, "")) if !name.is_empty() => format!("\"${name}\""),
        Some((name, rest)) if !name.is_empty() => format!("\"${name}\"{}", quote(rest)),
        _ => quote(dir),
    }
}

/// Submits a script, and returns the number of its job. The job starts in the directory of the
/// campaign, after the jobs `after` succeeded or failed.
pub fn submit(campaign: &Campaign, script: &Path, after: &[u64]) -> Result<u64> {
    let chdir = format!("--chdir={}", campaign.paths.dir.display());
    let after: Vec<String> = after.iter().map(u64::to_string).collect();
    let dependency = format!("--dependency=afterany:{}", after.join(":"));
    let script = script.to_string_lossy();
    let mut arguments = vec!["--parsable", &chdir];
    if !after.is_empty() {
        arguments.push(&dependency);
    }
    arguments.push(&script);
    let said = call("sbatch", &arguments)?;
    let job = said.trim().split(';').next().unwrap_or_default().parse();
    job.with_context(|| format!("sbatch printed no job number: {}", said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_in_one_window_at_its_index() {
        let window = |first, array: &str| Window { first, array: array.to_owned() };
        assert_eq!(windows(&[0, 1, 2, 3, 4, 5], 1001), [window(0, "0-5")]);
        assert_eq!(windows(&[0, 1, 2, 3, 4, 5], 4), [window(0, "0-3"), window(4, "0-1")]);
        assert_eq!(windows(&[1, 3, 4, 9, 2003], 1001), [window(0, "1,3-4,9"), window(2002, "1")]);
        assert_eq!(windows(&[], 4), []);
        let all: Vec<u64> = (0..100_000).collect();
        let all = windows(&all, 1001);
        assert_eq!((all.len(), all[0].array.as_str(), all[99].array.as_str()), (100, "0-1000", "0-900"));
    }

    #[test]
    fn the_queue_has_tasks_of_this_campaign_alone() {
        let lines = "senesce-ab12-4|12|1|RUNNING\nsenesce-ab12-0|11|3|PENDING\nsenesce-ab12-merge|13|N/A|PENDING\n\
                     senesce-ab12-0|10|2|COMPLETING\nsenesce-ffff-0|14|2|RUNNING\nother|15|7|RUNNING\n";
        let found = parse_queue("ab12", lines);
        let found_tasks: Vec<_> = found.tasks.iter().map(|task| (task.task, task.state.as_str())).collect();
        assert_eq!(found_tasks, [(3, "PENDING"), (5, "RUNNING")], "no task that completes");
        assert_eq!(found.jobs.into_iter().collect::<Vec<_>>(), [10, 11, 12, 13], "a merge waits for all of them");
    }

    #[test]
    fn the_cluster_sets_the_limit_of_arrays() {
        assert_eq!(parse_array_size("MaxArrayTasks = 3\nMaxArraySize            = 5\nMaxJobCount = 10000\n"), 5);
        assert_eq!(parse_array_size(""), 1001);
    }

    #[test]
    fn only_a_variable_at_the_start_is_expanded() {
        for (dir, word) in [
            ("$TMPDIR", "\"$TMPDIR\""),
            ("$TMPDIR/a b", "\"$TMPDIR\"'/a b'"),
            ("/scratch/$USER", "'/scratch/$USER'"),
            ("$(rm -rf x)", "'$(rm -rf x)'"),
            ("/scratch", "/scratch"),
        ] {
            assert_eq!(scratch_word(dir), word);
        }
    }
}
