//! A volume in memory: the reference for every other target.
//!
//! It has names, types, permissions and contents. It can have a capacity, so that a test fills a
//! disk in milliseconds. It does not model the layout of any file system.

mod contents;
mod shared;
mod volume;

pub use volume::ModelTarget;
