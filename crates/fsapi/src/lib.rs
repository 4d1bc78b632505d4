//! A file system at the level of inodes: the trait that engines implement, and their common parts.
//!
//! FUSE adapters, targets of the operation log and tests use [`FileSystem`]. Engines have no clock
//! and know no users: both come with each call, in [`Caller`]. [`ModelFs`] is the simplest
//! implementation, in memory. The module `conformance` (a feature for tests) compares every engine
//! with it.
//!
//! ```
//! use senesce_core::Bytes;
//! use senesce_fsapi::{Caller, FileSystem, Ino, ModelFs, NewNode, Timestamp};
//!
//! let fs = ModelFs::new(Bytes(1 << 20));
//! let now = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
//! let caller = Caller { uid: 1000, gid: 1000, now };
//! let file = fs.make_node(&caller, Ino::ROOT, b"file", &NewNode::file(0o644)).unwrap();
//! fs.write(&caller, file.ino, 0, b"hello").unwrap();
//! assert_eq!(fs.lookup(Ino::ROOT, b"file").unwrap().size, 5);
//! assert_eq!(fs.lookup(Ino::ROOT, b"none").unwrap_err().errno(), 2);
//! ```

mod attributes;
mod caller;
mod clone;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
pub mod dump;
mod error;
mod file_system;
mod model;
mod names;

pub use attributes::{Attributes, FileKind, Ino, NewNode, SetAttributes, SpaceReport, Timestamp};
pub use caller::Caller;
pub use clone::{CLONE_BYTES, check_clone};
pub use damage::{Damage, Decoded};
pub use error::{FsError, FsResult};
pub use file_system::{DirEntry, FallocateMode, FileSystem, ReadBegun, RenameMode, RestOfRead, SeekTo, SetXattrMode};
pub use model::ModelFs;
pub use names::{MAX_FILE_BYTES, MAX_NAME_BYTES, MAX_SYMLINK_BYTES, MAX_XATTR_BYTES, check_name};
