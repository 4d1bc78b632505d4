//! The one error of the room.

use std::path::PathBuf;

use crate::Partition;

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
    /// A device or image with something else that is known.
    #[error("{} holds {holds}, which cannot be inspected (ext4, XFS and Btrfs can)", path.display())]
    HoldsOther {
        /// The device or image.
        path: PathBuf,
        /// What it holds, with its article.
        holds: &'static str,
    },
    /// A whole disk, or its image.
    #[error("{} holds no file system but partitions: {}", path.display(), list(partitions))]
    HoldsPartitions {
        /// The device or image.
        path: PathBuf,
        /// Whether it is a device.
        is_device: bool,
        /// What it holds.
        partitions: Vec<Partition>,
    },
    /// A device or image that may not be opened.
    #[error(
        "cannot open {}{}: {source}",
        path.display(),
        mounted.as_ref().map(|how| format!(" ({how})")).unwrap_or_default()
    )]
    Closed {
        /// The device or image.
        path: PathBuf,
        /// Where it is mounted, and how, in words, if it is.
        mounted: Option<String>,
        /// Whether this process is root, whom only a container's rules or a security module stop.
        is_root: bool,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A directory on a file system that is not supported.
    #[error("{} lies on {file_system}, which cannot be inspected (ext4, XFS and Btrfs can)", path.display())]
    NotSupported {
        /// The directory.
        path: PathBuf,
        /// What the kernel calls it.
        file_system: String,
    },
    /// A file system that is only read through a mount, and cannot be mounted here.
    #[error("{} holds {file_system}, which is inspected through a mount: {problem}", path.display())]
    NotMountable {
        /// The device or image.
        path: PathBuf,
        /// What it holds.
        file_system: &'static str,
        /// Why it cannot be mounted for the inspection.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A file system that is only read through a mount, whose mount nobody reaches.
    #[error("{} is {how}, which another mount hides, and it must not be mounted a second time", path.display())]
    MountHidden {
        /// The device or image.
        path: PathBuf,
        /// How and where, in words.
        how: String,
    },
    /// A device whose mount only another mount namespace has.
    #[error(
        "{} is mounted on {} in another mount namespace (that of process {process}), and must not be mounted a second \
         time",
        path.display(),
        point.display()
    )]
    MountElsewhere {
        /// The device.
        path: PathBuf,
        /// Where it is mounted there.
        point: PathBuf,
        /// A process of that namespace.
        process: u32,
    },
    /// A Btrfs whose UUID is that of a mounted one: the kernel takes both for one.
    #[error(
        "{} holds a btrfs with the UUID {uuid}, and one with this UUID is mounted{}: it is not mounted a second time",
        path.display(),
        mount_point.as_ref().map(|point| format!(" on {}", point.display())).unwrap_or_default()
    )]
    TwinMounted {
        /// The device or image.
        path: PathBuf,
        /// The UUID of both.
        uuid: String,
        /// Where the other one is mounted, if that can be seen.
        mount_point: Option<PathBuf>,
    },
    /// Only root may mount what is not mounted.
    #[error(
        "not root: {} holds {file_system} that is not mounted, and is mounted read-only while it is inspected",
        path.display()
    )]
    NotRoot {
        /// The device or image.
        path: PathBuf,
        /// What it holds.
        file_system: &'static str,
    },
    /// Only ext4 is read straight from a device, and only as a whole.
    #[error("{} cannot be read straight from a device: {problem}", path.display())]
    NotOffline {
        /// What was named.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// An ext4 cannot be read from its device.
    #[error("cannot read the ext4 on {}: {source}", path.display())]
    Ext4 {
        /// The device or image.
        path: PathBuf,
        /// Why.
        source: senesce_ext4::Error,
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

fn list(partitions: &[Partition]) -> String {
    partitions.iter().map(Partition::to_string).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotMountable { hint, .. } => Some(hint.clone()),
            Self::TwinMounted { mount_point: Some(point), .. } => Some(format!(
                "if it is the same volume, inspect {}; if it is a copy, unmount the other one or give the copy a UUID of \
                 its own (btrfstune -u)",
                point.display()
            )),
            Self::TwinMounted { .. } => Some("unmount the other one first".to_owned()),
            Self::MountHidden { .. } => Some("unmount what hides it, or name a directory on that mount".to_owned()),
            Self::MountElsewhere { point, process, .. } => Some(format!(
                "inspect it where it is mounted: nsenter --mount --target {process} senesce inspect {}",
                point.display()
            )),
            Self::HoldsPartitions { path, is_device, partitions } => {
                let known = |partition: &&Partition| matches!(partition.holds, Some("ext4" | "xfs" | "btrfs"));
                let number = partitions.iter().find(known).map_or("N".to_owned(), |found| found.number.to_string());
                let path = path.display();
                Some(match is_device {
                    true => format!("name one of them; lsblk {path} lists their devices"),
                    false => format!(
                        "losetup --find --show --read-only --partscan {path} names a device such as /dev/loop0; inspect \
                         its partition (/dev/loop0p{number}), then losetup --detach it"
                    ),
                })
            }
            Self::NotRoot { .. } => Some("run as root (sudo)".to_owned()),
            Self::NotOffline { .. } => Some("leave --offline out, or name the device or image of an ext4".to_owned()),
            Self::NotSupported { file_system, .. } if file_system == "overlay" => Some(
                "an overlay lays directories of other file systems over each other; name one of those (upperdir and \
                 lowerdir in /proc/self/mountinfo)"
                    .to_owned(),
            ),
            Self::Closed { mounted, is_root, .. } => Some(match (is_root, mounted) {
                (true, Some(_)) => {
                    "this process is root already: what stops it are a container's rules for devices, or a \
                                    security module; without --offline the mount is inspected, which needs no device"
                        .to_owned()
                }
                (true, None) => {
                    "this process is root already: what stops it are a container's rules for devices, or a \
                                 security module"
                        .to_owned()
                }
                (false, _) => "run as root (sudo)".to_owned(),
            }),
            Self::HoldsOther { holds, .. } => Some(
                match *holds {
                    "a LUKS container" => "open it (cryptsetup open), and name the device below /dev/mapper",
                    "an LVM physical volume" => "name one of its logical volumes (/dev/VG/LV)",
                    "a member of a RAID array" => "name the array (/dev/md0)",
                    holds if holds.contains("partition table") => "name one of its partitions, such as /dev/sdb1",
                    _ => "name a directory, device or image with one of these file systems",
                }
                .to_owned(),
            ),
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
