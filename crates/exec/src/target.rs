//! What a step can be applied to.

use std::io;

use senesce_core::{Bytes, RelPath, StopFn, never};
use senesce_oplog::{Op, Payload};

/// A volume, real or modelled, that operations are applied to.
pub trait Target: Send {
    /// Does one operation, its paths taken below `root`. `payload` is given exactly when the operation has a content.
    ///
    /// Errors: no space is told apart, with what was done; everything else is an error of the world.
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure>;

    /// Another target changed directories below the same root: what was learnt of them is no longer sure.
    fn forget_directories(&mut self) {}

    /// When this returns true, contents for this target are no longer read, grown and hashed.
    fn stop(&self) -> StopFn {
        never
    }

    /// How much the volume holds and has left.
    fn space(&mut self) -> io::Result<SpaceLeft>;
}

/// Capacity and what is left of it, as a user without privileges sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceLeft {
    /// What the file system can hold in all.
    pub capacity: Bytes,
    /// What is still free.
    pub free: Bytes,
}

/// An operation failed.
#[derive(Debug, thiserror::Error)]
pub enum OpFailure {
    /// No space: `written` as in `Outcome::NoSpace`.
    #[error("no space left (written: {written:?})")]
    NoSpace {
        /// `None`: nothing was done; `Some(n)`: the file exists and holds the first `n` bytes of the content.
        written: Option<u64>,
    },
    /// Anything else.
    #[error("{0}")]
    Io(#[from] io::Error),
}
