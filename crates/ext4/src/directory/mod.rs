//! Directories: blocks of entries, with or without an index by hash, in the order the kernel lists them or as they lie.

mod block;
mod entries;
mod hash;
mod order;
mod read;

pub(crate) use entries::EntryIterator;
pub use entries::{DirectoryEntries, Entry, EntryKind};
pub use order::EntryOrder;
pub(crate) use read::collect_directories;
