//! Inodes: making, finding, removing them, and those without a name.

use senesce_fsapi::{Caller, FileKind, FsError, FsResult, NewNode};

use super::attributes::attributes_of;
use crate::{
    error::Result,
    format::inode::Inode,
    store::{Store, volume},
};

impl Store {
    /// The inode that a user names by its number. Errors: `Stale`.
    pub fn user_inode(&mut self, space: u32, ino: u64) -> FsResult<Inode> {
        let known = ino == volume::ROOT || ino >= volume::FIRST_USER;
        if !known || ino >= self.volume(space)?.record.inodes {
            return Err(FsError::Stale);
        }
        // A file with a parent holds attributes of another one, and is nobody's.
        let inode = self.try_inode(space, ino)?;
        inode.filter(|inode| inode.kind == FileKind::Directory || inode.parent == 0).ok_or(FsError::Stale)
    }

    /// A directory. Errors: `Stale`, `NotDirectory`.
    pub fn directory(&mut self, space: u32, ino: u64) -> FsResult<Inode> {
        let inode = self.user_inode(space, ino)?;
        if inode.kind == FileKind::Directory { Ok(inode) } else { Err(FsError::NotDirectory) }
    }

    /// Takes the number `ino`, which must be free, for a new inode without names.
    pub(super) fn make_inode(
        &mut self,
        space: u32,
        caller: &Caller,
        parent: Option<&Inode>,
        node: &NewNode,
        ino: u64,
    ) -> Result<Inode> {
        let (uid, gid, permissions) = match parent {
            Some(parent) => node.ownership(caller, &attributes_of(0, parent)),
            None => (caller.uid, caller.gid, node.permissions),
        };
        self.set_inode_used(space, ino, true)?;
        let volume = self.volume_mut(space)?;
        volume.record.births = volume.record.births.wrapping_add(1);
        let generation = volume.record.births as u32;
        let is_device = matches!(node.kind, FileKind::CharDevice | FileKind::BlockDevice);
        Ok(Inode {
            permissions: permissions as u16,
            uid,
            gid,
            accessed: caller.now,
            modified: caller.now,
            changed: caller.now,
            generation,
            device: if is_device { node.device } else { 0 },
            ..Inode::new(node.kind)
        })
    }

    /// Removes an inode with its contents and attributes.
    pub(super) fn remove_inode(&mut self, space: u32, ino: u64) -> Result<()> {
        let inode = self.inode(space, ino)?;
        self.resize(space, ino, 0)?;
        if inode.xattrs != 0 {
            self.remove_inode(space, inode.xattrs)?;
        }
        self.clear_inode(space, ino)?;
        self.set_inode_used(space, ino, false)
    }

    /// An inode lost its last name: it goes, or waits among the orphans while it is held.
    pub(super) fn lose_last_name(&mut self, space: u32, ino: u64, held: bool) -> Result<()> {
        if !held {
            return self.remove_inode(space, ino);
        }
        let volume = self.volume_mut(space)?;
        let at = 8 * volume.orphans.len() as u64;
        volume.orphans.push(ino);
        self.write_file(space, volume::ORPHANS, at, &ino.to_le_bytes())
    }

    /// Removes an inode without a name. Errors: `Stale` if it is none.
    pub(super) fn reap(&mut self, space: u32, ino: u64) -> FsResult<()> {
        let orphans = &self.volume(space)?.orphans;
        let at = orphans.iter().position(|&orphan| orphan == ino).ok_or(FsError::Stale)?;
        let last = orphans.len() - 1;
        let moved = orphans[last];
        self.write_file(space, volume::ORPHANS, 8 * at as u64, &moved.to_le_bytes())?;
        self.resize(space, volume::ORPHANS, 8 * last as u64)?;
        self.volume_mut(space)?.orphans.swap_remove(at);
        Ok(self.remove_inode(space, ino)?)
    }
}
