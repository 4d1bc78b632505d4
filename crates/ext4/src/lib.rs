//! Reads ext2, ext3 and ext4 straight from a device or image, mounted or not, and never writes.
//!
//! Purpose: the extents of all files of a tree, much faster than with queries to the kernel file by
//! file, and free space without a mount. Inode tables are read in order, in long reads. Blocks of
//! extent trees and directories are read sorted by position. All code above [`ReadAt`] does no I/O
//! of its own.
//!
//! - [`FileSystem::open`]: superblock and group descriptors, checked.
//! - [`FileSystem::collect_inodes`]: every file, directory and symlink in the order of inode
//!   numbers, in bounded memory.
//! - [`FileSystem::collect_tree`]: all of them with paths; [`Tree::walk`] visits them in readdir
//!   order.
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
//! # Accuracy
//!
//! On an image or device that no process writes, every result is exact, or there is an [`Error`]
//! that names the damaged block.
//!
//! A device that is mounted for writing is read in its current state, past the journal. An
//! inconsistent structure is read again. If it is still inconsistent, it is left out and counted.
//! At the end, inodes and descriptors are read a second time. If anything except access times
//! changed, [`Warning::ChangedDuringReading`] reports it. Reads of the mounted device (not of the
//! file below a loop device) use the buffers of the kernel. So the result is as recent as that of
//! the kernel. Data with delayed allocation has no blocks yet. A change that leaves no trace in any
//! inode or descriptor is not detected; no ordinary operation is such a change.
//!
//! # Limits
//!
//! This is no checker: it reads only what it needs. It does not replay the journal, decrypt names,
//! fold case beyond ASCII, or read the data of files. A file system with compression is refused,
//! because ext4 has no readable format for it. `shared_blocks` is known as a feature only, and
//! causes a warning.

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
