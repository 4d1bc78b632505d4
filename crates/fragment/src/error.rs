//! Errors of fragmentation: the reasons why a target was not reached.

use std::path::{Path, PathBuf};

use senesce_core::Bytes;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a target was not reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A map could not be read.
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    /// A file is in use, its attributes could not be copied, or a signal came.
    #[error(transparent)]
    Volume(#[from] senesce_volume::Error),
    /// The target is impossible for this file or volume.
    #[error("{}: {problem}", path.display())]
    Target {
        /// The file or volume.
        path: PathBuf,
        /// Why it is impossible.
        problem: String,
    },
    /// The file system does not support the method.
    #[error("{}: {file_system} {problem}", path.display())]
    NotSupported {
        /// The file or volume.
        path: PathBuf,
        /// The file system.
        file_system: String,
        /// What it does not support.
        problem: &'static str,
    },
    /// The free space does not allow the layout.
    #[error("{}: not reachable: {problem}", path.display())]
    NotReachable {
        /// The file or volume.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The new file has another number of extents. It replaced nothing.
    #[error("{}: {wanted} extents were requested, {found} were reached; the file is unchanged", path.display())]
    Missed {
        /// The file.
        path: PathBuf,
        /// The requested number of extents.
        wanted: u64,
        /// The number of extents that was reached.
        found: u64,
    },
    /// There is too little free space.
    #[error("{}: needs {} of free space, {} are free", path.display(), Bytes::shortage(*free, *needed).1, Bytes::shortage(*free, *needed).0)]
    NoSpace {
        /// The file or volume.
        path: PathBuf,
        /// The space needed.
        needed: Bytes,
        /// The free space.
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
