//! Git replay, full-disk edition (HotStorage 2019): several copies, pulled round-robin, deleted
//! when the volume is full.

use senesce_core::{Bytes, RelPath};
use senesce_oplog::{Op, Outcome, Step};

use super::{Pull, PullSource, dotgit::path, replay::too_small};
use crate::{Feedback, Workload, WorkloadError};

/// The end of the initial cloning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// Stop when at least this share of the volume's capacity is in use, percent (the paper: 75).
    Percent(u8),
    /// Stop after this number of attempts, including a last one that found no space (the published
    /// code: 10). A resumed run sets it to the number of recorded clone steps.
    Copies(u64),
}

/// Parameters of [`GitFullDisk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDiskOptions {
    /// When to stop making copies.
    pub filling: Filling,
    /// The number of pulls over all copies, failed ones included.
    pub pulls: u64,
    /// Before a round, the last copy is deleted if less than this is free.
    pub keep_free: Option<Bytes>,
}

impl FullDiskOptions {
    /// The parameters of the paper: copies until 75% of the volume is used.
    pub fn paper(pulls: u64) -> Self {
        Self { filling: Filling::Percent(75), pulls, keep_free: None }
    }

    /// The parameters of the published code: 10 copies. Before a round with less than 500 MiB free,
    /// the last copy is deleted.
    pub fn code(pulls: u64) -> Self {
        Self { filling: Filling::Copies(10), pulls, keep_free: Some(Bytes(500 * Bytes::MIB)) }
    }
}

/// The previous step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastStep {
    None,
    Clone(u64),
    Pull(u64),
    Delete(u64),
}

/// Copies at `copy-1`, `copy-2`, …; rounds of one pull per live copy.
///
/// Steps: `clone copy-N` (not counted), `pull I into copy-N` (counted, also when it finds no
/// space), `delete copy-N` (not counted). All copies of a round share one [`Pull`]; only that one
/// is in memory. The last copy is never deleted.
///
/// The steps depend only on the outcomes, except for the end of [`Filling::Percent`] and for
/// [`FullDiskOptions::keep_free`].
pub struct GitFullDisk {
    pulls: PullSource,
    options: FullDiskOptions,
    current: Option<Pull>,
    /// Numbers of the live copies, ascending.
    alive: Vec<u64>,
    attempts: u64,
    filling: bool,
    /// Position in `alive` of the next copy of this round; past the end before a round.
    cursor: usize,
    pulls_made: u64,
    last: LastStep,
}

impl GitFullDisk {
    /// The workload over `pulls`. The first pull is the clone.
    pub fn new(pulls: PullSource, options: FullDiskOptions) -> Self {
        Self {
            pulls,
            options,
            current: None,
            alive: Vec::new(),
            attempts: 0,
            filling: true,
            cursor: usize::MAX,
            pulls_made: 0,
            last: LastStep::None,
        }
    }

    /// The directories of the live copies.
    pub fn roots(&self) -> Vec<RelPath> {
        self.alive.iter().map(|&copy| root(copy)).collect()
    }

    /// Returns the deletion that must follow a step without space, if any.
    fn make_room(&mut self, failed_op: usize, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        let copy = match self.last {
            LastStep::None => return Ok(None),
            LastStep::Delete(copy) => {
                return Err(too_small(&format!("delete copy-{copy}"), feedback, "even a deletion found no space"));
            }
            LastStep::Clone(copy) | LastStep::Pull(copy) => copy,
        };
        if self.alive.len() < 2 {
            let problem = "the only copy of the repository does not fit";
            return Err(too_small(&format!("copy-{copy}"), feedback, problem));
        }
        if matches!(self.last, LastStep::Clone(_)) {
            self.filling = false;
            if failed_op == 0 {
                // The copy's directory was not made.
                self.alive.retain(|&other| other != copy);
                return Ok(None);
            }
        }
        Ok(Some(self.delete(copy)))
    }

    fn delete(&mut self, copy: u64) -> Step {
        if let Some(at) = self.alive.iter().position(|&other| other == copy) {
            self.alive.remove(at);
            if self.cursor != usize::MAX && at < self.cursor {
                self.cursor -= 1;
            }
        }
        self.last = LastStep::Delete(copy);
        let ops = [Op::RemoveTree { path: RelPath::root() }].into();
        Step { label: format!("delete copy-{copy}"), counted: false, root: root(copy), ops }
    }

    fn wants_another_copy(&self, feedback: &Feedback) -> bool {
        match self.options.filling {
            Filling::Copies(count) => self.attempts < count.max(1),
            Filling::Percent(percent) => {
                let used = feedback.capacity.0.saturating_sub(feedback.free.0);
                self.alive.is_empty() || u128::from(used) * 100 < u128::from(feedback.capacity.0) * u128::from(percent)
            }
        }
    }

    fn clone_step(&mut self) -> Result<Option<Step>, WorkloadError> {
        if self.current.is_none() {
            self.current = self.pulls.next().transpose()?;
        }
        let Some(pull) = &self.current else { return Ok(None) };
        self.attempts += 1;
        let copy = self.attempts;
        self.alive.push(copy);
        self.last = LastStep::Clone(copy);
        Ok(Some(Step { label: format!("clone copy-{copy}"), counted: false, root: root(copy), ops: pull.ops.clone() }))
    }

    fn pull_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if self.cursor >= self.alive.len() {
            let short = self.options.keep_free.is_some_and(|keep| feedback.free < keep);
            let deleted_already = matches!(self.last, LastStep::Delete(_)) && self.cursor == usize::MAX;
            if short && self.alive.len() > 1 && !deleted_already {
                let last = self.alive[self.alive.len() - 1];
                self.cursor = usize::MAX;
                return Ok(Some(self.delete(last)));
            }
            self.current = self.pulls.next().transpose()?;
            self.cursor = 0;
        }
        let Some(pull) = &self.current else { return Ok(None) };
        let copy = self.alive[self.cursor];
        let label = format!("pull {} into copy-{copy}", pull.index);
        let step = Step { label, counted: true, root: root(copy), ops: pull.ops.clone() };
        self.cursor += 1;
        self.pulls_made += 1;
        self.last = LastStep::Pull(copy);
        Ok(Some(step))
    }
}

fn root(copy: u64) -> RelPath {
    path(&format!("copy-{copy}"))
}

impl Workload for GitFullDisk {
    fn copies(&self) -> u64 {
        self.alive.len() as u64
    }

    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if let Some(Outcome::NoSpace { failed_op, .. }) = feedback.last
            && let Some(step) = self.make_room(failed_op, feedback)?
        {
            return Ok(Some(step));
        }
        if self.filling && self.wants_another_copy(feedback) {
            return self.clone_step();
        }
        self.filling = false;
        if self.pulls_made >= self.options.pulls {
            return Ok(None);
        }
        self.pull_step(feedback)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Oid;
    use super::*;

    fn pulls(count: usize) -> PullSource {
        Box::new((0..count).map(|index| Ok(Pull { index, commit: Oid([0; 20]), ops: Arc::new([]) })))
    }

    fn feedback(free: u64, last: Option<Outcome>) -> Feedback {
        Feedback { capacity: Bytes(1000), free: Bytes(free), last }
    }

    const DONE: Option<Outcome> = Some(Outcome::Done);
    const FULL: Option<Outcome> = Some(Outcome::NoSpace { failed_op: 3, written: None });

    fn label(workload: &mut GitFullDisk, free: u64, last: Option<Outcome>) -> String {
        workload.next_step(&feedback(free, last)).unwrap().map_or("end".into(), |step| step.label)
    }

    #[test]
    fn cloning_stops_at_the_share_then_rounds_delete() {
        let mut w = GitFullDisk::new(pulls(3), FullDiskOptions::paper(100));
        assert_eq!(label(&mut w, 1000, None), "clone copy-1");
        assert_eq!(label(&mut w, 700, DONE), "clone copy-2");
        assert_eq!(label(&mut w, 400, DONE), "clone copy-3");
        assert_eq!(label(&mut w, 100, DONE), "pull 1 into copy-1");
        assert_eq!(w.copies(), 3);
        assert_eq!(label(&mut w, 50, DONE), "pull 1 into copy-2");
        assert_eq!(label(&mut w, 0, FULL), "delete copy-2");
        assert_eq!(w.copies(), 2);
        assert_eq!(label(&mut w, 300, DONE), "pull 1 into copy-3");
        assert_eq!(label(&mut w, 300, DONE), "pull 2 into copy-1");
        assert_eq!(label(&mut w, 0, FULL), "delete copy-1");
        assert_eq!(label(&mut w, 500, DONE), "pull 2 into copy-3");
        assert_eq!(label(&mut w, 500, DONE), "end");
        assert_eq!(label(&mut w, 500, DONE), "end");
    }

    #[test]
    fn an_oversized_clone_is_deleted_and_stops_cloning() {
        let mut w =
            GitFullDisk::new(pulls(2), FullDiskOptions { filling: Filling::Copies(10), pulls: 9, keep_free: None });
        label(&mut w, 1000, None);
        assert_eq!(label(&mut w, 400, DONE), "clone copy-2");
        assert_eq!(label(&mut w, 0, FULL), "delete copy-2");
        assert_eq!(label(&mut w, 400, DONE), "pull 1 into copy-1");
        let error = w.next_step(&feedback(0, FULL)).unwrap_err();
        assert!(matches!(error, WorkloadError::VolumeTooSmall { .. }), "{error}");
    }

    #[test]
    fn a_clone_without_directory_is_not_deleted() {
        let mut w =
            GitFullDisk::new(pulls(2), FullDiskOptions { filling: Filling::Copies(10), pulls: 9, keep_free: None });
        label(&mut w, 1000, None);
        label(&mut w, 400, DONE);
        let nothing = Some(Outcome::NoSpace { failed_op: 0, written: None });
        assert_eq!(label(&mut w, 0, nothing), "pull 1 into copy-1");
    }

    #[test]
    fn a_first_clone_that_does_not_fit_is_an_error() {
        let mut w = GitFullDisk::new(pulls(2), FullDiskOptions::paper(9));
        label(&mut w, 1000, None);
        assert!(w.next_step(&feedback(0, FULL)).is_err());
    }

    #[test]
    fn keep_free_deletes_one_copy_before_a_round() {
        let options = FullDiskOptions { filling: Filling::Copies(3), pulls: 4, keep_free: Some(Bytes(500)) };
        let mut w = GitFullDisk::new(pulls(9), options);
        for free in [1000, 800, 600] {
            assert!(label(&mut w, free, DONE).starts_with("clone"));
        }
        assert_eq!(label(&mut w, 499, DONE), "delete copy-3");
        assert_eq!(label(&mut w, 499, DONE), "pull 1 into copy-1");
        assert_eq!(label(&mut w, 499, DONE), "pull 1 into copy-2");
        assert_eq!(label(&mut w, 499, DONE), "delete copy-2");
        assert_eq!(label(&mut w, 499, DONE), "pull 2 into copy-1");
        assert_eq!(label(&mut w, 499, DONE), "pull 3 into copy-1");
        assert_eq!(label(&mut w, 499, DONE), "end");
    }

    #[test]
    fn outcomes_alone_determine_a_resumed_workload() {
        let outcomes = [None, DONE, DONE, DONE, FULL, DONE, DONE, FULL, DONE];
        let run = |options, space: bool| {
            let mut w = GitFullDisk::new(pulls(5), options);
            let frees = [1000, 700, 400, 240, 0, 500, 500, 0, 500];
            let step = |(&last, free): (&Option<Outcome>, u64)| label(&mut w, if space { free } else { 0 }, last);
            outcomes.iter().zip(frees).map(step).collect::<Vec<_>>()
        };
        let live = run(FullDiskOptions::paper(100), true);
        let clones = live.iter().filter(|label| label.starts_with("clone")).count() as u64;
        assert_eq!(clones, 3);
        assert_eq!(live.iter().filter(|label| label.starts_with("delete")).count(), 2);
        let resumed = run(FullDiskOptions { filling: Filling::Copies(clones), ..FullDiskOptions::paper(100) }, false);
        assert_eq!(resumed, live);
    }
}
