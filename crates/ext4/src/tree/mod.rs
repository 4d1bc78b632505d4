//! The tree of a file system: paths in readdir order with the files' extents, in a few dozen bytes
//! per file.

mod index;
mod store;
mod walk;

pub use store::{Tree, TreeOptions};
pub use walk::{TreeEntry, TreeFile, WalkReport};
