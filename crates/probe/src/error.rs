//! The error type of the crate.

use std::{io, path::PathBuf};

use senesce_core::Nanos;

/// The reasons why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed on the measured object as a whole. Failures of single files are in the
    /// figures.
    #[error("cannot {operation} {}", path.display())]
    System {
        /// The failed operation: `open`, `list`, `read free extents of`.
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file system does not support the measurement, or this version does not know how.
    #[error("{measure} of {} is not supported on a file system with magic number {magic:#x}; {hint}", path.display())]
    NotSupported {
        /// The measurement.
        measure: &'static str,
        /// The mount point or file.
        path: PathBuf,
        /// `statfs` magic of its file system.
        magic: u64,
        /// What the user can do.
        hint: &'static str,
    },
    /// The clock was earlier after the measurement than before it, so there is no time to report.
    #[error(
        "the clock went backwards during {measure}, from {} ns to {} ns; repeat the measure, and check the host's clock",
        before.0, after.0
    )]
    ClockWentBackwards {
        /// The measurement.
        measure: &'static str,
        /// The clock before.
        before: Nanos,
        /// The clock after.
        after: Nanos,
    },
    /// A file contains the pattern of a grep test, so the search would have stopped early.
    #[error("the grep test's pattern was found in {}; take another pattern", path.display())]
    PatternFound {
        /// The file, or the root if the tool does not report it.
        path: PathBuf,
    },
    /// The pattern of a grep test is not valid.
    #[error("the grep test's pattern {pattern:?} {problem}")]
    BadPattern {
        /// The pattern, shown with replacement characters.
        pattern: String,
        /// Its fault.
        problem: &'static str,
    },
    /// A tool failed, so there are no figures.
    #[error("{tool} on {} ended with {status}: {message}", path.display())]
    Tool {
        /// The program.
        tool: &'static str,
        /// The path.
        path: PathBuf,
        /// `exit code 2`, `signal 9`.
        status: String,
        /// The first line of its standard error.
        message: String,
    },
    /// The kernel's answer contradicts its own format.
    #[error("the kernel returned a wrong answer to {call} on {}: {problem}", path.display())]
    Malformed {
        /// The call.
        call: &'static str,
        /// The path.
        path: PathBuf,
        /// The fault of the answer.
        problem: String,
    },
    /// The requests of a device cannot be traced.
    #[error("cannot trace the requests of {}: {problem}", path.display())]
    NoTrace {
        /// The device, or the path that stands for it.
        path: PathBuf,
        /// The reason, and what the user can do.
        problem: String,
    },
    /// This process may not use the kernel's tracing.
    #[error("no right to trace block requests: tracefs at {} is closed to this user", path.display())]
    NoTraceRights {
        /// The mount point of tracefs, or the path that failed.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The bandwidth of reads cannot be measured with these parameters.
    #[error("cannot measure the transfer curve of {}: {problem}", path.display())]
    BadTransfer {
        /// The device or file.
        path: PathBuf,
        /// The reason, and what the user can do.
        problem: String,
    },
    /// The caller requested an early stop; there are no figures.
    #[error("{measure} was stopped")]
    Stopped {
        /// The measurement.
        measure: &'static str,
    },
    /// A text or binary format contradicts itself, or is truncated.
    #[error("cannot read the {format}: {unit} {position}: {problem}")]
    BadFormat {
        /// The format: `trace page`, `text of blkparse`.
        format: &'static str,
        /// The unit of `position`: `line`, `byte`.
        unit: &'static str,
        /// The position; lines are counted from 1, bytes from 0.
        position: u64,
        /// The fault at this position.
        problem: String,
    },
}

impl Error {
    /// What the user can do, if there is a general hint.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoTraceRights { .. } => Some(
                "run as root (sudo); or import what blkparse printed elsewhere (senesce trace --blkparse FILE)"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// A [`Error::System`] from a system call's error number.
    pub(crate) fn system(operation: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Error::System { operation, path: path.into(), source: source.into() }
    }
}
