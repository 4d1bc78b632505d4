//! Calls that consist of several operations, or need the lock several times: their steps.

use senesce_fsapi::{Caller, FsError, FsResult, Ino, SeekTo};

use super::VolumeFs;
use crate::{
    format::{BLOCK, data::Data, operation::Act},
    store::Store,
};

/// Blocks that one operation shares or copies, at most.
const CLONED_AT_ONCE: u64 = 2048;
/// Blocks of a file that a seek scans under one lock.
pub(super) const SEEK_BLOCKS: u64 = 1 << 16;

impl VolumeFs {
    /// Whether the inode of a name must outlive the name: it is held open, or it is long. A long
    /// one is returned in `left` and removed in steps.
    pub(super) fn is_held(
        &self,
        store: &mut Store,
        directory: Ino,
        name: &[u8],
        left: &mut Option<u64>,
    ) -> FsResult<bool> {
        *left = None;
        let Some(entry) = store.find_name(self.space, directory.0, name)? else { return Ok(false) };
        if store.volume(self.space)?.held.contains_key(&entry.ino) {
            return Ok(true);
        }
        let is_long = store.is_long(self.space, entry.ino)?;
        *left = is_long.then_some(entry.ino);
        Ok(is_long)
    }

    /// Removes an inode without a name that is not held, a part with each operation. Other
    /// operations may run in between.
    pub(super) fn reap(&self, caller: &Caller, ino: u64) -> FsResult<()> {
        loop {
            let plan = |store: &mut Store| {
                let volume = store.volume(self.space)?;
                let is_free = volume.orphans.contains(&ino) && !volume.held.contains_key(&ino);
                if is_free { Ok(Act::Reap { ino }) } else { Err(FsError::Stale) }
            };
            match self.run(caller, plan) {
                Ok(_) => {}
                // The inode is gone, or its last holder will remove it. Without space, the next
                // opening will.
                Err(FsError::Stale | FsError::NoSpace) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The offset of the wanted data or hole, if it is within the next [`SEEK_BLOCKS`] blocks from
    /// `from` on.
    pub(super) fn seek_step(
        &self,
        store: &mut Store,
        ino: Ino,
        (offset, from): (u64, u64),
        what: SeekTo,
    ) -> FsResult<Option<u64>> {
        let inode = store.regular(self.space, ino.0)?;
        if offset >= inode.size {
            return Err(FsError::NoData);
        }
        let block = BLOCK as u64;
        let end = inode.size.div_ceil(block);
        let until = end.min(from + SEEK_BLOCKS);
        let found = match what {
            SeekTo::Data if inode.inline => Some(offset),
            SeekTo::Hole if inode.inline => Some(inode.size),
            _ => {
                let at = store.find_block(self.space, ino.0, from, until, what == SeekTo::Data)?;
                at.map(|at| (at * block).max(offset))
            }
        };
        match (found, what) {
            (Some(at), _) => Ok(Some(at.min(inode.size))),
            (None, _) if until < end => Ok(None),
            (None, SeekTo::Hole) => Ok(Some(inode.size)),
            (None, SeekTo::Data) => Err(FsError::NoData),
        }
    }

    /// Clones one piece, or less of it if space is short. Returns the number of bytes.
    pub(super) fn clone_piece(&self, caller: &Caller, from: (u64, u64), to: (u64, u64), len: u64) -> FsResult<u64> {
        let mut most = CLONED_AT_ONCE;
        if self.read_only(|store| store.plan_clone(self.space, from, to, len, most))? == 0 {
            return Ok(0);
        }
        loop {
            let mut planned = 0;
            let done = self.run(caller, |store| {
                planned = store.plan_clone(self.space, from, to, len, most)?;
                let ((from, from_offset), (to, to_offset)) = (from, to);
                Ok(Act::CloneRange { from, from_offset, to, to_offset, len: planned })
            });
            match done {
                Ok(_) => return Ok(planned),
                Err(FsError::NoSpace) if most > 1 => most = (most / 8).max(1),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes one piece, or less of it if space is short. Returns the number of bytes.
    pub(super) fn write_piece(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        let sums = Data::sums_of(data);
        let mut len = data.len();
        loop {
            let piece = Data { bytes: &data[..len], sums: &sums[..len / BLOCK] };
            let plan = |store: &mut Store| {
                store.regular(self.space, ino.0)?;
                Ok(Act::Write { ino: ino.0, offset, data: piece })
            };
            match self.run(caller, plan) {
                Ok(_) => return Ok(len),
                Err(FsError::NoSpace) if len > BLOCK => len = (len / 2).next_multiple_of(BLOCK).min(len - 1),
                Err(error) => return Err(error),
            }
        }
    }
}
