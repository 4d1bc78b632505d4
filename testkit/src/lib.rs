//! Fakes behind the same traits, and oracles. A dev-dependency only.

mod root;

pub use root::{found_or_skip, root_or_skip};
