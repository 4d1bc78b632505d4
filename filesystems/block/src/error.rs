//! The error type of the crate.

use std::{fmt, io};

use senesce_core::Bytes;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockOperation {
    /// Opening or creating the device.
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

/// A failed operation of a device.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {device} (offset {offset}, {len} bytes): {problem}")]
pub struct BlockError {
    /// The name of the device.
    pub device: String,
    /// The operation.
    pub operation: BlockOperation,
    /// The offset in bytes; 0 for a flush.
    pub offset: u64,
    /// The length in bytes; 0 for a flush.
    pub len: u64,
    /// The cause.
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

/// The cause of a failed operation.
#[derive(Debug, thiserror::Error)]
pub enum BlockProblem {
    /// The range exceeds the device.
    #[error("the device ends at {}", size.0)]
    OutOfRange {
        /// The size of the device.
        size: Bytes,
    },
    /// Offset or length are not multiples of the alignment.
    #[error("the device takes multiples of {alignment} bytes only")]
    Misaligned {
        /// The required alignment.
        alignment: u32,
    },
    /// An error of the operating system.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A copy in memory would keep more changes than its limit.
    #[error("the changes exceed {most} of memory")]
    TooManyChanges {
        /// The limit.
        most: Bytes,
    },
    /// A fault that a test injected.
    #[error("an injected fault")]
    Injected,
}

/// The result of an operation of a device.
pub type BlockResult<T> = Result<T, BlockError>;
