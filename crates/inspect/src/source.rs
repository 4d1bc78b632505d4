//! The device below a mount, and what a file system that is not mounted says of itself before it is mounted.

use std::{
    fs,
    os::{fd::AsFd, unix::fs::FileTypeExt},
    path::{Path, PathBuf},
};

use senesce_volume::{DeviceNumber, FileSystemKind, Host, MountEntry};

use crate::{
    Error,
    metadata::{collect_file_system_id, is_xfs_log_clean},
};

/// The block device below a mount: what the mount names if it is one; else, for `/dev/root` and for names of another
/// machine or container, what `/sys` knows under the number of the file system (of Btrfs, under its UUID, if it lies on one
/// device only).
///
/// Errors: why it is not known, for a warning.
pub(crate) fn find_device(mount: &MountEntry, root: &Path) -> Result<PathBuf, String> {
    let number = mount.device;
    let is_right = |path: &Path| match block_number(path) {
        // Btrfs has a number of its own.
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
            [] => return Err(format!("{named}, which the mount names, is no block device here")),
            several => {
                let names: Vec<String> = several.iter().map(|device| device.display().to_string()).collect();
                return Err(format!("it lies on {} devices: {}", several.len(), names.join(", ")));
            }
        },
        _ => {
            let file = format!("/sys/dev/block/{}:{}/uevent", number.major, number.minor);
            let text = fs::read_to_string(&file).unwrap_or_default();
            let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
            name.map(str::to_owned)
                .ok_or(format!("{named}, which the mount names, is not its device, and {file} does not name it"))?
        }
    };
    let path = Path::new("/dev").join(&name);
    match block_number(&path) {
        Some(found) if number.major == 0 || found == number => Ok(path),
        _ => Err(format!("its device is {name}, of which there is no node in /dev")),
    }
}

/// The devices of the Btrfs that `root` lies on, in order, as the kernel names them; none if it lies on no Btrfs, or may
/// not be opened.
pub fn find_btrfs_devices(root: &Path) -> Vec<PathBuf> {
    let devices = find_in_sys(root).and_then(|found| fs::read_dir(found.join("devices")).ok());
    let names = devices.into_iter().flatten().flatten().map(|entry| Path::new("/dev").join(entry.file_name()));
    let mut names: Vec<PathBuf> = names.collect();
    names.sort();
    names
}

/// How far the Btrfs that `root` lies on reads ahead, KiB: 4 MiB unless somebody set it (`open_ctree` in the kernel's
/// fs/btrfs/disk-io.c), whatever its devices have.
pub(crate) fn find_btrfs_read_ahead_kib(root: &Path) -> Option<u32> {
    let text = fs::read_to_string(find_in_sys(root)?.join("bdi/read_ahead_kb")).ok()?;
    text.trim().parse().ok()
}

/// Whether the Btrfs at `root` accounts for quotas.
pub fn has_btrfs_quotas(root: &Path) -> bool {
    find_in_sys(root).is_some_and(|found| found.join("qgroups").exists())
}

/// What `/sys` knows of the Btrfs that `root` lies on.
fn find_in_sys(root: &Path) -> Option<PathBuf> {
    let id = collect_file_system_id(fs::File::open(root).ok()?.as_fd()).ok()?;
    Some(directory_in_sys(&id))
}

/// Where `/sys` has a Btrfs with this UUID, if it is mounted anywhere, seen from here or not.
fn directory_in_sys(id: &[u8]) -> PathBuf {
    Path::new("/sys/fs/btrfs").join(uuid_text(id))
}

/// Sixteen bytes as a UUID is written, and as `/sys` names a Btrfs.
fn uuid_text(id: &[u8]) -> String {
    let hex: Vec<String> = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..4], &hex[4..6], &hex[6..8], &hex[8..10], &hex[10..]].map(|part| part.concat());
    parts.join("-")
}

/// Where it is mounted, if that can be seen.
fn find_btrfs_mount(id: &[u8], host: &dyn Host) -> Option<PathBuf> {
    let is_it = |mount: &MountEntry| {
        let found = fs::File::open(&mount.point).ok().and_then(|root| collect_file_system_id(root.as_fd()).ok());
        mount.file_system == "btrfs" && found.is_some_and(|found| found[..] == *id)
    };
    host.mounts().ok()?.into_iter().find(is_it).map(|mount| mount.point)
}

fn block_number(path: &Path) -> Option<DeviceNumber> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_block_device())?;
    let number = std::os::unix::fs::MetadataExt::rdev(&metadata);
    Some(DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) })
}

/// What a file system that is not mounted says of itself.
pub(crate) struct Examined {
    path: PathBuf,
    file_system: FileSystemKind,
    /// What there is to know.
    pub warnings: Vec<String>,
}

/// Looks at an XFS or Btrfs before it is mounted.
///
/// Errors: not root; it needs more devices than this one; a Btrfs with its UUID is mounted: to the kernel both would be one.
pub(crate) fn examine(path: &Path, file_system: FileSystemKind, host: &dyn Host) -> Result<Examined, Error> {
    if !host.is_root() {
        return Err(Error::NotRoot { path: path.into(), file_system: file_system.name() });
    }
    let mut found = Examined { path: path.to_owned(), file_system, warnings: Vec::new() };
    match file_system {
        FileSystemKind::Btrfs => {
            const SUPERBLOCK_AT: u64 = 64 << 10;
            let superblock = host.read_device(path, SUPERBLOCK_AT, 4096)?;
            let number = |at: usize| {
                let bytes = superblock.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                u64::from_le_bytes(bytes.unwrap_or_default())
            };
            let (log_tree, devices) = (number(96), number(136));
            if let Some(id) = superblock.get(32..48).filter(|id| directory_in_sys(id).exists()) {
                return Err(Error::TwinMounted {
                    path: path.into(),
                    uuid: uuid_text(id),
                    mount_point: find_btrfs_mount(id, host),
                });
            }
            if devices > 1 {
                return Err(found.not_mountable(format!("it lies on {devices} devices, and only one is named")));
            }
            if log_tree != 0 {
                found.warnings.push(
                    "its log is not replayed: what was written with fsync since its last commit is missing here"
                        .to_owned(),
                );
            }
        }
        FileSystemKind::Xfs => {
            let is_clean = is_xfs_log_clean(&|at, length| host.read_device(path, at, length).ok());
            match is_clean {
                Ok(true) => {}
                Ok(false) => found.warnings.push(
                    "its log is not replayed: it was not unmounted, and what its last changes were is in the log only; \
                     entries may be missing or contradict each other here"
                        .to_owned(),
                ),
                Err(problem) => return Err(found.not_mountable(problem)),
            }
        }
        FileSystemKind::Ext4 | FileSystemKind::Garden | FileSystemKind::Evergreen => {}
    }
    Ok(found)
}

impl Examined {
    fn not_mountable(&self, problem: String) -> Error {
        let options = match self.file_system {
            FileSystemKind::Xfs => "ro,norecovery",
            _ => "ro,rescue=nologreplay",
        };
        let hint = format!(
            "mount it as it has to be, without writing: mount -o {options},… {} DIR; then inspect DIR",
            self.path.display()
        );
        Error::NotMountable { path: self.path.clone(), file_system: self.file_system.name(), problem, hint }
    }

    /// The error of a mount that the kernel refused.
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
    fn a_mount_that_names_no_device_is_found_by_its_number() {
        // Whatever block device this machine has.
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
    fn a_device_that_cannot_be_found_is_said_to_be_so() {
        let strange = mount("1 0 4000:77 / / rw - ext4 /dev/root rw\n");
        let said = find_device(&strange, Path::new("/")).unwrap_err();
        assert!(said.contains("/dev/root") && said.contains("/sys/dev/block/4000:77"), "{said}");
        let btrfs = mount("1 0 0:40 / / rw - btrfs /dev/none rw\n");
        let said = find_device(&btrfs, Path::new("/proc")).unwrap_err();
        assert!(said.contains("/dev/none, which the mount names, is no block device"), "{said}");
    }
}
