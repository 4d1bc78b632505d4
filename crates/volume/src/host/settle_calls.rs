//! Calls after which a file system has no postponed work: writeback, FIEMAP with a sync, FITRIM,
//! the removal of blocks on XFS, freeze and thaw.
//!
//! The numbers and layouts are those of `linux/fs.h`, `linux/fiemap.h`, and `xfs/xfs_fs.h`.

use std::os::fd::{AsFd, AsRawFd};

use rustix::{
    io::{Errno, Result},
    ioctl::{Opcode, Setter, Updater, ioctl},
};

const FS_IOC_FIEMAP: Opcode = 0xC020_660B;
const FIFREEZE: libc::c_ulong = 0xC004_5877;
const FITHAW: libc::c_ulong = 0xC004_5878;
const FITRIM: Opcode = 0xC018_5879;
const XFS_IOC_FREE_EOFBLOCKS: Opcode = 0x8080_583A;

/// `struct fiemap` without extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    extent_count: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Fiemap>() == 32);

/// `FIEMAP_FLAG_SYNC`: the file is written back first, in this thread.
const FLAG_SYNC: u32 = 1;

/// Writes a file back, and waits until its extents are in the file system's maps. Unlike fsync it
/// commits nothing.
pub fn sync_extents(file: impl AsFd) -> Result<()> {
    // One byte is enough: the sync is of the whole file.
    let mut map = Fiemap { start: 0, length: 1, flags: FLAG_SYNC, mapped: 0, extent_count: 0, reserved: 0 };
    // SAFETY: FS_IOC_FIEMAP reads and writes one `struct fiemap`, whose layout `Fiemap` has. With a
    // count of 0 it writes no extents after it.
    unsafe { ioctl(file, Updater::<FS_IOC_FIEMAP, Fiemap>::new(&mut map)) }
}

/// Writes back a range of a file, and waits for the device. Unlike fsync, this commits nothing.
pub fn write_range(file: impl AsFd, start: u64, length: u64) -> Result<()> {
    const FLAGS: libc::c_uint =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let (Ok(start), Ok(length)) = (start.try_into(), length.try_into()) else { return Err(Errno::INVAL) };
    // SAFETY: sync_file_range has no pointers. The descriptor is borrowed for the call.
    check(unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), start, length, FLAGS) })
}

/// `struct fstrim_range`.
#[repr(C)]
struct TrimRange {
    start: u64,
    length: u64,
    shortest: u64,
}

const _: () = assert!(size_of::<TrimRange>() == 24);

/// Discards free space in pieces of at least `shortest` bytes. Btrfs first loads the free space of
/// each block group that is not smaller.
///
/// Errors: `OPNOTSUPP` if the device cannot discard.
pub fn trim(root: impl AsFd, shortest: u64) -> Result<()> {
    let mut range = TrimRange { start: 0, length: u64::MAX, shortest };
    // SAFETY: FITRIM reads and writes one `struct fstrim_range`, whose layout `TrimRange` has.
    unsafe { ioctl(root, Updater::<FITRIM, TrimRange>::new(&mut range)) }
}

/// `struct xfs_fs_eofblocks`.
#[repr(C)]
struct EofBlocks {
    version: u32,
    flags: u32,
    owners: [u32; 4],
    smallest_file: u64,
    reserved: [u64; 12],
}

const _: () = assert!(size_of::<EofBlocks>() == 128);

/// Makes XFS free blocks beyond the end of closed files, and waits until it has freed the blocks of
/// all removed files.
pub fn free_removed_xfs(root: impl AsFd) -> Result<()> {
    /// `XFS_EOFBLOCKS_VERSION`, `XFS_EOF_FLAGS_SYNC`.
    const VERSION: u32 = 1;
    const WAIT: u32 = 1;
    let what = EofBlocks { version: VERSION, flags: WAIT, owners: [0; 4], smallest_file: 0, reserved: [0; 12] };
    // SAFETY: XFS_IOC_FREE_EOFBLOCKS reads one `struct xfs_fs_eofblocks`, whose layout `EofBlocks`
    // has.
    unsafe { ioctl(root, Setter::<XFS_IOC_FREE_EOFBLOCKS, EofBlocks>::new(what)) }
}

/// Stops all writes to the file system of `root`, after it has written everything and finished all
/// its work. Needs root.
pub fn freeze(root: impl AsFd) -> Result<()> {
    call(root, FIFREEZE)
}

/// Reverses a [`freeze`]. Fails with `INVAL` if the file system is not frozen.
pub fn thaw(root: impl AsFd) -> Result<()> {
    call(root, FITHAW)
}

fn call(root: impl AsFd, opcode: libc::c_ulong) -> Result<()> {
    // SAFETY: FIFREEZE and FITHAW ignore their argument. The descriptor is borrowed for the call.
    check(unsafe { libc::ioctl(root.as_fd().as_raw_fd(), opcode as _, 0) })
}

fn check(returned: libc::c_int) -> Result<()> {
    match returned {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
