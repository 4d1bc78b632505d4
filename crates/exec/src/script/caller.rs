//! The system calls of one thread.

use std::{
    ffi::CString,
    hint::black_box,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, SeekFrom},
    io::Errno,
};
use senesce_oplog::{Access, Call};

use super::{files::write_all, semaphores::Semaphore};
use crate::direct_io::aligned;

/// The contents of writes start at multiples of this in the common bytes, so that neighbours
/// differ.
const STEP: usize = 4096;

/// The state that all threads share.
pub(super) struct Scene<'a> {
    pub root: BorrowedFd<'a>,
    pub paths: &'a [CString],
    pub semaphores: &'a [Semaphore],
    /// Bytes to write: the largest access plus [`SPARE_BYTES`], aligned for direct I/O.
    pub content: &'a [u8],
}

/// Bytes of the common content beyond the largest access.
pub(super) const SPARE_BYTES: usize = 1 << 20;

/// The bytes that a call read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// The reason why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// No space is left.
    NoSpace,
    /// The file of the call is missing, or exists already, because an earlier call ran out of
    /// space.
    NotThere,
    /// No thread will post what the call waits for.
    Over,
    /// Another error.
    Error(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            other => Self::Error(other),
        }
    }
}

/// A thread with its open files and its memory.
pub(super) struct Caller<'a> {
    scene: &'a Scene<'a>,
    slots: Vec<Option<OwnedFd>>,
    buffer: Vec<u8>,
    /// The number of writes so far.
    writes: usize,
    /// Whether a call ran out of space, so that later calls may miss a file.
    had_no_space: bool,
}

impl<'a> Caller<'a> {
    pub fn new(scene: &'a Scene<'a>, slots: u32, number: usize) -> Self {
        let slots = (0..slots).map(|_| None).collect();
        Self { scene, slots, buffer: Vec::new(), writes: number, had_no_space: false }
    }

    /// Makes a call and waits for its end.
    pub fn call(&mut self, call: Call) -> Result<Came, Failed> {
        let result = self.try_call(call);
        match result {
            Err(Failed::NoSpace) => self.had_no_space = true,
            // After a lack of space, a file may be missing. It may also exist still, because a
            // removal needs space on a copy-on-write file system.
            Err(Failed::Error(Errno::NOENT | Errno::EXIST)) if self.had_no_space => return Err(Failed::NotThere),
            _ => {}
        }
        result
    }

    fn try_call(&mut self, call: Call) -> Result<Came, Failed> {
        match call {
            Call::Open { slot, file, access } => {
                self.slots[slot as usize] = Some(self.open(file, access)?);
            }
            Call::Close { slot } => {
                drop(self.slots[slot as usize].take().ok_or(Failed::NotThere)?);
            }
            Call::ReadWhole { slot, piece } => {
                let fd = file(&self.slots, slot)?;
                let mut read_bytes = 0;
                loop {
                    match read_at(fd, read_bytes, piece, &mut self.buffer)? {
                        0 => return Ok(Came { read_bytes, ..Came::default() }),
                        n => read_bytes += n,
                    }
                }
            }
            Call::ReadAt { slot, offset, len } => {
                let read_bytes = read_at(file(&self.slots, slot)?, offset, len, &mut self.buffer)?;
                return Ok(Came { read_bytes, ..Came::default() });
            }
            Call::WriteWhole { slot, len, piece } => {
                let mut done = 0;
                while done < len {
                    let size = (len - done).min(u64::from(piece)) as u32;
                    self.write(slot, SeekFrom::Start(done), size)?;
                    done += u64::from(size);
                }
                return Ok(Came { written_bytes: len, ..Came::default() });
            }
            Call::Append { slot, len } => return self.write(slot, SeekFrom::End(0), len),
            Call::WriteAt { slot, offset, len } => return self.write(slot, SeekFrom::Start(offset), len),
            Call::Fsync { slot } => rustix::fs::fsync(file(&self.slots, slot)?)?,
            Call::Unlink { file } => {
                rustix::fs::unlinkat(self.scene.root, &*self.scene.paths[file as usize], AtFlags::empty())?;
            }
            Call::Stat { file } => {
                let path = &*self.scene.paths[file as usize];
                black_box(rustix::fs::statat(self.scene.root, path, AtFlags::SYMLINK_NOFOLLOW)?);
            }
            Call::Post { first, count, by } => {
                let semaphores = &self.scene.semaphores[first as usize..(first + count) as usize];
                semaphores.iter().for_each(|semaphore| semaphore.post(u64::from(by)));
            }
            Call::Wait { semaphore, by } => {
                if !self.scene.semaphores[semaphore as usize].take(u64::from(by)) {
                    return Err(Failed::Over);
                }
            }
            Call::Spin { times } => {
                let mut memory = 0u64;
                (0..times).for_each(|_| *black_box(&mut memory) = 1);
            }
            Call::Pause { milliseconds } => std::thread::sleep(Duration::from_millis(u64::from(milliseconds))),
            Call::Skip => return Err(Failed::NotThere),
        }
        Ok(Came::default())
    }

    fn open(&self, file: u32, access: Access) -> Result<OwnedFd, Failed> {
        let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags |= if access.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        for (is_asked, flag) in [
            (access.create, OFlags::CREATE | OFlags::EXCL),
            (access.synchronous, OFlags::SYNC),
            (access.direct, OFlags::DIRECT),
        ] {
            if is_asked {
                flags |= flag;
            }
        }
        let path = &*self.scene.paths[file as usize];
        Ok(rustix::fs::openat(self.scene.root, path, flags, Mode::from_raw_mode(0o644))?)
    }

    fn write(&mut self, slot: u32, place: SeekFrom, len: u32) -> Result<Came, Failed> {
        let fd = file(&self.slots, slot)?;
        self.writes = self.writes.wrapping_add(1);
        let start = self.writes % (SPARE_BYTES / STEP) * STEP;
        rustix::fs::seek(fd, place)?;
        write_all(fd, &self.scene.content[start..start + len as usize])?;
        Ok(Came { written_bytes: u64::from(len), ..Came::default() })
    }
}

fn file(slots: &[Option<OwnedFd>], slot: u32) -> Result<BorrowedFd<'_>, Failed> {
    // A slot is empty only if an open ran out of space.
    slots[slot as usize].as_ref().map(AsFd::as_fd).ok_or(Failed::NotThere)
}

fn read_at(fd: BorrowedFd<'_>, offset: u64, len: u32, buffer: &mut Vec<u8>) -> Result<u64, Failed> {
    let memory = aligned(buffer, len as usize);
    loop {
        match rustix::io::pread(fd, &mut *memory, offset) {
            Err(Errno::INTR) => {}
            result => return Ok(result? as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::files::open_root;

    #[test]
    fn missing_files_are_excused_only_after_enospc() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there"), "x").unwrap();
        let root = open_root(dir.path()).unwrap();
        let paths = ["there", "missing"].map(|name| CString::new(name).unwrap());
        let scene = Scene { root: root.as_fd(), paths: &paths, semaphores: &[], content: &[] };
        let mut caller = Caller::new(&scene, 1, 0);
        let make = Call::Open { slot: 0, file: 0, access: Access { create: true, ..Access::default() } };
        let find = Call::Stat { file: 1 };
        assert_eq!(caller.call(make), Err(Failed::Error(Errno::EXIST)));
        assert_eq!(caller.call(find), Err(Failed::Error(Errno::NOENT)));
        caller.had_no_space = true;
        assert_eq!((caller.call(make), caller.call(find)), (Err(Failed::NotThere), Err(Failed::NotThere)));
    }
}
