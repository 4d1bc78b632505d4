//! Block devices of the host. `loop_devices` has the calls that only loop devices have.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use super::{DeviceNumber, DeviceStat, ioctl, locks::patiently};
use crate::{Error, Result};

/// Opens a device. Waits up to 0.5 s for a loop device that is being detached: until that ends, the
/// kernel answers `ENXIO`.
pub(super) fn open_device(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let open = || rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
    patiently(100, open, |errno| *errno == Errno::NXIO).map_err(Error::io("open", path))
}

pub(super) fn number(path: &Path) -> Result<Option<DeviceNumber>> {
    match rustix::fs::stat(path) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice => {
            Ok(Some(DeviceNumber::of(stat.st_rdev)))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Error::io("look up", path)(errno)),
    }
}

pub(super) fn sys_dir(path: &Path) -> Result<PathBuf> {
    let number = number(path)?.ok_or_else(|| Error::NotABlockDevice { path: path.to_owned() })?;
    Ok(format!("/sys/dev/block/{}:{}", number.major, number.minor).into())
}

/// The device's queue directory. A partition has that of its disk.
pub(crate) fn queue_dir(path: &Path) -> Result<PathBuf> {
    let own = sys_dir(path)?;
    let queue = own.join("queue");
    Ok(if queue.exists() { queue } else { own.join("../queue") })
}

pub(crate) fn read(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    let file = fs::File::from(open_device(path, OFlags::RDONLY)?);
    let mut bytes = vec![0; length];
    let mut have = 0;
    while have < length {
        match file.read_at(&mut bytes[have..], offset + have as u64).map_err(Error::std("read", path))? {
            0 => break,
            got => have += got,
        }
    }
    bytes.truncate(have);
    Ok(bytes)
}

pub(super) fn set_read_ahead(path: &Path, kib: u32) -> Result<u32> {
    let file = queue_dir(path)?.join("read_ahead_kb");
    fs::write(&file, kib.to_string()).map_err(Error::std("write", &file))?;
    read_ahead(path)
}

pub(super) fn read_ahead(path: &Path) -> Result<u32> {
    let file = queue_dir(path)?.join("read_ahead_kb");
    let text = fs::read_to_string(&file).map_err(Error::std("read", &file))?;
    text.trim().parse().map_err(|_| Error::Unverified {
        operation: "reading the read-ahead",
        path: path.to_owned(),
        detail: format!("the kernel reports {:?}", text.trim()),
    })
}

pub(super) fn stat(path: &Path) -> Result<DeviceStat> {
    let file = sys_dir(path)?.join("stat");
    let text = fs::read_to_string(&file).map_err(Error::std("read", &file))?;
    Ok(parse_stat(&text))
}

/// The fields are described in the kernel's Documentation/block/stat.rst.
fn parse_stat(text: &str) -> DeviceStat {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let at = |index: usize| fields.get(index).copied().unwrap_or(0);
    DeviceStat { reads: at(0), read_sectors: at(2), writes: at(4), written_sectors: at(6), busy_milliseconds: at(9) }
}

pub(crate) fn btrfs_forget(device: &Path) -> Result<()> {
    let control = "/dev/btrfs-control";
    let fd = match rustix::fs::open(control, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => fd,
        // Without the control node, no driver remembers devices.
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(Error::io("open", control)(errno)),
    };
    match ioctl::btrfs_forget(&fd, device.as_os_str().as_bytes()) {
        // NOENT: it was not known. BUSY: it is mounted.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::io("make Btrfs forget", device)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counters_are_parsed() {
        let stat = parse_stat("  11 1 33 4 55 2 77 8 0 99 100 0 0 0 0 0 0\n");
        let want = DeviceStat { reads: 11, read_sectors: 33, writes: 55, written_sectors: 77, busy_milliseconds: 99 };
        assert_eq!(stat, want);
    }
}
