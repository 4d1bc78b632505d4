//! A volume as a [`FileSystem`].

mod steps;

use std::{ops::ControlFlow, sync::Arc};

use senesce_core::Extent;
use senesce_fsapi::{
    Attributes, Caller, DirEntry, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, MAX_SYMLINK_BYTES,
    NewNode, ReadBegun, RenameMode, SeekTo, SetAttributes, SetXattrMode, SpaceReport, Timestamp, check_name,
};

use crate::{
    aggregate::Shared,
    aggregate::reads::Read,
    format::{BLOCK, operation::Act},
    store::{Store, is_snapshot, volume},
    volume::{MAX_FILE_BYTES, attributes_of, check_end, check_xattr_name},
};
use steps::SEEK_BLOCKS;

/// Blocks of a clone's source that are not on the drives yet and may be copied. If there are more,
/// a consistency point first puts them on the drives, so that they can be shared.
const COPIED_AT_MOST: u64 = 64;

/// A volume of an open aggregate, or a snapshot of one. Changes are durable on return, unless
/// [`Acknowledge`](crate::Acknowledge) says otherwise. A snapshot is read-only. After a deletion
/// all calls return `Stale`.
#[derive(Clone)]
pub struct VolumeFs {
    shared: Arc<Shared>,
    pub(crate) space: u32,
    /// Distinguishes the volume from a later one in the same place.
    number: u64,
}

impl VolumeFs {
    /// `number` is the one that the store has for `space`.
    pub(crate) fn new(shared: Arc<Shared>, space: u32, number: u64) -> Self {
        Self { shared, space, number }
    }

    /// Errors: `Stale` if the volume was deleted.
    fn check_there(&self, store: &Store) -> FsResult<()> {
        if store.number_of(self.space)? == self.number { Ok(()) } else { Err(FsError::Stale) }
    }

    /// Errors: `ReadOnly` for a snapshot.
    fn check_writable(&self) -> FsResult<()> {
        if is_snapshot(self.space) { Err(FsError::ReadOnly) } else { Ok(()) }
    }

    fn run<'a>(
        &self,
        caller: &Caller,
        mut plan: impl FnMut(&mut Store) -> FsResult<Act<'a>>,
    ) -> FsResult<Option<Attributes>> {
        self.check_writable()?;
        self.shared.run(self.space, caller, &mut |store| {
            self.check_there(store)?;
            plan(store)
        })
    }

    /// Runs an act that returns attributes.
    fn make<'a>(&self, caller: &Caller, plan: impl FnMut(&mut Store) -> FsResult<Act<'a>>) -> FsResult<Attributes> {
        let done = self.run(caller, plan)?;
        done.ok_or(FsError::Invalid { what: "the act gives no attributes" })
    }

    pub(crate) fn read_only<T>(&self, read: impl FnOnce(&mut Store) -> FsResult<T>) -> FsResult<T> {
        let mut store = self.shared.lock_for_operation();
        self.check_there(&store)?;
        let got = read(&mut store);
        store.shrink_cache();
        got
    }
}

impl FileSystem for VolumeFs {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.read_only(|store| {
            let parent = store.directory(self.space, directory.0)?;
            let ino = match name {
                b"." => directory.0,
                b".." if parent.links == 0 => return Err(FsError::NotFound),
                b".." => parent.parent,
                _ => store.entry(self.space, (directory.0, name))?.ino,
            };
            Ok(attributes_of(ino, &store.user_inode(self.space, ino)?))
        })
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        self.read_only(|store| Ok(attributes_of(ino.0, &store.user_inode(self.space, ino.0)?)))
    }

    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        self.make(caller, |_| Ok(Act::SetAttributes { ino: ino.0, change: *change }))
    }

    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        self.make(caller, |store| {
            let ino = store.pick_inode(self.space)?;
            Ok(Act::MakeNode { directory: directory.0, name: name.to_vec(), node: *node, ino })
        })
    }

    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        self.make(caller, |store| {
            let ino = store.pick_inode(self.space)?;
            Ok(Act::Symlink { directory: directory.0, name: name.to_vec(), target: target.to_vec(), ino })
        })
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        self.read_only(|store| {
            let inode = store.user_inode(self.space, ino.0)?;
            if inode.kind != FileKind::Symlink {
                return Err(FsError::Invalid { what: "not a symbolic link" });
            }
            if inode.size > MAX_SYMLINK_BYTES as u64 {
                return Err(FsError::Corrupt { what: format!("a target of {} bytes, inode {}", inode.size, ino.0) });
            }
            let mut target = vec![0; inode.size as usize];
            store.read_file(self.space, ino.0, 0, &mut target)?;
            Ok(target)
        })
    }

    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.make(caller, |_| Ok(Act::Link { ino: ino.0, directory: directory.0, name: name.to_vec() }))
    }

    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let mut left = None;
        let plan = |store: &mut Store| {
            store.entry(self.space, (directory.0, name))?;
            let held = self.is_held(store, directory, name, &mut left)?;
            Ok(Act::Unlink { directory: directory.0, name: name.to_vec(), held })
        };
        self.run(caller, plan)?;
        left.map_or(Ok(()), |ino| self.reap(caller, ino))
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let mut left = None;
        let plan = |store: &mut Store| {
            store.entry(self.space, (directory.0, name))?;
            let held = self.is_held(store, directory, name, &mut left)?;
            Ok(Act::Rmdir { directory: directory.0, name: name.to_vec(), held })
        };
        self.run(caller, plan)?;
        left.map_or(Ok(()), |ino| self.reap(caller, ino))
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        let mut left = None;
        let plan = |store: &mut Store| {
            store.entry(self.space, (from.0.0, from.1))?;
            check_name(to.1)?;
            store.directory(self.space, to.0.0)?;
            let held = self.is_held(store, to.0, to.1, &mut left)?;
            let (name, new_name) = (from.1.to_vec(), to.1.to_vec());
            Ok(Act::Rename { from: from.0.0, name, to: to.0.0, new_name, how, held })
        };
        self.run(caller, plan)?;
        left.map_or(Ok(()), |ino| self.reap(caller, ino))
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        Read::new(ino.0, offset).finish(self, out)
    }

    fn begin_read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> ReadBegun {
        let mut read = Read::new(ino.0, offset);
        match read.attempt(self, out) {
            Some(done) => ReadBegun::Done(done),
            None => {
                let fs = self.clone();
                ReadBegun::Waits(Box::new(move |out| read.finish(&fs, out)))
            }
        }
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        self.check_writable()?;
        if data.is_empty() || check_end(offset, data.len() as u64).is_err() {
            self.read_only(|store| store.regular(self.space, ino.0))?;
        }
        if data.is_empty() {
            return Ok(0);
        }
        check_end(offset, data.len() as u64)?;
        let most = self.shared.max_write();
        let mut done = 0;
        for piece in data.chunks(most) {
            match self.write_piece(caller, ino, offset + done as u64, piece) {
                Ok(written) => done += written,
                Err(FsError::NoSpace) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
            if !done.is_multiple_of(most) && done < data.len() {
                break;
            }
        }
        Ok(done)
    }

    /// A write allocates new places before it frees old ones, and a block of zeros is a hole. So
    /// neither blocks that are written in advance nor a count in the inode can reserve space.
    fn keeps_reservations(&self) -> bool {
        false
    }

    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()> {
        self.check_writable()?;
        let reserves = matches!(how, FallocateMode::Reserve { .. });
        if reserves && len.div_ceil(BLOCK as u64) > self.space()?.available {
            self.read_only(|store| store.regular(self.space, ino.0))?;
            check_end(offset, len)?;
            return Err(FsError::NoSpace);
        }
        self.run(caller, |_| Ok(Act::Allocate { ino: ino.0, how, offset, len })).map(|_| ())
    }

    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let (from, to) = ((from.0.0, from.1), (to.0.0, to.1));
        let (len, waiting) = self.read_only(|store| {
            let len = store.clone_len(self.space, from, to, len)?;
            Ok((len, store.dirty_contents(self.space, from.0, from.1, len)))
        })?;
        if waiting > COPIED_AT_MOST {
            self.shared.consistency_point()?;
        }
        let mut done = 0;
        while done < len {
            let (from, to) = ((from.0, from.1 + done), (to.0, to.1 + done));
            match self.clone_piece(caller, from, to, len - done) {
                Ok(0) => break,
                Ok(cloned) => done += cloned,
                Err(error) if done == 0 => return Err(error),
                // The count is short, so the caller continues after it and gets the error if it
                // lasts.
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        let mut from = offset / BLOCK as u64;
        loop {
            // Scans a limited number of pointers of a long file under one lock.
            if let Some(found) = self.read_only(|store| self.seek_step(store, ino, (offset, from), what))? {
                return Ok(found);
            }
            from += SEEK_BLOCKS;
        }
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        self.read_only(|store| {
            store.directory(self.space, directory.0)?;
            store.scan_names(self.space, directory.0, cookie, &mut |entry| {
                let given = DirEntry { ino: Ino(entry.ino), kind: entry.kind, cookie: entry.cookie, name: &entry.name };
                sink(given).is_continue()
            })?;
            Ok(())
        })
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        check_xattr_name(name)?;
        let all = self.read_only(|store| store.xattrs(self.space, ino.0))?;
        all.into_iter().find(|(other, _)| other == name).map(|(_, value)| value).ok_or(FsError::NoAttribute)
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()> {
        let plan = |store: &mut Store| {
            let has = store.user_inode(self.space, ino.0)?.xattrs;
            let file = if has == 0 { store.pick_inode(self.space)? } else { has };
            Ok(Act::SetXattr { ino: ino.0, name: name.to_vec(), value: value.to_vec(), how, file })
        };
        self.run(caller, plan).map(|_| ())
    }

    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        let all = self.read_only(|store| store.xattrs(self.space, ino.0))?;
        Ok(all.into_iter().map(|(name, _)| name).collect())
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        self.run(caller, |_| Ok(Act::RemoveXattr { ino: ino.0, name: name.to_vec() })).map(|_| ())
    }

    fn open(&self, ino: Ino) -> FsResult<()> {
        self.read_only(|store| {
            store.user_inode(self.space, ino.0)?;
            *store.volume_mut(self.space)?.held.entry(ino.0).or_insert(0) += 1;
            Ok(())
        })
    }

    fn release(&self, ino: Ino, now: Timestamp) -> FsResult<()> {
        let is_last = self.read_only(|store| {
            let held = &mut store.volume_mut(self.space)?.held;
            let count = held.get_mut(&ino.0).ok_or(FsError::Invalid { what: "the inode is not held" })?;
            *count -= 1;
            if *count > 0 {
                return Ok(false);
            }
            held.remove(&ino.0);
            Ok(!is_snapshot(self.space) && store.user_inode(self.space, ino.0)?.links == 0)
        })?;
        if is_last {
            let caller = Caller { now, ..Caller::default() };
            self.reap(&caller, ino.0)?;
        }
        Ok(())
    }

    /// Acknowledged operations are durable already, unless records wait in the log.
    fn sync(&self, ino: Ino) -> FsResult<()> {
        self.attributes(ino)?;
        self.sync_all()
    }

    fn sync_all(&self) -> FsResult<()> {
        Ok(self.shared.sync()?)
    }

    fn extents(&self, ino: Ino) -> FsResult<Vec<Extent>> {
        self.shared.consistency_point()?;
        self.read_only(|store| {
            store.regular(self.space, ino.0)?;
            Ok(store.file_extents(self.space, ino.0)?)
        })
    }

    fn space(&self) -> FsResult<SpaceReport> {
        self.read_only(|store| {
            let (free, available) = if is_snapshot(self.space) { (0, 0) } else { store.usable(self.space)? };
            let record = &store.volume(self.space)?.record;
            let inodes = record.inodes.saturating_sub(volume::FIRST_USER);
            let in_use = record.inodes_used.saturating_sub(volume::FIXED_FILES);
            Ok(SpaceReport {
                block_bytes: BLOCK as u32,
                blocks: (record.used + record.held + record.free()).min(store.raid.geometry.blocks()),
                free,
                available,
                inodes,
                free_inodes: inodes.saturating_sub(in_use),
            })
        })
    }
}

const _: () = assert!(MAX_FILE_BYTES < i64::MAX as u64);
