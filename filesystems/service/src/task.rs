//! Long work: its progress, and its cancellation.

use std::sync::mpsc::Sender;

/// The caller of a request during its execution.
pub trait Task {
    /// Reports progress: `done` of `of` `unit`s.
    fn progress(&mut self, what: &str, unit: &str, done: u64, of: u64);

    /// Whether the work must end after its present step. Finished work remains, and is in the
    /// response.
    fn is_cancelled(&mut self) -> bool;
}

/// A caller that wants no progress and waits for the end.
pub struct NoTask;

impl Task for NoTask {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {}

    fn is_cancelled(&mut self) -> bool {
        false
    }
}

/// Progress of work in another thread.
pub(crate) struct Step {
    what: String,
    unit: String,
    done: u64,
    of: u64,
}

impl Step {
    /// Reports this progress to the caller.
    pub(crate) fn pass_on(&self, task: &mut dyn Task) {
        task.progress(&self.what, &self.unit, self.done, self.of);
    }
}

/// The caller of work in another thread. After a cancellation, reads of the frozen devices fail,
/// which ends the work.
pub(crate) struct Relay(pub(crate) Sender<Step>);

impl Task for Relay {
    fn progress(&mut self, what: &str, unit: &str, done: u64, of: u64) {
        let step = Step { what: what.to_owned(), unit: unit.to_owned(), done, of };
        let _ = self.0.send(step); // the receiver waits until the work ends
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}
