//! The engine as its users see it.

mod aging;
mod device;
mod fs;
mod outline;
mod renames;
mod survey;
