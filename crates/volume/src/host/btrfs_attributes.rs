//! The identity of a mounted Btrfs, and its settings below `/sys/fs/btrfs`.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::{fd::AsFd, unix::fs::FileExt},
    path::{Path, PathBuf},
};

use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::Uuid;

/// From `linux/btrfs.h`.
const BTRFS_IOC_FS_INFO: Opcode = 0x8400_941F;

/// `struct btrfs_ioctl_fs_info_args`; only the UUID is read.
#[repr(C)]
struct BtrfsInfo {
    most_device_id: u64,
    devices: u64,
    id: [u8; 16],
    rest: [u64; 124],
}

const _: () = assert!(size_of::<BtrfsInfo>() == 1024);

/// The UUID of the Btrfs that holds an open file or directory.
///
/// Errors: not a Btrfs.
pub fn find_btrfs_id(file: impl AsFd) -> io::Result<Uuid> {
    let mut info = BtrfsInfo { most_device_id: 0, devices: 0, id: [0; 16], rest: [0; 124] };
    // SAFETY: BTRFS_IOC_FS_INFO reads and writes one `struct btrfs_ioctl_fs_info_args` of 1024
    // bytes, the size of `BtrfsInfo`. Every value of its fields is valid.
    unsafe { ioctl(file, Updater::<BTRFS_IOC_FS_INFO, BtrfsInfo>::new(&mut info)) }?;
    Ok(Uuid(info.id))
}

/// The directory of the Btrfs with this UUID in `/sys`. It exists if the file system is mounted in
/// any namespace.
pub fn btrfs_sys_directory(id: Uuid) -> PathBuf {
    Path::new("/sys/fs/btrfs").join(id.to_string())
}

/// Sets the read-ahead of files. The kernel forgets it at the unmount. Returns whether it can be
/// set: old kernels do not offer it, and containers can have a read-only `/sys`.
pub(crate) fn set_read_ahead(root: impl AsFd, kib: u32) -> io::Result<bool> {
    write_read_ahead(&btrfs_sys_directory(find_btrfs_id(root)?), kib)
}

fn write_read_ahead(directory: &Path, kib: u32) -> io::Result<bool> {
    // A missing file is not created: sysfs would refuse that with another error.
    let opened = File::options().write(true).open(directory.join("bdi/read_ahead_kb"));
    match opened.and_then(|mut file| file.write_all(kib.to_string().as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ReadOnlyFilesystem) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The read-ahead of files, KiB. `None`: the kernel does not offer it.
pub(crate) fn read_ahead(root: impl AsFd) -> io::Result<Option<u32>> {
    let text = fs::read_to_string(btrfs_sys_directory(find_btrfs_id(root)?).join("bdi/read_ahead_kb"));
    match text {
        Ok(text) => Ok(text.trim().parse().ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The space of a Btrfs for metadata.
#[derive(Debug)]
pub(crate) struct MetadataSpace {
    total: File,
    /// Used, or reserved for postponed work.
    taken: [File; 5],
}

impl MetadataSpace {
    /// `None` if metadata and data share their space.
    pub(crate) fn open(root: impl AsFd) -> io::Result<Option<Self>> {
        let directory = btrfs_sys_directory(find_btrfs_id(root)?).join("allocation/metadata");
        let file = |name: &str| File::open(directory.join(name));
        let total = match file("total_bytes") {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            total => total?,
        };
        let taken = [
            file("bytes_used")?,
            file("bytes_reserved")?,
            file("bytes_pinned")?,
            file("bytes_readonly")?,
            file("bytes_may_use")?,
        ];
        Ok(Some(Self { total, taken }))
    }

    /// Bytes that are neither used nor reserved.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let mut free = read(&self.total)?;
        for file in &self.taken {
            free = free.saturating_sub(read(file)?);
        }
        Ok(free)
    }
}

fn read(file: &File) -> io::Result<u64> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0)?;
    let number = str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_without_the_setting_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!write_read_ahead(dir.path(), 512).unwrap(), "there is no bdi");
        fs::create_dir(dir.path().join("bdi")).unwrap();
        let setting = dir.path().join("bdi/read_ahead_kb");
        assert!(!write_read_ahead(dir.path(), 512).unwrap() && !setting.exists());
        fs::write(&setting, "4096").unwrap();
        assert!(write_read_ahead(dir.path(), 512).unwrap());
        assert!(fs::read_to_string(&setting).unwrap().starts_with("512"));
        fs::remove_file(&setting).unwrap();
        fs::create_dir(&setting).unwrap();
        write_read_ahead(dir.path(), 512).unwrap_err();
    }
}
