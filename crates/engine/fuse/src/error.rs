//! The one error of the room.

use std::{io, path::PathBuf};

use senesce_fsapi::FsError;

/// Why a file system could not be mounted, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be mounted there.
    #[error("cannot mount on {}: {source}", point.display())]
    Mount {
        /// The mount point.
        point: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It could not be unmounted.
    #[error("cannot unmount {}: {source}", point.display())]
    Unmount {
        /// The mount point.
        point: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Serving ended otherwise than by an unmount.
    #[error("serving {} ended early: {source}", point.display())]
    Served {
        /// The mount point.
        point: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The connection was aborted while it was mounted.
    #[error("the FUSE connection of {} was aborted (umount --force, or its abort file): calls under way failed; all that was acknowledged is durable", point.display())]
    Aborted {
        /// The mount point.
        point: PathBuf,
    },
    /// What was written last could not be made durable.
    #[error("{} was unmounted, and what was written last is not durable: {source}", point.display())]
    NotDurable {
        /// The mount point.
        point: PathBuf,
        /// What the engine said.
        source: FsError,
    },
    /// Everything is durable, but the removal of an open, unlinked inode was not completed.
    #[error("{} was unmounted and everything is durable, but a removed file still takes space: {source}; the next mount removes it", point.display())]
    NotRemoved {
        /// The mount point.
        point: PathBuf,
        /// What the engine said.
        source: FsError,
    },
}

/// What this room's functions give.
pub type Result<T> = std::result::Result<T, Error>;
