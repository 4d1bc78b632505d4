//! The calls that move and share blocks: MOVE_EXT, FICLONERANGE, FIDEDUPERANGE. The only place with
//! raw kernel structures.

use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd},
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::{Errno, Result},
    ioctl::{Setter, Updater, ioctl},
};

/// `struct move_extent` (`fs/ext4/ext4.h`), 40 bytes; positions in blocks of the file system.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    orig_start: u64,
    donor_start: u64,
    length: u64,
    moved: u64,
}

/// `struct file_clone_range` (`linux/fs.h`), 32 bytes.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    source_length: u64,
    offset: u64,
}

/// `struct file_dedupe_range` with one `struct file_dedupe_range_info` (`linux/fs.h`), 24 and 32
/// bytes.
#[repr(C)]
struct DedupeRange {
    source_offset: u64,
    source_length: u64,
    count: u16,
    reserved1: u16,
    reserved2: u32,
    target: i64,
    target_offset: u64,
    deduped: u64,
    status: i32,
    reserved: u32,
}

// The kernel reads and writes exactly these sizes.
const _: () = assert!(size_of::<MoveExtent>() == 40 && size_of::<CloneRange>() == 32 && size_of::<DedupeRange>() == 56);

/// Exchanges blocks of `file` with those of `donor`, in blocks; ext4 copies the contents. Returns
/// the number of blocks that were exchanged.
///
/// Errors: `EOPNOTSUPP` for files without extents, encrypted, DAX or journalled data; `EPERM` for
/// immutable and append-only files; `EBUSY` for pages that are in use; `EINVAL` for swap files and
/// for ranges beyond the end.
pub(super) fn move_extent(file: &File, donor: &File, start: u64, donor_start: u64, length: u64) -> Result<u64> {
    let donor = donor.as_fd().as_raw_fd() as u32;
    let mut call = MoveExtent { reserved: 0, donor, orig_start: start, donor_start, length, moved: 0 };
    // SAFETY: 0xC028660F is EXT4_IOC_MOVE_EXT, whose structure this is.
    unsafe { ioctl(file, Updater::<0xC028_660F, _>::new(&mut call))? };
    Ok(call.moved)
}

/// Makes `target` share a range of `source`.
pub(super) fn clone_range(
    source: &File,
    source_offset: u64,
    length: u64,
    (target, offset): (&File, u64),
) -> Result<()> {
    let source = i64::from(source.as_fd().as_raw_fd());
    let call = CloneRange { source, source_offset, source_length: length, offset };
    // SAFETY: 0x4020940D is FICLONERANGE, whose structure this is; the kernel only reads it.
    unsafe { ioctl(target, Setter::<0x4020_940D, _>::new(call)) }
}

/// The result of a request to share equal contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deduped {
    /// This number of first bytes, at least one, was equal and is shared now.
    Bytes(u64),
    /// The contents differ.
    Differs,
}

/// Makes `target` share a range of `source`, at the same offset, if both have the same content. The
/// kernel compares under its locks, so no writer can interfere.
pub(super) fn dedupe_range(source: &File, target: &File, offset: u64, length: u64) -> Result<Deduped> {
    const DIFFERS: i32 = 1;
    let mut call = DedupeRange {
        source_offset: offset,
        source_length: length,
        count: 1,
        reserved1: 0,
        reserved2: 0,
        target: i64::from(target.as_fd().as_raw_fd()),
        target_offset: offset,
        deduped: 0,
        status: 0,
        reserved: 0,
    };
    // SAFETY: 0xC0189436 is FIDEDUPERANGE. The structure has space for the one target that `count`
    // states.
    unsafe { ioctl(source, Updater::<0xC018_9436, _>::new(&mut call))? };
    match call.status {
        0 if call.deduped > 0 => Ok(Deduped::Bytes(call.deduped)),
        DIFFERS => Ok(Deduped::Differs),
        // A kernel that shares nothing and reports no error would make the caller repeat forever.
        0 => Err(Errno::IO),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}

/// Reserves blocks for the first `length` bytes of a file.
pub(super) fn allocate(file: &File, length: u64) -> Result<()> {
    fallocate(file, FallocateFlags::empty(), 0, length)
}

/// Reserves blocks for a range of a file. The size stays.
pub(super) fn reserve(file: &File, start: u64, length: u64) -> Result<()> {
    fallocate(file, FallocateFlags::KEEP_SIZE, start, length)
}

/// Takes a range out of a file: what follows moves to its start. The range begins and ends at
/// blocks of the file system.
pub(super) fn cut(file: &File, start: u64, end: u64) -> Result<()> {
    let size = file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?.len();
    match () {
        () if start >= end => Ok(()),
        // The kernel collapses no range that reaches the end.
        () if end >= size => rustix::fs::ftruncate(file, start),
        () => fallocate(file, FallocateFlags::COLLAPSE_RANGE, start, end - start),
    }
}

/// Frees the blocks of a range. The size stays.
pub(super) fn punch(file: &File, start: u64, length: u64) -> Result<()> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length)
}
