//! What a lack of space asks of a workload that keeps no account of space: the rest of the step is tried again.
//!
//! A file that was made and got only a part of its content is removed, the file system is synchronised (freed blocks
//! often wait for a commit), and the operations from the failed one on are given again. A write at an offset is simply
//! repeated. When that does not help a few times in a row, the volume is too small.

use std::sync::Arc;

use senesce_core::RelPath;
use senesce_oplog::{Op, Outcome, Step};

use crate::{Feedback, WorkloadError};

/// After so many failures in a row that moved nothing, there is no more space to be had.
const PATIENCE: u32 = 3;

/// The step that was given last, and what is left of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retry {
    last: Option<Step>,
    /// What has to follow once there is room.
    rest: Option<Step>,
    failures: u32,
}

impl Retry {
    /// Remembers a step that is given out.
    pub fn give(&mut self, step: Step) -> Step {
        self.last = Some(step.clone());
        step
    }

    /// The step that has to follow from how the last one ended, if one has to.
    ///
    /// Errors: no space, however often it is tried.
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
                problem: "it found no space, several times over; give the volume more, or the workload less".into(),
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
            // Making room itself found none.
            part = (failed_op == 0).then(|| path.clone());
        }
        let ops: Vec<Op> = part.map(|path| Op::Unlink { path }).into_iter().chain([Op::SyncFs]).collect();
        let step = Step { label: "make room after no space".into(), counted: false, root: last.root, ops: ops.into() };
        Ok(Some(self.give(step)))
    }

    /// Whether nothing is left to be done of the last step, which ended so.
    pub fn is_whole(&self, last: &Outcome) -> bool {
        *last == Outcome::Done && self.rest.is_none()
    }
}

const CONTINUED: &str = ", continued";

#[cfg(test)]
mod tests {
    use senesce_core::Bytes;

    use super::*;
    use crate::names::path;

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
    fn the_unfinished_file_goes_and_the_rest_is_done_again() {
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
    fn no_space_however_often_it_is_tried_is_an_error() {
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
