//! The baseline of replays: a list of prepared system calls, and a loop that only issues them.
//!
//! It shares only the removal of trees and the operations of recorded programs with
//! [`PosixTarget`](crate::PosixTarget). So a comparison shows the cost of the target above the
//! calls. Do not use it for anything else: it checks no path and stops at the first error.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::BorrowedFd,
    sync::Arc,
};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, Timespec, Timestamps};
use senesce_core::{RelPath, never};
use senesce_oplog::{Content, ContentError, ContentSource, DoneStep, Op, Outcome};

use crate::{
    OpFailure,
    content::{CHUNK_BYTES, for_each_chunk, make_ready},
    recorded_operations::apply_recorded,
    remove::remove_tree,
};

/// Operations with their paths as C strings and their contents in memory.
#[derive(Debug, Default)]
pub struct SyscallBaseline {
    calls: Vec<Call>,
    held_bytes: u64,
}

type Pieces = Vec<Arc<[u8]>>;

#[derive(Debug)]
enum Call {
    Mkdir {
        path: CString,
        mode: Mode,
        exact: bool,
    },
    Remove {
        path: CString,
        flags: AtFlags,
    },
    Create {
        path: CString,
        mode: Mode,
        exact: bool,
        pieces: Pieces,
    },
    Write {
        path: CString,
        offset: u64,
        pieces: Pieces,
    },
    Truncate {
        path: CString,
        len: u64,
    },
    Rename {
        from: CString,
        to: CString,
    },
    Symlink {
        path: CString,
        target: CString,
    },
    Link {
        existing: CString,
        path: CString,
    },
    Chmod {
        path: CString,
        mode: Mode,
    },
    RemoveTree {
        path: CString,
    },
    Fsync {
        path: CString,
    },
    SyncFs,
    Allocate {
        path: CString,
        mode: Mode,
        exact: bool,
        len: u64,
    },
    SetModified {
        path: CString,
        times: Timestamps,
    },
    Read {
        path: CString,
        offset: u64,
        len: u64,
    },
    /// An operation that only recordings have.
    Recorded {
        op: Op,
        path: CString,
        other: CString,
    },
}

impl SyscallBaseline {
    /// Prepares the calls of recorded steps for a process with this umask. Benches do not measure
    /// this.
    ///
    /// Holds all contents in memory: prepare a long log in parts.
    pub fn compile<'a>(
        steps: impl IntoIterator<Item = &'a DoneStep>,
        source: &dyn ContentSource,
        umask: u32,
    ) -> Result<Self, ContentError> {
        let mut bare = Self::default();
        for done in steps {
            for (index, op) in done.step.ops.iter().enumerate() {
                let part = match done.outcome {
                    Outcome::NoSpace { failed_op, written: None } if failed_op == index => break,
                    Outcome::NoSpace { failed_op, written } if failed_op == index => written,
                    _ => None,
                };
                let pieces = match op.content() {
                    Some(content) => bare.pieces(content, part, source)?,
                    None => Vec::new(),
                };
                bare.calls.push(call(&done.step.root, op, pieces, umask));
                if part.is_some() {
                    break;
                }
            }
        }
        Ok(bare)
    }

    fn pieces(
        &mut self,
        content: &Content,
        part: Option<u64>,
        source: &dyn ContentSource,
    ) -> Result<Pieces, ContentError> {
        let mut payload = make_ready(content, source, &mut Vec::new())?.payload;
        if let Some(part) = part {
            payload = payload.beginning(part);
        }
        self.held_bytes += payload.len();
        let mut pieces = Vec::new();
        let read = for_each_chunk(&payload, &mut Vec::new(), |bytes| {
            pieces.push(Arc::from(bytes));
            Ok::<(), io::Error>(())
        });
        read.map_err(|e| ContentError { key: content.to_string(), problem: e.to_string(), source: Some(Box::new(e)) })?;
        Ok(pieces)
    }

    /// Bytes of the contents in memory.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// The number of operations in the list.
    pub fn operations(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Issues the calls below `root`, in order. Errors: the first call that fails, also for lack of
    /// space.
    pub fn run(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        self.calls.iter().try_for_each(|call| issue(root, call))
    }
}

fn call(root: &RelPath, op: &Op, pieces: Pieces, umask: u32) -> Call {
    let c = |bytes: &[u8]| CString::new(bytes).expect("paths hold no NUL");
    let at = |path: &RelPath| c(root.join(path).as_bytes());
    let bits = |mode: u32| Mode::from_raw_mode(mode & 0o7777);
    let exact = |mode: u32| mode & (umask | 0o7000) == 0;
    match op {
        Op::Mkdir { path, mode } => Call::Mkdir { path: at(path), mode: bits(*mode), exact: exact(*mode) },
        Op::Rmdir { path } => Call::Remove { path: at(path), flags: AtFlags::REMOVEDIR },
        Op::Create { path, mode, .. } => {
            Call::Create { path: at(path), mode: bits(*mode), exact: exact(*mode), pieces }
        }
        Op::Write { path, offset, .. } => Call::Write { path: at(path), offset: *offset, pieces },
        Op::Truncate { path, len } => Call::Truncate { path: at(path), len: *len },
        Op::Rename { from, to } => Call::Rename { from: at(from), to: at(to) },
        Op::Unlink { path } => Call::Remove { path: at(path), flags: AtFlags::empty() },
        Op::Symlink { path, target } => Call::Symlink { path: at(path), target: c(target) },
        Op::Link { existing, path } => Call::Link { existing: at(existing), path: at(path) },
        Op::Chmod { path, mode } => Call::Chmod { path: at(path), mode: bits(*mode) },
        Op::RemoveTree { path } => Call::RemoveTree { path: at(path) },
        Op::Fsync { path } => Call::Fsync { path: at(path) },
        Op::SyncFs => Call::SyncFs,
        Op::Allocate { path, mode, len } => {
            Call::Allocate { path: at(path), mode: bits(*mode), exact: exact(*mode), len: *len }
        }
        Op::SetModified { path, unix_seconds } => {
            let time = Timespec { tv_sec: i64::try_from(*unix_seconds).unwrap_or(i64::MAX), tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            Call::SetModified { path: at(path), times }
        }
        Op::Read { path, offset, len } => Call::Read { path: at(path), offset: *offset, len: *len },
        Op::Exchange { first, second } => Call::Recorded { op: op.clone(), path: at(first), other: at(second) },
        Op::Fallocate { path, .. }
        | Op::SetXattr { path, .. }
        | Op::RemoveXattr { path, .. }
        | Op::SetTimes { path, .. }
        | Op::Chown { path, .. }
        | Op::Mknod { path, .. } => Call::Recorded { op: op.clone(), path: at(path), other: c(b"") },
    }
}

fn issue(root: BorrowedFd<'_>, call: &Call) -> io::Result<()> {
    let open = |path: &CStr, flags, mode| rustix::fs::openat(root, path, flags | OFlags::CLOEXEC, mode);
    match call {
        Call::Create { path, mode, exact, pieces } => {
            let file = open(path, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, *mode)?;
            for piece in pieces {
                whole(rustix::io::write(&file, piece)?, piece)?;
            }
            if !exact {
                rustix::fs::fchmod(&file, *mode)?;
            }
        }
        Call::Write { path, offset, pieces } => {
            let file = open(path, OFlags::WRONLY, Mode::empty())?;
            let mut at = *offset;
            for piece in pieces {
                whole(rustix::io::pwrite(&file, piece, at)?, piece)?;
                at += piece.len() as u64;
            }
        }
        Call::Mkdir { path, mode, exact } => {
            rustix::fs::mkdirat(root, path, *mode)?;
            if !exact {
                rustix::fs::chmodat(root, path, *mode, AtFlags::empty())?;
            }
        }
        Call::Remove { path, flags } => rustix::fs::unlinkat(root, path, *flags)?,
        Call::Truncate { path, len } => rustix::fs::ftruncate(open(path, OFlags::WRONLY, Mode::empty())?, *len)?,
        Call::Rename { from, to } => rustix::fs::renameat(root, from, root, to)?,
        Call::Symlink { path, target } => rustix::fs::symlinkat(target, root, path)?,
        Call::Link { existing, path } => rustix::fs::linkat(root, existing, root, path, AtFlags::empty())?,
        Call::Chmod { path, mode } => rustix::fs::chmodat(root, path, *mode, AtFlags::empty())?,
        Call::RemoveTree { path } => remove_tree(root, path, never).map_err(|failure| match failure {
            OpFailure::NoSpace { .. } => io::ErrorKind::StorageFull.into(),
            OpFailure::Io(error) => error,
        })?,
        Call::Fsync { path } => rustix::fs::fsync(open(path, OFlags::RDONLY, Mode::empty())?)?,
        Call::SyncFs => rustix::fs::syncfs(root)?,
        Call::Allocate { path, mode, exact, len } => {
            let file = open(path, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, *mode)?;
            if *len > 0 {
                rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, *len)?;
            }
            if !exact {
                rustix::fs::fchmod(&file, *mode)?;
            }
        }
        Call::SetModified { path, times } => rustix::fs::utimensat(root, path, times, AtFlags::SYMLINK_NOFOLLOW)?,
        Call::Recorded { op, path, other } => apply_recorded(root, op, path, other)?,
        Call::Read { path, offset, len } => {
            let file = open(path, OFlags::RDONLY, Mode::empty())?;
            let mut buffer = vec![0; (*len).min(CHUNK_BYTES as u64) as usize];
            let mut done = 0;
            while done < *len {
                let size = (*len - done).min(buffer.len() as u64) as usize;
                match rustix::io::pread(&file, &mut buffer[..size], offset + done)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => done += n as u64,
                }
            }
        }
    }
    Ok(())
}

fn whole(written: usize, piece: &[u8]) -> io::Result<()> {
    if written == piece.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
}
