//! A volume in memory: what every other target must agree with.
//!
//! It keeps names, types, permissions and contents, and can have a capacity, so that a full disk can be tried in
//! milliseconds. What is not: a model of how any file system lays things out.

mod contents;
mod shared;
mod volume;

pub use volume::ModelTarget;
