//! The verbs.

pub mod fs;
pub mod garden;
