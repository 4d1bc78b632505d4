//! The progress of a campaign, from the names in its directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    Campaign, TaskState,
    attempt::{count_invalid, is_running, read_state},
};
use crate::{Error, World, paths::RunPaths};

/// The progress of the tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// All tasks.
    pub tasks: u64,
    /// Finished tasks.
    pub done: u64,
    /// Finished tasks with invalid cells.
    pub invalid: Vec<Invalid>,
    /// Tasks that run.
    pub running: Vec<Running>,
    /// Tasks whose last attempt failed.
    pub failed: Vec<Failed>,
    /// Tasks without a result that neither run nor failed.
    pub waiting: u64,
    /// The numbers of the tasks without a result, whether they run, failed or wait.
    pub missing: Vec<u64>,
    /// Mean duration of finished tasks, seconds. `None`: no task is finished.
    pub mean_seconds: Option<f64>,
}

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number.
    pub task: u64,
    /// The machine.
    pub host: String,
    /// Start of the attempt.
    pub begun_unix_seconds: u64,
    /// Whether its process is alive. `None`: it is on another machine.
    pub is_alive: Option<bool>,
}

/// A finished task with invalid cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Its number.
    pub task: u64,
    /// The number of invalid cells.
    pub cells: u64,
}

/// A task that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its number.
    pub task: u64,
    /// The reason.
    pub reason: String,
    /// The machine.
    pub host: String,
}

impl Progress {
    /// Collects the progress. Changes nothing. Cost: lists two directories, and reads the state of
    /// each task that was started. Also reads the cells of a task that an earlier version finished.
    pub fn collect(campaign: &Campaign, world: &World) -> Result<Self, Error> {
        let count = campaign.count();
        let mut done = numbers_in(&campaign.paths.tasks())?;
        done.retain(|number| *number < count);
        let is_done = |number: u64| done.binary_search(&number).is_ok();
        let states = |ending: &'static str| -> Result<Vec<TaskState>, Error> {
            let mut found = Vec::new();
            for entry in fs::read_dir(campaign.paths.state()).map_err(Error::io("list", campaign.paths.state()))? {
                let path = entry.map_err(Error::io("list", campaign.paths.state()))?.path();
                let is_of_kind = path.to_string_lossy().ends_with(ending);
                found.extend(is_of_kind.then(|| read_state(&path)).flatten());
            }
            found.sort_by_key(|state| state.task);
            Ok(found)
        };
        let open = |state: &TaskState| state.task < count && !is_done(state.task);
        let running = states(".running.json")?.into_iter().filter(open).map(|state| Running {
            task: state.task,
            is_alive: is_running(&state, &*world.host),
            host: state.host,
            begun_unix_seconds: state.begun_unix_seconds,
        });
        let running = the_last_of_each(running);
        let mut taken: BTreeSet<u64> = running.iter().map(|running| running.task).collect();
        let failed = states(".failed.json")?.into_iter().filter(open).map(|state| Failed {
            task: state.task,
            reason: state.reason.unwrap_or_default(),
            host: state.host,
        });
        let failed: Vec<Failed> = failed.filter(|failed| taken.insert(failed.task)).collect();
        let (mut seconds, mut invalid) = (Vec::new(), Vec::new());
        for task in done.iter().copied() {
            let dir = campaign.paths.task(task);
            let state = read_state(&dir.join("task.json"));
            let ended = state.as_ref().and_then(|state| Some((state.ended_unix_seconds?, state.begun_unix_seconds)));
            seconds.extend(ended.map(|(ended, begun)| ended.saturating_sub(begun) as f64));
            // Results that cannot be read have no count. A merge names them.
            let counted = state.and_then(|state| state.invalid_cells);
            let cells = counted.or_else(|| count_invalid(&RunPaths::new(&dir)).ok()).unwrap_or(0);
            invalid.extend((cells > 0).then_some(Invalid { task, cells }));
        }
        Ok(Self {
            tasks: count,
            done: done.len() as u64,
            invalid,
            waiting: count - done.len() as u64 - taken.len() as u64,
            missing: without(count, &done),
            mean_seconds: (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64),
            running,
            failed,
        })
    }

    /// Seconds until the last task finishes, if the number of running tasks stays the same. `None`:
    /// no task is finished, or none runs.
    pub fn remaining_seconds(&self) -> Option<f64> {
        let (mean, running) = (self.mean_seconds?, self.running.len() as f64);
        (running > 0.0).then(|| mean * (self.tasks - self.done) as f64 / running)
    }
}

impl Campaign {
    /// The numbers of the tasks without a result. Cost: lists a directory.
    pub fn missing(&self) -> Result<Vec<u64>, Error> {
        Ok(without(self.count(), &numbers_in(&self.paths.tasks())?))
    }
}

/// The numbers below `count` that are not in a sorted list.
fn without(count: u64, sorted: &[u64]) -> Vec<u64> {
    (0..count).filter(|number| sorted.binary_search(number).is_err()).collect()
}

/// One entry for each task, sorted. A task can have states of several machines: one whose process
/// is alive counts, else the last one. A killed task has left its state: it waits.
fn the_last_of_each(running: impl Iterator<Item = Running>) -> Vec<Running> {
    let mut last: BTreeMap<u64, Running> = BTreeMap::new();
    let rank = |running: &Running| (running.is_alive, running.begun_unix_seconds);
    for running in running.filter(|running| running.is_alive != Some(false)) {
        match last.get(&running.task) {
            Some(other) if rank(other) >= rank(&running) => {}
            _ => drop(last.insert(running.task, running)),
        }
    }
    last.into_values().collect()
}

/// The numbers that are names of directories in a directory, sorted. No name but that of a task
/// counts: `007` is not 7.
fn numbers_in(dir: &Path) -> Result<Vec<u64>, Error> {
    let mut found: Vec<u64> = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let entry = entry.map_err(Error::io("list", dir))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| Some((name, name.parse::<u64>().ok()?)));
        let Some((_, number)) = number.filter(|(name, number)| *name == number.to_string()) else { continue };
        if entry.file_type().map_err(Error::io("look up", entry.path()))?.is_dir() {
            found.push(number);
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_with_names_of_tasks_are_tasks() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["7", "007", "+7", "10", ".7.new", "x", "7 "] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        fs::write(temp.path().join("8"), "").unwrap();
        let found = numbers_in(temp.path()).unwrap();
        assert_eq!((&found[..], without(9, &found)), (&[7, 10][..], vec![0, 1, 2, 3, 4, 5, 6, 8]));
    }

    #[test]
    fn a_task_runs_once() {
        let running = |task, host: &str, begun_unix_seconds, is_alive| Running {
            task,
            host: host.to_owned(),
            begun_unix_seconds,
            is_alive,
        };
        let all = [
            running(3, "b", 9, None),
            running(1, "a", 5, None),
            running(1, "b", 7, None),
            running(2, "a", 5, Some(true)),
            running(2, "b", 7, None),
            running(4, "a", 9, Some(false)),
        ];
        let lasts: Vec<_> = the_last_of_each(all.into_iter()).into_iter().map(|one| (one.task, one.host)).collect();
        assert_eq!(lasts, [(1, "b".to_owned()), (2, "a".to_owned()), (3, "b".to_owned())]);
    }
}
