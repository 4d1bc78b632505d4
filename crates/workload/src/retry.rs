//! The reaction of a simple workload to a lack of space: it retries the rest of the step.
//!
//! A file that got only a part of its content is removed. A sync follows, since freed blocks often
//! wait for a commit. Then the operations from the failed one on are returned again. A failed write
//! at an offset is repeated as it is. If several attempts in a row fail, the volume is too small.

use std::sync::Arc;

use senesce_core::RelPath;
use senesce_oplog::{Op, Outcome, Step};

use crate::{Feedback, WorkloadError};

/// After this number of failures in a row without progress, the volume has no more space.
const PATIENCE: u32 = 3;

/// The last step, and the part of it that is left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retry {
    last: Option<Step>,
    /// The rest of the step, to follow when space is free.
    rest: Option<Step>,
    failures: u32,
}

impl Retry {
    /// Remembers a step that is returned.
    pub fn give(&mut self, step: Step) -> Step {
        self.last = Some(step.clone());
        step
    }

    /// Returns the step that must follow the outcome of the last one, if any.
    ///
    /// Errors: repeated attempts found no space.
    pub fn settle(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        let Some(last) = self.last.take() else { return Ok(None) };
        let Some(Outcome::NoSpace { failed_op, written }) = feedback.last else {
            self.failures = if self.rest.is_some() { self.failures } else { 0 };
            return Ok(self.rest.take().map(|rest| self.give(rest)));
        };
        self.failures = if failed_op > 0 { 1 } else { self.failures + 1 };
        if self.failures > PATIENCE {
            return Err(WorkloadError::VolumeTooSmall {
                label: last.label,
                capacity: feedback.capacity,
                problem: "it found no space in repeated attempts; use a larger volume or a smaller workload".into(),
            });
        }
        let mut part: Option<RelPath> = None;
        if self.rest.is_none() {
            if let (Some(Op::Create { path, .. }), Some(_)) = (last.ops.get(failed_op), written) {
                part = Some(path.clone());
            }
            let label = match last.label.strip_suffix(CONTINUED) {
                Some(_) => last.label.clone(),
                None => format!("{}{CONTINUED}", last.label),
            };
            let ops: Arc<[Op]> = last.ops[failed_op.min(last.ops.len())..].into();
            self.rest = Some(Step { label, counted: false, root: last.root.clone(), ops });
        } else if let Some(Op::Unlink { path }) = last.ops.first() {
            // The step that frees space found none itself.
            part = (failed_op == 0).then(|| path.clone());
        }
        let ops: Vec<Op> = part.map(|path| Op::Unlink { path }).into_iter().chain([Op::SyncFs]).collect();
        let step = Step { label: "make room after no space".into(), counted: false, root: last.root, ops: ops.into() };
        Ok(Some(self.give(step)))
    }

    /// Whether the last step is complete, given its outcome.
    pub fn is_whole(&self, last: &Outcome) -> bool {
        *last == Outcome::Done && self.rest.is_none()
    }
}

const CONTINUED: &str = ", continued";

#[cfg(test)]
mod tests {
    use senesce_core::Bytes;

    use super::*;
    use crate::generated_paths::path;

    fn feedback(last: Outcome) -> Feedback {
        Feedback { capacity: Bytes(100), free: Bytes(0), last: Some(last) }
    }

    fn create(name: &str) -> Op {
        Op::Create { path: path(name), mode: 0o644, content: senesce_oplog::Content::Seeded { seed: 1, len: 9 } }
    }

    fn step() -> Step {
        let ops = [create("a"), create("b"), create("c")];
        Step { label: "s".into(), counted: true, root: path("r"), ops: ops.into() }
    }

    #[test]
    fn the_partial_file_is_removed_and_the_rest_retried() {
        let mut retry = Retry::default();
        retry.give(step());
        let failed = Outcome::NoSpace { failed_op: 1, written: Some(3) };
        assert!(!retry.is_whole(&failed));
        let room = retry.settle(&feedback(failed)).unwrap().unwrap();
        assert_eq!((&room.ops[..], room.counted), (&[Op::Unlink { path: path("b") }, Op::SyncFs][..], false));
        assert!(!retry.is_whole(&Outcome::Done));
        let rest = retry.settle(&feedback(Outcome::Done)).unwrap().unwrap();
        assert_eq!((rest.label.as_str(), &rest.ops[..]), ("s, continued", &[create("b"), create("c")][..]));
        assert!(retry.is_whole(&Outcome::Done));
        assert_eq!(retry.settle(&feedback(Outcome::Done)).unwrap(), None);
    }

    #[test]
    fn repeated_lack_of_space_is_an_error() {
        let mut retry = Retry::default();
        retry.give(step());
        let nothing = feedback(Outcome::NoSpace { failed_op: 0, written: None });
        for _ in 0..3 {
            let room = retry.settle(&nothing).unwrap().unwrap();
            assert_eq!(&room.ops[..], [Op::SyncFs]);
            retry.settle(&feedback(Outcome::Done)).unwrap().unwrap();
        }
        assert!(matches!(retry.settle(&nothing), Err(WorkloadError::VolumeTooSmall { .. })));
    }
}
