//! Why a target was not reached.

use std::path::{Path, PathBuf};

use senesce_core::Bytes;

/// A result of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a target was not reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A map could not be read.
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    /// A file's attributes could not be kept.
    #[error(transparent)]
    Volume(#[from] senesce_volume::Error),
    /// What was asked for makes no sense for this file or volume.
    #[error("{}: {problem}", path.display())]
    Target {
        /// The file or volume.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The file system cannot do what this needs.
    #[error("{}: {file_system} {problem}", path.display())]
    NotSupported {
        /// The file or volume.
        path: PathBuf,
        /// Which file system.
        file_system: String,
        /// What it cannot.
        problem: &'static str,
    },
    /// The free space allows no such layout.
    #[error("{}: not reachable: {problem}", path.display())]
    NotReachable {
        /// The file or volume.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// It was tried, and something else came out. Nothing was replaced.
    #[error("{}: {wanted} extents were asked for, {found} came out; the file was left as it was", path.display())]
    Missed {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        wanted: u64,
        /// What came out.
        found: u64,
    },
    /// Too little free space.
    #[error("{}: needs {needed} of free space, {free} are free", path.display())]
    NoSpace {
        /// The file or volume.
        path: PathBuf,
        /// What is needed.
        needed: Bytes,
        /// What is there.
        free: Bytes,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }

    pub(crate) fn sys(operation: &'static str, path: &Path) -> impl Fn(rustix::io::Errno) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source: source.into() }
    }
}
