//! A callback that decides whether long work must stop early.

/// Returns true once the work must stop, for example after a signal.
///
/// Long loops call it for every entry of a tree and every buffer of a file. So it must cost no more than an atomic
/// load.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The [`Stop`] of work that nothing stops.
pub fn never() -> bool {
    false
}
