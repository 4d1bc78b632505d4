//! Operations that only recordings have: holes, exchanges, extended attributes, times, owners,
//! pipes.
//!
//! The caller has checked that the parents are directories. No operation follows a symbolic link in
//! the last component.

use std::{
    ffi::CStr,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use rustix::{
    fs::{
        AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, Uid,
        XattrFlags,
    },
    io::{Errno, retry_on_intr as retry_on_signal},
};
use senesce_oplog::{FileTime, Op, SpaceChange};

/// Applies such an operation at `path` below `dir`. `other` is the second path of an exchange.
/// Other operations are refused.
pub(crate) fn apply_recorded(dir: BorrowedFd<'_>, op: &Op, path: &CStr, other: &CStr) -> Result<(), Errno> {
    match op {
        Op::Fallocate { how, offset, len, .. } => {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(dir, path, flags, Mode::empty())?;
            match retry_on_signal(|| rustix::fs::fallocate(&file, space_flags(*how), *offset, *len)) {
                Err(Errno::OPNOTSUPP) if *how == SpaceChange::ReserveKeepSize => Ok(()),
                Err(Errno::OPNOTSUPP) if *how == SpaceChange::Reserve => {
                    grow(file.as_fd(), offset.saturating_add(*len))
                }
                done => done,
            }
        }
        Op::Exchange { .. } => rustix::fs::renameat_with(dir, path, dir, other, RenameFlags::EXCHANGE),
        Op::SetXattr { name, value, .. } => {
            let name = text(name)?;
            with_path(dir, path, |path| rustix::fs::setxattr(path, &*name, value, XattrFlags::empty()))
        }
        Op::RemoveXattr { name, .. } => {
            let name = text(name)?;
            with_path(dir, path, |path| rustix::fs::removexattr(path, &*name))
        }
        Op::SetTimes { accessed, modified, .. } => {
            let times = Timestamps { last_access: timespec(*accessed), last_modification: timespec(*modified) };
            rustix::fs::utimensat(dir, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        }
        Op::Chown { uid, gid, .. } => {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            rustix::fs::chownat(dir, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        }
        Op::Mknod { mode, device, .. } => {
            let bits = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::mknodat(dir, path, FileType::from_raw_mode(*mode), bits, *device)?;
            // The entry is new and no link, so chmodat follows nothing.
            rustix::fs::chmodat(dir, path, bits, AtFlags::empty()).inspect_err(|_| {
                // The first error is the one to return.
                let _ = rustix::fs::unlinkat(dir, path, AtFlags::empty());
            })
        }
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// Replaces a reservation on a file system that supports none: lengthens the file, which a tree
/// shows.
pub(crate) fn grow(file: BorrowedFd<'_>, len: u64) -> Result<(), Errno> {
    let is_longer = rustix::fs::fstat(file)?.st_size as u64 >= len;
    if is_longer { Ok(()) } else { retry_on_signal(|| rustix::fs::ftruncate(file, len)) }
}

fn space_flags(how: SpaceChange) -> FallocateFlags {
    match how {
        SpaceChange::Reserve => FallocateFlags::empty(),
        SpaceChange::ReserveKeepSize => FallocateFlags::KEEP_SIZE,
        SpaceChange::Punch => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        SpaceChange::Zero => FallocateFlags::ZERO_RANGE,
        SpaceChange::ZeroKeepSize => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
    }
}

fn timespec(time: Option<FileTime>) -> Timespec {
    match time {
        Some(time) => Timespec { tv_sec: time.unix_seconds, tv_nsec: time.nanoseconds.into() },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    }
}

fn text(name: &[u8]) -> Result<std::ffi::CString, Errno> {
    std::ffi::CString::new(name).map_err(|_| Errno::INVAL)
}

/// Calls `act` with a path to the entry itself. Calls for attributes accept no directory
/// descriptor; the link in /proc of an open descriptor leads to the entry, also if it is a symbolic
/// link.
fn with_path(dir: BorrowedFd<'_>, path: &CStr, act: impl FnOnce(&str) -> Result<(), Errno>) -> Result<(), Errno> {
    let file = rustix::fs::openat(dir, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    act(&format!("/proc/self/fd/{}", file.as_raw_fd()))
}
