//! The progress of a campaign, from the names in its directory.

use std::{collections::BTreeSet, fs};

use super::{
    Campaign, TaskState,
    attempt::{is_running, read_state},
    dir::numbers_in,
};
use crate::{Error, World};

/// The durations of about this number of finished tasks are read.
const SAMPLE: usize = 200;

/// The progress of the tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// All tasks.
    pub tasks: u64,
    /// Finished tasks.
    pub done: u64,
    /// Tasks that run.
    pub running: Vec<Running>,
    /// Tasks whose last attempt failed.
    pub failed: Vec<Failed>,
    /// Tasks without a result that neither run nor failed.
    pub waiting: u64,
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
    /// Collects the progress. Changes nothing. Cost: lists two directories, and reads the states of
    /// tasks that run or failed, and a sample of the finished ones.
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
        // A killed task leaves its state on this machine. It counts as waiting.
        let running: Vec<Running> = running.filter(|running| running.is_alive != Some(false)).collect();
        let failed = states(".failed.json")?.into_iter().filter(open).map(|state| Failed {
            task: state.task,
            reason: state.reason.unwrap_or_default(),
            host: state.host,
        });
        let failed: Vec<Failed> = failed.collect();
        let taken: BTreeSet<u64> =
            running.iter().map(|running| running.task).chain(failed.iter().map(|failed| failed.task)).collect();
        let step = (done.len() / SAMPLE).max(1);
        let seconds = done.iter().step_by(step).filter_map(|number| {
            let state = read_state(&campaign.paths.task(*number).join("task.json"))?;
            Some(state.ended_unix_seconds?.saturating_sub(state.begun_unix_seconds) as f64)
        });
        let seconds: Vec<f64> = seconds.collect();
        Ok(Self {
            tasks: count,
            done: done.len() as u64,
            waiting: count - done.len() as u64 - taken.len() as u64,
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

    /// The numbers of the tasks without a result.
    pub fn missing(campaign: &Campaign) -> Result<Vec<u64>, Error> {
        let done: BTreeSet<u64> = numbers_in(&campaign.paths.tasks())?.into_iter().collect();
        Ok((0..campaign.count()).filter(|number| !done.contains(number)).collect())
    }
}
