//! The question whether long work must stop before its end.

/// Returns true once the work must stop, because a signal came.
///
/// Long loops call it for every entry of a tree and every buffer of a file, so it must cost no more than an atomic load.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The [`Stop`] of work that nothing stops.
pub fn never() -> bool {
    false
}
