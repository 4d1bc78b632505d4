//! The trait every workload implements, and what it may learn of the world.

use senesce_core::Bytes;
use senesce_oplog::{Op, Outcome, Step};

/// All that a workload learns of the outside world before it decides on its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// What the file system can hold in all.
    pub capacity: Bytes,
    /// What it says is still free.
    pub free: Bytes,
    /// How the previous step ended; `None` before the first.
    pub last: Option<Outcome>,
}

/// A source of steps.
pub trait Workload: Send {
    /// The next step, or `None` when the workload is at its end.
    ///
    /// The same parameters and the same sequence of feedback give the same steps.
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError>;

    /// Told before the next step when space ran out within one whose operations were done in another order: those that
    /// were done, the one that failed last. Only of steps whose directories may be done in any order.
    fn hear_order(&mut self, _done: &[Op]) {}

    /// How many copies of the repository (or trees) exist on the volume now.
    fn copies(&self) -> u64;

    /// Whether set-up ended before the step that was given last: the first measurement belongs before that step, also if
    /// it is not counted.
    fn is_set_up(&self) -> bool {
        false
    }

    /// Whether the volume may be measured after the last step, which ended so. Not while the workload has to repair what
    /// a lack of space left.
    fn is_whole(&self, _last: &Outcome) -> bool {
        true
    }

    /// What the workload has reached by now, where that is a question: names and figures, for the records.
    fn reached(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether the step that was given last belongs on a volume that is made anew before it. The tree is empty then, so
    /// that a replay on one volume ends with the same tree.
    fn wants_fresh_volume(&self) -> bool {
        false
    }
}

/// A workload cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The source (a repository, a trace) could not be read.
    #[error("cannot read {what}: {problem}")]
    Source {
        /// What was being read: a commit, a tree, a line of a trace.
        what: String,
        /// What is wrong with it.
        problem: String,
        /// The cause, if another library gave one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A parameter of the workload is out of its range.
    #[error("{name} = {value} is not possible: {problem}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What its range is.
        problem: &'static str,
    },
    /// The volume cannot hold what the workload needs at least.
    #[error("{label}: the volume of {capacity} is too small: {problem}")]
    VolumeTooSmall {
        /// The step that did not fit.
        label: String,
        /// The volume's capacity.
        capacity: Bytes,
        /// What did not fit.
        problem: String,
    },
}
