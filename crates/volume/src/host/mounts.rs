//! The mounts of all mount namespaces with a process that this process may inspect.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{DeviceNumber, MountEntry, parse_mountinfo};
use crate::{Error, Result};

/// A mount, with a process of its mount namespace if this process is in another one.
#[derive(Clone, Debug)]
pub struct SeenMount {
    /// The mount.
    pub mount: MountEntry,
    /// A process of the other mount namespace.
    pub process: Option<u32>,
}

impl SeenMount {
    /// Whether it is a mount of this block device.
    pub fn is_of(&self, number: DeviceNumber) -> bool {
        // Btrfs has a virtual device number, so only the name of the source identifies the device.
        if self.mount.device.major != 0 {
            return self.mount.device == number;
        }
        let Ok(relative) = self.mount.source.strip_prefix("/") else { return false };
        let source = match self.process {
            Some(pid) => Path::new("/proc").join(pid.to_string()).join("root").join(relative),
            None => self.mount.source.clone(),
        };
        rustix::fs::stat(&source).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice && DeviceNumber::of(stat.st_rdev) == number
        })
    }
}

/// Lists the mounts of this process's namespace, then those of each other namespace. A namespace
/// without a readable process is not visible, but its mounts still claim their devices.
///
/// Errors: the list of this process's namespace cannot be read.
pub fn list_mounts() -> Result<Vec<SeenMount>> {
    let own = "/proc/self/mountinfo";
    let text = fs::read(own).map_err(Error::std("read", own))?;
    let seen = |process| move |mount| SeenMount { mount, process };
    let mut found: Vec<SeenMount> = parse_mountinfo(&text).into_iter().map(seen(None)).collect();
    let namespace = |process: &Path| fs::read_link(process.join("ns/mnt")).ok();
    let mut known: Vec<PathBuf> = namespace(Path::new("/proc/self")).into_iter().collect();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Some(there) = namespace(&entry.path()).filter(|there| !known.contains(there)) else { continue };
        known.push(there);
        let text = fs::read(entry.path().join("mountinfo")).unwrap_or_default();
        found.extend(parse_mountinfo(&text).into_iter().map(seen(Some(pid))));
    }
    Ok(found)
}
