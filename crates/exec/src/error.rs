//! Errors of applying steps.

use std::{fmt, io, path::PathBuf};

use senesce_oplog::{ContentError, Step};

/// An operation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpPlace {
    /// The step's number in the log.
    pub number: u64,
    /// The step's label.
    pub label: String,
    /// The operation's index in the step.
    pub index: usize,
    /// The operation as text.
    pub operation: String,
}

impl OpPlace {
    pub(crate) fn new(number: u64, step: &Step, index: usize) -> Box<Self> {
        let operation = step.ops.get(index).map_or_else(String::new, ToString::to_string);
        Box::new(Self { number, label: step.label.clone(), index, operation })
    }
}

impl fmt::Display for OpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({}), operation {} ({})", self.number, self.label, self.index, self.operation)
    }
}

/// A step that could not be applied, or a tree that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The content of an operation cannot be made.
    #[error("{at}: its content cannot be made")]
    Content {
        /// The operation.
        at: Box<OpPlace>,
        /// The error of the source.
        #[source]
        source: Box<ContentError>,
    },
    /// An operation failed for another reason than lack of space.
    #[error("{at} failed")]
    Operation {
        /// The operation.
        at: Box<OpPlace>,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A call of a script failed for another reason than lack of space.
    #[error("{what} failed")]
    ScriptCall {
        /// The flow operation, and the call.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The volume has no space for the initial files of a script.
    #[error(
        "{root:?} has no space for the {files} initial files ({bytes} bytes): {made} were made; make the volume \
         larger or the scale smaller"
    )]
    ScriptTooLarge {
        /// The directory in which they are made.
        root: PathBuf,
        /// Files that were made.
        made: usize,
        /// The total number of files.
        files: usize,
        /// The total of their bytes.
        bytes: u64,
    },
    /// The threads of a script have more files open than this process may have.
    #[error("the threads have up to {files} files open, more than this process may have; raise the limit (ulimit -n)")]
    TooManyFiles {
        /// The number of files.
        files: u64,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The caller stopped it.
    #[error("stopped before the end")]
    Stopped,
    /// A replayed operation ran out of space where the recorded one did not.
    #[error(
        "{at}: no space left on the volume that replays the log; it is too small for the recording: make it larger"
    )]
    TooSmall {
        /// The operation.
        at: Box<OpPlace>,
    },
    /// A replayed content differs from the recorded one.
    #[error(
        "{at}: the content has {found_bytes} bytes and hash {found_hash:016x}, but {recorded_bytes} bytes and hash \
         {recorded_hash:016x} were recorded; is it the same source?"
    )]
    ContentDiffers {
        /// The operation.
        at: Box<OpPlace>,
        /// Length in the record, bytes.
        recorded_bytes: u64,
        /// XXH3-64 in the record.
        recorded_hash: u64,
        /// Length of the content from the source, bytes.
        found_bytes: u64,
        /// XXH3-64 of the content from the source.
        found_hash: u64,
    },
    /// A record contradicts itself.
    #[error("step {number} ({label}) of the log contradicts itself: {problem}")]
    Record {
        /// The step's number in the log.
        number: u64,
        /// The step's label.
        label: String,
        /// The contradiction.
        problem: &'static str,
    },
    /// A system call on a path of the host failed.
    #[error("cannot {operation} {}", path.display())]
    Host {
        /// The operation that failed.
        operation: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}
