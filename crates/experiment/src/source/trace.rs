//! A size-only trace file.

use std::path::{Path, PathBuf};

use senesce_gitsource::open_trace;
use senesce_workload::{
    Workload,
    trace::{TraceOptions, TraceReader, TraceReplay},
};

use crate::{Error, plan::Plan};

/// A trace that was read through once.
pub struct TraceSource {
    path: PathBuf,
    commits: u64,
    hash: String,
}

impl TraceSource {
    /// Reads the whole trace: whatever is wrong with it is said before the first volume is made.
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

    pub(super) fn workload(&self, plan: &Plan) -> Result<Box<dyn Workload>, Error> {
        let options = TraceOptions { seed: plan.seed, max_commits: plan.history.pulls };
        Ok(Box::new(TraceReplay::new(open_trace(&self.path)?, options)))
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
