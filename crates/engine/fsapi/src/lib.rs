//! A file system at inode level: the trait that engines implement, and all that is common to them.
//!
//! [`FileSystem`] is what a FUSE adapter, a target of the operation log and the tests drive. Engines know no clock and no
//! user: both come with each call, in [`Caller`].

mod attributes;
mod caller;
mod error;
mod file_system;
mod names;

pub use attributes::{Attributes, FileKind, Ino, NewNode, SetAttributes, SpaceReport, Timestamp};
pub use caller::Caller;
pub use error::{FsError, FsResult};
pub use file_system::{AllocateHow, DirEntry, FileSystem, RenameHow, SeekTo, SetXattrHow};
pub use names::{MAX_NAME_BYTES, MAX_SYMLINK_BYTES, MAX_XATTR_BYTES, check_name};
