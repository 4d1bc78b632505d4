//! Targets of steps.

use std::{io, os::fd::BorrowedFd};

use senesce_core::{Bytes, RelPath, StopFn, never};
use senesce_oplog::{Op, Payload};

/// A volume, real or modelled, to which operations are applied.
pub trait Target: Send {
    /// Applies one operation. Its paths are below `root`. `payload` is `Some` if and only if the
    /// operation has a content.
    ///
    /// Errors: [`OpFailure::NoSpace`] with the part that was done; [`OpFailure::Io`] for everything
    /// else.
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure>;

    /// Forgets what is known about directories, because another target changed some below the same
    /// root.
    fn forget_directories(&mut self) {}

    /// The stop function: when it returns true, contents for this target are no longer read,
    /// generated and hashed.
    fn stop(&self) -> StopFn {
        never
    }

    /// The capacity and the free space of the volume.
    fn space(&mut self) -> io::Result<SpaceLeft>;
}

/// Work after operations on a mounted file system, so that its layout does not depend on the
/// kernel's timing.
pub trait Settle: Send + Sync + std::fmt::Debug {
    /// Called after a write, with the file that was written.
    fn wrote(&mut self, file: BorrowedFd<'_>) -> io::Result<()>;

    /// Called after every operation.
    fn done(&mut self, op: &Op) -> io::Result<()>;
}

/// Capacity and free space, as available to a user without privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceLeft {
    /// The capacity of the file system.
    pub capacity: Bytes,
    /// The free space.
    pub free: Bytes,
}

/// The failure of an operation.
#[derive(Debug, thiserror::Error)]
pub enum OpFailure {
    /// No space is left; `written` is as in `Outcome::NoSpace`.
    #[error("no space left (written: {written:?})")]
    NoSpace {
        /// `None`: nothing was done. `Some(n)`: the file exists and holds the first `n` bytes of
        /// the content.
        written: Option<u64>,
    },
    /// Any other error.
    #[error("{0}")]
    Io(#[from] io::Error),
}
