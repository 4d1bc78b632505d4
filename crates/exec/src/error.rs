//! What can go wrong while steps are applied.

use std::{fmt, io, path::PathBuf};

use senesce_oplog::{ContentError, Step};

/// Which operation of which step.
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

/// A step could not be applied, or a tree not read.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The bytes of an operation's content could not be had.
    #[error("{at}: its content is not to be had")]
    Content {
        /// The operation.
        at: Box<OpPlace>,
        /// What the source said.
        #[source]
        source: Box<ContentError>,
    },
    /// An operation failed for another reason than lack of space.
    #[error("{at} failed")]
    Operation {
        /// The operation.
        at: Box<OpPlace>,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A call of a script failed for another reason than lack of space.
    #[error("{what} failed")]
    ScriptCall {
        /// Which flow operation, and the call.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The files of a script found no space.
    #[error(
        "{root:?} has no space for the {files} files ({bytes} bytes) that are there at the beginning: {made} were made; \
         make the volume larger or the scale smaller"
    )]
    ScriptTooLarge {
        /// Where they are made.
        root: PathBuf,
        /// Files that were made.
        made: usize,
        /// Files in all.
        files: usize,
        /// Bytes of all.
        bytes: u64,
    },
    /// The threads of a script have more files open than a process may have here.
    #[error("the threads have up to {files} files open, more than this process may; raise the limit (ulimit -n)")]
    TooManyFiles {
        /// How many.
        files: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It was asked to end.
    #[error("ended before all was done")]
    Stopped,
    /// A replayed operation found no space where the recorded one did.
    #[error(
        "{at}: no space left on the volume that replays the log; it is too small for what was recorded: make it larger"
    )]
    TooSmall {
        /// The operation.
        at: Box<OpPlace>,
    },
    /// A replayed content is not what was recorded.
    #[error(
        "{at}: the content has {found_bytes} bytes and hash {found_hash:016x}, recorded were {recorded_bytes} bytes \
         and {recorded_hash:016x}; is it the same source?"
    )]
    ContentDiffers {
        /// The operation.
        at: Box<OpPlace>,
        /// Length in the record, bytes.
        recorded_bytes: u64,
        /// XXH3-64 in the record.
        recorded_hash: u64,
        /// Length that the source gives, bytes.
        found_bytes: u64,
        /// XXH3-64 of what the source gives.
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
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}
