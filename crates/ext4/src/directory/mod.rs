//! Directories: blocks of entries, with or without a hash index, in the listing order of the kernel
//! or in the order of the blocks.

mod block;
mod entries;
mod hash;
mod order;
mod read;

pub(crate) use entries::EntryIterator;
pub use entries::{DirectoryEntries, Entry, EntryKind};
pub use order::EntryOrder;
pub(crate) use read::collect_directories;
