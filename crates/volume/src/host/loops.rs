//! The attached loop devices, and the range of the backing file that each one shows.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{DeviceNumber, FileId, ioctl, linux_device::open_device};
use crate::{Error, Result};

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
