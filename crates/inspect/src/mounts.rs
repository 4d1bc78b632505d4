//! The mount of a device or image: by its own device number, or by that of a loop device over it.
//!
//! An image below a mounted loop device can be older than its mount, because writes of the mount
//! may still be in memory. A second mount of the image would be another file system on the same
//! bytes.

use std::{
    fs::{self, Metadata},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use senesce_volume::{DeviceNumber, FileId, Host, MountEntry, list_mounts};

use crate::gaps::Mounted;

/// A mount of the requested device or image.
pub(crate) struct FoundMount<'a> {
    /// The mount.
    pub mount: &'a MountEntry,
    /// Whether a path leads to it. Another mount may cover it, or hide a directory above it.
    pub can_be_seen: bool,
    /// The loop device in between, if there is one.
    below: Option<PathBuf>,
}

impl FoundMount<'_> {
    /// How it is mounted, for a read past the mount.
    pub fn found(&self) -> Mounted {
        Mounted { how: self.in_words(), is_writable: is_writable(self.mount) }
    }

    /// Where and how it is mounted, in words.
    pub fn in_words(&self) -> String {
        let how = if is_writable(self.mount) { "for writing" } else { "read-only" };
        let by = self.below.as_ref().map(|device| format!(" by {}", device.display())).unwrap_or_default();
        format!("mounted{by} {how} on {}", self.mount.point.display())
    }

    /// A notice that `path` is read through its mount. `None` for a device, because users expect
    /// that.
    pub fn notice(&self, path: &Path) -> Option<String> {
        self.below.as_ref()?;
        Some(format!(
            "{} is {}: this is an inspection of that mount, which may be newer than the bytes of the file",
            path.display(),
            self.in_words()
        ))
    }
}

/// Whether programs can write through a mount.
pub(crate) fn is_writable(mount: &MountEntry) -> bool {
    !mount.options.split(',').any(|option| option == "ro")
}

/// A mount of the device or image at `path`. The order of preference: a visible mount, a mount of
/// the whole file system, a mount of the device itself, the newest mount.
pub(crate) fn find_mount_of<'a>(
    path: &Path,
    metadata: &Metadata,
    mounts: &'a [MountEntry],
    host: &dyn Host,
) -> Option<FoundMount<'a>> {
    let mut best: Option<(u8, FoundMount<'_>)> = None;
    for (below, number) in numbers_of(path, metadata, host) {
        for mount in mounts.iter().filter(|mount| is_mount_of(mount, number)) {
            // Btrfs has a device number of its own, so the number of the directory says nothing.
            let can_be_seen =
                mount.device.major == 0 || fs::metadata(&mount.point).is_ok_and(|point| point.dev() == number);
            let is_whole = mount.root == Path::new("/");
            let rank = u8::from(can_be_seen) * 4 + u8::from(is_whole) * 2 + u8::from(below.is_none());
            if best.as_ref().is_none_or(|(least, _)| rank >= *least) {
                best = Some((rank, FoundMount { mount, can_be_seen, below: below.clone() }));
            }
        }
    }
    best.map(|(_, found)| found)
}

/// The device numbers under which the device or image at `path` may be mounted: its own number if
/// it is a device, and those of loop devices over it or over the same file.
fn numbers_of(path: &Path, metadata: &Metadata, host: &dyn Host) -> Vec<(Option<PathBuf>, u64)> {
    let is_device = metadata.file_type().is_block_device();
    let own = is_device.then_some((None, metadata.rdev()));
    // An image can have two loop devices, of which only the other one is mounted.
    let file = match is_device {
        true => host.loop_backing(path).ok().flatten(),
        false => Some(FileId { device: metadata.dev(), inode: metadata.ino() }),
    };
    let loops = file.map(|file| loops_over(file, host)).unwrap_or_default();
    let others = loops.into_iter().map(|(device, number)| (Some(device), number));
    own.into_iter().chain(others).collect()
}

/// A mount of the device or image at `path` in another mount namespace, and a process there. `None`
/// if there is no such mount, or this process may not read the mounts of other processes.
pub(crate) fn find_mount_elsewhere(path: &Path, metadata: &Metadata, host: &dyn Host) -> Option<(u32, MountEntry)> {
    let numbers = numbers_of(path, metadata, host);
    list_mounts().ok()?.into_iter().find_map(|seen| {
        let is_it = numbers.iter().any(|(_, number)| seen.is_of(DeviceNumber::of(*number)));
        seen.process.filter(|_| is_it).map(|process| (process, seen.mount))
    })
}

fn is_mount_of(mount: &MountEntry, number: u64) -> bool {
    let wanted = DeviceNumber::of(number);
    match mount.device.major {
        // Btrfs has a device number of its own, so only the source names its device.
        0 => fs::metadata(&mount.source).is_ok_and(|source| source.rdev() == number),
        _ => mount.device == wanted,
    }
}

/// The loop devices that show `file` from its first byte on, with their numbers. The kernel reports
/// the file of each. If this process may not query it, the path in `/sys` is used.
fn loops_over(file: FileId, host: &dyn Host) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let dir = entry.path();
        // The path of a removed file ends in ` (deleted)`, and does not exist.
        let Ok(named) = fs::read_to_string(dir.join("loop/backing_file")) else { continue };
        let offset = fs::read_to_string(dir.join("loop/offset")).unwrap_or_default();
        if !matches!(offset.trim(), "" | "0") {
            continue;
        }
        let device = Path::new("/dev").join(entry.file_name());
        let is_it = match host.loop_backing(&device) {
            Ok(backing) => backing == Some(file),
            Err(_) => fs::metadata(named.trim_end_matches('\n'))
                .is_ok_and(|at| FileId { device: at.dev(), inode: at.ino() } == file),
        };
        if let Some(number) = is_it.then(|| number_in(&dir)).flatten() {
            found.push((device, number));
        }
    }
    found.sort();
    found
}

/// The device number of a block device, from its directory in `/sys`.
fn number_in(dir: &Path) -> Option<u64> {
    let text = fs::read_to_string(dir.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}
