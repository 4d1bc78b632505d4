//! Work that takes long: what it reports, and when it ends early.

/// The caller of a request while it is answered.
pub trait Task {
    /// Reports how far work is: `done` of `of` `unit`s.
    fn progress(&mut self, what: &str, unit: &str, done: u64, of: u64);

    /// Whether the work must end after its present step. What was done until then stays, and is in the response.
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
