//! The device below a mount, and checks of a file system before a read-only mount.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use senesce_volume::{DeviceNumber, FileSystemKind, Host, MountEntry, Uuid, btrfs_sys_directory, find_btrfs_id};

use crate::{Error, gaps::Stale, metadata::is_xfs_log_clean};

/// The block device below a mount.
///
/// If the mount names a block device, it is that one. Otherwise, as for `/dev/root` and for names
/// of another machine or container, `/sys` finds it by the device number of the file system. For
/// Btrfs, `/sys` finds it by UUID, if the file system is on one device only.
///
/// Errors: the reason why it is not known, for a warning.
pub(crate) fn find_device(mount: &MountEntry, root: &Path) -> Result<PathBuf, String> {
    let number = mount.device;
    let is_right = |path: &Path| match block_number(path) {
        // Btrfs has a device number of its own.
        Some(found) => number.major == 0 || found == number,
        None => false,
    };
    if is_right(&mount.source) {
        return Ok(mount.source.clone());
    }
    let named = mount.source.display();
    let name = match number.major {
        0 => match find_btrfs_devices(root).as_slice() {
            [only] => only.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            [] => return Err(format!("the mount names {named}, which is not a block device here")),
            several => {
                let names: Vec<String> = several.iter().map(|device| device.display().to_string()).collect();
                return Err(format!("it is on {} devices: {}", several.len(), names.join(", ")));
            }
        },
        _ => {
            let file = format!("/sys/dev/block/{}:{}/uevent", number.major, number.minor);
            let text = fs::read_to_string(&file).unwrap_or_default();
            let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
            name.map(str::to_owned)
                .ok_or(format!("the mount names {named}, which is not its device, and {file} does not name it"))?
        }
    };
    let path = Path::new("/dev").join(&name);
    match block_number(&path) {
        Some(found) if number.major == 0 || found == number => Ok(path),
        _ => Err(format!("its device is {name}, which has no node in /dev")),
    }
}

/// The devices of the Btrfs that holds `root`, sorted by their kernel names. Empty if `root` is not
/// on a Btrfs or cannot be opened.
pub fn find_btrfs_devices(root: &Path) -> Vec<PathBuf> {
    let devices = find_in_sys(root).and_then(|found| fs::read_dir(found.join("devices")).ok());
    let names = devices.into_iter().flatten().flatten().map(|entry| Path::new("/dev").join(entry.file_name()));
    let mut names: Vec<PathBuf> = names.collect();
    names.sort();
    names
}

/// The readahead of the Btrfs that holds `root`, KiB. The default is 4 MiB, whatever its devices
/// have (`open_ctree` in the kernel's fs/btrfs/disk-io.c).
pub(crate) fn find_btrfs_read_ahead_kib(root: &Path) -> Option<u32> {
    let text = fs::read_to_string(find_in_sys(root)?.join("bdi/read_ahead_kb")).ok()?;
    text.trim().parse().ok()
}

/// Whether the Btrfs at `root` accounts for quotas.
pub fn has_btrfs_quotas(root: &Path) -> bool {
    find_in_sys(root).is_some_and(|found| found.join("qgroups").exists())
}

/// The directory in `/sys` of the Btrfs that holds `root`.
fn find_in_sys(root: &Path) -> Option<PathBuf> {
    Some(btrfs_sys_directory(find_btrfs_id(fs::File::open(root).ok()?).ok()?))
}

/// The mount point of the Btrfs with UUID `id`, if this process can see it.
fn find_btrfs_mount(id: Uuid, host: &dyn Host) -> Option<PathBuf> {
    let is_it = |mount: &MountEntry| {
        let found = fs::File::open(&mount.point).ok().and_then(|root| find_btrfs_id(root).ok());
        mount.file_system == "btrfs" && found == Some(id)
    };
    host.mounts().ok()?.into_iter().find(is_it).map(|mount| mount.point)
}

fn block_number(path: &Path) -> Option<DeviceNumber> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_block_device())?;
    let number = std::os::unix::fs::MetadataExt::rdev(&metadata);
    Some(DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) })
}

/// An unmounted file system that was checked.
pub(crate) struct Examined {
    path: PathBuf,
    file_system: FileSystemKind,
    /// Why its bytes lack the last changes.
    pub stale: Option<Stale>,
}

/// Checks an XFS or Btrfs before it is mounted.
///
/// Errors: not root; the file system needs more devices than this one; a Btrfs with the same UUID
/// is mounted, which the kernel would take for the same file system.
pub(crate) fn examine(path: &Path, file_system: FileSystemKind, host: &dyn Host) -> Result<Examined, Error> {
    if !host.is_root() {
        return Err(Error::NotRoot { path: path.into(), file_system: file_system.name() });
    }
    let mut found = Examined { path: path.to_owned(), file_system, stale: None };
    match file_system {
        FileSystemKind::Btrfs => {
            const SUPERBLOCK_AT: u64 = 64 << 10;
            let superblock = host.read_device(path, SUPERBLOCK_AT, 4096)?;
            let number = |at: usize| {
                let bytes = superblock.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                u64::from_le_bytes(bytes.unwrap_or_default())
            };
            let (log_tree, devices) = (number(96), number(136));
            let id = superblock.get(32..48).and_then(|id| Some(Uuid(id.try_into().ok()?)));
            if let Some(id) = id.filter(|id| btrfs_sys_directory(*id).exists()) {
                return Err(Error::TwinMounted {
                    path: path.into(),
                    uuid: id.to_string(),
                    mount_point: find_btrfs_mount(id, host),
                });
            }
            if devices > 1 {
                return Err(found.not_mountable(format!("it is on {devices} devices, and only one is named")));
            }
            if log_tree != 0 {
                found.stale = Some(Stale::BtrfsLog);
            }
        }
        FileSystemKind::Xfs => {
            let is_clean = is_xfs_log_clean(&|at, length| host.read_device(path, at, length).ok());
            match is_clean {
                Ok(true) => {}
                Ok(false) => found.stale = Some(Stale::XfsLog),
                Err(problem) => return Err(found.not_mountable(problem)),
            }
        }
        _ => {}
    }
    Ok(found)
}

impl Examined {
    fn not_mountable(&self, problem: String) -> Error {
        let options = match self.file_system {
            FileSystemKind::Xfs | FileSystemKind::F2fs | FileSystemKind::Nilfs2 => "ro,norecovery",
            FileSystemKind::Jfs => "ro",
            FileSystemKind::Reiserfs => "ro,nolog",
            _ => "ro,rescue=nologreplay",
        };
        let hint = format!(
            "mount it read-only with the options that it needs: mount -o {options},… {} DIR; then inspect DIR",
            self.path.display()
        );
        Error::NotMountable { path: self.path.clone(), file_system: self.file_system.name(), problem, hint }
    }

    /// The error for a mount that the kernel refused.
    pub fn refused(&self, error: senesce_volume::Error) -> Error {
        if error.is_environment() {
            return error.into();
        }
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        self.not_mountable(format!("{error}{cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(line: &str) -> MountEntry {
        senesce_volume::parse_mountinfo(line.as_bytes()).remove(0)
    }

    #[test]
    fn mount_without_device_name_is_found_by_number() {
        // Any block device of this machine.
        let Some((number, name)) =
            fs::read_dir("/sys/dev/block").ok().into_iter().flatten().flatten().find_map(|entry| {
                let number = entry.file_name().to_string_lossy().into_owned();
                let text = fs::read_to_string(entry.path().join("uevent")).ok()?;
                let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?.to_owned();
                Path::new("/dev").join(&name).exists().then_some((number, name))
            })
        else {
            return;
        };
        let at_root = mount(&format!("1 0 {number} / / rw - ext4 /dev/root rw\n"));
        assert_eq!(find_device(&at_root, Path::new("/")), Ok(Path::new("/dev").join(name)));
    }

    #[test]
    fn missing_device_is_an_error_with_its_name() {
        let strange = mount("1 0 4000:77 / / rw - ext4 /dev/root rw\n");
        let said = find_device(&strange, Path::new("/")).unwrap_err();
        assert!(said.contains("/dev/root") && said.contains("/sys/dev/block/4000:77"), "{said}");
        let btrfs = mount("1 0 0:40 / / rw - btrfs /dev/none rw\n");
        let said = find_device(&btrfs, Path::new("/proc")).unwrap_err();
        assert!(said.contains("/dev/none, which is not a block device here"), "{said}");
    }
}
