//! A device whose writes stay in memory.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{PoisonError, RwLock},
};

use senesce_core::Bytes;

use crate::{
    BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult,
    check_range::check_range,
    memory::{CHUNK_BYTES, pieces},
};

/// Reads from another device, and keeps all writes in memory: for example to open a file system
/// without a change to its device.
#[derive(Debug)]
pub struct OverlayDevice<D> {
    below: D,
    /// The written chunks; the last one of a device may be shorter.
    written: RwLock<BTreeMap<u64, Vec<u8>>>,
    most_bytes: u64,
}

impl<D: BlockDevice> OverlayDevice<D> {
    /// An overlay over a device that has no other writer.
    pub fn new(below: D) -> Self {
        Self::within(below, Bytes(u64::MAX))
    }

    /// An overlay whose writes fail if it would keep more than `most_bytes`.
    pub fn within(below: D, most_bytes: Bytes) -> Self {
        Self { below, written: RwLock::default(), most_bytes: most_bytes.0 }
    }
}

impl<D: BlockDevice> BlockDevice for OverlayDevice<D> {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn size(&self) -> Bytes {
        self.below.size()
    }

    fn alignment(&self) -> u32 {
        self.below.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.below.read_at(offset, out)?;
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        if written.is_empty() {
            return Ok(());
        }
        let mut done = 0;
        for (chunk, first, bytes) in pieces(offset, out.len()) {
            if let Some(data) = written.get(&(chunk as u64)) {
                out[done..done + bytes].copy_from_slice(&data[first..first + bytes]);
            }
            done += bytes;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        let new = pieces(offset, data.len()).filter(|(chunk, ..)| !written.contains_key(&(*chunk as u64))).count();
        let kept = (written.len() + new) as u64 * CHUNK_BYTES as u64;
        if new > 0 && kept > self.most_bytes {
            let problem = BlockProblem::TooManyChanges { most: Bytes(self.most_bytes) };
            return Err(BlockError::new(self.name(), BlockOperation::Write, offset, data.len() as u64, problem));
        }
        let mut done = 0;
        for (chunk, first, bytes) in pieces(offset, data.len()) {
            let memory = match written.entry(chunk as u64) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(vacant) => {
                    let start = (chunk * CHUNK_BYTES) as u64;
                    let mut copy = vec![0; (CHUNK_BYTES as u64).min(self.size().0 - start) as usize];
                    self.below.read_at(start, &mut copy)?;
                    vacant.insert(copy)
                }
            };
            memory[first..first + bytes].copy_from_slice(&data[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    fn flush(&self) -> BlockResult<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)
    }
}
