//! What can be acquired, with enough identity to be recognised after a kill.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::host::{DeviceNumber, FileId};

/// Something outside our memory that must not outlive the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Resource {
    /// An image or a temporary file.
    File {
        /// Its path; the name holds the run's token.
        path: PathBuf,
    },
    /// A directory that is empty when it is released, such as a mount point.
    Directory {
        /// Its path; the name holds the run's token.
        path: PathBuf,
    },
    /// A directory with all in it.
    Tree {
        /// Its path; the name holds the run's token.
        path: PathBuf,
    },
    /// The loop devices of an image.
    Loop {
        /// The image.
        image: PathBuf,
        /// Which file that was.
        file: FileId,
    },
    /// A setting of somebody's device, to be put back.
    ReadAhead {
        /// The device.
        device: PathBuf,
        /// Its number.
        number: DeviceNumber,
        /// What it was, KiB.
        kib: u32,
    },
    /// A mount.
    Mount {
        /// Where.
        point: PathBuf,
        /// Of what.
        source: MountSource,
    },
}

/// What a mount must be of to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum MountSource {
    /// A loop device whose backing file is this one.
    Image {
        /// The image.
        file: FileId,
    },
    /// This block device.
    Device {
        /// Its number.
        number: DeviceNumber,
    },
}

impl Resource {
    /// The path by which a user knows it.
    pub fn path(&self) -> &Path {
        match self {
            Resource::File { path } | Resource::Directory { path } | Resource::Tree { path } => path,
            Resource::Loop { image, .. } => image,
            Resource::ReadAhead { device, .. } => device,
            Resource::Mount { point, .. } => point,
        }
    }

    /// Whether two would be the same thing on the machine.
    pub(super) fn collides_with(&self, other: &Resource) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.path() == other.path()
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Resource::File { .. } => "file",
            Resource::Directory { .. } => "directory",
            Resource::Tree { .. } => "tree",
            Resource::Loop { .. } => "loop device of",
            Resource::ReadAhead { .. } => "read-ahead of",
            Resource::Mount { .. } => "mount on",
        };
        write!(f, "{what} {}", self.path().display())
    }
}
