//! Clones of file ranges, which share blocks.
//!
//! A block whose contents are on the drives is shared: the target's pointer names the same VVBN. A
//! block that changed after the last consistency point has no VVBN yet, and is copied.

use senesce_fsapi::{Caller, FsResult, Ino, check_clone};

use super::contents::check_end;
use crate::{
    error::Result,
    format::{
        BLOCK,
        pointer::{Part, Pointer},
    },
    store::{Key, Store, THAWED},
};

const BLOCK_BYTES: u64 = BLOCK as u64;

/// The start of a range: an inode and an offset in bytes.
pub(crate) type At = (u64, u64);

impl Store {
    /// The number of bytes that a clone of `len` bytes covers. Errors: those of the clone.
    pub fn clone_len(&mut self, space: u32, from: At, to: At, len: u64) -> FsResult<u64> {
        let source = self.regular(space, from.0)?;
        self.regular(space, to.0)?;
        let len = check_clone((Ino(from.0), from.1), source.size, (Ino(to.0), to.1), len)?;
        check_end(to.1, len)?;
        Ok(len)
    }

    /// The number of bytes of a remaining clone that one operation can do, so that it shares or
    /// copies up to `most` blocks; 0 if the source ends here now.
    ///
    /// Errors: those of the clone.
    ///
    /// Cost: reads the pointers.
    pub fn plan_clone(&mut self, space: u32, from: At, to: At, len: u64, most: u64) -> FsResult<u64> {
        let source = self.regular(space, from.0)?;
        self.regular(space, to.0)?;
        let len = len.min(source.size.saturating_sub(from.1));
        check_end(to.1, len)?;
        if source.inline {
            return Ok(len);
        }
        let first = from.1 / BLOCK_BYTES;
        let end = first + len.div_ceil(BLOCK_BYTES);
        let (mut at, mut found) = (first, 0);
        while let Some(block) = self.find_block(space, from.0, at, end, true)? {
            if found == most {
                return Ok((block - first) * BLOCK_BYTES);
            }
            (at, found) = (block + 1, found + 1);
        }
        Ok(len)
    }

    /// The most blocks that a clone changes: copies, pointers, counts of references. Counts are
    /// charged twice, because the existing ones need reserved space from then on.
    pub(super) fn clone_cost(&mut self, space: u32, from: At, to: At, len: u64) -> Result<u64> {
        if self.inode(space, from.0)?.inline {
            return Ok(40); // a small write
        }
        let first = from.1 / BLOCK_BYTES;
        let blocks = len.div_ceil(BLOCK_BYTES);
        // Blocks of pointers: those above the inode and both ends, and for each block those that
        // the previous block does not share.
        let (mut pointers, mut before) = (40, to.1 / BLOCK_BYTES);
        let (mut at, mut shared, mut copied) = (first, 0, 0);
        while let Some(block) = self.find_block(space, from.0, at, first + blocks, true)? {
            let is_changed = self.is_changed(Key::new(space, from.0, 0, block));
            let is_full = !is_changed && self.is_full(Key::new(space, from.0, 0, block))?;
            copied += u64::from(is_changed || is_full);
            shared += u64::from(!is_changed && !is_full);
            let target = to.1 / BLOCK_BYTES + (block - first);
            pointers += (1..8).filter(|level| target >> (8 * level) != before >> (8 * level)).count() as u64;
            before = target;
            at = block + 1;
        }
        let thawed = if self.volume(space)?.record.packing.was_on { THAWED } else { 0 };
        Ok(thawed + copied + pointers + 2 * self.volume(space)?.counted_blocks(shared))
    }

    /// Whether a block on the drives must be copied: its count of references is at the limit, or it
    /// is in a compression group.
    fn is_full(&mut self, key: Key) -> Result<bool> {
        match self.pointer(key)? {
            Some(Pointer { vvbn: Some(vvbn), part: Part::Whole, .. }) => {
                Ok(self.owners(key.space(), vvbn)? == u16::MAX)
            }
            Some(_) => Ok(true),
            None => Ok(false),
        }
    }

    pub(super) fn clone_range(&mut self, space: u32, caller: &Caller, from: At, to: At, len: u64) -> FsResult<()> {
        let len = self.plan_clone(space, from, to, len, u64::MAX)?;
        if len == 0 {
            return Ok(());
        }
        if self.inode(space, from.0)?.inline {
            let mut bytes = vec![0; len as usize];
            self.read_file(space, from.0, from.1, &mut bytes)?;
            self.write_file(space, to.0, to.1, &bytes[..])?;
        } else {
            self.clone_blocks(space, from, to, len)?;
        }
        self.stamp_contents(space, caller, to.0)
    }

    fn clone_blocks(&mut self, space: u32, from: At, to: At, len: u64) -> Result<()> {
        let end = to.1 + len;
        // The bytes after the end of a file are zeros in its last block. So that block is shared
        // whole if it is also the last one of the target.
        let is_last = from.1 + len == self.inode(space, from.0)?.size && end >= self.inode(space, to.0)?.size;
        let whole = if is_last { len.div_ceil(BLOCK_BYTES) } else { len / BLOCK_BYTES };
        let tail = len.saturating_sub(whole * BLOCK_BYTES) as usize;
        let first = from.1 / BLOCK_BYTES;
        let source = |block| Key::new(space, from.0, 0, block);
        let target = |block| Key::new(space, to.0, 0, to.1 / BLOCK_BYTES + (block - first));
        let mut bytes = vec![0; tail];
        self.look_at(space, from.0, first..first + whole)?;
        self.look_at_groups(space, to.0, target(first).index()..target(first + whole).index())?;
        if tail > 0 && !self.inode(space, to.0)?.inline && self.has_block(target(first + whole))? {
            self.get(target(first + whole))?;
            self.read_group(target(first + whole))?;
        }
        self.read_file(space, from.0, from.1 + whole * BLOCK_BYTES, &mut bytes)?;
        let has_tail = tail > 0 && self.has_block(source(first + whole))?;

        self.spill(space, to.0)?;
        self.grow(space, to.0, end.div_ceil(BLOCK_BYTES))?;
        let (mut at, mut new) = (first, 0);
        while at < first + whole {
            let found = self.find_block(space, from.0, at, first + whole, true)?;
            let hole_end = found.unwrap_or(first + whole);
            if at < hole_end {
                self.free_range(space, to.0, target(at).index(), target(hole_end).index())?;
            }
            if let Some(block) = found {
                new += u64::from(!self.has_block(target(block))?);
                self.clone_block(source(block), target(block))?;
            }
            at = hole_end + 1;
        }
        let mut inode = self.inode(space, to.0)?;
        inode.size = inode.size.max(end);
        inode.blocks += new;
        self.put_inode(space, to.0, &inode)?;
        match tail {
            0 => Ok(()),
            _ if has_tail => self.write_file(space, to.0, end - tail as u64, &bytes[..]),
            _ => self.punch(space, to.0, end - tail as u64, tail as u64),
        }
    }

    /// Loads the blocks that cloning a range must copy, so that a read failure happens before the
    /// first change.
    fn look_at(&mut self, space: u32, file: u64, blocks: std::ops::Range<u64>) -> Result<()> {
        let mut at = blocks.start;
        while let Some(block) = self.find_block(space, file, at, blocks.end, true)? {
            let key = Key::new(space, file, 0, block);
            if self.is_full(key)? {
                self.get(key)?;
            }
            at = block + 1;
        }
        Ok(())
    }

    /// Loads the compression groups of a range, for the same reason.
    fn look_at_groups(&mut self, space: u32, file: u64, blocks: std::ops::Range<u64>) -> Result<()> {
        if self.inode(space, file)?.inline || !self.volume(space)?.record.packing.was_on {
            return Ok(());
        }
        let mut at = blocks.start;
        while let Some(block) = self.find_block(space, file, at, blocks.end, true)? {
            self.read_group(Key::new(space, file, 0, block))?;
            at = block + 1;
        }
        Ok(())
    }

    /// Makes a block equal to another one, by sharing or copying it.
    fn clone_block(&mut self, from: Key, to: Key) -> Result<()> {
        if !self.is_changed(from)
            && let Some(pointer) = self.pointer(from)?.filter(|pointer| pointer.part == Part::Whole)
            && let Some(vvbn) = pointer.vvbn
        {
            self.thaw(to)?;
            let old = self.pointer(to)?;
            if !self.is_changed(to) && old.is_some_and(|old| old.vvbn == Some(vvbn)) {
                return Ok(());
            }
            if self.share(from.space(), vvbn)? {
                self.forget(to);
                self.set_pointer(to, Some(pointer))?;
                return old.map_or(Ok(()), |old| self.note_freed(to.space(), old));
            }
        }
        let data = Box::new(*self.get(from)?);
        *self.replace(to)? = *data;
        Ok(())
    }
}
