//! A callback that decides whether long work must stop early.

/// Returns true once the work must stop, for example after a signal.
///
/// Long loops call it for every entry of a tree and every buffer of a file. So it must cost no more than an atomic
/// load.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The same as a plain function, for values that keep it. Asked before each operation and each piece of a content.
pub type StopFn = fn() -> bool;

/// The [`Stop`] or [`StopFn`] of work that nothing stops.
pub fn never() -> bool {
    false
}
