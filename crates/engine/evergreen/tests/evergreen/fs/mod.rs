//! The file system over the store in memory.

mod conformance;
mod rig;
