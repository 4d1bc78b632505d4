//! The identity of a mounted Btrfs, and its settings below `/sys/fs/btrfs`.

use std::{
    fs, io,
    os::fd::AsFd,
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

/// Sets the read-ahead of files. The kernel forgets it at the unmount.
pub(crate) fn set_read_ahead(root: impl AsFd, kib: u32) -> io::Result<()> {
    fs::write(btrfs_sys_directory(find_btrfs_id(root)?).join("bdi/read_ahead_kb"), kib.to_string())
}
