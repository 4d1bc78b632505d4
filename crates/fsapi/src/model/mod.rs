//! The simplest file system in memory: the reference for engines.

mod contents;
mod file_system;
mod rename;
mod state;

pub use file_system::ModelFs;
