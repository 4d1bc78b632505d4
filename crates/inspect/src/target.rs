//! Resolves a path of the user: a directory of a mounted file system, a device, or an image.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use senesce_volume::{FileSystemKind, Host, MountEntry, SCAN_BYTES, find_signatures, read_superblock};

use crate::{
    Error,
    gaps::Mounted,
    mounts::{FoundMount, find_mount_elsewhere, find_mount_of, is_writable},
    partitions::collect_partitions,
    source::find_device,
};

/// The target of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A directory of a mounted file system, with everything below it on that mount.
    Mounted(MountedTarget),
    /// An ext4 that is read straight from its device or image.
    ///
    /// Cost: reads the inode tables in use, and the blocks of maps and directories, once, in long
    /// reads (twice if it is being written); 120 bytes of memory for each file.
    Ext4 {
        /// The device or image.
        path: PathBuf,
        /// Where and how it is mounted, if it is.
        mounted: Option<Mounted>,
    },
    /// An unmounted file system of another kind. The inspection mounts it read-only, without replay
    /// of its log.
    Unmounted {
        /// The device or image.
        path: PathBuf,
        /// The file system that it holds.
        file_system: FileSystemKind,
    },
}

/// A directory of a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedTarget {
    /// The directory.
    pub root: PathBuf,
    /// Where the file system is mounted.
    pub mount_point: PathBuf,
    /// The type of the file system.
    pub file_system: FileSystemKind,
    /// The block device, or the reason why it is not known.
    pub device: Result<PathBuf, String>,
    /// The mount options.
    pub options: String,
    /// Warnings that are known before the survey.
    pub warnings: Vec<String>,
}

/// The way to read a mounted device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Through its mount.
    #[default]
    ThroughMount,
    /// Straight from the device, past the mount. Only ext4.
    Offline,
}

/// Resolves `path`.
///
/// A mounted device stands for its mount. So does an image below a mounted loop device, because the
/// image may be older than its mount. [`Access::Offline`] requests the device or image itself.
///
/// Errors: the path does not exist; it holds no supported file system; it is not an ext4 although
/// [`Access::Offline`] was requested; another mount hides its mount; only another mount namespace
/// has it mounted.
pub fn find_target(path: &Path, access: Access, host: &dyn Host) -> Result<Target, Error> {
    let path = fs::canonicalize(path).map_err(Error::io("look up", path))?;
    let metadata = fs::metadata(&path).map_err(Error::io("stat", &path))?;
    let mounts = host.mounts()?;
    if metadata.is_dir() {
        return match access {
            Access::ThroughMount => mounted(path, &mounts).map(Target::Mounted),
            Access::Offline => Err(Error::NotOffline { path, problem: "it is a directory".to_owned() }),
        };
    }
    let kind = metadata.file_type();
    if !kind.is_block_device() && !kind.is_file() {
        return Err(Error::NoFileSystem { path });
    }
    let found = find_mount_of(&path, &metadata, &mounts, host);
    if let Some(found) = found.as_ref().filter(|found| found.can_be_seen && access == Access::ThroughMount) {
        let mut target = mounted(found.mount.point.clone(), &mounts)?;
        target.warnings.extend(found.notice(&path));
        return Ok(Target::Mounted(target));
    }
    let start = host.read_device(&path, 0, SCAN_BYTES).map_err(|error| closed(error, &path, found.as_ref(), host))?;
    match read_superblock(&start).map(|found| found.file_system) {
        Some(FileSystemKind::Ext4) => {
            let elsewhere = || find_mount_elsewhere(&path, &metadata, host);
            let at = |mount: MountEntry| Mounted {
                how: format!("mounted on {} in another mount namespace", mount.point.display()),
                is_writable: is_writable(&mount),
            };
            let mounted = found.map(|found| found.found()).or_else(|| elsewhere().map(|(_, mount)| at(mount)));
            Ok(Target::Ext4 { mounted, path })
        }
        Some(FileSystemKind::Garden) => Err(Error::HoldsOther { path, holds: "a drive of a garden of senesce" }),
        Some(FileSystemKind::Evergreen) => Err(Error::HoldsOther { path, holds: "an evergreen of senesce" }),
        Some(other) if access == Access::Offline => {
            let problem = format!("it holds {}", other.name());
            Err(Error::NotOffline { path, problem })
        }
        Some(file_system) => match found {
            // It must not be mounted a second time, and only its mount shows its current state.
            Some(found) => Err(Error::MountHidden { path, how: found.in_words() }),
            None => match find_mount_elsewhere(&path, &metadata, host) {
                Some((process, mount)) => Err(Error::MountElsewhere { path, point: mount.point, process }),
                None => Ok(Target::Unmounted { path, file_system }),
            },
        },
        None => {
            let end = host.device_size(&path).map_or(metadata.len(), |bytes| bytes.0);
            // If the last bytes cannot be read, formats with a signature only there (RAID) are not
            // named.
            let end = host.read_device(&path, end.saturating_sub(SCAN_BYTES as u64), SCAN_BYTES).unwrap_or_default();
            let holds = find_signatures(&start, &end).first().map(|found| found.holds);
            if holds.is_some_and(|holds| holds.contains("partition table")) {
                let partitions = collect_partitions(&path, &start, host);
                if !partitions.is_empty() {
                    return Err(Error::HoldsPartitions { path, is_device: kind.is_block_device(), partitions });
                }
            }
            match holds {
                Some(holds) => Err(Error::HoldsOther { path, holds }),
                None => Err(Error::NoFileSystem { path }),
            }
        }
    }
}

/// The error for a device or image that cannot be opened. Its hint depends on whether this process
/// is root.
fn closed(error: senesce_volume::Error, path: &Path, found: Option<&FoundMount<'_>>, host: &dyn Host) -> Error {
    match error {
        senesce_volume::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            let mounted = found.map(FoundMount::in_words);
            Error::Closed { path: path.to_owned(), mounted, is_root: host.is_root(), source }
        }
        other => other.into(),
    }
}

/// The file system that holds a directory, and its device or the reason why that is not known.
/// `None` if the file system is not known.
pub(crate) fn find_mount(root: &Path) -> Option<(FileSystemKind, Result<PathBuf, String>)> {
    let mounts = senesce_volume::parse_mountinfo(&fs::read("/proc/self/mountinfo").ok()?);
    let found = mounted(fs::canonicalize(root).ok()?, &mounts).ok()?;
    Some((found.file_system, found.device))
}

fn mounted(root: PathBuf, mounts: &[MountEntry]) -> Result<MountedTarget, Error> {
    // The longest mount point above the path holds it. Of several at one point, the last is on top.
    let above = mounts.iter().filter(|mount| root.starts_with(&mount.point));
    let Some(mount) = above.max_by_key(|mount| mount.point.as_os_str().len()) else {
        return Err(Error::NoFileSystem { path: root });
    };
    let file_system = match mount.file_system.as_str() {
        "ext4" | "ext3" | "ext2" => FileSystemKind::Ext4,
        "xfs" => FileSystemKind::Xfs,
        "btrfs" => FileSystemKind::Btrfs,
        "f2fs" => FileSystemKind::F2fs,
        "nilfs2" => FileSystemKind::Nilfs2,
        "jfs" => FileSystemKind::Jfs,
        "reiserfs" => FileSystemKind::Reiserfs,
        other => return Err(Error::NotSupported { path: root, file_system: other.to_owned() }),
    };
    let mut warnings = Vec::new();
    if mount.root != Path::new("/") && file_system != FileSystemKind::Btrfs {
        warnings.push(format!(
            "only {} of the file system is mounted on {}: other parts of it are not inspected",
            mount.root.display(),
            mount.point.display()
        ));
    }
    Ok(MountedTarget {
        mount_point: mount.point.clone(),
        file_system,
        device: find_device(mount, &root),
        options: mount.options.clone(),
        warnings,
        root,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, file_system: &str) -> MountEntry {
        let text = format!("30 1 8:1 / {point} rw,relatime - {file_system} /dev/none rw\n");
        senesce_volume::parse_mountinfo(text.as_bytes()).remove(0)
    }

    #[test]
    fn nearest_and_last_mount_holds_a_directory() {
        let mounts = [mount("/", "ext4"), mount("/data", "xfs"), mount("/database", "btrfs"), mount("/data", "btrfs")];
        let kind = |path: &str| {
            let found = mounted(path.into(), &mounts).unwrap();
            (found.file_system, found.mount_point)
        };
        assert_eq!(kind("/home/me"), (FileSystemKind::Ext4, "/".into()));
        assert_eq!(kind("/data/x"), (FileSystemKind::Btrfs, "/data".into()));
        assert_eq!(kind("/database"), (FileSystemKind::Btrfs, "/database".into()));
    }

    #[test]
    fn unsupported_file_system_is_named() {
        let said = mounted("/tmp/x".into(), &[mount("/tmp", "tmpfs")]).unwrap_err().to_string();
        assert!(said.contains("/tmp/x is on tmpfs") && said.contains("ext4, XFS, Btrfs and F2FS"), "{said}");
        let hint = mounted("/tmp/x".into(), &[mount("/tmp", "overlay")]).unwrap_err().hint().unwrap();
        assert!(hint.contains("upperdir"), "{hint}");
    }

    #[test]
    fn bind_mount_of_a_part_has_a_warning() {
        let text = b"30 1 8:1 /var/lib /data rw - ext4 /dev/none rw\n31 1 0:40 /@ /b rw - btrfs /dev/none rw\n";
        let mounts = senesce_volume::parse_mountinfo(text);
        let warnings = |path: &str| mounted(path.into(), &mounts).unwrap().warnings;
        assert!(warnings("/data/x")[0].contains("only /var/lib of the file system is mounted on /data"));
        assert_eq!(warnings("/b"), [""; 0], "a subvolume is no part of a mount");
    }
}
