//! Maps operations on paths to calls on inodes.

use std::{collections::HashMap, io, ops::ControlFlow, sync::Arc};

use rustix::io::Errno;
use senesce_core::{Bytes, Clock, RelPath, StopFn, never};
use senesce_fsapi::{
    Attributes, Caller, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, NewNode, RenameMode,
    SetAttributes, SetXattrMode, Timestamp,
};
use senesce_oplog::{FileTime, Op, Payload, SpaceChange};

use super::remove::remove_tree;
use crate::{
    CHUNK_BYTES, OpFailure, SpaceLeft, Target,
    content::{check_stop, for_each_chunk},
};

/// Applies operations to an engine, as [`PosixTarget`](crate::PosixTarget) does to a mounted file
/// system. The same operations leave the same tree. New files belong to root. Their times are whole
/// seconds of the clock.
pub struct EngineTarget {
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    /// Known directories by their paths.
    directories: HashMap<Vec<u8>, Ino>,
    chunk: Vec<u8>,
    stop: StopFn,
}

type Done = Result<(), OpFailure>;

/// Converts an error. `written` is as in [`OpFailure::NoSpace`].
fn failure(error: FsError, written: Option<u64>) -> OpFailure {
    match error {
        FsError::NoSpace => OpFailure::NoSpace { written },
        // The text of these errors is more specific than their number.
        error @ (FsError::Io { .. } | FsError::Corrupt { .. }) => OpFailure::Io(io::Error::other(error)),
        error => OpFailure::Io(io::Error::from_raw_os_error(error.errno())),
    }
}

fn nothing_done(error: FsError) -> OpFailure {
    failure(error, None)
}

fn refuse<T>(errno: Errno) -> Result<T, OpFailure> {
    Err(OpFailure::Io(errno.into()))
}

impl EngineTarget {
    /// A target for a file system. Other callers may use the file system too, but not the names
    /// that the operations use.
    pub fn new(fs: Arc<dyn FileSystem>, clock: Arc<dyn Clock>) -> Self {
        Self { fs, clock, directories: HashMap::new(), chunk: Vec::new(), stop: never }
    }

    /// A second target for the same file system, for another thread.
    pub fn another(&self) -> Self {
        Self { stop: self.stop, ..Self::new(Arc::clone(&self.fs), Arc::clone(&self.clock)) }
    }

    /// Calls `stop` before each piece of a large operation, and fails if it returns true.
    pub fn with_stop(mut self, stop: StopFn) -> Self {
        self.stop = stop;
        self
    }

    /// The file system.
    pub fn file_system(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// Whether the file system has no names.
    pub fn is_empty(&self) -> FsResult<bool> {
        let mut found = false;
        self.fs.read_dir(Ino::ROOT, 0, &mut |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(!found)
    }

    fn caller(&self) -> Caller {
        let seconds = self.clock.unix_seconds() as i64;
        Caller { uid: 0, gid: 0, now: Timestamp { seconds, nanoseconds: 0 } }
    }

    /// The inode of a directory.
    fn directory(&mut self, path: &[u8]) -> FsResult<Ino> {
        if path.is_empty() {
            return Ok(Ino::ROOT);
        }
        if let Some(&known) = self.directories.get(path) {
            return Ok(known);
        }
        let (above, name) = split(path);
        let above = self.directory(above)?;
        let found = self.fs.lookup(above, name)?;
        if found.kind != FileKind::Directory {
            return Err(FsError::NotDirectory);
        }
        self.directories.insert(path.to_vec(), found.ino);
        Ok(found.ino)
    }

    /// The parent directory and the last component of a path. The root has neither.
    fn name<'a>(&mut self, path: &'a [u8]) -> Result<(Ino, &'a [u8]), OpFailure> {
        if path.is_empty() {
            return refuse(Errno::INVAL);
        }
        let (above, name) = split(path);
        Ok((self.directory(above).map_err(nothing_done)?, name))
    }

    fn found(&mut self, path: &[u8]) -> Result<Attributes, OpFailure> {
        if path.is_empty() {
            return self.fs.attributes(Ino::ROOT).map_err(nothing_done);
        }
        let (directory, name) = self.name(path)?;
        self.fs.lookup(directory, name).map_err(nothing_done)
    }

    /// A regular file. The errors are those of an open for writing.
    fn file(&mut self, path: &[u8]) -> Result<Ino, OpFailure> {
        let found = self.found(path)?;
        match found.kind {
            FileKind::File => Ok(found.ino),
            FileKind::Directory => refuse(Errno::ISDIR),
            FileKind::Symlink => refuse(Errno::LOOP),
            _ => refuse(Errno::INVAL),
        }
    }

    /// Makes an inode with exactly these permissions, whatever it inherits from its directory.
    fn make(&mut self, path: &[u8], node: &NewNode) -> Result<Ino, OpFailure> {
        let caller = self.caller();
        let (directory, name) = self.name(path)?;
        let made = self.fs.make_node(&caller, directory, name, node).map_err(nothing_done)?;
        if made.permissions != node.permissions {
            let change = SetAttributes { permissions: Some(node.permissions), ..SetAttributes::default() };
            if let Err(error) = self.fs.set_attributes(&caller, made.ino, &change) {
                self.unmake(path, made.kind)?;
                return Err(nothing_done(error));
            }
        }
        Ok(made.ino)
    }

    fn unmake(&mut self, path: &[u8], kind: FileKind) -> Done {
        let caller = self.caller();
        let (directory, name) = self.name(path)?;
        let done = match kind {
            FileKind::Directory => self.fs.rmdir(&caller, directory, name),
            _ => self.fs.unlink(&caller, directory, name),
        };
        done.map_err(|error| OpFailure::Io(io::Error::other(error)))
    }

    fn write(&mut self, ino: Ino, offset: u64, payload: Option<&Payload>) -> Done {
        let Some(payload) = payload else { return Ok(()) };
        let caller = self.caller();
        let mut written = 0u64;
        let (fs, stop) = (&self.fs, self.stop);
        for_each_chunk(payload, &mut self.chunk, |mut bytes| {
            check_stop(stop)?;
            while !bytes.is_empty() {
                let at = offset.checked_add(written).ok_or(OpFailure::Io(Errno::FBIG.into()))?;
                match fs.write(&caller, ino, at, bytes) {
                    Ok(0) => return Err(OpFailure::Io(io::ErrorKind::WriteZero.into())),
                    Ok(n) => {
                        written += n as u64;
                        bytes = &bytes[n..];
                    }
                    Err(error) => return Err(failure(error, Some(written))),
                }
            }
            Ok(())
        })
    }

    fn read(&mut self, ino: Ino, offset: u64, len: u64) -> Done {
        let mut done = 0;
        while done < len {
            check_stop(self.stop)?;
            let size = (len - done).min(CHUNK_BYTES as u64) as usize;
            if self.chunk.len() < size {
                self.chunk.resize(size, 0);
            }
            let at = offset.checked_add(done).ok_or(OpFailure::Io(Errno::INVAL.into()))?;
            match self.fs.read(ino, at, &mut self.chunk[..size]).map_err(nothing_done)? {
                0 => return Err(OpFailure::Io(io::ErrorKind::UnexpectedEof.into())),
                got => done += got as u64,
            }
        }
        Ok(())
    }

    fn change(&mut self, path: &[u8], change: &SetAttributes) -> Done {
        let found = self.found(path)?;
        if found.kind == FileKind::Symlink && change.permissions.is_some() {
            return refuse(Errno::LOOP);
        }
        let caller = self.caller();
        self.fs.set_attributes(&caller, found.ino, change).map(|_| ()).map_err(nothing_done)
    }

    fn rename(&mut self, from: &[u8], to: &[u8], how: RenameMode) -> Done {
        let caller = self.caller();
        let (from, to) = (self.name(from)?, self.name(to)?);
        self.fs.rename(&caller, from, to, how).map_err(nothing_done)?;
        // Renaming a file changes no path of a directory. The new entries show whether a directory
        // moved.
        let moved = [to, from].map(|(directory, name)| self.fs.lookup(directory, name));
        if moved.iter().flatten().any(|found| found.kind == FileKind::Directory) {
            self.directories.clear();
        }
        Ok(())
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

fn timestamp(time: FileTime) -> Timestamp {
    Timestamp { seconds: time.unix_seconds, nanoseconds: time.nanoseconds }
}

fn allocate_how(how: SpaceChange) -> FallocateMode {
    match how {
        SpaceChange::Reserve => FallocateMode::Reserve { keep_size: false },
        SpaceChange::ReserveKeepSize => FallocateMode::Reserve { keep_size: true },
        SpaceChange::Punch => FallocateMode::Punch,
        SpaceChange::Zero => FallocateMode::Zero { keep_size: false },
        SpaceChange::ZeroKeepSize => FallocateMode::Zero { keep_size: true },
    }
}

impl Target for EngineTarget {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Done {
        let at = |path: &RelPath| root.join(path).as_bytes().to_vec();
        let caller = self.caller();
        let none = SetAttributes::default();
        match op {
            Op::Mkdir { path, mode } => self.make(&at(path), &NewNode::directory(mode & 0o7777)).map(|_| ()),
            Op::Rmdir { path } => {
                let path = at(path);
                let (directory, name) = self.name(&path)?;
                self.fs.rmdir(&caller, directory, name).map_err(nothing_done)?;
                self.directories.remove(&path);
                Ok(())
            }
            Op::Create { path, mode, .. } => {
                let ino = self.make(&at(path), &NewNode::file(mode & 0o7777))?;
                // A file whose content ran out of space stays.
                self.write(ino, 0, payload).map_err(|failed| match failed {
                    OpFailure::NoSpace { written } => OpFailure::NoSpace { written: written.or(Some(0)) },
                    failed => failed,
                })
            }
            Op::Write { path, offset, .. } => {
                let ino = self.file(&at(path))?;
                self.write(ino, *offset, payload)
            }
            Op::Truncate { path, len } => {
                let ino = self.file(&at(path))?;
                let change = SetAttributes { size: Some(*len), ..none };
                self.fs.set_attributes(&caller, ino, &change).map(|_| ()).map_err(nothing_done)
            }
            Op::Rename { from, to } => self.rename(&at(from), &at(to), RenameMode::Replace),
            Op::Exchange { first, second } => self.rename(&at(first), &at(second), RenameMode::Exchange),
            Op::Unlink { path } => {
                let path = at(path);
                let (directory, name) = self.name(&path)?;
                self.fs.unlink(&caller, directory, name).map_err(nothing_done)
            }
            Op::Symlink { path, target } => {
                let path = at(path);
                let (directory, name) = self.name(&path)?;
                self.fs.symlink(&caller, directory, name, target).map(|_| ()).map_err(nothing_done)
            }
            Op::Link { existing, path } => {
                let path = at(path);
                let existing = self.found(&at(existing))?.ino;
                let (directory, name) = self.name(&path)?;
                self.fs.link(&caller, existing, directory, name).map(|_| ()).map_err(nothing_done)
            }
            Op::Chmod { path, mode } => {
                self.change(&at(path), &SetAttributes { permissions: Some(mode & 0o7777), ..none })
            }
            Op::RemoveTree { path } => {
                let path = at(path);
                let (directory, name) = self.name(&path)?;
                self.directories.clear();
                remove_tree(self.fs.as_ref(), &caller, directory, name, self.stop)
            }
            Op::Fsync { path } => match self.found(&at(path))? {
                Attributes { kind: FileKind::File | FileKind::Directory, ino, .. } => {
                    self.fs.sync(ino).map_err(nothing_done)
                }
                Attributes { kind: FileKind::Symlink, .. } => refuse(Errno::LOOP),
                _ => refuse(Errno::INVAL),
            },
            Op::SyncFs => self.fs.sync_all().map_err(nothing_done),
            Op::Allocate { path, mode, len } => {
                let path = at(path);
                let ino = self.make(&path, &NewNode::file(mode & 0o7777))?;
                let how = FallocateMode::Reserve { keep_size: false };
                match if *len > 0 { self.fs.allocate(&caller, ino, how, 0, *len) } else { Ok(()) } {
                    Ok(()) => Ok(()),
                    Err(error) => {
                        self.unmake(&path, FileKind::File)?;
                        Err(nothing_done(error))
                    }
                }
            }
            Op::SetModified { path, unix_seconds } => {
                let Ok(seconds) = i64::try_from(*unix_seconds) else { return refuse(Errno::INVAL) };
                let time = Some(Timestamp { seconds, nanoseconds: 0 });
                self.change(&at(path), &SetAttributes { accessed: time, modified: time, ..none })
            }
            Op::SetTimes { path, accessed, modified } => {
                let (accessed, modified) = (accessed.map(timestamp), modified.map(timestamp));
                self.change(&at(path), &SetAttributes { accessed, modified, ..none })
            }
            Op::Chown { path, uid, gid } => self.change(&at(path), &SetAttributes { uid: *uid, gid: *gid, ..none }),
            Op::Read { path, offset, len } => {
                let ino = self.file(&at(path))?;
                self.read(ino, *offset, *len)
            }
            Op::Fallocate { path, how, offset, len } => {
                let ino = self.file(&at(path))?;
                self.fs.allocate(&caller, ino, allocate_how(*how), *offset, *len).map_err(nothing_done)
            }
            Op::SetXattr { path, name, value } => {
                let ino = self.found(&at(path))?.ino;
                self.fs.set_xattr(&caller, ino, name, value, SetXattrMode::Any).map_err(nothing_done)
            }
            Op::RemoveXattr { path, name } => {
                let ino = self.found(&at(path))?.ino;
                self.fs.remove_xattr(&caller, ino, name).map_err(nothing_done)
            }
            Op::Mknod { path, mode, device } => {
                let Some(kind) = FileKind::from_mode(*mode) else { return refuse(Errno::INVAL) };
                let device = *device as u32;
                self.make(&at(path), &NewNode { kind, permissions: mode & 0o7777, device }).map(|_| ())
            }
        }
    }

    fn stop(&self) -> StopFn {
        self.stop
    }

    fn forget_directories(&mut self) {
        self.directories.clear();
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        let space = self.fs.space().map_err(io::Error::other)?;
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(space.block_bytes.into()));
        Ok(SpaceLeft { capacity: bytes(space.blocks), free: bytes(space.available) })
    }
}
