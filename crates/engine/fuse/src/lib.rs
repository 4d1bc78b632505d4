//! Mounts an engine: the FUSE protocol on one side, [`FileSystem`](senesce_fsapi::FileSystem) on the other, nothing else.
//!
//! Everything that changes the file system comes through the mount, so the kernel may keep what it knows: names (also
//! those that are not there), attributes and pages stay valid for as long as the mount lives; files and directories are
//! opened without asking. The kernel checks permissions (`default_permissions`), clears set-id bits, and keeps inodes in
//! use alive by not forgetting them: what it knows is held open in the engine.
//!
//! Several threads serve; the order of what they do at once is the engine's affair. A read that has to wait for something far away does so
//! in a thread of its own, or behind others that do.
//!
//! What is not: files without a name (O_TMPFILE) and POSIX ACLs, both `EOPNOTSUPP`, so that programs make a file with a name and keep to
//! permissions; and times of access, which reading does not change.

mod adapter;
mod alarm;
mod answer;
mod convert;
mod copy;
mod directory;
mod error;
mod holds;
mod mount;
mod waiting;
mod writing;

pub use alarm::Alarm;
pub use error::{Error, Result};
pub use mount::{MountOptions, Mounted, Now};
pub use writing::KernelPages;
