//! Long work: its progress, and its cancellation.

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
