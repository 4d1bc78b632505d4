//! Loop devices: attaching and detaching them, and the attached ones, with the range of the backing
//! file that each one shows.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
    },
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{
    DeviceNumber, FileId, LoopDevice, ioctl,
    linux_device::{number, open_device, sys_dir},
};
use crate::{Error, Result, read_only::IMAGE_FLAGS};

/// A loop device with a backing file or device.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    pub device: PathBuf,
    pub number: DeviceNumber,
    /// The inode of the backing file, or of the backing device's node.
    pub backing: FileId,
    /// The number of the backing device, if it is one.
    pub backing_device: Option<DeviceNumber>,
    /// The kernel's name of the backing file. Another file may have that name now.
    pub backing_name: PathBuf,
    /// Start of the loop device in the backing file, bytes.
    pub offset: u64,
    /// Size of the loop device, bytes.
    size: u64,
}

impl Attached {
    /// The bytes of the backing file that it shows: first and end.
    pub fn range(&self) -> (u64, u64) {
        (self.offset, self.offset.saturating_add(self.size))
    }
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

/// Lists the attached loop devices. Errors: `/sys/block` cannot be listed; root cannot open a
/// device.
pub(super) fn list_attached() -> Result<Vec<Attached>> {
    let dir = "/sys/block";
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::std("list", dir))?.flatten() {
        let dir = entry.path();
        let Ok(mut name) = fs::read(dir.join("loop/backing_file")) else { continue };
        if name.last() == Some(&b'\n') {
            name.pop();
        }
        let name = PathBuf::from(OsString::from_vec(name));
        if let Some(attached) = read_attached(&dir, &Path::new("/dev").join(entry.file_name()), name)? {
            found.push(attached);
        }
    }
    found.sort_by(|one, other| one.device.cmp(&other.device));
    Ok(found)
}

fn read_attached(dir: &Path, device: &Path, backing_name: PathBuf) -> Result<Option<Attached>> {
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default().trim().to_owned();
    let numbers = text("dev");
    let parsed = numbers.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let Some((major, minor)) = parsed else { return Ok(None) };
    let number = DeviceNumber { major, minor };
    // If the size is unknown, assume the largest, so that no use is missed.
    let size = text("size").parse::<u64>().map_or(u64::MAX, |sectors| sectors.saturating_mul(512));
    let fd = match open_device(device, OFlags::RDONLY) {
        Ok(fd) => fd,
        // Without permission to query the kernel for the inode, the path identifies the file.
        Err(error) if error.is_denied() => {
            let Ok(metadata) = fs::metadata(&backing_name) else { return Ok(None) };
            let backing = FileId { device: metadata.dev(), inode: metadata.ino() };
            let backing_device = Some(metadata.rdev()).filter(|&rdev| rdev != 0).map(DeviceNumber::of);
            let offset = text("loop/offset").parse().unwrap_or(0);
            let device = device.to_owned();
            return Ok(Some(Attached { device, number, backing, backing_device, backing_name, offset, size }));
        }
        // The device was removed in the meantime.
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(status) = ioctl::loop_status_if_attached(&fd).map_err(Error::io("read the status of", device))? else {
        return Ok(None);
    };
    // Kernels before 5.18 report the file system's device here for a file.
    let of_file = status.rdevice == 0 || status.rdevice == status.device;
    Ok(Some(Attached {
        device: device.to_owned(),
        number,
        backing: FileId { device: status.device, inode: status.inode },
        backing_device: (!of_file).then(|| DeviceNumber::of(status.rdevice)),
        backing_name,
        offset: status.offset,
        size,
    }))
}
