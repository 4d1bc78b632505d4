//! The one error of the room.

use std::{io, path::PathBuf};

use senesce_core::Nanos;

/// Why a measure could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call to the system failed on the thing measured as a whole (single files that fail are listed in the figures).
    #[error("cannot {operation} {}", path.display())]
    System {
        /// What was tried: `open`, `list`, `read free extents of`.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file system has no way to tell, or none that this version knows.
    #[error("{measure} of {} is not supported on a file system with magic number {magic:#x}; {hint}", path.display())]
    NotSupported {
        /// The measure.
        measure: &'static str,
        /// The mount point or file.
        path: PathBuf,
        /// `statfs` magic of its file system.
        magic: u64,
        /// What the user can do.
        hint: &'static str,
    },
    /// The clock was earlier after the measure than before it, so that there is no time to report.
    #[error(
        "the clock went backwards during {measure}, from {} ns to {} ns; repeat the measure, and check the host's clock",
        before.0, after.0
    )]
    ClockWentBackwards {
        /// What was measured.
        measure: &'static str,
        /// The clock before.
        before: Nanos,
        /// The clock after.
        after: Nanos,
    },
    /// The pattern of a grep test was found, where a search would have stopped early.
    #[error("the grep test's pattern was found in {}; take another pattern", path.display())]
    PatternFound {
        /// The file, or the root if the tool does not say.
        path: PathBuf,
    },
    /// The pattern of a grep test cannot be searched for.
    #[error("the grep test's pattern {pattern:?} {problem}")]
    BadPattern {
        /// The pattern, shown with replacement characters.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A tool that was run ended in a way that leaves no figures.
    #[error("{tool} on {} ended with {status}: {message}", path.display())]
    Tool {
        /// The program.
        tool: &'static str,
        /// On what.
        path: PathBuf,
        /// `exit code 2`, `signal 9`.
        status: String,
        /// The first of what it said on its standard error.
        message: String,
    },
    /// The kernel's answer contradicts its own format.
    #[error("the kernel's answer to {call} on {} makes no sense: {problem}", path.display())]
    Malformed {
        /// The call.
        call: &'static str,
        /// On what.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The requests of a device cannot be traced.
    #[error("cannot trace the requests of {}: {problem}", path.display())]
    NoTrace {
        /// The device, or what was to stand for it.
        path: PathBuf,
        /// Why not, and what the user can do.
        problem: String,
    },
    /// This process may not use the kernel's tracing.
    #[error("no right to trace block requests: tracefs at {} is closed to this user", path.display())]
    NoTraceRights {
        /// Where tracefs is mounted, or what of it was tried.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The bandwidth of reads cannot be measured so.
    #[error("cannot measure the transfer curve of {}: {problem}", path.display())]
    BadTransfer {
        /// The device or file.
        path: PathBuf,
        /// Why not, and what would do.
        problem: String,
    },
    /// The caller requested an early stop; there are no figures.
    #[error("{measure} was stopped")]
    Stopped {
        /// What was measured.
        measure: &'static str,
    },
    /// A text or binary format that was read contradicts itself, or is cut off.
    #[error("the {format} makes no sense at {unit} {position}: {problem}")]
    BadFormat {
        /// What was read: `trace page`, `text of blkparse`.
        format: &'static str,
        /// What `position` counts: `line`, `byte`.
        unit: &'static str,
        /// Where; lines are counted from 1, bytes from 0.
        position: u64,
        /// What is wrong there.
        problem: String,
    },
}

impl Error {
    /// What the user can do about it.
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
