//! Ranges of files: holes, reservations, search for data, and copies.

use std::ops::ControlFlow;

use bytes::Bytes;
use senesce_fsapi::{Caller, FallocateMode, FsError, FsResult, Ino, SeekTo, check_clone};

use super::{
    contents::{change_blocks, check_end},
    evergreen::EvergreenFs,
    inode_record::{BLOCK, Body, Inode},
    inode_table::Object,
    names::touch,
};
use crate::{Batch, KeyValue, Message};

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn do_allocate(
        &self,
        caller: &Caller,
        ino: Ino,
        how: FallocateMode,
        offset: u64,
        len: u64,
    ) -> FsResult<()> {
        let node = self.table.get(ino);
        let mut object = self.writing(&node)?;
        object.inode.file()?;
        if len == 0 {
            return Err(FsError::Invalid { what: "an empty range" });
        }
        let end = check_end(offset, len)?;
        let mut batch = Batch::new();
        let mut inode = object.inode;
        touch(&mut inode, caller.now);
        match how {
            FallocateMode::Punch => {
                batch.claim.is_removal = true;
                self.make_hole(&mut batch, &object, &mut inode, offset, end)?;
            }
            FallocateMode::Zero { keep_size } => {
                self.make_hole(&mut batch, &object, &mut inode, offset, end)?;
                inode.size = if keep_size { inode.size } else { inode.size.max(end) };
            }
            FallocateMode::Reserve { keep_size } => {
                let (first, behind) = (offset / BLOCK, end.div_ceil(BLOCK));
                let there = self.count_blocks(&object, first, behind)?;
                if let Body::File { blocks, reserved } = &mut inode.body {
                    *reserved = (*reserved).max(*blocks + (behind - first - there));
                }
                inode.size = if keep_size { inode.size } else { inode.size.max(end) };
                check_countable(&inode)?;
            }
        }
        self.change_inode(&mut batch, ino, &object, &inode);
        self.store.apply(batch)?;
        object.inode = inode;
        Ok(())
    }

    /// Makes a range read as zeros, and deletes its whole blocks before the end of the file.
    fn make_hole(&self, batch: &mut Batch, object: &Object, inode: &mut Inode, offset: u64, end: u64) -> FsResult<()> {
        let size = object.inode.size;
        let end = end.min(size);
        if offset >= end {
            return Ok(());
        }
        let (from, to) = (offset.div_ceil(BLOCK), if end == size { end.div_ceil(BLOCK) } else { end / BLOCK });
        if from < to {
            let gone = self.count_blocks(object, from, to)?;
            if gone > 0 {
                let range = object.home.blocks(from, to);
                batch.delete_range(range.start, range.end);
            }
            change_blocks(inode, 0, gone);
        }
        let mut zero = |block: u64, first: u64, behind: u64| -> FsResult<()> {
            let key = object.home.block_key(block);
            if block * BLOCK + behind == size {
                batch.send(key, Message::cut(first as u32)); // bytes after the end of a value are zeros
            } else if first < behind && (object.inode.dense_blocks().is_some() || self.store.get(&key)?.is_some()) {
                batch.send(key, Message::patch(first as u32, Bytes::from(vec![0; (behind - first) as usize])));
            }
            Ok(())
        };
        let head = offset / BLOCK;
        if !offset.is_multiple_of(BLOCK) {
            zero(head, offset % BLOCK, (end - head * BLOCK).min(BLOCK))?;
        }
        let tail = end / BLOCK;
        if end != size && !end.is_multiple_of(BLOCK) && (tail != head || offset.is_multiple_of(BLOCK)) {
            zero(tail, 0, end % BLOCK)?;
        }
        Ok(())
    }

    pub(super) fn do_seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        let node = self.table.get(ino);
        let object = self.reading(&node)?;
        object.inode.file()?;
        let size = object.inode.size;
        if offset >= size {
            return Err(FsError::NoData);
        }
        let (first, behind) = (offset / BLOCK, size.div_ceil(BLOCK));
        let is_dense = object.inode.dense_blocks().is_some();
        match what {
            SeekTo::Data if is_dense => Ok(offset),
            SeekTo::Hole if is_dense => Ok(size),
            SeekTo::Data => {
                let mut found = None;
                self.for_each_block(&object.home, first, behind, &mut |block, _| {
                    found = Some(offset.max(block * BLOCK));
                    ControlFlow::Break(())
                })?;
                found.ok_or(FsError::NoData)
            }
            SeekTo::Hole => {
                let mut next = first;
                self.for_each_block(&object.home, first, behind, &mut |block, _| {
                    if block != next {
                        return ControlFlow::Break(());
                    }
                    next += 1;
                    ControlFlow::Continue(())
                })?;
                Ok(offset.max(next * BLOCK).min(size))
            }
        }
    }

    /// Copies the range: leaves hold values, so two files cannot share them.
    pub(super) fn do_clone(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let (source, target) = (self.table.get(from.0), self.table.get(to.0));
        if from.0 == to.0 {
            let mut object = self.writing(&target)?;
            return self.copy(caller, None, from, &mut object, to, len);
        }
        // Files are locked in the order of their numbers.
        let (source, mut target) = if from.0 < to.0 {
            let source = self.reading(&source)?;
            (source, self.writing(&target)?)
        } else {
            let target = self.writing(&target)?;
            (self.reading(&source)?, target)
        };
        self.copy(caller, Some(&source), from, &mut target, to, len)
    }

    /// `source`: `None` if it is the target.
    fn copy(
        &self,
        caller: &Caller,
        source: Option<&Object>,
        from: (Ino, u64),
        target: &mut Object,
        to: (Ino, u64),
        len: u64,
    ) -> FsResult<u64> {
        let read = source.unwrap_or(target);
        read.inode.file()?;
        target.inode.file()?;
        let len = check_clone(from, read.inode.size, to, len)?;
        let (mut done, most) = (0, self.batch_blocks(&target.home) * BLOCK);
        while done < len {
            let step = (len - done).min(most);
            let read = source.unwrap_or(target);
            match self.copy_batch(caller, read, from.1 + done, target, (to.0, to.1 + done), step) {
                Ok(inode) => target.inode = inode,
                Err(FsError::NoSpace) if done > 0 => break,
                Err(error) => return Err(error),
            }
            done += step;
        }
        Ok(done)
    }

    /// Copies at most the blocks of one batch; returns the target's new inode.
    fn copy_batch(
        &self,
        caller: &Caller,
        source: &Object,
        offset: u64,
        target: &Object,
        (ino, to): (Ino, u64),
        len: u64,
    ) -> FsResult<Inode> {
        let end = to + len;
        // The last block is overwritten partly, if the target continues after it.
        let is_partial = !len.is_multiple_of(BLOCK) && end < target.inode.size;
        let (first, behind) = (to / BLOCK, if is_partial { end / BLOCK } else { end.div_ceil(BLOCK) });
        let mut inode = target.inode;
        touch(&mut inode, caller.now);
        inode.size = inode.size.max(end);
        let mut batch = Batch::new();
        let gone = self.count_blocks(target, first, behind)?;
        let range = target.home.blocks(first, behind);
        batch.delete_range(range.start, range.end);
        let (mut more, mut last, mut there) = (0, None, 0);
        let (read, read_end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
        self.for_each_block(&source.home, read, read_end, &mut |block, value| {
            there += 1;
            let at = first + (block - read);
            let bytes = (end - at * BLOCK).min(BLOCK);
            let value = value.slice(..value.len().min(bytes as usize));
            if is_partial && at == behind {
                last = Some(value);
            } else {
                more += 1;
                batch.put(target.home.block_key(at), value);
            }
            ControlFlow::Continue(())
        })?;
        source.expect_whole(there, read, read_end)?;
        if is_partial {
            let is_there = self.count_blocks(target, behind, behind + 1)? > 0;
            if is_there || last.is_some() {
                let mut bytes = last.map_or(Vec::new(), |value| value.to_vec());
                bytes.resize((len % BLOCK) as usize, 0);
                batch.send(target.home.block_key(behind), Message::patch(0, Bytes::from(bytes)));
                more += u64::from(!is_there);
            }
        }
        if let Body::File { blocks, .. } = &mut inode.body {
            *blocks = *blocks + more - gone;
        }
        self.change_inode(&mut batch, ino, target, &inode);
        self.store.apply(batch)?;
        Ok(inode)
    }
}

/// Errors: `NoSpace` if more is reserved than can be counted.
fn check_countable(inode: &Inode) -> FsResult<()> {
    match inode.body {
        Body::File { reserved, .. } if reserved > (1 << 48) => Err(FsError::NoSpace),
        _ => Ok(()),
    }
}
