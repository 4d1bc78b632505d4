//! Reads ext2, ext3 and ext4 straight from a device or image, mounted or not, and never writes.
//!
//! What for: the extents of all files of a tree much faster than asking the kernel file by file, and free space
//! without mounting. Inode tables are read in order, in long reads; blocks of extent trees and directories are read
//! sorted by position. Everything above [`ReadAt`] is pure.
//!
//! - [`FileSystem::open`]: superblock and group descriptors, checked.
//! - [`FileSystem::collect_inodes`]: every file, directory and symlink in the order of inode numbers, in bounded memory.
//! - [`FileSystem::collect_tree`]: all of them with paths; [`Tree::walk`] gives them in readdir order.
//! - [`FileSystem::collect_free_space`]: free extents, from the bitmaps.
//!
//! ```no_run
//! use senesce_ext4::{FileSystem, TreeOptions};
//! let mut fs = FileSystem::open(std::fs::File::open("disk.img")?)?;
//! let tree = fs.collect_tree(&TreeOptions::default())?;
//! tree.walk(&mut |entry| {
//!     let extents = entry.file.map_or(0, |file| file.extents().count());
//!     println!("{} {extents}", String::from_utf8_lossy(entry.path));
//! });
//! for warning in &tree.report.warnings {
//!     eprintln!("warning: {warning}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an answer is worth
//!
//! On an image or device that nobody writes, every answer is exact, or there is an [`Error`] that names the block that is
//! damaged. A device that is mounted for writing is read as it is at that moment, past the journal: what does not fit
//! together is read again, what still does not is left out and counted, the inodes and descriptors are read a second time at
//! the end, and if anything but times of reading changed, [`Warning::ChangedDuringReading`] says so. Through the mounted
//! device (not through the file behind a loop device) the kernel's own buffers are read, so that the answer is as fresh
//! as the kernel's; data waiting for its blocks to be allocated has none yet. A change that leaves no trace in any
//! inode or descriptor is not seen; no ordinary operation is one.
//!
//! # What it is not
//!
//! No checker: it looks at what it needs. It does not replay the journal, decrypt names or fold case beyond ASCII; files'
//! data is never read. `shared_blocks`, compression and reflinks: ext4 has no compressed extents that can be read
//! (such a file system is refused), and shared blocks are only known as a feature, which gives a warning.

mod bitmap;
mod bytes;
mod checksum;
mod directory;
mod error;
mod features;
mod filesystem;
mod free_space;
mod groups;
mod inline;
mod inode;
mod map;
mod read_at;
mod record;
mod report;
mod scan;
mod sorted_read;
mod superblock;
mod tree;

pub use directory::{DirectoryEntries, Entry, EntryKind, EntryOrder};
pub use error::{Damage, Error, Owner, Problem, Structure};
pub use filesystem::{FileSystem, OnDamage, OpenOptions};
pub use free_space::{FreeExtent, FreeSpace};
pub use inode::{FileKind, InodeFlags, Timestamp};
pub use map::{ExtentState, MappedExtent};
pub use read_at::ReadAt;
pub use record::{InodeRecord, Mapping};
pub use report::{Report, Warning};
pub use scan::ScanOptions;
pub use superblock::Superblock;
pub use tree::{Tree, TreeEntry, TreeFile, TreeOptions, WalkReport};
