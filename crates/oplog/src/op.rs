//! What can be done to a volume, and steps: what belongs together.

use std::sync::Arc;

use senesce_core::{Nanos, RelPath};

use crate::Content;

/// One file operation. Paths are relative to the step's [`root`](Step::root).
///
/// Permissions are the low 12 bits of a mode and are set exactly, whatever the umask.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are named after the arguments of the system calls
pub enum Op {
    /// Makes one directory; its parent exists, it does not.
    Mkdir { path: RelPath, mode: u32 },
    /// Removes one empty directory.
    Rmdir { path: RelPath },
    /// Makes a new file (O_EXCL), writes the content, closes it.
    Create { path: RelPath, mode: u32, content: Content },
    /// Writes the content into an existing file at an offset; extends it where needed.
    Write { path: RelPath, offset: u64, content: Content },
    /// Sets the length of an existing file.
    Truncate { path: RelPath, len: u64 },
    /// Renames; replaces a file at `to` atomically.
    Rename { from: RelPath, to: RelPath },
    /// Removes one file or symbolic link.
    Unlink { path: RelPath },
    /// Makes a symbolic link.
    Symlink { path: RelPath, target: Arc<[u8]> },
    /// Makes a second name `path` for the file `existing`.
    Link { existing: RelPath, path: RelPath },
    /// Sets permissions.
    Chmod { path: RelPath, mode: u32 },
    /// Removes a directory and everything below it, in the order that readdir gives, as `rm -r` does.
    RemoveTree { path: RelPath },
    /// Pushes one file to the device.
    Fsync { path: RelPath },
    /// Pushes the whole file system to the device.
    SyncFs,
    /// Makes a new file (O_EXCL) of `len` bytes whose space is reserved and not written (fallocate): it reads as zeros.
    /// All or nothing: if the space is not there, neither is the file.
    Allocate { path: RelPath, mode: u32, len: u64 },
    /// Sets when a file's content changed last, in seconds since 1970, and its time of access to the same.
    SetModified { path: RelPath, unix_seconds: u64 },
    /// Reads `len` bytes of a file from an offset on, all of which exist. It changes nothing that is compared.
    Read { path: RelPath, offset: u64, len: u64 },
    /// Changes the space of an existing file (fallocate). Since version 2, as all that follow.
    Fallocate { path: RelPath, how: SpaceChange, offset: u64, len: u64 },
    /// Exchanges what two names stand for, atomically.
    Exchange { first: RelPath, second: RelPath },
    /// Sets an extended attribute, new or not.
    SetXattr { path: RelPath, name: Arc<[u8]>, value: Arc<[u8]> },
    /// Removes an extended attribute.
    RemoveXattr { path: RelPath, name: Arc<[u8]> },
    /// Sets times of access and of change to the nanosecond; `None` leaves one alone.
    SetTimes { path: RelPath, accessed: Option<FileTime>, modified: Option<FileTime> },
    /// Sets the owner and the group; `None` leaves one alone. Owners are no part of a tree that is compared.
    Chown { path: RelPath, uid: Option<u32>, gid: Option<u32> },
    /// Makes a pipe, a socket or a device; `mode` has the type's bits too.
    Mknod { path: RelPath, mode: u32, device: u64 },
}

/// What fallocate does to a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceChange {
    /// Reserves it; the file grows to hold it.
    Reserve,
    /// Reserves it; the length stays.
    ReserveKeepSize,
    /// Makes a hole of it; the length stays.
    Punch,
    /// Makes it read as zeros; the file grows to hold it.
    Zero,
    /// Makes it read as zeros; the length stays.
    ZeroKeepSize,
}

impl SpaceChange {
    /// All, at their numbers in the log.
    pub(crate) const ALL: [Self; 5] =
        [Self::Reserve, Self::ReserveKeepSize, Self::Punch, Self::Zero, Self::ZeroKeepSize];

    /// Whether the file grows where the range ends behind it.
    pub fn grows(self) -> bool {
        matches!(self, Self::Reserve | Self::Zero)
    }

    /// Whether the range reads as zeros afterwards.
    pub fn clears(self) -> bool {
        matches!(self, Self::Punch | Self::Zero | Self::ZeroKeepSize)
    }
}

/// A time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTime {
    /// Since 1970; before it, negative.
    pub unix_seconds: i64,
    /// Behind the second, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Op {
    /// The content that the operation writes, if it writes any.
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::Create { content, .. } | Self::Write { content, .. } => Some(content),
            _ => None,
        }
    }

    /// The paths that the operation works on, relative to the step's root.
    pub fn paths(&self) -> [Option<&RelPath>; 2] {
        match self {
            Self::SyncFs => [None, None],
            Self::Rename { from: one, to: other }
            | Self::Link { existing: one, path: other }
            | Self::Exchange { first: one, second: other } => [Some(one), Some(other)],
            Self::Mkdir { path, .. }
            | Self::Rmdir { path }
            | Self::Create { path, .. }
            | Self::Write { path, .. }
            | Self::Truncate { path, .. }
            | Self::Unlink { path }
            | Self::Symlink { path, .. }
            | Self::Chmod { path, .. }
            | Self::RemoveTree { path }
            | Self::Fsync { path }
            | Self::Allocate { path, .. }
            | Self::SetModified { path, .. }
            | Self::Read { path, .. }
            | Self::Fallocate { path, .. }
            | Self::SetXattr { path, .. }
            | Self::RemoveXattr { path, .. }
            | Self::SetTimes { path, .. }
            | Self::Chown { path, .. }
            | Self::Mknod { path, .. } => [Some(path), None],
        }
    }

    /// The version of the log's format that has a word for it.
    pub fn version(&self) -> u16 {
        match self {
            Self::Fallocate { .. }
            | Self::Exchange { .. }
            | Self::SetXattr { .. }
            | Self::RemoveXattr { .. }
            | Self::SetTimes { .. }
            | Self::Chown { .. }
            | Self::Mknod { .. } => 2,
            _ => 1,
        }
    }
}

/// Operations that belong together, for example one pull into one copy of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is, for people and for the log: `clone copy-3`, `pull 17 into copy-3`, `delete copy-3`.
    pub label: String,
    /// Whether it counts towards checkpoints (a pull does; setting up and deleting do not).
    pub counted: bool,
    /// The directory of the volume that the operations' paths start from.
    pub root: RelPath,
    /// The operations, in order. Shared, because several copies do the same.
    pub ops: Arc<[Op]>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every operation was done.
    Done,
    /// The file system had no space for the operation `failed_op`; those before it were done.
    NoSpace {
        /// Index of the operation that failed.
        failed_op: usize,
        /// What it did before it failed: `None` nothing at all; `Some(n)` the file exists (for a `Create`) and the
        /// first `n` bytes of the content were written.
        written: Option<u64>,
    },
}

/// A step as it was done: the record of the operation log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneStep {
    /// Position in the log, from 0.
    pub number: u64,
    /// The step. In the log, the operations after a failed one are left out.
    pub step: Step,
    /// How it ended.
    pub outcome: Outcome,
    /// For each operation with a content, in order: its length and XXH3-64 of all of it.
    pub contents: Vec<(u64, u64)>,
    /// When it began, since the log did; only of recorded programs. Since version 2.
    pub began: Option<Nanos>,
}

impl DoneStep {
    /// The version of the log's format that has words for all of it.
    pub fn version(&self) -> u16 {
        let times = if self.began.is_some() { 2 } else { 1 };
        self.step.ops.iter().map(Op::version).fold(times, u16::max)
    }
}
