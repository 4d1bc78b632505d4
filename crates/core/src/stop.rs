//! A callback that decides whether long work must stop early.

/// Returns true if the work must stop, for example after a signal.
///
/// Long loops call it for every entry of a tree and every buffer of a file. So it must cost no more
/// than an atomic load.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// A [`Stop`] as a plain function, for values that store it. It is called before each operation and
/// each piece of a content.
pub type StopFn = fn() -> bool;

/// The [`Stop`] or [`StopFn`] of work that never stops early.
pub fn never() -> bool {
    false
}
