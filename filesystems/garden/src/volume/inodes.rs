//! Inodes: making, finding and removing them, and inodes without a name.

use senesce_fsapi::{Caller, FileKind, FsError, FsResult, NewNode};

use super::{attributes::attributes_of, compute_cost};
use crate::{
    error::Result,
    format::{
        BLOCK,
        inode::Inode,
        operation::{Act, Operation},
        pointer::MAX_GROUP,
    },
    store::{Store, volume},
};

/// Blocks of a file without a name that one operation frees, at most: the pointers are read under
/// the lock.
const STEP_BLOCKS: u64 = 1 << 16;

impl Store {
    /// The inode with a number that a client uses. Errors: `Stale`.
    pub fn user_inode(&mut self, space: u32, ino: u64) -> FsResult<Inode> {
        let known = ino == volume::ROOT || ino >= volume::FIRST_USER;
        if !known || ino >= self.volume(space)?.record.inodes {
            return Err(FsError::Stale);
        }
        // A regular file with a parent holds the attributes of another inode. Clients cannot access
        // it.
        let inode = self.try_inode(space, ino)?;
        inode.filter(|inode| inode.kind == FileKind::Directory || inode.parent == 0).ok_or(FsError::Stale)
    }

    /// The inode of a directory. Errors: `Stale`, `NotDirectory`.
    pub fn directory(&mut self, space: u32, ino: u64) -> FsResult<Inode> {
        let inode = self.user_inode(space, ino)?;
        if inode.kind == FileKind::Directory { Ok(inode) } else { Err(FsError::NotDirectory) }
    }

    /// Makes a new inode without names. The number `ino` must be free.
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

    /// Removes an inode that lost its last name. While it is held, adds it to the orphans instead.
    pub(super) fn lose_last_name(&mut self, space: u32, ino: u64, held: bool) -> Result<()> {
        if !held {
            return self.remove_inode(space, ino);
        }
        let volume = self.volume_mut(space)?;
        let at = 8 * volume.orphans.len() as u64;
        volume.orphans.push(ino);
        self.write_file(space, volume::ORPHANS, at, &ino.to_le_bytes()[..])
    }

    /// Whether a file is too long for one operation to remove, because that reads all its pointers.
    pub fn is_long(&mut self, space: u32, ino: u64) -> Result<bool> {
        let inode = self.inode(space, ino)?;
        Ok(!inode.inline && inode.size.div_ceil(BLOCK as u64) > STEP_BLOCKS)
    }

    /// Removes all inodes of a volume that have no name and are not held, as far as space suffices.
    /// The log has no record of it; opening repeats it after a loss of power.
    pub fn reap_orphans(&mut self, space: u32) -> Result<()> {
        for ino in self.volume(space)?.orphans.clone() {
            let reap = Operation { volume: space, caller: Caller::default(), act: Act::Reap { ino } };
            let (blocks, frees) = compute_cost(&reap.act);
            // A long inode is removed in steps.
            while self.volume(space)?.orphans.contains(&ino) {
                if self.is_due() || self.is_waiting() && self.reserve(Some(space), blocks, frees).is_err() {
                    self.consistency_point()?;
                }
                // Without space even now, the inode waits for the next opening, because a full
                // aggregate must still open.
                if self.reserve(Some(space), blocks, frees).is_err() {
                    break;
                }
                self.apply(&reap)?;
            }
        }
        Ok(())
    }

    /// Removes an inode without a name; of a long one only the last part. Errors: `Stale` if it has
    /// a name or does not exist.
    pub(super) fn reap(&mut self, space: u32, ino: u64) -> FsResult<()> {
        let mut orphans = self.volume(space)?.orphans.iter();
        let at = orphans.position(|&orphan| orphan == ino).ok_or(FsError::Stale)?;
        if self.is_long(space, ino)?
            && let Some(last) = self.last_block(space, ino)?
            && last >= STEP_BLOCKS
        {
            // Rounds up to a whole group, so that no compressed group must be read.
            let left = (last + 1 - STEP_BLOCKS).next_multiple_of(MAX_GROUP.into());
            return Ok(self.resize(space, ino, left * BLOCK as u64)?);
        }
        let orphans = &self.volume(space)?.orphans;
        let last = orphans.len() - 1;
        let moved = orphans[last];
        self.write_file(space, volume::ORPHANS, 8 * at as u64, &moved.to_le_bytes()[..])?;
        self.resize(space, volume::ORPHANS, 8 * last as u64)?;
        self.volume_mut(space)?.orphans.swap_remove(at);
        Ok(self.remove_inode(space, ino)?)
    }
}
