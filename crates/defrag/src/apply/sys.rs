//! The calls that move and share blocks (MOVE_EXT, FICLONERANGE, FIDEDUPERANGE), and those that
//! find owners on Btrfs. The only place with raw kernel structures.

use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
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

/// `struct btrfs_ioctl_ino_lookup_args` (`linux/btrfs.h`), 4,096 bytes.
#[repr(C)]
struct InodeLookup {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

/// `struct btrfs_ioctl_logical_ino_args`, 56 bytes.
#[repr(C)]
struct LogicalLookup {
    logical: u64,
    bytes: u64,
    reserved: [u64; 3],
    flags: u64,
    answer: u64,
}

/// Numbers of the owners in one answer: three for each. A block with more is left alone.
const ANSWER_NUMBERS: usize = 3 * 4096;

/// `struct btrfs_data_container` with its numbers.
#[repr(C)]
struct Answer {
    bytes_left: u32,
    bytes_missing: u32,
    count: u32,
    missed: u32,
    numbers: [u64; ANSWER_NUMBERS],
}

/// `struct btrfs_balance_args`, 136 bytes. Only the range of logical addresses is used.
#[repr(C)]
#[derive(Default)]
struct BalanceFilter {
    before: [u64; 5],
    logical_start: u64,
    logical_end: u64,
    target: u64,
    flags: u64,
    after: [u64; 8],
}

/// `struct btrfs_ioctl_balance_args`, 1,024 bytes.
#[repr(C)]
struct Balance {
    flags: u64,
    state: u64,
    filters: [BalanceFilter; 3],
    progress: [u64; 3],
    unused: [u64; 72],
}

const _: () = assert!(size_of::<Balance>() == 1024);

const _: () = assert!(size_of::<InodeLookup>() == 4096 && size_of::<LogicalLookup>() == 56);

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

/// Starts to write the changed pages of a range to the device. It is only advice: if it fails, the
/// file system writes them later.
pub(super) fn start_writes(file: &File, start: u64, length: u64) {
    sync_range(file, start, length, libc::SYNC_FILE_RANGE_WRITE);
}

/// Writes the changed pages of a range to the device, and waits until no page of it is being
/// written. It flushes no cache of the device, and writes no metadata.
pub(super) fn wait_for_writes(file: &File, start: u64, length: u64) {
    let before = libc::SYNC_FILE_RANGE_WAIT_BEFORE;
    sync_range(file, start, length, before | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER);
}

fn sync_range(file: &File, start: u64, length: u64, flags: libc::c_uint) {
    let (start, length) = (start as libc::off64_t, length as libc::off64_t);
    // SAFETY: the call receives numbers only, and the descriptor is open.
    unsafe { libc::sync_file_range(file.as_raw_fd(), start, length, flags) };
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

/// Makes `target` share a range of `source`, if both have the same content. Each file has its
/// offset. The kernel compares under its locks, so no writer can interfere.
pub(super) fn dedupe_range(
    (source, source_offset): (&File, u64),
    (target, target_offset): (&File, u64),
    length: u64,
) -> Result<Deduped> {
    const DIFFERS: i32 = 1;
    let mut call = DedupeRange {
        source_offset,
        source_length: length,
        count: 1,
        reserved1: 0,
        reserved2: 0,
        target: i64::from(target.as_fd().as_raw_fd()),
        target_offset,
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

/// Removes a range from a file; the content after it moves to its start. The range starts and ends
/// at blocks of the file system.
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

/// Looks up an inode of a Btrfs subvolume; 0 is the subvolume of `file`. Returns the number of the
/// subvolume, and a path of the inode from its root.
///
/// Errors: `ENOENT` if it has no name; `EPERM` for a caller that is not root.
pub(super) fn look_up_inode(file: BorrowedFd<'_>, tree: u64, object: u64) -> Result<(u64, Vec<u8>)> {
    let mut call = Box::new(InodeLookup { tree, object, name: [0; 4080] });
    // SAFETY: 0xD0009412 is BTRFS_IOC_INO_LOOKUP, whose structure this is.
    unsafe { ioctl(file, Updater::<0xD000_9412, _>::new(&mut *call))? };
    let length = call.name.iter().position(|&byte| byte == 0).unwrap_or(call.name.len());
    Ok((call.tree, call.name[..length].to_vec()))
}

/// The part of an extent whose owners the kernel reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One byte.
    Byte,
    /// The extent that has the byte.
    Extent,
}

/// The owners of the byte at `logical` of a Btrfs, or of its extent, as (inode, offset, subvolume).
///
/// Errors: `EOVERFLOW` if there are more than 4,096; `EPERM` for a caller that is not root.
pub(super) fn find_owners(file: &File, logical: u64, part: Part) -> Result<Vec<(u64, u64, u64)>> {
    // `BTRFS_LOGICAL_INO_ARGS_IGNORE_OFFSET`.
    let flags = u64::from(part == Part::Extent);
    let mut answer =
        Box::new(Answer { bytes_left: 0, bytes_missing: 0, count: 0, missed: 0, numbers: [0; ANSWER_NUMBERS] });
    let pointer = std::ptr::from_mut(&mut *answer).expose_provenance() as u64;
    let mut call =
        LogicalLookup { logical, bytes: size_of::<Answer>() as u64, reserved: [0; 3], flags, answer: pointer };
    // SAFETY: 0xC038943B is BTRFS_IOC_LOGICAL_INO_V2, whose structure this is. The kernel writes at
    // most `bytes` bytes to the answer, which is alive until it is read below.
    unsafe { ioctl(file, Updater::<0xC038_943B, _>::new(&mut call))? };
    if answer.missed > 0 {
        return Err(Errno::OVERFLOW);
    }
    let count = (answer.count as usize).min(ANSWER_NUMBERS);
    Ok(answer.numbers[..count].chunks_exact(3).map(|owner| (owner[0], owner[1], owner[2])).collect())
}

/// Moves the contents of the block groups of data within a range of logical addresses of a Btrfs.
///
/// Errors: `EINPROGRESS` if another balance runs; `ENOSPC`; `EPERM` for a caller that is not root.
pub(crate) fn balance_range(directory: &File, start: u64, end: u64) -> Result<()> {
    const OF_DATA: u64 = 1;
    const BY_LOGICAL_RANGE: u64 = 1 << 4;
    let range =
        BalanceFilter { logical_start: start, logical_end: end, flags: BY_LOGICAL_RANGE, ..BalanceFilter::default() };
    let filters = [range, BalanceFilter::default(), BalanceFilter::default()];
    let mut call = Box::new(Balance { flags: OF_DATA, state: 0, filters, progress: [0; 3], unused: [0; 72] });
    // SAFETY: 0xC4009420 is BTRFS_IOC_BALANCE_V2, whose structure this is.
    unsafe { ioctl(directory, Updater::<0xC400_9420, _>::new(&mut *call)) }
}
