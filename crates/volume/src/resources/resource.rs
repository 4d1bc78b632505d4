//! The resources that a run can acquire, with enough identity to recognize them after a kill.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use senesce_vdisk::Footprint;
use serde::{Deserialize, Serialize};

use crate::host::{DeviceNumber, FileId, ProcessId};

/// An object outside our memory that must not outlive the run.
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
    /// A directory with its content.
    Tree {
        /// Its path; the name holds the run's token.
        path: PathBuf,
    },
    /// All files in a directory whose names hold the run's token, for callers that make one after
    /// the other. Since version 4.
    Files {
        /// The directory, which belongs to the user.
        dir: PathBuf,
    },
    /// The loop devices of an image.
    Loop {
        /// The image.
        image: PathBuf,
        /// The image's device and inode number.
        file: FileId,
    },
    /// A disk in virtual time: its FUSE mount and its processes. Its backing file and its mount
    /// point are separate resources. Since version 2.
    VirtualDisk {
        /// The names of its mount, processes and backing file.
        footprint: Footprint,
    },
    /// The loop devices of a disk in virtual time. Since version 2.
    DiskLoop {
        /// The file that is the disk.
        path: PathBuf,
        /// The mark that they carry ([`disk_mark`]).
        mark: String,
    },
    /// The read-ahead of a user's device, which the release restores.
    ReadAhead {
        /// The device.
        device: PathBuf,
        /// Its number.
        number: DeviceNumber,
        /// The value to restore, KiB.
        kib: u32,
    },
    /// A mount of an engine of ours, and the process that serves it. Since version 6.
    Engine {
        /// The mount point.
        point: PathBuf,
        /// The source in the list of mounts. It holds the run's token.
        name: String,
        /// The server's process, once it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<ProcessId>,
    },
    /// A mount.
    Mount {
        /// The mount point.
        point: PathBuf,
        /// The source that the mount must have.
        source: MountSource,
    },
}

/// The source that a mount must have to be ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum MountSource {
    /// A loop device with this backing file.
    Image {
        /// The image's device and inode number.
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
    /// A recording: a FUSE mount of this name. Since version 4.
    Recording {
        /// The source in the list of mounts. It holds the run's token.
        name: String,
    },
    /// An engine of ours: a FUSE mount of this name. Since version 5.
    Engine {
        /// The source in the list of mounts. It holds the run's token.
        name: String,
    },
}

/// The mark of the loop devices of the disk `name`: the last 63 bytes of the name, which hold the
/// run's token and are unique on the machine.
///
/// The loop device of an image is known by the image's device and inode number. For the file of a
/// disk in virtual time, the kernel reuses these numbers. No process can read them when its server
/// is dead.
pub(crate) fn disk_mark(name: &str) -> String {
    // Names are ASCII. The kernel keeps 63 bytes.
    let mark = name.get(name.len().saturating_sub(63)..).unwrap_or(name);
    mark.to_owned()
}

impl Resource {
    /// The path by which a user knows the resource.
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

    /// Whether both would be the same object on the machine.
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
