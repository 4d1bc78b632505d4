//! Returns the steps of a log, and frees space when a step fails.

use std::collections::VecDeque;

use senesce_core::{Bytes, RelPath};
use senesce_oplog::{Op, Outcome, Step};

use super::log_steps::{Piece, ReplayOptions, directory};
use crate::{Feedback, Workload, WorkloadError, retry::Retry};

/// A log, replayed once or several times.
///
/// When space runs out, the oldest other repetition is removed, and the failed step continues.
/// Several repetitions therefore keep a volume full. Without another repetition, the workload syncs
/// and retries. If that fails too, it returns an error.
pub struct LogReplay {
    pieces: Box<dyn Iterator<Item = Result<Piece, WorkloadError>> + Send>,
    options: ReplayOptions,
    /// The space that one repetition needs at least.
    needed: Bytes,
    /// Repetitions whose directories exist, the oldest first.
    there: VecDeque<u64>,
    /// The piece that waits until an old repetition is removed.
    next: Option<Piece>,
    retry: Retry,
    /// The outcome of the step that found no space, while the oldest repetition is removed.
    failed: Option<Outcome>,
}

impl LogReplay {
    /// A replay of the pieces of [`plan_pieces`](super::plan_pieces) with the same options. A
    /// volume smaller than `needed` is refused before the first step.
    ///
    /// Errors: `repeat` or `keep` is 0.
    pub fn new(
        options: ReplayOptions,
        needed: Bytes,
        pieces: Box<dyn Iterator<Item = Result<Piece, WorkloadError>> + Send>,
    ) -> Result<Self, WorkloadError> {
        for (name, value) in [("repeat", options.repeat), ("keep", options.keep)] {
            if value == 0 {
                return Err(WorkloadError::Parameter { name, value: "0".into(), problem: "it must be at least 1" });
            }
        }
        let there = VecDeque::new();
        Ok(Self { pieces, options, needed, there, next: None, retry: Retry::default(), failed: None })
    }

    /// A step that removes the oldest repetition.
    fn remove_oldest(&mut self, why: &str) -> Option<Step> {
        let oldest = self.there.pop_front()?;
        let label = format!("remove repetition {oldest}{why}");
        let ops = [Op::RemoveTree { path: directory(oldest) }, Op::SyncFs];
        Some(Step { label, counted: false, root: RelPath::root(), ops: ops.into() })
    }

    /// Applies the outcome of the last step. Returns the step that must follow, if any.
    fn settle(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        let failed = match (self.failed.take(), feedback.last) {
            (Some(_), Some(Outcome::NoSpace { .. })) => {
                return Err(WorkloadError::VolumeTooSmall {
                    label: "removing a repetition".into(),
                    capacity: feedback.capacity,
                    problem: "even the removal found no space".into(),
                });
            }
            (Some(failed), _) => Some(failed),
            (None, Some(failed @ Outcome::NoSpace { .. })) => {
                if self.there.len() > 1
                    && let Some(step) = self.remove_oldest(" to make room")
                {
                    self.failed = Some(failed);
                    return Ok(Some(step));
                }
                Some(failed)
            }
            (None, last) => last,
        };
        self.retry.settle(&Feedback { last: failed, ..*feedback })
    }
}

impl Workload for LogReplay {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if feedback.last.is_none() && feedback.capacity < self.needed {
            return Err(WorkloadError::VolumeTooSmall {
                label: "the log".into(),
                capacity: feedback.capacity,
                problem: format!("its files need {} at their peak; use a larger volume", self.needed),
            });
        }
        if let Some(step) = self.settle(feedback)? {
            return Ok(Some(step));
        }
        let piece = match self.next.take() {
            None => self.pieces.next().transpose()?,
            waiting => waiting,
        };
        let Some(piece) = piece else { return Ok(None) };
        let is_new = self.there.back() != Some(&piece.repetition);
        if self.options.repeat > 1 && is_new {
            let is_one_too_many = self.there.len() as u64 >= self.options.keep;
            let made = match is_one_too_many.then(|| self.remove_oldest("")).flatten() {
                Some(step) => step,
                None => {
                    self.there.push_back(piece.repetition);
                    let path = directory(piece.repetition);
                    let label = format!("begin repetition {}", piece.repetition);
                    let ops = [Op::Mkdir { path, mode: 0o755 }];
                    Step { label, counted: false, root: RelPath::root(), ops: ops.into() }
                }
            };
            self.next = Some(piece);
            return Ok(Some(self.retry.give(made)));
        }
        if is_new {
            self.there.push_back(piece.repetition);
        }
        Ok(Some(self.retry.give(piece.step)))
    }

    fn copies(&self) -> u64 {
        self.there.len() as u64
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        self.failed.is_none() && self.retry.is_whole(last)
    }
}
