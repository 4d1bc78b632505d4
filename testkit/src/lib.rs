//! Fakes behind the same traits, and oracles. A dev-dependency only.

mod root;
mod tracefs;
mod volume;

pub use root::{found_or_skip, root_or_skip};
pub use tracefs::tracefs;
pub use volume::{Volume, VolumeOptions, run, scratch_directory};
