//! What a path that the user gave means: a directory of a mounted file system, a device, an image.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use senesce_volume::{FileSystemKind, Host, MountEntry, SCAN_BYTES, read_superblock};

use crate::Error;

/// What is inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A directory of a mounted file system, and everything below it on that mount.
    Mounted {
        /// The directory.
        root: PathBuf,
        /// Where the file system is mounted.
        mount_point: PathBuf,
        /// Which file system.
        file_system: FileSystemKind,
        /// The block device, if it is one.
        device: Option<PathBuf>,
        /// The mount's options.
        options: String,
    },
    /// An ext4 file system that is not mounted, read from its device or image.
    Ext4 {
        /// The device or image.
        path: PathBuf,
    },
}

/// Finds out what `path` means. A mounted device stands for its mount.
///
/// Errors: no such path; no file system here, or one that is not supported; XFS or Btrfs that is not mounted.
pub fn find_target(path: &Path, host: &dyn Host) -> Result<Target, Error> {
    let path = fs::canonicalize(path).map_err(Error::io("look up", path))?;
    let metadata = fs::metadata(&path).map_err(Error::io("look at", &path))?;
    let mounts = host.mounts()?;
    if metadata.is_dir() {
        return mounted(path, &mounts);
    }
    let kind = metadata.file_type();
    if kind.is_block_device() {
        let is_it =
            |mount: &&MountEntry| fs::metadata(&mount.source).is_ok_and(|source| source.rdev() == metadata.rdev());
        if let Some(mount) = mounts.iter().rev().find(is_it) {
            return mounted(mount.point.clone(), &mounts);
        }
    } else if !kind.is_file() {
        return Err(Error::NoFileSystem { path });
    }
    let start = host.read_device(&path, 0, SCAN_BYTES)?;
    match read_superblock(&start).map(|found| found.file_system) {
        Some(FileSystemKind::Ext4) => Ok(Target::Ext4 { path }),
        Some(other) => {
            let options = match other {
                FileSystemKind::Xfs => "ro,norecovery",
                _ => "ro,rescue=nologreplay",
            };
            let hint = format!("mount it without writing: mount -o {options} {} DIR, then inspect DIR", path.display());
            Err(Error::NotMounted { path, file_system: other.name(), hint })
        }
        None => Err(Error::NoFileSystem { path }),
    }
}

/// The file system that a directory lies on and its device, if it is one; none if that cannot be found out.
pub(crate) fn find_mount(root: &Path) -> Option<(FileSystemKind, Option<PathBuf>)> {
    let mounts = senesce_volume::parse_mountinfo(&fs::read("/proc/self/mountinfo").ok()?);
    match mounted(fs::canonicalize(root).ok()?, &mounts).ok()? {
        Target::Mounted { file_system, device, .. } => Some((file_system, device)),
        Target::Ext4 { .. } => None,
    }
}

fn mounted(root: PathBuf, mounts: &[MountEntry]) -> Result<Target, Error> {
    // The longest mount point above the path holds it; of several on one point the last is on top.
    let above = mounts.iter().filter(|mount| root.starts_with(&mount.point));
    let Some(mount) = above.max_by_key(|mount| mount.point.as_os_str().len()) else {
        return Err(Error::NoFileSystem { path: root });
    };
    let file_system = match mount.file_system.as_str() {
        "ext4" | "ext3" | "ext2" => FileSystemKind::Ext4,
        "xfs" => FileSystemKind::Xfs,
        "btrfs" => FileSystemKind::Btrfs,
        other => return Err(Error::NotSupported { path: root, file_system: other.to_owned() }),
    };
    let is_device = fs::metadata(&mount.source).is_ok_and(|source| source.file_type().is_block_device());
    Ok(Target::Mounted {
        mount_point: mount.point.clone(),
        file_system,
        device: is_device.then(|| mount.source.clone()),
        options: mount.options.clone(),
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
    fn the_nearest_mount_above_a_directory_holds_it_and_the_last_one_lies_on_top() {
        let mounts = [mount("/", "ext4"), mount("/data", "xfs"), mount("/database", "btrfs"), mount("/data", "btrfs")];
        let kind = |path: &str| match mounted(path.into(), &mounts).unwrap() {
            Target::Mounted { file_system, mount_point, .. } => (file_system, mount_point),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind("/home/me"), (FileSystemKind::Ext4, "/".into()));
        assert_eq!(kind("/data/x"), (FileSystemKind::Btrfs, "/data".into()));
        assert_eq!(kind("/database"), (FileSystemKind::Btrfs, "/database".into()));
    }

    #[test]
    fn other_file_systems_are_named() {
        let said = mounted("/tmp/x".into(), &[mount("/tmp", "tmpfs")]).unwrap_err().to_string();
        assert!(said.contains("/tmp/x lies on tmpfs") && said.contains("ext4, XFS and Btrfs"), "{said}");
    }
}
