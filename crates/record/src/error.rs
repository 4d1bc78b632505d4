//! What can go wrong with a recording.

use std::{io, path::PathBuf};

use senesce_oplog::LogError;

/// A recording or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call of the recorder itself failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directories do not go together.
    #[error("{} {problem}", path.display())]
    Place {
        /// Which.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The backing directory is no longer where it was.
    #[error("the backing directory {} vanished during the recording; the log is good up to that moment", path.display())]
    Vanished {
        /// Where it was.
        path: PathBuf,
    },
    /// The caller stopped the import.
    #[error("the import was stopped; no log was written")]
    Stopped,
    /// A line of a trace is not what strace writes.
    #[error("line {line} of the trace is malformed: {problem}: {text:?}")]
    Trace {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
        /// Its beginning.
        text: String,
    },
}

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}
