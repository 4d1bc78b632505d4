//! The implementation of [`FileSystem`].

use std::{ops::ControlFlow, sync::atomic::Ordering};

use senesce_fsapi::{
    Attributes, Caller, DirEntry, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, NewNode, RenameMode,
    SeekTo, SetAttributes, SetXattrMode, SpaceReport, Timestamp,
};

use super::{
    evergreen::EvergreenFs,
    inode_record::{BLOCK, FREE_BLOCK},
    inodes::check_target,
};
use crate::{Batch, KeyValue};

/// The most bytes of objects that a `sync_all` moves after renames.
const TENDED_AT_SYNC: u64 = 4 << 20;

impl<S: KeyValue> FileSystem for EvergreenFs<S> {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.do_lookup(directory, name)
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        Ok(self.reading(&self.table.get(ino))?.inode.stat(ino))
    }

    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        let node = self.table.get(ino);
        let mut object = self.writing(&node)?;
        let mut inode = object.inode;
        let mut batch = Batch::new();
        if let Some(size) = change.size {
            inode.file()?;
            self.set_size(&mut batch, &object, &mut inode, size)?;
            inode.modified = caller.now;
        }
        inode.permissions = change.permissions.map_or(inode.permissions, |bits| bits & 0o7777);
        inode.uid = change.uid.unwrap_or(inode.uid);
        inode.gid = change.gid.unwrap_or(inode.gid);
        inode.accessed = change.accessed.unwrap_or(inode.accessed);
        inode.modified = change.modified.unwrap_or(inode.modified);
        inode.changed = change.changed.unwrap_or(caller.now);
        self.change_inode(&mut batch, ino, &object, &inode);
        self.store.apply(batch)?;
        object.inode = inode;
        Ok(inode.stat(ino))
    }

    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        if node.kind == FileKind::Symlink {
            return Err(FsError::Invalid { what: "a symbolic link needs a target" });
        }
        self.make(caller, directory, name, node, &[])
    }

    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        check_target(target)?;
        let node = NewNode { kind: FileKind::Symlink, permissions: 0o777, device: 0 };
        self.make(caller, directory, name, &node, target)
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        let node = self.table.get(ino);
        let object = self.reading(&node)?;
        Ok(self.target(&object)?.to_vec())
    }

    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.do_link(caller, ino, directory, name)
    }

    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.remove(caller, directory, name, false)
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.remove(caller, directory, name, true)
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        self.do_rename(caller, from, to, how)
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        self.do_read(ino, offset, out)
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        self.do_write(caller, ino, offset, data)
    }

    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()> {
        self.do_allocate(caller, ino, how, offset, len)
    }

    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        self.do_clone(caller, from, to, len)
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        self.do_seek(ino, offset, what)
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        self.do_read_dir(directory, cookie, sink)
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        self.do_get_xattr(ino, name)
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()> {
        self.do_set_xattr(caller, ino, name, value, how)
    }

    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        self.do_list_xattrs(ino)
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        self.do_remove_xattr(caller, ino, name)
    }

    fn open(&self, ino: Ino) -> FsResult<()> {
        let node = self.table.get(ino);
        let _there = self.reading(&node)?;
        node.held.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, ino: Ino, _now: Timestamp) -> FsResult<()> {
        let node = self.table.get(ino);
        let object = self.writing(&node)?;
        let held = node.held.load(Ordering::Relaxed);
        let left = held.checked_sub(1).ok_or(FsError::Invalid { what: "it is not held" })?;
        node.held.store(left, Ordering::Relaxed);
        // If this fails, the next opening removes the inode.
        if left == 0 && object.inode.links == 0 { self.remove_orphan(&node, object) } else { Ok(()) }
    }

    fn sync(&self, ino: Ino) -> FsResult<()> {
        let blocks = self.reading(&self.table.get(ino))?.home.blocks_from(0);
        Ok(self.store.sync_of(&blocks)?)
    }

    fn sync_all(&self) -> FsResult<()> {
        self.store.sync()?;
        // A failed sweep is no failure of the sync: all acknowledged changes are durable.
        // `take_sweep_news` reports unreadable objects. A failure that stops the store is an error
        // of the next call.
        let _ = self.tend(TENDED_AT_SYNC);
        Ok(())
    }

    fn space(&self) -> FsResult<SpaceReport> {
        let live = self.store.live();
        let (blocks, free) = (live.most / FREE_BLOCK, live.most.saturating_sub(live.bytes) / FREE_BLOCK);
        let available = free.min(self.store.claimable() / FREE_BLOCK);
        Ok(SpaceReport { block_bytes: BLOCK as u32, blocks, free, available, inodes: blocks, free_inodes: free })
    }
}
