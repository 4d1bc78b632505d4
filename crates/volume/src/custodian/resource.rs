//! What can be acquired, with enough identity to be recognised after a kill.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use senesce_vdisk::Footprint;
use serde::{Deserialize, Serialize};

use crate::host::{DeviceNumber, FileId, ProcessId};

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
    /// All files in a directory whose names hold the run's token, for those who make one after the other. Since version 4.
    Files {
        /// The directory, which is somebody's.
        dir: PathBuf,
    },
    /// The loop devices of an image.
    Loop {
        /// The image.
        image: PathBuf,
        /// Which file that was.
        file: FileId,
    },
    /// A disk in virtual time: its FUSE mount and its processes. The file behind it and its mount point are resources of
    /// their own. Since version 2.
    VirtualDisk {
        /// What it holds.
        footprint: Footprint,
    },
    /// The loop devices of a disk in virtual time. Since version 2.
    DiskLoop {
        /// The file that is the disk.
        path: PathBuf,
        /// The mark that they carry ([`disk_mark`]).
        mark: String,
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
    /// A mount of an engine of our own, and the process that serves it. Since version 6.
    Engine {
        /// Where.
        point: PathBuf,
        /// What the list of mounts calls it; the run's token is in it.
        name: String,
        /// Who serves it, once it was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<ProcessId>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum MountSource {
    /// A loop device whose backing file is this one.
    Image {
        /// The image.
        file: FileId,
    },
    /// A loop device on a disk in virtual time. Since version 2.
    Disk {
        /// The mark that it carries.
        mark: String,
    },
    /// This block device.
    Device {
        /// Its number.
        number: DeviceNumber,
    },
    /// A recording: FUSE, under this name. Since version 4.
    Recording {
        /// What the list of mounts calls it; the run's token is in it.
        name: String,
    },
    /// An engine of our own: FUSE, under this name. Since version 5.
    Engine {
        /// What the list of mounts calls it; the run's token is in it.
        name: String,
    },
}

/// The mark of the loop devices of the disk called `name`: its end, which holds the run's token and is unique on the
/// machine.
///
/// An image's loop device is known by the image's device and inode number. The file of a disk in virtual time has
/// numbers that the kernel gives to the next such file again, and that nobody can ask for once its server is dead.
pub(crate) fn disk_mark(name: &str) -> String {
    // Names are ASCII; the kernel keeps 63 bytes.
    let mark = name.get(name.len().saturating_sub(63)..).unwrap_or(name);
    mark.to_owned()
}

impl Resource {
    /// The path by which a user knows it.
    pub fn path(&self) -> &Path {
        match self {
            Resource::File { path } | Resource::Directory { path } | Resource::Tree { path } => path,
            Resource::Files { dir } => dir,
            Resource::Loop { image, .. } => image,
            Resource::VirtualDisk { footprint } => &footprint.mount_point,
            Resource::DiskLoop { path, .. } => path,
            Resource::ReadAhead { device, .. } => device,
            Resource::Mount { point, .. } | Resource::Engine { point, .. } => point,
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
            Resource::Files { .. } => "temporary files in",
            Resource::Loop { .. } | Resource::DiskLoop { .. } => "loop device of",
            Resource::VirtualDisk { .. } => "virtual disk on",
            Resource::ReadAhead { .. } => "read-ahead of",
            Resource::Mount { source: MountSource::Recording { .. }, .. } => "recording on",
            Resource::Mount { .. } => "mount on",
            Resource::Engine { .. } => "engine on",
        };
        write!(f, "{what} {}", self.path().display())
    }
}
