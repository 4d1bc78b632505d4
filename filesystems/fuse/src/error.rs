//! The error type of the crate.

use std::{io, path::PathBuf};

use senesce_fsapi::FsError;

/// The reason why a file system could not be mounted, or why its server stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The mount failed.
    #[error("cannot mount on {}: {source}", point.display())]
    Mount {
        /// The mount point.
        point: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The unmount failed.
    #[error("cannot unmount {}: {source}", point.display())]
    Unmount {
        /// The mount point.
        point: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server stopped without an unmount.
    #[error("the server of {} stopped early: {source}", point.display())]
    Served {
        /// The mount point.
        point: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The connection was aborted while the file system was mounted.
    #[error("the FUSE connection of {} was aborted (umount --force, or its abort file): calls in progress failed; all acknowledged changes are durable", point.display())]
    Aborted {
        /// The mount point.
        point: PathBuf,
    },
    /// The last written data could not be made durable.
    #[error("{} was unmounted, but the last written data is not durable: {source}", point.display())]
    NotDurable {
        /// The mount point.
        point: PathBuf,
        /// The error of the engine.
        source: FsError,
    },
    /// All data is durable, but the removal of an open, unlinked inode was not completed.
    #[error("{} was unmounted and everything is durable, but a removed file still uses space: {source}; the next mount removes it", point.display())]
    NotRemoved {
        /// The mount point.
        point: PathBuf,
        /// The error of the engine.
        source: FsError,
    },
}

/// The result of the crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
