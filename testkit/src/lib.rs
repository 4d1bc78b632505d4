//! Fakes behind the same traits, and oracles. A dev-dependency only.

mod root;

pub use root::root_or_skip;
