//! Contents of files: reading, writing, truncating, holes. Callers set the times.

use senesce_fsapi::{FileKind, FsError};

use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Block,
        data::Data,
        inode::{AREA, Inode},
        pointer::Pointer,
    },
    store::{Key, Store, shape_of, volume},
};

/// The longest file, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 50;
const BLOCK_BYTES: u64 = BLOCK as u64;

/// Splits a range into blocks: the number of each, the offset in it, and the range of the caller's
/// bytes.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES) as usize;
        let now = (BLOCK - within).min(len - done);
        let piece = (at / BLOCK_BYTES, within, done..done + now);
        done += now;
        (now > 0).then_some(piece)
    })
}

impl Store {
    /// Reads from `offset` up to the end of the file, and returns the number of bytes.
    pub fn read_file(&mut self, space: u32, file: u64, offset: u64, out: &mut [u8]) -> Result<usize> {
        let inode = self.inode(space, file)?;
        let len = out.len().min(usize::try_from(inode.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let out = &mut out[..len];
        if inode.inline {
            out.copy_from_slice(&inode.area[offset.min(AREA as u64) as usize..][..len]);
            return Ok(len);
        }
        self.read_chains(space, file, offset / BLOCK_BYTES..(offset + len as u64).div_ceil(BLOCK_BYTES))?;
        for (block, within, range) in pieces(offset, len) {
            let key = Key::new(space, file, 0, block);
            let to = &mut out[range];
            if let Some(block) = self.cache.get(key) {
                to.copy_from_slice(&block[within..within + to.len()]);
            } else if self.has_block(key)? {
                // Holes are not cached.
                to.copy_from_slice(&self.get(key)?[within..within + to.len()]);
            } else {
                to.fill(0);
            }
        }
        Ok(len)
    }

    /// Writes at `offset`. Extends the file if necessary.
    pub fn write_file<'a>(&mut self, space: u32, file: u64, offset: u64, data: impl Into<Data<'a>>) -> Result<()> {
        let Data { bytes: data, sums } = data.into();
        let mut inode = self.inode(space, file)?;
        let end = offset + data.len() as u64;
        if inode.size.max(end) <= AREA as u64 && (inode.inline || may_be_inline(file, &inode)) {
            inode.area[offset as usize..end as usize].copy_from_slice(data);
            inode.inline = true;
            inode.size = inode.size.max(end);
            return self.put_inode(space, file, &inode);
        }
        // All reads happen before the first change, so a failure here changes nothing.
        let mut new = 0;
        for (block, within, range) in pieces(offset, data.len()) {
            let key = Key::new(space, file, 0, block);
            let exists = !inode.inline && self.has_block(key)?;
            new += u64::from(!exists);
            if exists && (within != 0 || range.len() != BLOCK) {
                self.get(key)?;
            }
            if exists {
                self.read_group(key)?;
            }
        }
        let blocks = end.div_ceil(BLOCK_BYTES);
        let is_as_it_was = !inode.inline && shape_of(space).capacity(inode.height) >= blocks;
        if !is_as_it_was {
            if self.spill(space, file)? && offset < BLOCK_BYTES {
                new -= 1; // the spill made block 0
            }
            self.grow(space, file, blocks)?;
        }
        for (block, within, range) in pieces(offset, data.len()) {
            let key = Key::new(space, file, 0, block);
            if range.len() < BLOCK {
                self.modify(key)?[within..within + range.len()].copy_from_slice(&data[range]);
                continue;
            }
            let sum = if range.start.is_multiple_of(BLOCK) { sums.get(range.start / BLOCK).copied() } else { None };
            let block = data[range].first_chunk().unwrap_or_else(|| unreachable!("it has {BLOCK} bytes"));
            self.put(key, block, sum)?;
        }
        if !is_as_it_was {
            inode = self.inode(space, file)?;
        }
        inode.size = inode.size.max(end);
        inode.blocks += new;
        self.put_inode(space, file, &inode)
    }

    /// Changes the length. Frees blocks beyond it, and extends the file by a hole.
    pub fn resize(&mut self, space: u32, file: u64, size: u64) -> Result<()> {
        let mut inode = self.inode(space, file)?;
        if inode.inline && size <= AREA as u64 {
            inode.area[size as usize..].fill(0);
            inode.size = size;
            inode.inline = size > 0;
            return self.put_inode(space, file, &inode);
        }
        self.spill(space, file)?;
        let blocks = size.div_ceil(BLOCK_BYTES);
        if size < inode.size {
            self.zero_part(space, file, size..blocks * BLOCK_BYTES)?;
            self.free_blocks(space, file, blocks)?;
            self.shrink(space, file, blocks)?;
        } else {
            self.grow(space, file, blocks)?;
        }
        let mut inode = self.inode(space, file)?;
        inode.size = size;
        self.put_inode(space, file, &inode)
    }

    /// Makes a range read as zeros, and frees the blocks that it covers completely. The length
    /// stays.
    pub fn punch(&mut self, space: u32, file: u64, offset: u64, len: u64) -> Result<()> {
        let mut inode = self.inode(space, file)?;
        let end = offset.saturating_add(len).min(inode.size);
        if offset >= end {
            return Ok(());
        }
        if inode.inline {
            inode.area[offset as usize..end as usize].fill(0);
            return self.put_inode(space, file, &inode);
        }
        let first = offset.div_ceil(BLOCK_BYTES);
        // Bytes after the end of the file are zeros already.
        let last = if end == inode.size { end.div_ceil(BLOCK_BYTES) } else { end / BLOCK_BYTES };
        if first > last {
            return self.zero_part(space, file, offset..end);
        }
        let parts = [offset..first * BLOCK_BYTES, (last * BLOCK_BYTES).min(end)..end];
        // The blocks at both ends, and the groups that they cut, are read before the first change.
        // So a failure here changes nothing.
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let key = Key::new(space, file, 0, part.start / BLOCK_BYTES);
            if self.has_block(key)? {
                self.get(key)?;
                self.read_group(key)?;
            }
        }
        self.read_ends(space, file, first, last)?;
        for part in parts {
            self.zero_part(space, file, part)?;
        }
        self.free_range(space, file, first, last)
    }

    /// The first block in `from..end` that exists, or that does not.
    ///
    /// Cost: reads each block of pointers once.
    pub fn find_block(&mut self, space: u32, file: u64, from: u64, end: u64, exists: bool) -> Result<Option<u64>> {
        let inode = self.inode(space, file)?;
        let fanout = shape_of(space).fanout();
        let mut at = from;
        while at < end {
            let key = Key::new(space, file, 0, at);
            let hole = self.hole_around(key, inode.height)?;
            if hole > 1 {
                if !exists {
                    return Ok(Some(at));
                }
                at += hole;
                continue;
            }
            let (parent, _) = key.parent();
            let pointers = if inode.height > 0 { Some(*self.get(parent)?) } else { None };
            for next in at..end.min((at / fanout + 1) * fanout) {
                let child = Key::new(space, file, 0, next);
                let is_there = match &pointers {
                    _ if self.is_dirty(child) => true,
                    Some(pointers) => is_set(child, pointers)?,
                    None => self.has_block(child)?,
                };
                if is_there == exists {
                    return Ok(Some(next));
                }
            }
            at = (at / fanout + 1) * fanout;
        }
        Ok(None)
    }

    /// The last existing block of a file.
    pub(crate) fn last_block(&mut self, space: u32, file: u64) -> Result<Option<u64>> {
        let height = self.inode(space, file)?.height;
        for slot in (0..shape_of(space).roots()).rev() {
            let found = self.last_below(Key::new(space, file, height, slot))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn last_below(&mut self, key: Key) -> Result<Option<u64>> {
        if !self.has_block(key)? {
            return Ok(None);
        }
        if key.level() == 0 {
            return Ok(Some(key.index()));
        }
        let fanout = key.shape().fanout();
        for slot in (0..fanout).rev() {
            let child = Key::new(key.space(), key.file(), key.level() - 1, key.index() * fanout + slot);
            let found = self.last_below(child)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The number of blocks from `key` on that are a hole because a block of pointers above is
    /// absent.
    pub(crate) fn hole_around(&mut self, key: Key, height: u8) -> Result<u64> {
        let (mut above, mut covered) = (key, 1);
        while above.level() < height {
            let (parent, _) = above.parent();
            if self.has_block(parent)? {
                break;
            }
            covered *= key.shape().fanout();
            above = parent;
        }
        Ok(covered - key.index() % covered)
    }

    /// Whether the file has this block, on a drive or only in memory.
    pub fn has_block(&mut self, key: Key) -> Result<bool> {
        Ok(self.is_dirty(key) || self.pointer(key)?.is_some())
    }

    /// Moves inline contents into a block. Returns whether there were any.
    pub(super) fn spill(&mut self, space: u32, file: u64) -> Result<bool> {
        let mut inode = self.inode(space, file)?;
        if !inode.inline {
            return Ok(false);
        }
        let contents = std::mem::replace(&mut inode.area, [0; AREA]);
        inode.inline = false;
        inode.blocks = 1;
        self.put_inode(space, file, &inode)?;
        self.modify(Key::new(space, file, 0, 0))?[..AREA].copy_from_slice(&contents);
        Ok(true)
    }

    /// Raises the tree until it can hold `blocks` blocks: the inode's pointers move into a block.
    pub(crate) fn grow(&mut self, space: u32, file: u64, blocks: u64) -> Result<()> {
        let shape = shape_of(space);
        loop {
            let mut inode = self.inode(space, file)?;
            if shape.capacity(inode.height) >= blocks {
                return Ok(());
            }
            inode.height += 1;
            let pointers = std::mem::replace(&mut inode.area, [0; AREA]);
            self.put_inode(space, file, &inode)?;
            self.modify(Key::new(space, file, inode.height, 0))?[..AREA].copy_from_slice(&pointers);
        }
    }

    /// Lowers the tree to the height for `blocks` blocks, after later blocks were freed.
    fn shrink(&mut self, space: u32, file: u64, blocks: u64) -> Result<()> {
        let shape = shape_of(space);
        loop {
            let mut inode = self.inode(space, file)?;
            if inode.height <= shape.height(blocks) {
                return Ok(());
            }
            let top = Key::new(space, file, inode.height, 0);
            inode.area = crate::format::bytes::array(self.get(top)?, 0);
            let pointer = self.pointer(top)?;
            self.forget(top);
            if let Some(pointer) = pointer {
                self.note_freed(space, pointer)?;
            }
            inode.height -= 1;
            self.put_inode(space, file, &inode)?;
        }
    }

    /// Writes zeros within one block, if it exists.
    fn zero_part(&mut self, space: u32, file: u64, range: std::ops::Range<u64>) -> Result<()> {
        let key = Key::new(space, file, 0, range.start / BLOCK_BYTES);
        if range.is_empty() || !self.has_block(key)? {
            return Ok(());
        }
        let start = (range.start % BLOCK_BYTES) as usize;
        self.modify(key)?[start..start + (range.end - range.start) as usize].fill(0);
        Ok(())
    }

    /// Frees all blocks from `first` on.
    fn free_blocks(&mut self, space: u32, file: u64, first: u64) -> Result<()> {
        let height = self.inode(space, file)?.height;
        self.free_range(space, file, first, shape_of(space).capacity(height))
    }

    pub(super) fn free_range(&mut self, space: u32, file: u64, first: u64, last: u64) -> Result<()> {
        self.thaw_ends(space, file, first, last)?;
        let height = self.inode(space, file)?.height;
        let mut freed = 0;
        for slot in 0..shape_of(space).roots() {
            freed += self.free_below(Key::new(space, file, height, slot), first, last, true)?;
        }
        let mut inode = self.inode(space, file)?;
        inode.blocks = inode.blocks.saturating_sub(freed);
        self.put_inode(space, file, &inode)
    }

    /// Frees the blocks of contents from `first` to `last` below `key`, and blocks of pointers that
    /// become empty. Returns the number of freed blocks of contents. If `unlink`, the block above
    /// stays, and its pointer is cleared.
    fn free_below(&mut self, key: Key, first: u64, last: u64, unlink: bool) -> Result<u64> {
        let fanout = key.shape().fanout();
        let span = fanout.saturating_pow(key.level().into());
        let (start, end) = (key.index().saturating_mul(span), (key.index() + 1).saturating_mul(span));
        if end <= first || start >= last || !self.has_block(key)? {
            return Ok(0);
        }
        let whole = first <= start && end <= last;
        let mut freed = u64::from(key.level() == 0);
        if key.level() > 0 {
            for slot in 0..fanout {
                let child = Key::new(key.space(), key.file(), key.level() - 1, key.index() * fanout + slot);
                freed += self.free_below(child, first, last, !whole)?;
            }
        }
        if whole {
            let pointer: Option<Pointer> = self.pointer(key)?;
            self.forget(key);
            if let Some(pointer) = pointer {
                if unlink {
                    self.set_pointer(key, None)?;
                }
                self.note_freed(key.space(), pointer)?;
            }
        }
        Ok(freed)
    }
}

/// Whether a block of pointers has a pointer to this block.
fn is_set(key: Key, pointers: &Block) -> Result<bool> {
    let (_, slot) = key.parent();
    let decoded = key.shape().decode(pointers, slot);
    let place = || format!("inode {} of volume {}, block {}", key.file(), key.space(), key.index());
    Ok(decoded.map_err(|damage| Error::damaged(place(), damage))?.is_some())
}

fn may_be_inline(file: u64, inode: &Inode) -> bool {
    let has_contents = inode.size > 0 || inode.blocks > 0;
    file >= volume::FIRST_USER && matches!(inode.kind, FileKind::File | FileKind::Symlink) && !has_contents
}

/// The end of a range. Errors: `TooLarge` if it exceeds the longest file.
pub(crate) fn check_end(offset: u64, len: u64) -> std::result::Result<u64, FsError> {
    let end = offset.saturating_add(len);
    if end > MAX_FILE_BYTES {
        return Err(FsError::TooLarge { bytes: end, max: MAX_FILE_BYTES });
    }
    Ok(end)
}
