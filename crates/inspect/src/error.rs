//! The error type of the crate.

use std::path::PathBuf;

use crate::Partition;

/// The reason why a target cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path cannot be read.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The device or image holds no file system that senesce knows.
    #[error("{} holds no file system that can be inspected (ext4, XFS, Btrfs and F2FS can)", path.display())]
    NoFileSystem {
        /// The device or image.
        path: PathBuf,
    },
    /// The device or image holds a format that senesce knows and cannot inspect.
    #[error("{} holds {holds}, which cannot be inspected (ext4, XFS, Btrfs and F2FS can)", path.display())]
    HoldsOther {
        /// The device or image.
        path: PathBuf,
        /// The format, with its article.
        holds: &'static str,
    },
    /// The target is a whole disk with partitions, or its image.
    #[error("{} holds no file system but partitions: {}", path.display(), list(partitions))]
    HoldsPartitions {
        /// The device or image.
        path: PathBuf,
        /// Whether it is a device.
        is_device: bool,
        /// Its partitions.
        partitions: Vec<Partition>,
    },
    /// The device or image cannot be opened.
    #[error(
        "cannot open {}{}: {source}",
        path.display(),
        mounted.as_ref().map(|how| format!(" ({how})")).unwrap_or_default()
    )]
    Closed {
        /// The device or image.
        path: PathBuf,
        /// Where and how it is mounted, in words, if it is.
        mounted: Option<String>,
        /// Whether this process is root. Then the rules of a container or a security module
        /// refused.
        is_root: bool,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The directory is on a file system that is not supported.
    #[error("{} is on {file_system}, which cannot be inspected (ext4, XFS, Btrfs and F2FS can)", path.display())]
    NotSupported {
        /// The directory.
        path: PathBuf,
        /// The name that the kernel has for the file system.
        file_system: String,
    },
    /// The file system must be read through a mount, and cannot be mounted here.
    #[error("{} holds {file_system}, which must be inspected through a mount: {problem}", path.display())]
    NotMountable {
        /// The device or image.
        path: PathBuf,
        /// The file system that it holds.
        file_system: &'static str,
        /// Why it cannot be mounted for the inspection.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The file system must be read through its mount, which another mount hides.
    #[error("{} is {how}; another mount hides that mount, and a second mount is not safe", path.display())]
    MountHidden {
        /// The device or image.
        path: PathBuf,
        /// How and where, in words.
        how: String,
    },
    /// The device is mounted in another mount namespace only.
    #[error(
        "{} is mounted on {} in another mount namespace (that of process {process}); a second mount is not safe",
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
    /// A Btrfs with the same UUID is mounted. The kernel would take both for one file system.
    #[error(
        "{} holds a btrfs with the UUID {uuid}, and another one with this UUID is mounted{}",
        path.display(),
        mount_point.as_ref().map(|point| format!(" on {}", point.display())).unwrap_or_default()
    )]
    TwinMounted {
        /// The device or image.
        path: PathBuf,
        /// The UUID of both.
        uuid: String,
        /// Where the other one is mounted, if this process can see it.
        mount_point: Option<PathBuf>,
    },
    /// Only root may mount a file system.
    #[error(
        "not root: {} holds an unmounted {file_system}, which must be mounted read-only for the inspection",
        path.display()
    )]
    NotRoot {
        /// The device or image.
        path: PathBuf,
        /// The file system that it holds.
        file_system: &'static str,
    },
    /// Only a whole ext4 is read straight from its device.
    #[error("{} cannot be read straight from a device: {problem}", path.display())]
    NotOffline {
        /// The path that the user named.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The ext4 cannot be read from its device.
    #[error("cannot read the ext4 on {}: {source}", path.display())]
    Ext4 {
        /// The device or image.
        path: PathBuf,
        /// The error of the reader.
        source: senesce_ext4::Error,
    },
    /// An entry cannot be read, in a tree that must be read completely.
    #[error("cannot read {}: {problem}", path.display())]
    Incomplete {
        /// The entry.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The caller stopped the inspection.
    #[error("the inspection was interrupted")]
    Stopped,
    /// A probe failed.
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    /// The host failed.
    #[error(transparent)]
    Volume(#[from] senesce_volume::Error),
    /// A device description is invalid.
    #[error(transparent)]
    Device(#[from] senesce_device::Error),
}

fn list(partitions: &[Partition]) -> String {
    partitions.iter().map(Partition::to_string).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// A step that helps the user, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotMountable { hint, .. } => Some(hint.clone()),
            Self::TwinMounted { mount_point: Some(point), .. } => Some(format!(
                "if it is the same volume, inspect {}; if it is a copy, unmount the other one or give the copy a UUID of \
                 its own (btrfstune -u)",
                point.display()
            )),
            Self::TwinMounted { .. } => Some("unmount the other one first".to_owned()),
            Self::MountHidden { .. } => {
                Some("unmount the mount that hides it, or name a directory on that mount".to_owned())
            }
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
                "an overlay combines directories of other file systems; name one of them (upperdir and lowerdir in \
                 /proc/self/mountinfo)"
                    .to_owned(),
            ),
            Self::Closed { mounted, is_root, .. } => Some(match (is_root, mounted) {
                (true, Some(_)) => {
                    "this process is root already: a container's rules for devices or a security module refuse \
                     access; without --offline senesce reads through the mount, which needs no device"
                        .to_owned()
                }
                (true, None) => {
                    "this process is root already: a container's rules for devices or a security module refuse \
                     access; run outside the container, or allow the device"
                        .to_owned()
                }
                (false, _) => "run as root (sudo)".to_owned(),
            }),
            Self::HoldsOther { holds, .. } => Some(
                match *holds {
                    "a drive of a garden of senesce" => "name the directory with all of its drives: garden:DIRECTORY",
                    "an evergreen of senesce" => "name it as an evergreen: evergreen:FILE",
                    "a LUKS container" => "open it (cryptsetup open), and name the device below /dev/mapper",
                    "an LVM physical volume" => "name one of its logical volumes (/dev/VG/LV)",
                    "a member of a RAID array" => "name the array (/dev/md0)",
                    holds if holds.contains("partition table") => "name one of its partitions, such as /dev/sdb1",
                    _ => "name a directory, device or image with one of these file systems",
                }
                .to_owned(),
            ),
            Self::NotSupported { file_system, .. } if file_system.starts_with("fuse") => Some(
                "for a mounted garden or evergreen, unmount it and name garden:DIRECTORY or evergreen:FILE; for \
                 another file system in user space, name the device below it"
                    .to_owned(),
            ),
            Self::NotSupported { .. } => Some("name a directory on ext4, XFS, Btrfs or F2FS".to_owned()),
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
