//! Errors of recordings and imports.

use std::{io, path::PathBuf};

use senesce_oplog::LogError;

/// A recording or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call of the recorder itself failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The directories or the log cannot be combined.
    #[error("{} {problem}", path.display())]
    Place {
        /// The directory or file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The backing directory is no longer at its path.
    #[error("the backing directory {} vanished during the recording; the log is good up to that moment", path.display())]
    Vanished {
        /// Its path.
        path: PathBuf,
    },
    /// The caller stopped the import.
    #[error("the import was stopped; no log was written")]
    Stopped,
    /// A line of a trace does not have the format of strace.
    #[error("line {line} of the trace is malformed: {problem}: {text:?}")]
    Trace {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
        /// The beginning of the line.
        text: String,
    },
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}
