//! Finds the device whose requests a path stands for.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use crate::{Error, trace::DeviceNumber};

/// A block device in the terms of the block layer's events: a disk, or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDevice {
    /// The named device.
    pub device: DeviceNumber,
    /// The disk that issues its requests; the device itself unless it is a partition.
    pub disk: DeviceNumber,
    /// First sector and sector count of the partition; none for a whole disk.
    pub part: Option<(u64, u64)>,
}

impl TraceDevice {
    /// The filter that passes only events of this device. Flushes have no position, so a partition
    /// gets those of the whole disk.
    pub(super) fn filter(&self) -> String {
        let number = self.disk.kernel_number();
        match self.part {
            None => format!("dev == {number}"),
            Some((start, sectors)) => {
                let end = start.saturating_add(sectors);
                format!("dev == {number} && (nr_sector == 0 || (sector >= {start} && sector < {end}))")
            }
        }
    }

    /// The first sector of the device on its disk.
    pub(super) fn start_sector(&self) -> u64 {
        self.part.map_or(0, |(start, _)| start)
    }
}

/// Finds the device of a path. For a device node that is the device itself, for any other path the
/// device of its file system.
///
/// Errors: the metadata of the path cannot be read; its file system names no device (Btrfs, tmpfs,
/// overlays, network file systems: name the device itself); the device passes its requests to other
/// devices.
pub fn collect_trace_device(path: &Path) -> Result<TraceDevice, Error> {
    let metadata = fs::metadata(path).map_err(|source| Error::system("read the metadata of", path, source))?;
    let number = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let device = DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    let no_trace = |problem: String| Error::NoTrace { path: path.to_owned(), problem };
    if device.major == 0 {
        return Err(no_trace("its file system names no block device; name the device itself, such as /dev/sdb".into()));
    }
    let sys = fs::canonicalize(format!("/sys/dev/block/{device}"))
        .map_err(|source| Error::system("look up the block device of", path, source))?;
    let (disk_dir, part) = if sys.join("partition").exists() {
        let number = |name: &str| read_number(&sys.join(name));
        let disk_dir = sys.parent().map(Path::to_owned).unwrap_or_default();
        (disk_dir, Some((number("start")?, number("size")?)))
    } else {
        (sys, None)
    };
    if !disk_dir.join("mq").exists() {
        let problem = format!("block device {device} has no requests of its own; trace the devices below it");
        return Err(no_trace(problem));
    }
    let disk_file = disk_dir.join("dev");
    let disk = read_text(&disk_file)?;
    let disk = disk.trim().parse().map_err(|problem| Error::Malformed {
        call: "sysfs",
        path: disk_file,
        problem: format!("{disk:?} {problem}"),
    })?;
    Ok(TraceDevice { device, disk, part })
}

fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::system("read", path, source))
}

fn read_number(path: &Path) -> Result<u64, Error> {
    let text = read_text(path)?;
    let malformed = |path: PathBuf| Error::Malformed { call: "sysfs", path, problem: format!("{text:?} is no number") };
    text.trim().parse().map_err(|_| malformed(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_filter_passes_its_sectors_and_flushes() {
        let disk = DeviceNumber { major: 7, minor: 1 };
        let whole = TraceDevice { device: disk, disk, part: None };
        assert_eq!(whole.filter(), "dev == 7340033");
        let part = TraceDevice { part: Some((2048, 8192)), ..whole };
        assert_eq!(part.filter(), "dev == 7340033 && (nr_sector == 0 || (sector >= 2048 && sector < 10240))");
    }

    #[test]
    fn a_path_without_device_is_refused_with_a_hint() {
        let error = collect_trace_device(Path::new("/proc/self")).unwrap_err().to_string();
        assert!(error.contains("name the device itself"), "{error}");
    }
}
