//! Block and loop devices of the host.

use std::{
    ffi::OsStr,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt, unix::fs::FileExt},
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use super::{DeviceNumber, DeviceStat, FileId, LoopDevice, ioctl};
use crate::{Error, Result, read_only::IMAGE_FLAGS};

pub(super) fn open_device(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(Error::io("open", path))
}

pub(super) fn attach_loop(image: &Path, direct_io: bool) -> Result<LoopDevice> {
    attach_named(image, image.as_os_str().as_bytes(), direct_io)
}

/// As [`attach_loop`], with a name of the caller's choice.
pub(super) fn attach_named(image: &Path, name: &[u8], direct_io: bool) -> Result<LoopDevice> {
    let file = open_device(image, OFlags::RDWR)?;
    // A loop device has 512 bytes by default. If the host has only sectors of 4 KiB, direct I/O
    // needs 4096.
    let attach_with = |block_size_bytes, direct_io| attach_with(image, name, &file, block_size_bytes, direct_io);
    let first = attach_with(512, direct_io)?;
    if first.direct_io || !direct_io {
        return Ok(first);
    }
    let clear = |device: &LoopDevice| -> Result<()> {
        let fd = open_device(&device.path, OFlags::RDONLY)?;
        ioctl::loop_clear(&fd).map_err(Error::io("detach", &device.path))
    };
    clear(&first)?;
    let second = attach_with(4096, true)?;
    if second.direct_io {
        return Ok(second);
    }
    clear(&second)?;
    attach_with(512, false)
}

/// Attaches an image to a free loop device that cannot be written. The kernel detaches it when its
/// last user is gone: the descriptor, or a mount. So it cannot outlive this process.
pub(crate) fn attach_read_only(image: &Path) -> Result<(PathBuf, OwnedFd)> {
    let file = match rustix::fs::open(image, IMAGE_FLAGS | OFlags::CLOEXEC, Mode::empty()) {
        // Only the owner may use O_NOATIME.
        Err(Errno::PERM) => open_device(image, OFlags::RDONLY)?,
        opened => opened.map_err(Error::io("open", image))?,
    };
    let flags = ioctl::LO_FLAGS_READ_ONLY | ioctl::LO_FLAGS_AUTOCLEAR;
    attach_free(image, image.as_os_str().as_bytes(), &file, 512, flags)
}

fn attach_with(
    image: &Path,
    name: &[u8],
    file: &OwnedFd,
    block_size_bytes: u32,
    direct_io: bool,
) -> Result<LoopDevice> {
    let flags = if direct_io { ioctl::LO_FLAGS_DIRECT_IO } else { 0 };
    let (path, device) = attach_free(image, name, file, block_size_bytes, flags)?;
    let status = ioctl::loop_status(&device).map_err(|errno| {
        // A failed attach must leave no device.
        let _ = ioctl::loop_clear(&device);
        Error::io("read the status of", &path)(errno)
    })?;
    let direct_io = status.flags & ioctl::LO_FLAGS_DIRECT_IO != 0;
    Ok(LoopDevice { path, direct_io, block_size_bytes })
}

/// Attaches a file to any free loop device.
fn attach_free(
    image: &Path,
    name: &[u8],
    file: &OwnedFd,
    block_size_bytes: u32,
    flags: u32,
) -> Result<(PathBuf, OwnedFd)> {
    let control_path = "/dev/loop-control";
    let control = open_device(Path::new(control_path), OFlags::RDWR)?;
    // Another process may attach the free device first.
    for _ in 0..64 {
        let number = ioctl::loop_get_free(&control).map_err(Error::io("find a free loop device with", control_path))?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = open_device(&path, OFlags::RDWR).map_err(|error| match error.is_not_found() {
            true => Error::NoLoopDevice { image: image.to_owned(), node: path.clone() },
            false => error,
        })?;
        match ioctl::loop_configure(&device, file, block_size_bytes, flags, name) {
            Ok(()) => return Ok((path, device)),
            Err(Errno::BUSY) => {}
            Err(errno) => return Err(Error::io("attach a loop device to", image)(errno)),
        }
    }
    Err(Error::io("find a free loop device with", control_path)(Errno::BUSY))
}

pub(super) fn is_loop(device: &Path) -> Result<bool> {
    /// Major number of loop devices.
    const LOOP_MAJOR: u32 = 7;
    Ok(number(device)?.is_some_and(|number| number.major == LOOP_MAJOR))
}

/// The loop devices with a backing file, sorted.
pub(super) fn attached_loops() -> Result<Vec<PathBuf>> {
    let dir = "/sys/block";
    let entries = fs::read_dir(dir).map_err(Error::std("list", dir))?.flatten();
    let attached = entries.filter(|entry| entry.path().join("loop/backing_file").exists());
    let mut found: Vec<PathBuf> = attached.map(|entry| Path::new("/dev").join(entry.file_name())).collect();
    found.sort();
    Ok(found)
}

/// The path of a loop device's backing file as the kernel shows it. It sends no request to the
/// file's server. `None` if the device is not attached.
pub(super) fn backing_path(device: &Path) -> Result<Option<PathBuf>> {
    let file = sys_dir(device)?.join("loop/backing_file");
    match fs::read(&file) {
        Ok(text) => Ok(Some(PathBuf::from(OsStr::from_bytes(text.strip_suffix(b"\n").unwrap_or(&text))))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::std("read", file)(error)),
    }
}

/// Detaches a loop device. Waits up to 0.5 s until the kernel has done so, because another process
/// may have it open, such as a scanner of all devices. Until then the backing file is in use.
pub(super) fn detach(device: &Path) -> Result<()> {
    const WAITS: u32 = 100;
    let fd = open_device(device, OFlags::RDONLY)?;
    let backing = sys_dir(device)?.join("loop/backing_file");
    let before = fs::read(&backing).ok();
    match ioctl::loop_clear(&fd) {
        Ok(()) | Err(Errno::NXIO) => {}
        Err(errno) => return Err(Error::io("detach", device)(errno)),
    }
    drop(fd);
    // A device that is still mounted stays attached, which is no failure.
    for _ in 0..WAITS {
        if before.is_none() || fs::read(&backing).ok() != before {
            break;
        }
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

pub(super) fn loop_backing(device: &Path) -> Result<Option<FileId>> {
    if !is_loop(device)? {
        return Ok(None);
    }
    let fd = open_device(device, OFlags::RDONLY)?;
    let status = ioctl::loop_status_if_attached(&fd).map_err(Error::io("read the status of", device))?;
    Ok(status.map(|info| FileId { device: info.device, inode: info.inode }))
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

fn sys_dir(path: &Path) -> Result<PathBuf> {
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
