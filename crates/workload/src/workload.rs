//! The trait that every workload implements, and its input.

use senesce_core::Bytes;
use senesce_oplog::{Op, Outcome, Step};

/// The only input of a workload from outside, read before it decides on its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The capacity of the file system.
    pub capacity: Bytes,
    /// The space that it reports as free.
    pub free: Bytes,
    /// The outcome of the previous step; `None` before the first.
    pub last: Option<Outcome>,
}

/// A source of steps.
pub trait Workload: Send {
    /// Returns the next step, or `None` when the workload is finished.
    ///
    /// The same parameters and the same sequence of feedback give the same steps.
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError>;

    /// Reports the order of operations of a step that ran out of space, if they were done in
    /// another order. Called before the next step. `_done` has the completed operations, then the
    /// failed one. Called only for steps whose directories may be done in any order.
    fn on_partial_step(&mut self, _done: &[Op]) {}

    /// The number of copies of the repository (or trees) on the volume.
    fn copies(&self) -> u64;

    /// Whether set-up ended before the last returned step. The first measurement belongs before
    /// that step, even if it is not counted.
    fn is_set_up(&self) -> bool {
        false
    }

    /// Whether the volume may be measured after the last step, which had this outcome. False while
    /// the workload has to repair the effects of a lack of space.
    fn is_whole(&self, _last: &Outcome) -> bool {
        true
    }

    /// The state that the workload has reached, if it has a target: names and figures, for the
    /// records.
    fn reached(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether the last returned step belongs on a freshly formatted volume. The tree is empty
    /// then, so that a replay on one volume ends with the same tree.
    fn wants_fresh_volume(&self) -> bool {
        false
    }
}

/// The reasons why a workload cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The source (a repository, a trace) could not be read.
    #[error("cannot read {what}: {problem}")]
    Source {
        /// The item that was read: a commit, a tree, a line of a trace.
        what: String,
        /// Its fault.
        problem: String,
        /// The cause, if it is an error of another library.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A parameter of the workload is out of its range.
    #[error("{name} = {value} is not possible: {problem}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// Its range.
        problem: &'static str,
    },
    /// A model of a history cannot be used.
    #[error("{name}: {problem}")]
    HistoryModel {
        /// The file of the model.
        name: String,
        /// The field and its fault.
        problem: String,
    },
    /// The volume cannot hold the minimum of the workload.
    #[error("{label}: the volume of {capacity} is too small: {problem}")]
    VolumeTooSmall {
        /// The step that did not fit.
        label: String,
        /// The volume's capacity.
        capacity: Bytes,
        /// The part that did not fit.
        problem: String,
    },
}
