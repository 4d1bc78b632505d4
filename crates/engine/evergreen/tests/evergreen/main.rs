//! The engine as its users see it.

mod fs;
mod survey;
