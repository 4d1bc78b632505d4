//! Workloads in rounds: an initial state, then changes.

use senesce_oplog::{Op, Outcome, Step};

use crate::{Feedback, WorkloadError, generated_paths::path, retry::Retry};

/// A workload that makes an initial state (not counted), and changes it in rounds (counted) with
/// labels `round R`.
pub(super) trait InRounds {
    /// The directory of all steps.
    const ROOT: &str;
    /// The label of the step that makes the initial state.
    const FIRST: &str;

    fn rounds(&mut self) -> &mut Rounds;

    /// The operations that make the initial state.
    fn make(&mut self) -> Vec<Op>;

    /// The operations of a round, from 1 on.
    fn round(&mut self, number: u64) -> Vec<Op>;
}

/// The progress of such a workload. It retries after a lack of space.
pub(super) struct Rounds {
    /// 0 is the initial state.
    next: u64,
    last: u64,
    retry: Retry,
}

impl Rounds {
    /// `last`: the number of rounds.
    pub(super) fn new(last: u64) -> Self {
        Self { next: 0, last, retry: Retry::default() }
    }

    pub(super) fn is_whole(&self, last: &Outcome) -> bool {
        self.retry.is_whole(last)
    }
}

/// Returns the next step. Errors: repeated attempts found no space.
pub(super) fn next_step<W: InRounds>(workload: &mut W, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
    let rounds = workload.rounds();
    if let Some(step) = rounds.retry.settle(feedback)? {
        return Ok(Some(step));
    }
    let number = rounds.next;
    if number > rounds.last {
        return Ok(None);
    }
    rounds.next += 1;
    let (label, ops) = match number {
        0 => (W::FIRST.to_owned(), workload.make()),
        _ => (format!("round {number}"), workload.round(number)),
    };
    let step = Step { label, counted: number > 0, root: path(W::ROOT), ops: ops.into() };
    Ok(Some(workload.rounds().retry.give(step)))
}
