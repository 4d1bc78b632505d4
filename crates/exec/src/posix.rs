//! A directory of a mounted file system as a target.
//!
//! Every operation is the few system calls that a careful C program would make: a create is openat,
//! write, close. It is not safe against other programs that change the tree at the same time.

use std::{
    ffi::CStr,
    fs,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps},
    io::{Errno, retry_on_intr as retry_on_signal},
};
use senesce_core::{Bytes, RelPath, StopFn, never};
use senesce_oplog::{Op, Payload};

use crate::{
    ExecError, OpFailure, Settle, SpaceLeft, Target,
    content::{check_stop, for_each_chunk},
    direct_io::{direct_flag, is_aligned, read_range, write_direct},
    parents::Parents,
    recorded_operations::{apply_recorded, grow},
    remove::remove_tree,
};

/// Applies operations below a directory.
///
/// No operation leaves that directory or its file system: paths have no `..`, the last component is
/// never followed, and every parent directory is checked once to be reached without symbolic links.
/// Modes are exact whatever the umask was when the target was opened. The umask must not change
/// later.
#[derive(Debug)]
pub struct PosixTarget {
    root: OwnedFd,
    /// Mode bits that openat and mkdirat may not set: those of the umask, and those that a write
    /// may clear.
    inexact: u32,
    /// Whether new directories may inherit the set-group-ID bit from another directory.
    setgid_seen: bool,
    parents: Parents,
    /// The paths of the operation, NUL-terminated. Some operations have two.
    paths: [Vec<u8>; 2],
    chunk: Vec<u8>,
    /// Whether aligned reads and writes of existing files bypass the page cache.
    direct: bool,
    settle: Option<Box<dyn Settle>>,
    stop: StopFn,
}

/// The flags for existing files: no link is followed, and an open of a pipe does not wait for its
/// other end.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const SETGID: u32 = 0o2000;
const SPECIAL: u32 = 0o7000;
/// The file system type of FUSE; see statfs(2).
const FUSE_MAGIC: u64 = 0x6573_5546;

impl PosixTarget {
    /// Opens a directory to apply operations below it. The target keeps it open: drop it before an
    /// unmount.
    pub fn open(root: &Path) -> Result<Self, ExecError> {
        let host = |operation| move |source: io::Error| ExecError::Host { operation, path: root.to_owned(), source };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(root, flags, Mode::empty()).map_err(|e| host("open the directory")(e.into()))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| host("stat the directory")(e.into()))?;
        Ok(Self {
            root: fd,
            inexact: collect_umask().map_err(host("read the umask for"))? | SPECIAL,
            setgid_seen: stat.st_mode & SETGID != 0,
            parents: Parents::default(),
            paths: [Vec::new(), Vec::new()],
            chunk: Vec::new(),
            direct: false,
            settle: None,
            stop: never,
        })
    }

    /// Lets [`Op::Read`] and [`Op::Write`] bypass the page cache (O_DIRECT) if offset and length
    /// are multiples of [`DIRECT_ALIGNMENT`](crate::DIRECT_ALIGNMENT). Writes of new files use the
    /// cache in any case.
    pub fn with_direct_io(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Calls `settle` after every write and every operation.
    pub fn with_settle(mut self, settle: Option<Box<dyn Settle>>) -> Self {
        self.settle = settle;
        self
    }

    /// Calls `stop` before each piece of a large operation, and fails if it returns true.
    pub fn with_stop(mut self, stop: StopFn) -> Self {
        self.stop = stop;
        self
    }

    /// The directory that operations start from.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// The umask of this process, read without changing it.
fn collect_umask() -> io::Result<u32> {
    let mut status = String::new();
    fs::File::open("/proc/self/status")?.read_to_string(&mut status)?;
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask
        .and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has no line Umask"))
}

/// Writes `root/path` with a final NUL into `buffer`.
fn place(buffer: &mut Vec<u8>, root: &RelPath, path: &RelPath) {
    buffer.clear();
    buffer.extend_from_slice(root.as_bytes());
    if !root.is_root() && !path.is_root() {
        buffer.push(b'/');
    }
    buffer.extend_from_slice(path.as_bytes());
    if buffer.is_empty() {
        buffer.push(b'.');
    }
    buffer.push(0);
}

fn c_str(buffer: &[u8]) -> &CStr {
    CStr::from_bytes_with_nul(buffer).expect("a RelPath holds no NUL, and place() put one at the end")
}

/// Converts an error. `written` is as in [`OpFailure::NoSpace`].
fn failure(errno: Errno, written: Option<u64>) -> OpFailure {
    match errno {
        Errno::NOSPC | Errno::DQUOT => OpFailure::NoSpace { written },
        other => OpFailure::Io(other.into()),
    }
}

fn nothing_done(errno: Errno) -> OpFailure {
    failure(errno, None)
}

/// Makes a whole file system durable. The kernel does not pass syncfs to a FUSE server, but it
/// passes a sync of a directory. The engines of senesce treat that as a sync of the whole file
/// system.
fn sync_file_system(root: impl AsFd + Copy) -> rustix::io::Result<()> {
    rustix::fs::syncfs(root)?;
    let is_fuse = rustix::fs::fstatfs(root).is_ok_and(|found| found.f_type as u64 & 0xFFFF_FFFF == FUSE_MAGIC);
    if is_fuse { rustix::fs::fsync(root) } else { Ok(()) }
}

/// If the last call of an operation failed, undoes its earlier calls, so that nothing was done.
fn undo_unless(done: Result<(), Errno>, undo: impl FnOnce() -> Result<(), Errno>) -> Result<(), OpFailure> {
    let Err(errno) = done else { return Ok(()) };
    undo().map_err(io::Error::from)?;
    Err(nothing_done(errno))
}

/// Lets `settle` write back the file that an operation has written. The operation's own error comes
/// first.
fn written(
    settle: &mut Option<Box<dyn Settle>>,
    file: BorrowedFd<'_>,
    done: Result<(), OpFailure>,
) -> Result<(), OpFailure> {
    match settle {
        Some(settle) => done.and(settle.wrote(file).map_err(OpFailure::Io)),
        None => done,
    }
}

impl Target for PosixTarget {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        let done = self.apply_unsettled(root, op, payload);
        if let Some(settle) = &mut self.settle {
            settle.done(op)?;
        }
        done
    }

    fn stop(&self) -> StopFn {
        self.stop
    }

    fn forget_directories(&mut self) {
        self.parents.forget(b".");
        self.setgid_seen = true;
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        let stat = rustix::fs::fstatvfs(&self.root)?;
        let fragment = if stat.f_frsize == 0 { stat.f_bsize } else { stat.f_frsize };
        Ok(SpaceLeft { capacity: Bytes(stat.f_blocks * fragment), free: Bytes(stat.f_bavail * fragment) })
    }
}

impl PosixTarget {
    fn apply_unsettled(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        let Self { root: dir, inexact, setgid_seen, parents, paths: [first, second], chunk, direct, settle, stop } =
            self;
        let (dir, stop) = (dir.as_fd(), *stop);
        // Stores the path of an operation, and refuses it if its parent is reached through a
        // symbolic link.
        let mut at = |path: &RelPath| -> Result<(), OpFailure> {
            place(first, root, path);
            Ok(parents.check(dir, &first[..first.len() - 1])?)
        };
        match op {
            Op::Create { path, mode, .. } => {
                at(path)?;
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = rustix::fs::openat(dir, c_str(first), flags, Mode::from_raw_mode(mode & 0o7777))
                    .map_err(nothing_done)?;
                // The mode is set before the content, because a file whose content ran out of space
                // stays.
                if mode & *inexact != 0 {
                    let done = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777));
                    undo_unless(done, || rustix::fs::unlinkat(dir, c_str(first), AtFlags::empty()))?;
                }
                let done = write_payload(file.as_fd(), None, payload, chunk, stop);
                written(settle, file.as_fd(), done)
            }
            Op::Write { path, offset, .. } => {
                at(path)?;
                let direct = *direct && payload.is_some_and(|payload| is_aligned(*offset, payload.len()));
                let flags = OFlags::WRONLY | PLAIN | direct_flag(direct);
                let file = rustix::fs::openat(dir, c_str(first), flags, Mode::empty()).map_err(nothing_done)?;
                if let (true, Some(payload)) = (direct, payload) {
                    return write_direct(file.as_fd(), *offset, payload, chunk, stop).map_err(|(errno, written)| {
                        match errno {
                            Some(errno) => failure(errno, Some(written)),
                            None => OpFailure::Io(io::ErrorKind::WriteZero.into()),
                        }
                    });
                }
                let done = write_payload(file.as_fd(), Some(*offset), payload, chunk, stop);
                written(settle, file.as_fd(), done)
            }
            Op::Truncate { path, len } => {
                at(path)?;
                let flags = OFlags::WRONLY | PLAIN;
                let file = rustix::fs::openat(dir, c_str(first), flags, Mode::empty()).map_err(nothing_done)?;
                rustix::fs::ftruncate(&file, *len).map_err(nothing_done)?;
                written(settle, file.as_fd(), Ok(()))
            }
            Op::Unlink { path } => {
                at(path)?;
                rustix::fs::unlinkat(dir, c_str(first), AtFlags::empty()).map_err(nothing_done)
            }
            Op::Rename { from, to } => {
                at(from)?;
                place(second, root, to);
                parents.check(dir, &second[..second.len() - 1])?;
                rustix::fs::renameat(dir, c_str(first), dir, c_str(second)).map_err(nothing_done)?;
                parents.forget(&first[..first.len() - 1]);
                Ok(())
            }
            Op::Mkdir { path, mode } => {
                at(path)?;
                rustix::fs::mkdirat(dir, c_str(first), Mode::from_raw_mode(mode & 0o7777)).map_err(nothing_done)?;
                *setgid_seen |= mode & SETGID != 0;
                if mode & *inexact != 0 || *setgid_seen {
                    let bits = Mode::from_raw_mode(mode & 0o7777);
                    let done = rustix::fs::chmodat(dir, c_str(first), bits, AtFlags::empty());
                    undo_unless(done, || rustix::fs::unlinkat(dir, c_str(first), AtFlags::REMOVEDIR))?;
                }
                Ok(())
            }
            Op::Rmdir { path } => {
                at(path)?;
                rustix::fs::unlinkat(dir, c_str(first), AtFlags::REMOVEDIR).map_err(nothing_done)?;
                parents.forget(&first[..first.len() - 1]);
                Ok(())
            }
            Op::RemoveTree { path } => {
                at(path)?;
                parents.forget(&first[..first.len() - 1]);
                remove_tree(dir, c_str(first), stop)
            }
            Op::Symlink { path, target } => {
                at(path)?;
                rustix::fs::symlinkat(&**target, dir, c_str(first)).map_err(nothing_done)
            }
            Op::Link { existing, path } => {
                at(existing)?;
                place(second, root, path);
                parents.check(dir, &second[..second.len() - 1])?;
                rustix::fs::linkat(dir, c_str(first), dir, c_str(second), AtFlags::empty()).map_err(nothing_done)
            }
            Op::Chmod { path, mode } => {
                at(path)?;
                // chmodat follows a symbolic link, so the type is checked first.
                let stat = rustix::fs::statat(dir, c_str(first), AtFlags::SYMLINK_NOFOLLOW).map_err(nothing_done)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                    return Err(io::Error::from(Errno::LOOP).into());
                }
                *setgid_seen |= mode & SETGID != 0;
                rustix::fs::chmodat(dir, c_str(first), Mode::from_raw_mode(mode & 0o7777), AtFlags::empty())
                    .map_err(nothing_done)
            }
            Op::Fsync { path } => {
                at(path)?;
                let flags = OFlags::RDONLY | PLAIN;
                let file = rustix::fs::openat(dir, c_str(first), flags, Mode::empty()).map_err(nothing_done)?;
                rustix::fs::fsync(&file).map_err(nothing_done)
            }
            Op::SyncFs => sync_file_system(dir).map_err(nothing_done),
            Op::Allocate { path, mode, len } => {
                at(path)?;
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let bits = Mode::from_raw_mode(mode & 0o7777);
                let file = rustix::fs::openat(dir, c_str(first), flags, bits).map_err(nothing_done)?;
                let mut done = if mode & *inexact != 0 { rustix::fs::fchmod(&file, bits) } else { Ok(()) };
                // The kernel refuses a reservation of zero bytes.
                if done.is_ok() && *len > 0 {
                    done = retry_on_signal(|| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, *len));
                    if done == Err(Errno::OPNOTSUPP) {
                        done = grow(file.as_fd(), *len);
                    }
                }
                undo_unless(done, || rustix::fs::unlinkat(dir, c_str(first), AtFlags::empty()))
            }
            Op::SetModified { path, unix_seconds } => {
                at(path)?;
                let tv_sec = i64::try_from(*unix_seconds).map_err(|_| OpFailure::Io(Errno::INVAL.into()))?;
                let time = Timespec { tv_sec, tv_nsec: 0 };
                let times = Timestamps { last_access: time, last_modification: time };
                rustix::fs::utimensat(dir, c_str(first), &times, AtFlags::SYMLINK_NOFOLLOW).map_err(nothing_done)
            }
            Op::Read { path, offset, len } => {
                at(path)?;
                let direct = *direct && is_aligned(*offset, *len);
                let flags = OFlags::RDONLY | PLAIN | direct_flag(direct);
                let file = rustix::fs::openat(dir, c_str(first), flags, Mode::empty()).map_err(nothing_done)?;
                Ok(read_range(file.as_fd(), *offset, *len, chunk, stop)?)
            }
            Op::Exchange { first: one, second: other } => {
                at(one)?;
                place(second, root, other);
                parents.check(dir, &second[..second.len() - 1])?;
                apply_recorded(dir, op, c_str(first), c_str(second)).map_err(nothing_done)?;
                parents.forget(&first[..first.len() - 1]);
                parents.forget(&second[..second.len() - 1]);
                Ok(())
            }
            Op::Fallocate { path, .. }
            | Op::SetXattr { path, .. }
            | Op::RemoveXattr { path, .. }
            | Op::SetTimes { path, .. }
            | Op::Chown { path, .. }
            | Op::Mknod { path, .. } => {
                at(path)?;
                apply_recorded(dir, op, c_str(first), c"").map_err(nothing_done)
            }
        }
    }
}

/// Writes a payload, at an offset or at the file's position. For a lack of space, the error has the
/// number of bytes written.
fn write_payload(
    file: BorrowedFd<'_>,
    offset: Option<u64>,
    payload: Option<&Payload>,
    chunk: &mut Vec<u8>,
    stop: StopFn,
) -> Result<(), OpFailure> {
    let Some(payload) = payload else { return Ok(()) };
    let mut written = 0u64;
    for_each_chunk(payload, chunk, |mut bytes| {
        check_stop(stop)?;
        while !bytes.is_empty() {
            let result = match offset {
                None => rustix::io::write(file, bytes),
                Some(offset) => rustix::io::pwrite(file, bytes, offset.saturating_add(written)),
            };
            match result {
                Ok(0) => return Err(OpFailure::Io(io::ErrorKind::WriteZero.into())),
                Ok(n) => {
                    written += n as u64;
                    bytes = &bytes[n..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failure(errno, Some(written))),
            }
        }
        Ok(())
    })
}

/// Opens a directory below `root` for lookups, without following a symbolic link or leaving the
/// mount.
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), resolve)
}
