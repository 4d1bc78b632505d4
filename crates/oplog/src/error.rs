//! Errors of operation logs.

use std::{io, path::PathBuf};

/// A log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A system call on the log failed.
    #[error("cannot {operation} the log {}", path.display())]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The log.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file does not start as a log does.
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
    /// The log's bytes differ from those that were written.
    #[error(
        "the log {} is damaged in frame {frame}, at byte {offset_bytes}: {problem}; the steps before it are intact",
        path.display()
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The frame, from 0.
        frame: u64,
        /// Start of the frame in the file, bytes.
        offset_bytes: u64,
        /// What is wrong.
        problem: String,
    },
    /// The position to resume from is not the end of a whole frame.
    #[error("the log {} cannot be resumed at byte {offset_bytes}: {problem}", path.display())]
    BadPosition {
        /// The log.
        path: PathBuf,
        /// The position, bytes.
        offset_bytes: u64,
        /// Why the log cannot be resumed there.
        problem: &'static str,
    },
    /// The step cannot be logged.
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
