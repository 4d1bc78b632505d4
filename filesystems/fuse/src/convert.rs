//! Conversions between FUSE types and ours.

use std::time::{Duration, SystemTime};

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags, TimeOrNow};
use rustix::fs::FallocateFlags;
use senesce_fsapi::{Attributes, FallocateMode, FileKind, FsError, RenameMode, SeekTo, Timestamp};

/// The recommended unit of reads and writes, in bytes.
const BLOCK_BYTES: u32 = 4096;

pub(crate) fn errno(error: &FsError) -> Errno {
    Errno::from_i32(error.errno())
}

pub(crate) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

pub(crate) fn file_attr(found: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(found.ino.0),
        size: found.size,
        blocks: found.allocated.div_ceil(512),
        atime: system_time(found.accessed),
        mtime: system_time(found.modified),
        ctime: system_time(found.changed),
        crtime: SystemTime::UNIX_EPOCH,
        kind: file_type(found.kind),
        perm: found.permissions as u16,
        nlink: found.links,
        uid: found.uid,
        gid: found.gid,
        rdev: found.device,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let second = match time.seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(whole),
        false => SystemTime::UNIX_EPOCH.checked_add(whole),
    };
    let exact = second.and_then(|second| second.checked_add(Duration::from_nanos(time.nanoseconds.into())));
    exact.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The time that the kernel sent. For a time before 1970 the library subtracts the nanoseconds
/// instead of adding them. It makes -1 s and 0.2 s a time of -1.2 s. This function reverses that.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            Timestamp { seconds: 0_i64.wrapping_sub_unsigned(before.as_secs()), nanoseconds: before.subsec_nanos() }
        }
    }
}

pub(crate) fn time_or_now(time: TimeOrNow, now: Timestamp) -> Timestamp {
    match time {
        TimeOrNow::SpecificTime(time) => timestamp(time),
        TimeOrNow::Now => now,
    }
}

/// The treatment of an existing name by a rename; `None` for modes that engines do not have.
pub(crate) fn rename_how(flags: RenameFlags) -> Option<RenameMode> {
    match flags {
        flags if flags.is_empty() => Some(RenameMode::Replace),
        RenameFlags::RENAME_NOREPLACE => Some(RenameMode::NoReplace),
        RenameFlags::RENAME_EXCHANGE => Some(RenameMode::Exchange),
        _ => None,
    }
}

/// The target of `lseek`: `SEEK_DATA` and `SEEK_HOLE`.
pub(crate) fn seek_to(whence: i32) -> Option<SeekTo> {
    match whence {
        3 => Some(SeekTo::Data),
        4 => Some(SeekTo::Hole),
        _ => None,
    }
}

/// Converts the mode of `fallocate`. Returns `None` for changes that engines do not have
/// (collapsing and inserting ranges, unsharing), and for a reservation that the engine does not
/// keep.
pub(crate) fn allocate_how(mode: i32, keeps_reservations: bool) -> Option<FallocateMode> {
    let flags = FallocateFlags::from_bits_retain(mode as u32);
    let keep_size = flags.contains(FallocateFlags::KEEP_SIZE);
    let what = flags.difference(FallocateFlags::KEEP_SIZE);
    if what.is_empty() {
        keeps_reservations.then_some(FallocateMode::Reserve { keep_size })
    } else if what == FallocateFlags::ZERO_RANGE {
        Some(FallocateMode::Zero { keep_size })
    } else if what == FallocateFlags::PUNCH_HOLE && keep_size {
        Some(FallocateMode::Punch)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_requests_are_converted_exactly() {
        for (seconds, nanoseconds) in [(0, 0), (1, 1), (-1, 999_999_999), (-5, 0), (5_000_000_000, 7), (i64::MIN, 0)] {
            let time = Duration::new(seconds.unsigned_abs(), nanoseconds);
            let by_library = if seconds < 0 { SystemTime::UNIX_EPOCH - time } else { SystemTime::UNIX_EPOCH + time };
            assert_eq!(timestamp(by_library), Timestamp { seconds, nanoseconds });
        }
    }

    #[test]
    fn unsupported_fallocate_modes_are_refused() {
        assert_eq!(allocate_how(0, true), Some(FallocateMode::Reserve { keep_size: false }));
        assert_eq!(allocate_how(1, true), Some(FallocateMode::Reserve { keep_size: true }));
        assert_eq!((allocate_how(0, false), allocate_how(1, false)), (None, None));
        assert_eq!(allocate_how(3, false), Some(FallocateMode::Punch));
        assert_eq!(allocate_how(3, true), Some(FallocateMode::Punch));
        assert_eq!(allocate_how(0x10, true), Some(FallocateMode::Zero { keep_size: false }));
        assert_eq!(allocate_how(0x11, true), Some(FallocateMode::Zero { keep_size: true }));
        for mode in [2, 8, 0x20, 0x40, 0x13] {
            assert_eq!(allocate_how(mode, true), None, "{mode}");
        }
    }
}
