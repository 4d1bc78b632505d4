//! A size-only trace file.

use std::{
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Bytes;
use senesce_exec::{PrefetchedItems, prefetch_contents};
use senesce_gitsource::open_trace;
use senesce_oplog::{Outcome, Step};
use senesce_workload::{
    Feedback, Workload, WorkloadError,
    trace::{TraceOptions, TraceReader, TraceReplay},
};

use super::WorkloadAhead;
use crate::{Error, plan::Plan};

/// The maximum of contents that are made before their use, bytes.
const AHEAD_BYTES: u64 = 16 * Bytes::MIB;

/// Feedback of a replay of a trace. It follows the trace in any case.
const ENDLESS: Feedback = Feedback { capacity: Bytes(u64::MAX), free: Bytes(u64::MAX), last: None };

/// A trace that was read once.
pub struct TraceSource {
    path: PathBuf,
    commits: u64,
    hash: String,
}

impl TraceSource {
    /// Reads the whole trace, so that its errors are reported before the first volume is made.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let mut reader = TraceReader::new(open_trace(path)?);
        reader.read_start(&mut |_| Ok(()))?;
        let mut commits = 0;
        while reader.next_commit()?.is_some() {
            commits += 1;
        }
        if commits == 0 {
            return Err(Error::NoPulls { problem: format!("the trace {} has no commits", path.display()) });
        }
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Ok(Self { path: path.to_owned(), commits, hash: blake3::hash(&bytes).to_hex().to_string() })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Returns the workload and the source of its contents. Another thread makes both in advance.
    pub(super) fn workload(&self, plan: &Plan) -> Result<WorkloadAhead, Error> {
        let options = TraceOptions { seed: plan.seed, max_commits: plan.history.pulls };
        let mut replay = TraceReplay::new(open_trace(&self.path)?, options);
        let mut failed = false;
        let steps = iter::from_fn(move || {
            if failed {
                return None;
            }
            let step = replay.next_step(&ENDLESS).transpose();
            failed = matches!(step, Some(Err(_)));
            step
        });
        let ops =
            |step: &Result<Step, WorkloadError>| step.as_ref().map_or_else(|_| [].into(), |step| step.ops.clone());
        let (steps, contents) = prefetch_contents(steps, ops, Arc::new(()), AHEAD_BYTES);
        Ok((Box::new(StepsAhead { steps, started: false, last_label: String::new() }), contents))
    }

    pub(super) fn first_step_only(&self) -> Result<Box<dyn Workload>, Error> {
        let options = TraceOptions { seed: senesce_core::Seed(1), max_commits: Some(0) };
        Ok(Box::new(TraceReplay::new(open_trace(&self.path)?, options)))
    }

    pub(super) fn description(&self) -> serde_json::Value {
        serde_json::json!({ "kind": "trace", "blake3": self.hash, "commits": self.commits })
    }

    pub(super) fn circumstances(&self) -> Vec<(String, String)> {
        vec![
            ("history.origin".into(), format!("trace {}", self.path.display())),
            ("history.commits".into(), self.commits.to_string()),
            ("history.trace_blake3".into(), self.hash.clone()),
        ]
    }
}

/// Steps of a trace from the thread that makes them.
struct StepsAhead {
    steps: PrefetchedItems<Result<Step, WorkloadError>>,
    started: bool,
    last_label: String,
}

impl Workload for StepsAhead {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if let Some(Outcome::NoSpace { .. }) = feedback.last {
            return Err(WorkloadError::VolumeTooSmall {
                label: self.last_label.clone(),
                capacity: feedback.capacity,
                problem: "a trace has no files to delete if space runs out; use a larger volume".into(),
            });
        }
        let step = self.steps.next().transpose()?;
        if let Some(step) = &step {
            self.started = true;
            self.last_label.clone_from(&step.label);
        }
        Ok(step)
    }

    fn copies(&self) -> u64 {
        u64::from(self.started)
    }
}
