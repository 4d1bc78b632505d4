//! The one error of the room.

use std::{fmt, io};

use senesce_core::Bytes;

/// What a device was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOperation {
    /// To be opened or made.
    Open,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `flush`.
    Flush,
    /// `discard`.
    Discard,
}

impl fmt::Display for BlockOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        })
    }
}

/// A device did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {device} (offset {offset}, {len} bytes): {problem}")]
pub struct BlockError {
    /// The device's name.
    pub device: String,
    /// What it was asked to do.
    pub operation: BlockOperation,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// How many bytes; 0 for a flush.
    pub len: u64,
    /// Why not.
    #[source]
    pub problem: BlockProblem,
}

impl BlockError {
    /// An error of a device.
    pub fn new(
        device: impl Into<String>,
        operation: BlockOperation,
        offset: u64,
        len: u64,
        problem: BlockProblem,
    ) -> Self {
        Self { device: device.into(), operation, offset, len, problem }
    }
}

/// Why a device did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum BlockProblem {
    /// The range ends behind the device.
    #[error("the device ends at {}", size.0)]
    OutOfRange {
        /// Its size.
        size: Bytes,
    },
    /// Offset or length are no multiples of the alignment.
    #[error("the device takes multiples of {alignment} bytes only")]
    Misaligned {
        /// What they should be multiples of.
        alignment: u32,
    },
    /// The system says no.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A test asked for it.
    #[error("an injected fault")]
    Injected,
}

/// What devices give.
pub type BlockResult<T> = Result<T, BlockError>;
