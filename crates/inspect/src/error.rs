//! The one error of the room.

use std::path::PathBuf;

/// Why something cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path cannot be looked at.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A device or image without a file system that is known here.
    #[error("{} holds no file system that can be inspected (ext4, XFS and Btrfs can)", path.display())]
    NoFileSystem {
        /// The device or image.
        path: PathBuf,
    },
    /// A directory on a file system that is not supported.
    #[error("{} lies on {file_system}, which cannot be inspected (ext4, XFS and Btrfs can)", path.display())]
    NotSupported {
        /// The directory.
        path: PathBuf,
        /// What the kernel calls it.
        file_system: String,
    },
    /// A file system that is only inspected while it is mounted.
    #[error("{} holds {file_system}, which is inspected through a mount", path.display())]
    NotMounted {
        /// The device or image.
        path: PathBuf,
        /// What it holds.
        file_system: &'static str,
        /// What to do.
        hint: String,
    },
    /// An entry of a tree that must be looked at whole could not be.
    #[error("cannot look at {}: {problem}", path.display())]
    Incomplete {
        /// The entry.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Stopped before its end.
    #[error("the inspection was interrupted")]
    Stopped,
    /// A probe failed.
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    /// The host failed.
    #[error(transparent)]
    Volume(#[from] senesce_volume::Error),
    /// A device's description is none.
    #[error(transparent)]
    Device(#[from] senesce_device::Error),
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotMounted { hint, .. } => Some(hint.clone()),
            Self::NotSupported { .. } => Some("name a directory on ext4, XFS or Btrfs".to_owned()),
            Self::NoFileSystem { .. } => {
                Some("name a directory, or a device or image with one of these file systems".to_owned())
            }
            Self::Volume(error) => error.hint(),
            _ => None,
        }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }
}
