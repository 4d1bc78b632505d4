//! The operations of the next step with their meaning, and those left over after a lack of space.

use std::{collections::VecDeque, sync::Arc};

use senesce_core::RelPath;
use senesce_oplog::{Op, Outcome, Step};

use super::population::FileId;

/// The meaning of an operation for the aging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It creates a file.
    Birth(FileId),
    /// It must be done sooner or later: a directory, a removal, a time.
    Duty,
}

/// The failure of the last step.
pub(super) struct Refused {
    /// The operation that found no space.
    pub op: Op,
    /// Its meaning.
    pub deed: Deed,
    /// Whether a part of a file exists.
    pub is_partial: bool,
}

/// The operations of the step under construction.
#[derive(Default)]
pub(super) struct Batch {
    ops: Vec<Op>,
    deeds: Vec<Deed>,
    /// The last step, until its outcome is known.
    sent: Option<(Arc<[Op]>, Vec<Deed>)>,
    /// Operations that a failed step did not reach.
    backlog: VecDeque<(Op, Deed)>,
}

impl Batch {
    /// Appends an operation.
    pub fn push(&mut self, op: Op, deed: Deed) {
        self.ops.push(op);
        self.deeds.push(deed);
    }

    /// Operations so far.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether the last step ended with a sync.
    pub fn was_synced(&self) -> bool {
        self.sent.as_ref().is_some_and(|(ops, _)| matches!(ops.last(), Some(Op::SyncFs)))
    }

    /// Applies the order in which the operations of the last step were done. Operations that did
    /// not start come after them.
    pub fn reorder(&mut self, done: &[Op]) {
        let Some((ops, deeds)) = self.sent.take() else { return };
        let mut left: Vec<(Op, Deed)> = ops.iter().cloned().zip(deeds).collect();
        let mut ordered = Vec::new();
        for op in done {
            if let Some(at) = left.iter().position(|(other, _)| other == op) {
                ordered.push(left.remove(at));
            }
        }
        let (ops, deeds): (Vec<Op>, Vec<Deed>) = ordered.into_iter().chain(left).unzip();
        self.sent = Some((ops.into(), deeds));
    }

    /// Applies the outcome of the last step. Operations that were not done come first in the next
    /// step.
    pub fn hear(&mut self, last: Option<Outcome>) -> Option<Refused> {
        let (ops, deeds) = self.sent.take()?;
        let Some(Outcome::NoSpace { failed_op, written }) = last else { return None };
        for (op, deed) in ops.iter().zip(&deeds).skip(failed_op + 1).rev() {
            self.backlog.push_front((op.clone(), *deed));
        }
        let (op, deed) = (ops.get(failed_op)?.clone(), *deeds.get(failed_op)?);
        Some(Refused { op, deed, is_partial: written.is_some() })
    }

    /// Puts an operation before all pending ones.
    pub fn retry(&mut self, op: Op, deed: Deed) {
        self.backlog.push_front((op, deed));
    }

    /// Removes all pending births and returns them.
    pub fn drop_births(&mut self) -> Vec<FileId> {
        let births =
            self.backlog.iter().filter_map(|(_, deed)| if let Deed::Birth(id) = deed { Some(*id) } else { None });
        let births = births.collect();
        self.backlog.retain(|(_, deed)| *deed == Deed::Duty);
        births
    }

    /// Removes a pending birth; false if it was done already.
    pub fn drop_birth(&mut self, id: FileId) -> bool {
        let before = self.backlog.len();
        self.backlog.retain(|(_, deed)| *deed != Deed::Birth(id));
        self.backlog.len() < before
    }

    /// Removes the pending unlink of a file that was never created.
    pub fn drop_unlink(&mut self, path: &RelPath) {
        self.backlog.retain(|(op, _)| !matches!(op, Op::Unlink { path: gone } if gone == path));
    }

    /// Moves up to `most` pending operations into the next step.
    pub fn take_backlog(&mut self, most: usize) -> bool {
        for (op, deed) in self.backlog.drain(..most.min(self.backlog.len())) {
            self.ops.push(op);
            self.deeds.push(deed);
        }
        !self.ops.is_empty()
    }

    /// Returns the step.
    pub fn finish(&mut self, label: String, counted: bool) -> Step {
        let ops: Arc<[Op]> = std::mem::take(&mut self.ops).into();
        self.sent = Some((ops.clone(), std::mem::take(&mut self.deeds)));
        Step { label, counted, root: RelPath::root(), ops }
    }
}
