//! Operations of the next step with what each means, and what is still to be done after one that found no space.

use std::{collections::VecDeque, sync::Arc};

use senesce_core::RelPath;
use senesce_oplog::{Op, Outcome, Step};

use super::population::FileId;

/// What an operation means to the aging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A file is born.
    Birth(FileId),
    /// Whatever has to be done sooner or later: a directory, a death, a time.
    Duty,
}

/// How the last step ended, as far as it is not what was wanted.
pub(super) struct Refused {
    /// The operation that found no space.
    pub op: Op,
    /// What it meant.
    pub deed: Deed,
    /// Whether it left a part of a file behind.
    pub is_partial: bool,
}

/// The operations of the step that is being made.
#[derive(Default)]
pub(super) struct Batch {
    ops: Vec<Op>,
    deeds: Vec<Deed>,
    /// The last step, until it is known how it ended.
    sent: Option<(Arc<[Op]>, Vec<Deed>)>,
    /// Operations of a step that was cut short, to be done again.
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

    /// Whether the last step ended with a synchronisation.
    pub fn was_synced(&self) -> bool {
        self.sent.as_ref().is_some_and(|(ops, _)| matches!(ops.last(), Some(Op::SyncFs)))
    }

    /// The operations of the last step were done in this order, those that were not begun come behind them.
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

    /// Takes notice of how the last step ended. What was not done comes first from now on.
    pub fn hear(&mut self, last: Option<Outcome>) -> Option<Refused> {
        let (ops, deeds) = self.sent.take()?;
        let Some(Outcome::NoSpace { failed_op, written }) = last else { return None };
        for (op, deed) in ops.iter().zip(&deeds).skip(failed_op + 1).rev() {
            self.backlog.push_front((op.clone(), *deed));
        }
        let (op, deed) = (ops.get(failed_op)?.clone(), *deeds.get(failed_op)?);
        Some(Refused { op, deed, is_partial: written.is_some() })
    }

    /// Puts an operation before all that are still to be done.
    pub fn retry(&mut self, op: Op, deed: Deed) {
        self.backlog.push_front((op, deed));
    }

    /// Leaves out all births that are still to be done; gives them.
    pub fn drop_births(&mut self) -> Vec<FileId> {
        let births =
            self.backlog.iter().filter_map(|(_, deed)| if let Deed::Birth(id) = deed { Some(*id) } else { None });
        let births = births.collect();
        self.backlog.retain(|(_, deed)| *deed == Deed::Duty);
        births
    }

    /// Leaves out a birth that is still to be done; false if it was done.
    pub fn drop_birth(&mut self, id: FileId) -> bool {
        let before = self.backlog.len();
        self.backlog.retain(|(_, deed)| *deed != Deed::Birth(id));
        self.backlog.len() < before
    }

    /// Leaves out the removal of a file that was never there.
    pub fn drop_unlink(&mut self, path: &RelPath) {
        self.backlog.retain(|(op, _)| !matches!(op, Op::Unlink { path: gone } if gone == path));
    }

    /// Takes up to `most` operations that are still to be done.
    pub fn take_backlog(&mut self, most: usize) -> bool {
        for (op, deed) in self.backlog.drain(..most.min(self.backlog.len())) {
            self.ops.push(op);
            self.deeds.push(deed);
        }
        !self.ops.is_empty()
    }

    /// The step.
    pub fn finish(&mut self, label: String, counted: bool) -> Step {
        let ops: Arc<[Op]> = std::mem::take(&mut self.ops).into();
        self.sent = Some((ops.clone(), std::mem::take(&mut self.deeds)));
        Step { label, counted, root: RelPath::root(), ops }
    }
}
