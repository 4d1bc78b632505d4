//! Queries to a mounted Btrfs: the subvolume of a directory, and the UUID of the file system.

use std::os::fd::BorrowedFd;

use rustix::{
    io,
    ioctl::{Ioctl, IoctlOutput, Opcode},
};

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct Lookup {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

const _: () = assert!(size_of::<Lookup>() == 4096);

/// A lookup of the path of a subvolume's root. The path is empty; the result has the number of the
/// subvolume.
struct InodeLookup<'a>(&'a mut Lookup);

// SAFETY: 0xD0009412 is BTRFS_IOC_INO_LOOKUP. It expects a pointer to a `struct
// btrfs_ioctl_ino_lookup_args`, which `as_ptr` returns, and writes only to that structure. The
// borrow keeps the structure alive during the call.
unsafe impl Ioctl for InodeLookup<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        0xD000_9412
    }

    fn as_ptr(&mut self) -> *mut rustix::ffi::c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut rustix::ffi::c_void) -> io::Result<()> {
        Ok(())
    }
}

/// The number of the subvolume that holds an open file or directory, which is the number of its
/// tree.
///
/// Errors: not a Btrfs.
pub(super) fn collect_subvolume(file: BorrowedFd<'_>) -> io::Result<u64> {
    let mut lookup = Lookup { tree: 0, object: super::FIRST_INODE, name: [0; 4080] };
    // SAFETY: the call's contract is that of the implementation above; it has no other effects.
    unsafe { rustix::ioctl::ioctl(file, InodeLookup(&mut lookup))? };
    Ok(lookup.tree)
}

/// `struct btrfs_ioctl_fs_info_args`; only the UUID is read.
#[repr(C)]
struct FileSystemInfo {
    devices: [u64; 2],
    id: [u8; 16],
    rest: [u8; 992],
}

const _: () = assert!(size_of::<FileSystemInfo>() == 1024);

/// A query for the UUID of a file system.
struct Info<'a>(&'a mut FileSystemInfo);

// SAFETY: 0x8400941F is BTRFS_IOC_FS_INFO. It expects a pointer to a `struct
// btrfs_ioctl_fs_info_args` of 1024 bytes, which `as_ptr` returns, and accesses only that
// structure. The borrow keeps the structure alive during the call.
unsafe impl Ioctl for Info<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        0x8400_941F
    }

    fn as_ptr(&mut self) -> *mut rustix::ffi::c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut rustix::ffi::c_void) -> io::Result<()> {
        Ok(())
    }
}

/// The UUID of the Btrfs that holds an open file or directory.
///
/// Errors: not a Btrfs.
pub(crate) fn collect_file_system_id(file: BorrowedFd<'_>) -> io::Result<[u8; 16]> {
    let mut info = FileSystemInfo { devices: [0; 2], id: [0; 16], rest: [0; 992] };
    // SAFETY: the call's contract is that of the implementation above; it has no other effects.
    unsafe { rustix::ioctl::ioctl(file, Info(&mut info))? };
    Ok(info.id)
}
