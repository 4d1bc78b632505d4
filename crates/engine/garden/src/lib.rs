//! The garden: a copy-on-write file system whose blocks can be moved below it.

mod format;

pub use format::Damage;
pub use format::label::Group;
