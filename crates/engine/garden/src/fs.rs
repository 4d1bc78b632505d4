//! A volume as a [`FileSystem`].

use std::{ops::ControlFlow, sync::Arc};

use senesce_fsapi::{
    AllocateHow, Attributes, Caller, DirEntry, FileKind, FileSystem, FsError, FsResult, Ino, MAX_SYMLINK_BYTES,
    NewNode, RenameHow, SeekTo, SetAttributes, SetXattrHow, SpaceReport, Timestamp, check_name,
};

use crate::{
    engine::Shared,
    format::{BLOCK, operation::Act},
    store::{Store, volume},
    volume::{MAX_FILE_BYTES, attributes_of, check_end, check_xattr_name},
};

/// A volume of an open aggregate. Every change is durable when it returns.
pub struct VolumeFs {
    shared: Arc<Shared>,
    space: u32,
}

impl VolumeFs {
    pub(crate) fn new(shared: Arc<Shared>, space: u32) -> Self {
        Self { shared, space }
    }

    fn run(&self, caller: &Caller, mut plan: impl FnMut(&mut Store) -> FsResult<Act>) -> FsResult<Option<Attributes>> {
        self.shared.run(self.space, caller, &mut plan)
    }

    /// Runs an act whose result is what `stat` shows.
    fn make(&self, caller: &Caller, plan: impl FnMut(&mut Store) -> FsResult<Act>) -> FsResult<Attributes> {
        let done = self.run(caller, plan)?;
        done.ok_or(FsError::Invalid { what: "the act gives no attributes" })
    }

    fn read_only<T>(&self, read: impl FnOnce(&mut Store) -> FsResult<T>) -> FsResult<T> {
        let mut store = self.shared.lock();
        let got = read(&mut store);
        let limit = store.limits.cache_bytes;
        store.cache.shrink(limit);
        got
    }

    /// Whether the inode that a name leads to is held open.
    fn is_held(&self, store: &mut Store, directory: Ino, name: &[u8]) -> FsResult<bool> {
        match store.find_name(self.space, directory.0, name)? {
            Some(entry) => Ok(store.volume(self.space)?.held.contains_key(&entry.ino)),
            None => Ok(false),
        }
    }

    /// Writes one piece, less of it if the space does not suffice for all. Says how much.
    fn write_piece(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        let mut len = data.len();
        loop {
            let piece = &data[..len];
            match self.run(caller, |_| Ok(Act::Write { ino: ino.0, offset, data: piece.to_vec() })) {
                Ok(_) => return Ok(len),
                Err(FsError::NoSpace) if len > BLOCK => len = (len / 2).next_multiple_of(BLOCK).min(len - 1),
                Err(error) => return Err(error),
            }
        }
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
        let plan = |store: &mut Store| {
            store.entry(self.space, (directory.0, name))?;
            let held = self.is_held(store, directory, name)?;
            Ok(Act::Unlink { directory: directory.0, name: name.to_vec(), held })
        };
        self.run(caller, plan).map(|_| ())
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let plan = |store: &mut Store| {
            store.entry(self.space, (directory.0, name))?;
            let held = self.is_held(store, directory, name)?;
            Ok(Act::Rmdir { directory: directory.0, name: name.to_vec(), held })
        };
        self.run(caller, plan).map(|_| ())
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameHow) -> FsResult<()> {
        let plan = |store: &mut Store| {
            store.entry(self.space, (from.0.0, from.1))?;
            check_name(to.1)?;
            store.directory(self.space, to.0.0)?;
            let held = self.is_held(store, to.0, to.1)?;
            let (name, new_name) = (from.1.to_vec(), to.1.to_vec());
            Ok(Act::Rename { from: from.0.0, name, to: to.0.0, new_name, how, held })
        };
        self.run(caller, plan).map(|_| ())
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        self.read_only(|store| {
            store.regular(self.space, ino.0)?;
            Ok(store.read_file(self.space, ino.0, offset, out)?)
        })
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        self.read_only(|store| store.regular(self.space, ino.0))?;
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

    fn allocate(&self, caller: &Caller, ino: Ino, how: AllocateHow, offset: u64, len: u64) -> FsResult<()> {
        let reserves = matches!(how, AllocateHow::Reserve { .. });
        if reserves && len.div_ceil(BLOCK as u64) > self.space()?.free {
            self.read_only(|store| store.regular(self.space, ino.0))?;
            check_end(offset, len)?;
            return Err(FsError::NoSpace);
        }
        self.run(caller, |_| Ok(Act::Allocate { ino: ino.0, how, offset, len })).map(|_| ())
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        self.read_only(|store| {
            let inode = store.regular(self.space, ino.0)?;
            if offset >= inode.size {
                return Err(FsError::NoData);
            }
            let block = BLOCK as u64;
            let found = match what {
                SeekTo::Data if inode.inline => Some(offset),
                SeekTo::Hole if inode.inline => Some(inode.size),
                _ => {
                    let end = inode.size.div_ceil(block);
                    let exists = what == SeekTo::Data;
                    let at = store.find_block(self.space, ino.0, offset / block, end, exists)?;
                    at.map(|at| (at * block).max(offset))
                }
            };
            match (found, what) {
                (Some(at), _) => Ok(at.min(inode.size)),
                (None, SeekTo::Hole) => Ok(inode.size),
                (None, SeekTo::Data) => Err(FsError::NoData),
            }
        })
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

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrHow) -> FsResult<()> {
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
            Ok(store.user_inode(self.space, ino.0)?.links == 0)
        })?;
        if is_last {
            let caller = Caller { now, ..Caller::default() };
            self.run(&caller, |_| Ok(Act::Reap { ino: ino.0 }))?;
        }
        Ok(())
    }

    /// Nothing is to be done: what was acknowledged is durable.
    fn sync(&self, ino: Ino) -> FsResult<()> {
        self.attributes(ino).map(|_| ())
    }

    /// Nothing is to be done: what was acknowledged is durable.
    fn sync_all(&self) -> FsResult<()> {
        Ok(())
    }

    fn space(&self) -> FsResult<SpaceReport> {
        self.read_only(|store| {
            let kept = store.kept() + store.dirty_blocks();
            let of_aggregate = store.sb.free.saturating_sub(kept);
            let record = &store.volume(self.space)?.record;
            let free = record.blocks.saturating_sub(record.used).min(of_aggregate);
            let inodes = record.inodes.saturating_sub(volume::FIRST_USER);
            let in_use = record.inodes_used.saturating_sub(volume::FIXED_FILES);
            Ok(SpaceReport {
                block_bytes: BLOCK as u32,
                blocks: record.blocks.min(store.raid.geometry.blocks()),
                free,
                available: free,
                inodes,
                free_inodes: inodes.saturating_sub(in_use),
            })
        })
    }
}

const _: () = assert!(MAX_FILE_BYTES < i64::MAX as u64);
