//! Git replay with one copy of the repository.

use senesce_core::RelPath;
use senesce_oplog::{Outcome, Step};

use super::{Pull, dotgit::path};
use crate::{Feedback, Workload, WorkloadError};

/// The source of pulls: a planner, or a channel that a planner on another thread fills.
pub type PullSource = Box<dyn Iterator<Item = Result<Pull, WorkloadError>> + Send>;

/// One copy of a repository at the directory `repo`: a step `clone`, then one counted step per
/// pull.
///
/// Ends after the given number of pulls, or when the commits are exhausted. A step that finds no
/// space is an error: with one copy there is nothing to delete.
pub struct GitReplay {
    pulls: PullSource,
    left: u64,
    cloned: bool,
    last_label: String,
}

impl GitReplay {
    /// A replay of `count` pulls, not counting the clone.
    pub fn new(pulls: PullSource, count: u64) -> Self {
        Self { pulls, left: count, cloned: false, last_label: String::new() }
    }

    /// The directory of the copy.
    pub fn root() -> RelPath {
        path("repo")
    }
}

impl Workload for GitReplay {
    fn copies(&self) -> u64 {
        u64::from(self.cloned)
    }

    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if let Some(Outcome::NoSpace { .. }) = feedback.last {
            return Err(too_small(&self.last_label, feedback, "the only copy of the repository does not fit"));
        }
        if self.cloned && self.left == 0 {
            return Ok(None);
        }
        let Some(pull) = self.pulls.next().transpose()? else { return Ok(None) };
        let label = if self.cloned { format!("pull {} into repo", pull.index) } else { "clone".to_owned() };
        let counted = self.cloned;
        self.left -= u64::from(counted);
        self.cloned = true;
        self.last_label.clone_from(&label);
        Ok(Some(Step { label, counted, root: Self::root(), ops: pull.ops }))
    }
}

/// The error of a volume that cannot hold a single copy.
pub(super) fn too_small(label: &str, feedback: &Feedback, problem: &str) -> WorkloadError {
    WorkloadError::VolumeTooSmall { label: label.to_owned(), capacity: feedback.capacity, problem: problem.to_owned() }
}
