//! Reads, writes and truncation of files.

use std::ops::ControlFlow;

use bytes::Bytes;
use senesce_fsapi::{Caller, FsError, FsResult, Ino, MAX_FILE_BYTES};

use super::{
    evergreen::{EvergreenFs, damaged},
    inode_record::{BLOCK, Body, Inode},
    inode_table::Object,
    names::touch,
};
use crate::{
    Batch, CHANGE_BYTES, KeyValue, MAX_KEY_BYTES, MAX_VALUE_BYTES, Message,
    keys::{Home, Key},
};

/// The most blocks of one batch, if the store accepts that many. Longer writes use several batches.
pub const BATCH_BLOCKS: u64 = 1024;
/// The bytes of a batch beside blocks or pieces: records of inodes, names and so on.
const BESIDE_BYTES: usize = 4 * (MAX_KEY_BYTES / 2 + CHANGE_BYTES);
/// Up to this number, blocks are read one by one: a store reads less for a key than for a range.
const READ_ONE_BY_ONE: u64 = 2;

/// Splits a range into blocks: block, first byte in it, bytes.
pub fn parts(offset: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (block, first) = (at / BLOCK, at % BLOCK);
            let bytes = (BLOCK - first).min(end - at);
            at += bytes;
            (block, first as usize, bytes as usize)
        })
    })
}

/// The end of a range. Errors: `TooLarge` if it exceeds the largest file.
pub fn check_end(offset: u64, len: u64) -> FsResult<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_FILE_BYTES => Ok(end),
        end => Err(FsError::TooLarge { bytes: end.unwrap_or(u64::MAX), max: MAX_FILE_BYTES }),
    }
}

impl Object {
    /// Checks that no block is missing in a file without holes. Otherwise zeros would hide a loss.
    ///
    /// `there`: the number of blocks found from `first` to before `end`. Errors: `Corrupt`.
    pub(super) fn expect_whole(&self, there: u64, first: u64, end: u64) -> FsResult<()> {
        if self.inode.dense_blocks().is_none() || there == end - first {
            return Ok(());
        }
        let what = format!("{there} of the blocks {first} to {end} are there, and it has no holes");
        Err(damaged(format!("{:?}", self.home), what).into())
    }
}

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn do_read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        let node = self.table.get(ino);
        let object = self.reading(&node)?;
        object.inode.file()?;
        let end = object.inode.size.min(offset.saturating_add(out.len() as u64));
        if end <= offset {
            return Ok(0);
        }
        let out = &mut out[..(end - offset) as usize];
        out.fill(0);
        let mut there = 0;
        let mut put = |block: u64, value: &[u8]| {
            there += 1;
            let start = block * BLOCK;
            let from = offset.max(start);
            let to = end.min(start + value.len() as u64);
            if from < to {
                let value = &value[(from - start) as usize..(to - start) as usize];
                out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(value);
            }
        };
        let (first, behind) = (offset / BLOCK, end.div_ceil(BLOCK));
        if behind - first <= READ_ONE_BY_ONE {
            for block in first..behind {
                if let Some(value) = self.block(&object.home, block)? {
                    put(block, &value);
                }
            }
        } else {
            self.for_each_block(&object.home, first, behind, &mut |block, value| {
                put(block, &value);
                ControlFlow::Continue(())
            })?;
        }
        object.expect_whole(there, first, behind)?;
        Ok((end - offset) as usize)
    }

    /// A block of a file, if it exists.
    pub(super) fn block(&self, home: &Home, block: u64) -> FsResult<Option<Bytes>> {
        Ok(self.store.get(&home.block_key(block))?)
    }

    /// Passes the existing blocks of a range to `sink`.
    pub(super) fn for_each_block(
        &self,
        home: &Home,
        from: u64,
        to: u64,
        sink: &mut dyn FnMut(u64, Bytes) -> ControlFlow<()>,
    ) -> FsResult<()> {
        self.scan(home.blocks(from, to), &mut |key, value| match key {
            Key::Block(_, block) => Ok(sink(block, value)),
            _ => Ok(ControlFlow::Continue(())),
        })
    }

    /// The number of existing blocks in a range. Reads nothing if the file has no holes.
    pub(super) fn count_blocks(&self, object: &Object, from: u64, to: u64) -> FsResult<u64> {
        let (blocks, _) = object.inode.file()?;
        if let Some(all) = object.inode.dense_blocks() {
            return Ok(to.min(all).saturating_sub(from));
        }
        if from == 0 && to >= object.inode.size.div_ceil(BLOCK) {
            return Ok(blocks); // no block is after the end
        }
        let mut count = 0;
        if blocks > 0 {
            self.for_each_block(&object.home, from, to, &mut |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
        }
        Ok(count)
    }

    pub(super) fn do_write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        let node = self.table.get(ino);
        let mut object = self.writing(&node)?;
        object.inode.file()?;
        let end = check_end(offset, data.len() as u64)?;
        let (mut at, mut blocks) = (offset, self.batch_blocks(&object.home));
        while at < end {
            let to = end.min((at / BLOCK + blocks) * BLOCK);
            match self.write_batch(caller, ino, &object, at, &data[(at - offset) as usize..(to - offset) as usize]) {
                Ok(inode) => {
                    object.inode = inode;
                    at = to;
                }
                // Write the part that fits: retry with half of the blocks.
                Err(FsError::NoSpace) if to.div_ceil(BLOCK) - at / BLOCK > 1 => {
                    blocks = (to.div_ceil(BLOCK) - at / BLOCK) / 2;
                }
                Err(error) if at == offset => return Err(error),
                // The count is short, so the caller continues after it, and receives the error if
                // it persists. For pages that the kernel writes back, the adapter is that caller.
                Err(_) => break,
            }
        }
        Ok((at - offset) as usize)
    }

    /// The number of whole values that a batch can have, under keys of `key_bytes`.
    pub(super) fn batch_values(&self, key_bytes: usize) -> usize {
        let most = self.store.max_batch_bytes().saturating_sub(BESIDE_BYTES);
        (most / (MAX_VALUE_BYTES + CHANGE_BYTES + key_bytes)).max(1)
    }

    /// The most blocks of a file in one batch.
    pub(super) fn batch_blocks(&self, home: &Home) -> u64 {
        (self.batch_values(home.block_key(u64::MAX).len()) as u64).min(BATCH_BLOCKS)
    }

    /// Writes at most the blocks of one batch; returns the new inode.
    fn write_batch(&self, caller: &Caller, ino: Ino, object: &Object, offset: u64, data: &[u8]) -> FsResult<Inode> {
        let end = offset + data.len() as u64;
        let (first, behind) = (offset / BLOCK, end.div_ceil(BLOCK));
        let there = self.count_blocks(object, first, behind)?;
        let mut inode = object.inode;
        touch(&mut inode, caller.now);
        inode.size = inode.size.max(end);
        change_blocks(&mut inode, behind - first - there, 0);
        let mut batch = Batch::new();
        let mut done = 0;
        for (block, first, bytes) in parts(offset, end) {
            let part = Bytes::copy_from_slice(&data[done..done + bytes]);
            done += bytes;
            let is_whole = first == 0 && block * BLOCK + bytes as u64 >= object.inode.size.min((block + 1) * BLOCK);
            let message = if is_whole { Message::put(part) } else { Message::patch(first as u32, part) };
            batch.send(object.home.block_key(block), message);
        }
        self.change_inode(&mut batch, ino, object, &inode);
        self.store.apply(batch)?;
        Ok(inode)
    }

    /// Changes the length of a file, in `inode`.
    pub(super) fn set_size(&self, batch: &mut Batch, object: &Object, inode: &mut Inode, size: u64) -> FsResult<()> {
        check_end(0, size)?;
        if size < object.inode.size {
            let kept = size.div_ceil(BLOCK);
            let gone = self.count_blocks(object, kept, object.inode.size.div_ceil(BLOCK))?;
            if gone > 0 {
                let range = object.home.blocks_from(kept);
                batch.delete_range(range.start, range.end);
            }
            if !size.is_multiple_of(BLOCK) {
                // If the block does not exist, the cut has no effect.
                batch.send(object.home.block_key(kept - 1), Message::cut((size % BLOCK) as u32));
            }
            change_blocks(inode, 0, gone);
            if let Body::File { reserved, .. } = &mut inode.body {
                *reserved = 0; // reservations after the end are freed
            }
            batch.claim.is_removal = true;
        }
        inode.size = size;
        Ok(())
    }
}

/// Adds blocks to a file, and removes others with their reservations.
pub fn change_blocks(inode: &mut Inode, more: u64, fewer: u64) {
    if let Body::File { blocks, reserved } = &mut inode.body {
        *blocks = *blocks + more - fewer.min(*blocks);
        *reserved = reserved.saturating_sub(fewer);
    }
}
