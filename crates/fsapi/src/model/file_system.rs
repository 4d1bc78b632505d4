//! The trait over inodes and names.

use std::{
    ops::{Bound, ControlFlow},
    sync::{Mutex, MutexGuard, PoisonError},
};

use senesce_core::Bytes;

use super::{
    contents::{Contents, PAGE_BYTES},
    state::{Body, State},
};
use crate::{
    Attributes, Caller, DirEntry, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, MAX_FILE_BYTES,
    MAX_NAME_BYTES, MAX_SYMLINK_BYTES, MAX_XATTR_BYTES, NewNode, RenameMode, SeekTo, SetAttributes, SetXattrMode,
    SpaceReport, Timestamp, check_clone,
};

/// A file system in memory. It is simple, to be obviously right: every operation holds one lock.
///
/// Its capacity is counted in units of 4 KiB: each inode and each page of a file is one. Names and
/// extended attributes take none.
#[derive(Debug)]
pub struct ModelFs(Mutex<State>);

impl ModelFs {
    /// An empty file system; the root belongs to user and group 0.
    pub fn new(capacity: Bytes) -> Self {
        Self(Mutex::new(State::new(capacity.0 / PAGE_BYTES)))
    }

    /// An independent copy.
    pub fn fork(&self) -> Self {
        Self(Mutex::new(self.state().clone()))
    }

    /// Simulates a reopening: all holds end, and inodes without a name are removed.
    pub fn reopen(&self) {
        let mut state = self.state();
        let held: Vec<Ino> = state.inodes.iter().filter(|(_, inode)| inode.held > 0).map(|(ino, _)| *ino).collect();
        for ino in held {
            if let Ok(inode) = state.inode_mut(ino) {
                inode.held = 0;
            }
            state.drop_if_unused(ino).expect("the inode exists");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_end(offset: u64, len: u64) -> FsResult<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_FILE_BYTES => Ok(end),
        end => Err(FsError::TooLarge { bytes: end.unwrap_or(u64::MAX), max: MAX_FILE_BYTES }),
    }
}

fn check_xattr_name(name: &[u8]) -> FsResult<()> {
    match name.len() {
        0 => Err(FsError::Invalid { what: "an attribute without a name" }),
        bytes if bytes > MAX_NAME_BYTES => {
            Err(FsError::TooLong { what: "an attribute's name", bytes, max: MAX_NAME_BYTES })
        }
        _ => Ok(()),
    }
}

impl FileSystem for ModelFs {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        let state = self.state();
        let ino = match name {
            b"." => state.directory(directory).map(|_| directory)?,
            b".." => {
                let parent = state.directory(directory)?.parent;
                state.check_alive(directory).map(|()| parent)?
            }
            name => state.named(directory, name)?,
        };
        Ok(state.inode(ino)?.stat())
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        Ok(self.state().inode(ino)?.stat())
    }

    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        let mut state = self.state();
        if let Some(size) = change.size {
            check_end(0, size)?;
            state.change_file(ino, |contents, _| {
                contents.set_len(size);
                Ok(())
            })?;
        }
        let inode = state.inode_mut(ino)?;
        let attributes = &mut inode.attributes;
        attributes.permissions = change.permissions.map_or(attributes.permissions, |bits| bits & 0o7777);
        attributes.uid = change.uid.unwrap_or(attributes.uid);
        attributes.gid = change.gid.unwrap_or(attributes.gid);
        attributes.accessed = change.accessed.unwrap_or(attributes.accessed);
        let written = if change.size.is_some() { caller.now } else { attributes.modified };
        attributes.modified = change.modified.unwrap_or(written);
        attributes.changed = change.changed.unwrap_or(caller.now);
        Ok(inode.stat())
    }

    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        let mut state = self.state();
        let body = match node.kind {
            FileKind::File => Body::File(Contents::default()),
            FileKind::Directory => State::new_directory(directory),
            FileKind::Symlink => return Err(FsError::Invalid { what: "a symbolic link needs a target" }),
            FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => Body::Special,
        };
        let ino = state.make(caller, directory, name, node, body)?;
        Ok(state.inode(ino)?.stat())
    }

    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        match target.len() {
            0 => return Err(FsError::NotFound),
            bytes if bytes > MAX_SYMLINK_BYTES => {
                return Err(FsError::TooLong { what: "a target", bytes, max: MAX_SYMLINK_BYTES });
            }
            _ => {}
        }
        let node = NewNode { kind: FileKind::Symlink, permissions: 0o777, device: 0 };
        let mut state = self.state();
        let ino = state.make(caller, directory, name, &node, Body::Symlink(target.to_vec()))?;
        Ok(state.inode(ino)?.stat())
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        match &self.state().inode(ino)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(FsError::Invalid { what: "not a symbolic link" }),
        }
    }

    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        let mut state = self.state();
        if state.is_directory(ino) {
            return Err(FsError::NotPermitted);
        }
        state.check_alive(ino)?;
        state.check_new(directory, name)?;
        state.add_name(caller, directory, name, ino)?;
        let inode = state.inode_mut(ino)?;
        inode.attributes.links += 1;
        inode.attributes.changed = caller.now;
        Ok(inode.stat())
    }

    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let mut state = self.state();
        let ino = state.named(directory, name)?;
        if state.is_directory(ino) {
            return Err(FsError::IsDirectory);
        }
        state.remove_name(caller, directory, name)?;
        state.lose_name(caller, ino)
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let mut state = self.state();
        let ino = state.named(directory, name)?;
        if !state.directory(ino)?.names.is_empty() {
            return Err(FsError::NotEmpty);
        }
        state.remove_name(caller, directory, name)?;
        state.lose_name(caller, ino)
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        self.state().rename(caller, from, to, how)
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        Ok(self.state().inode(ino)?.file()?.read(offset, out))
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        let mut state = self.state();
        let written = state.change_file(ino, |contents, free| {
            let mut end = check_end(offset, data.len() as u64)?;
            while contents.missing(offset, end) > free {
                end = (end - 1) / PAGE_BYTES * PAGE_BYTES;
            }
            if end <= offset && !data.is_empty() {
                return Err(FsError::NoSpace);
            }
            let written = (end - offset) as usize;
            if written > 0 {
                contents.write(offset, &data[..written]);
            }
            Ok(written)
        })?;
        if written > 0 {
            let attributes = &mut state.inode_mut(ino)?.attributes;
            (attributes.modified, attributes.changed) = (caller.now, caller.now);
        }
        Ok(written)
    }

    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()> {
        let mut state = self.state();
        state.change_file(ino, |contents, free| {
            if len == 0 {
                return Err(FsError::Invalid { what: "an empty range" });
            }
            let end = check_end(offset, len)?;
            let keep_size = match how {
                FallocateMode::Punch => {
                    contents.clear(offset, end);
                    return Ok(());
                }
                FallocateMode::Zero { keep_size } => {
                    contents.clear(offset, end);
                    keep_size
                }
                FallocateMode::Reserve { keep_size } => {
                    if contents.missing(offset, end) > free {
                        return Err(FsError::NoSpace);
                    }
                    contents.reserve(offset, end);
                    keep_size
                }
            };
            if !keep_size && end > contents.len() {
                contents.set_len(end);
            }
            Ok(())
        })?;
        let attributes = &mut state.inode_mut(ino)?.attributes;
        (attributes.modified, attributes.changed) = (caller.now, caller.now);
        Ok(())
    }

    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let mut state = self.state();
        let source = state.inode(from.0)?.file()?;
        state.inode(to.0)?.file()?;
        let len = check_clone(from, source.len(), to, len)?;
        if len == 0 {
            return Ok(0);
        }
        let copy = source.copy_pages(from.1, len);
        state.change_file(to.0, |contents, free| {
            if contents.missing_for(to.1, &copy) > free {
                return Err(FsError::NoSpace);
            }
            contents.put_pages(to.1, copy);
            Ok(())
        })?;
        let attributes = &mut state.inode_mut(to.0)?.attributes;
        (attributes.modified, attributes.changed) = (caller.now, caller.now);
        Ok(len)
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        let state = self.state();
        let contents = state.inode(ino)?.file()?;
        if offset >= contents.len() {
            return Err(FsError::NoData);
        }
        match what {
            SeekTo::Data => contents.next_data(offset).ok_or(FsError::NoData),
            SeekTo::Hole => Ok(contents.next_hole(offset)),
        }
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        let state = self.state();
        let entries = state.directory(directory)?;
        for (&cookie, name) in entries.by_cookie.range((Bound::Excluded(cookie), Bound::Unbounded)) {
            let (_, ino) = entries.names[name];
            let kind = state.inode(ino)?.attributes.kind;
            if sink(DirEntry { ino, kind, cookie, name }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        check_xattr_name(name)?;
        self.state().inode(ino)?.xattrs.get(name).cloned().ok_or(FsError::NoAttribute)
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()> {
        check_xattr_name(name)?;
        if value.len() > MAX_XATTR_BYTES {
            return Err(FsError::ValueTooLong { bytes: value.len(), max: MAX_XATTR_BYTES });
        }
        let mut state = self.state();
        let inode = state.inode_mut(ino)?;
        match (how, inode.xattrs.contains_key(name)) {
            (SetXattrMode::Create, true) => return Err(FsError::Exists),
            (SetXattrMode::Replace, false) => return Err(FsError::NoAttribute),
            _ => {}
        }
        inode.xattrs.insert(name.to_vec(), value.to_vec());
        inode.attributes.changed = caller.now;
        Ok(())
    }

    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        Ok(self.state().inode(ino)?.xattrs.keys().cloned().collect())
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        check_xattr_name(name)?;
        let mut state = self.state();
        let inode = state.inode_mut(ino)?;
        inode.xattrs.remove(name).ok_or(FsError::NoAttribute)?;
        inode.attributes.changed = caller.now;
        Ok(())
    }

    fn open(&self, ino: Ino) -> FsResult<()> {
        self.state().inode_mut(ino)?.held += 1;
        Ok(())
    }

    fn release(&self, ino: Ino, _now: Timestamp) -> FsResult<()> {
        let mut state = self.state();
        let inode = state.inode_mut(ino)?;
        inode.held = inode.held.checked_sub(1).ok_or(FsError::Invalid { what: "it is not held" })?;
        state.drop_if_unused(ino)
    }

    fn sync(&self, ino: Ino) -> FsResult<()> {
        self.state().inode(ino).map(|_| ())
    }

    fn sync_all(&self) -> FsResult<()> {
        Ok(())
    }

    fn space(&self) -> FsResult<SpaceReport> {
        let state = self.state();
        let (blocks, free) = (state.capacity, state.free());
        let block_bytes = PAGE_BYTES as u32;
        Ok(SpaceReport { block_bytes, blocks, free, available: free, inodes: blocks, free_inodes: free })
    }
}
