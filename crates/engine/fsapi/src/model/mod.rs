//! A file system in memory, as simple as can be: what engines are compared with.

mod contents;
mod file_system;
mod rename;
mod state;

pub use file_system::ModelFs;
