//! The engine as its users see it.

mod device;
mod fs;
mod outline;
mod survey;
