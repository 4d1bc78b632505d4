//! Operations on a volume, and steps, which group operations.

use std::sync::Arc;

use senesce_core::{Nanos, RelPath};

use crate::Content;

/// One file operation. Paths are relative to the step's [`root`](Step::root).
///
/// Permissions are the low 12 bits of a mode and are set exactly, whatever the umask.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are named after the arguments of the system calls
pub enum Op {
    /// Creates one directory. Its parent exists; the directory does not.
    Mkdir { path: RelPath, mode: u32 },
    /// Removes one empty directory.
    Rmdir { path: RelPath },
    /// Creates a new file (O_EXCL), writes the content and closes the file.
    Create { path: RelPath, mode: u32, content: Content },
    /// Writes the content to an existing file at an offset, and extends the file if necessary.
    Write { path: RelPath, offset: u64, content: Content },
    /// Sets the length of an existing file.
    Truncate { path: RelPath, len: u64 },
    /// Renames, and atomically replaces a file at `to`.
    Rename { from: RelPath, to: RelPath },
    /// Removes one file or symbolic link.
    Unlink { path: RelPath },
    /// Creates a symbolic link.
    Symlink { path: RelPath, target: Arc<[u8]> },
    /// Creates a second name `path` for the file `existing`.
    Link { existing: RelPath, path: RelPath },
    /// Sets permissions.
    Chmod { path: RelPath, mode: u32 },
    /// Removes a directory and everything below it, in the order of readdir, as `rm -r` does.
    RemoveTree { path: RelPath },
    /// Makes one file durable.
    Fsync { path: RelPath },
    /// Makes the whole file system durable.
    SyncFs,
    /// Creates a new file (O_EXCL) of `len` bytes with fallocate; it reads as zeros. If there is
    /// not enough space, no file is created.
    Allocate { path: RelPath, mode: u32, len: u64 },
    /// Sets a file's times of modification and access, in seconds since 1970.
    SetModified { path: RelPath, unix_seconds: u64 },
    /// Reads `len` existing bytes of a file from an offset. It changes nothing that is compared.
    Read { path: RelPath, offset: u64, len: u64 },
    /// Changes the space of an existing file (fallocate). Since version 2, as are all operations
    /// that follow.
    Fallocate { path: RelPath, how: SpaceChange, offset: u64, len: u64 },
    /// Exchanges two names atomically.
    Exchange { first: RelPath, second: RelPath },
    /// Sets an extended attribute; it may exist.
    SetXattr { path: RelPath, name: Arc<[u8]>, value: Arc<[u8]> },
    /// Removes an extended attribute.
    RemoveXattr { path: RelPath, name: Arc<[u8]> },
    /// Sets times of access and modification to the nanosecond; `None` keeps a time.
    SetTimes { path: RelPath, accessed: Option<FileTime>, modified: Option<FileTime> },
    /// Sets the owner and the group; `None` keeps one. Comparisons of trees ignore owners.
    Chown { path: RelPath, uid: Option<u32>, gid: Option<u32> },
    /// Creates a pipe, a socket or a device; `mode` includes the bits of the type.
    Mknod { path: RelPath, mode: u32, device: u64 },
}

/// What fallocate does to a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceChange {
    /// Reserves the range; the file grows to include it.
    Reserve,
    /// Reserves the range; the length stays.
    ReserveKeepSize,
    /// Makes a hole; the length stays.
    Punch,
    /// Zeros the range; the file grows to include it.
    Zero,
    /// Zeros the range; the length stays.
    ZeroKeepSize,
}

impl SpaceChange {
    /// All, indexed by their numbers in the log.
    pub(crate) const ALL: [Self; 5] =
        [Self::Reserve, Self::ReserveKeepSize, Self::Punch, Self::Zero, Self::ZeroKeepSize];

    /// Whether the file grows if the range ends after the file's end.
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
    /// Seconds since 1970; negative before it.
    pub unix_seconds: i64,
    /// Nanoseconds after the second, below 1,000,000,000.
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

    /// The paths of the operation, relative to the step's root.
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

    /// The first version of the log's format that has the operation.
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
    /// Name for people and for the log: `clone copy-3`, `pull 17 into copy-3`, `delete copy-3`.
    pub label: String,
    /// Whether it counts towards checkpoints. A pull does; setup and deletion do not.
    pub counted: bool,
    /// The directory of the volume to which the operations' paths are relative.
    pub root: RelPath,
    /// The operations, in order. Shared, because several copies run the same ones.
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
        /// Progress of the failed operation. `None`: it did nothing. `Some(n)`: the file exists
        /// (for a `Create`), and the first `n` bytes of the content were written.
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
    /// Length and XXH3-64 of the whole content of each operation that has one, in order.
    pub contents: Vec<(u64, u64)>,
    /// Start time since the log's start, only of recorded programs. Since version 2.
    pub began: Option<Nanos>,
}

impl DoneStep {
    /// The first version of the log's format that can encode the whole step.
    pub fn version(&self) -> u16 {
        let times = if self.began.is_some() { 2 } else { 1 };
        self.step.ops.iter().map(Op::version).fold(times, u16::max)
    }
}
