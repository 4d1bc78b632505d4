//! What can go wrong with a log.

use std::{io, path::PathBuf};

/// A log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A system call on the log failed.
    #[error("cannot {operation} the log {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The log.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file does not begin as a log does.
    #[error("{} is not an operation log: {problem}", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
        /// What is missing.
        problem: &'static str,
    },
    /// The log was written by a newer version of this program.
    #[error(
        "the log {} has format version {found}; this program reads versions up to {known}: use a newer senesce",
        path.display()
    )]
    NewerVersion {
        /// The log.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// The newest version known here.
        known: u16,
    },
    /// Bytes of the log are not what was written.
    #[error(
        "the log {} is damaged in frame {frame}, at byte {offset_bytes}: {problem}; the steps before it are good",
        path.display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The frame, from 0.
        frame: u64,
        /// Where the frame begins in the file, bytes.
        offset_bytes: u64,
        /// What is wrong.
        problem: String,
    },
    /// The position to resume from is not the end of a whole frame.
    #[error("the log {} cannot go on at byte {offset_bytes}: {problem}", path.display())]
    BadPosition {
        /// The log.
        path: PathBuf,
        /// The position, bytes.
        offset_bytes: u64,
        /// Why not.
        problem: &'static str,
    },
    /// A step that does not belong into the log.
    #[error("step {number} ({label}) cannot be logged: {problem}")]
    BadStep {
        /// The step's number.
        number: u64,
        /// The step's label.
        label: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}
