//! Workloads in rounds: a first state, and then changes of it.

use senesce_oplog::{Op, Outcome, Step};

use crate::{Feedback, WorkloadError, names::path, retry::Retry};

/// A workload that makes a first state (not counted), and changes it in rounds (counted) with labels `round R`.
pub(super) trait InRounds {
    /// The directory of all steps.
    const ROOT: &str;
    /// The label of the step that makes the first state.
    const FIRST: &str;

    fn rounds(&mut self) -> &mut Rounds;

    /// The operations that make the first state.
    fn make(&mut self) -> Vec<Op>;

    /// The operations of a round, from 1 on.
    fn round(&mut self, number: u64) -> Vec<Op>;
}

/// How far such a workload is. What has no space is tried again.
pub(super) struct Rounds {
    /// 0: the first state.
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

/// The next step. Errors: no space, however often it is tried.
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
