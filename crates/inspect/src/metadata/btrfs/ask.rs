//! A query to a mounted Btrfs: the subvolume of a directory.

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
