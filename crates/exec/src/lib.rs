//! Applies steps to targets: a mounted file system, a model in memory, nothing at all.

mod target;

pub use target::{OpFailure, SpaceLeft, Target};
