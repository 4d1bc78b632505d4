//! Fakes behind the same traits, and oracles. A dev-dependency only.

mod root;
mod volume;

pub use root::{found_or_skip, root_or_skip};
pub use volume::{Volume, VolumeOptions, run};
