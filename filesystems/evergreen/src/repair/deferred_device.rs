//! A device with deferred writes, which stay in memory until the repair is complete.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;

use crate::{
    Result,
    disk::{BLOCK, MIRRORS_AT, SLOTS_AT, Superblock},
};

/// A written block.
type Block = Box<[u8; BLOCK]>;

/// Reads from a device, and keeps writes in memory until they are committed. Requests have whole
/// blocks, as all of the engine.
pub(super) struct Staged {
    below: Arc<dyn BlockDevice>,
    written: RwLock<BTreeMap<u64, Block>>,
}

/// The most blocks of one write to the device.
const RUN_BLOCKS: usize = 256;

impl Staged {
    pub fn new(below: Arc<dyn BlockDevice>) -> Arc<Self> {
        Arc::new(Self { below, written: RwLock::default() })
    }

    /// Drops all writes.
    pub fn reset(&self) {
        self.written.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Drops the writes to a range of bytes.
    pub fn forget(&self, bytes: &Range<u64>) {
        self.written.write().unwrap_or_else(PoisonError::into_inner).retain(|at, _| !bytes.contains(at));
    }

    /// Writes all blocks: first those that superblocks name, then the superblocks, the newer one
    /// first.
    pub fn commit(&self) -> Result<()> {
        let mut written = std::mem::take(&mut *self.written.write().unwrap_or_else(PoisonError::into_inner));
        let slots = SLOTS_AT.iter().chain(&MIRRORS_AT);
        let mut slots: Vec<(u64, Block)> = slots.filter_map(|at| written.remove_entry(at)).collect();
        let mut run: (u64, Vec<u8>) = (0, Vec::new());
        for (at, block) in written {
            if run.0 + run.1.len() as u64 != at || run.1.len() >= RUN_BLOCKS * BLOCK {
                self.write_run(&mut run)?;
                run.0 = at;
            }
            run.1.extend_from_slice(&block[..]);
        }
        self.write_run(&mut run)?;
        self.below.flush()?;
        slots.sort_by_key(|(_, block)| Superblock::decode(block).map_or(0, |superblock| superblock.generation));
        for (at, block) in slots.iter().rev() {
            self.below.write_at(*at, &block[..])?;
            self.below.flush()?;
        }
        Ok(())
    }

    fn write_run(&self, (at, bytes): &mut (u64, Vec<u8>)) -> Result<()> {
        if !bytes.is_empty() {
            self.below.write_at(*at, bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

impl BlockDevice for Staged {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn size(&self) -> Bytes {
        self.below.size()
    }

    fn alignment(&self) -> u32 {
        BLOCK as u32
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        let end = offset + out.len() as u64;
        if written.range(offset..end).next().is_none() {
            return self.below.read_at(offset, out);
        }
        for (at, part) in (offset..end).step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
            match written.get(&at) {
                Some(block) => part.copy_from_slice(&block[..part.len()]),
                None => self.below.read_at(at, part)?,
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        for (at, part) in (offset..).step_by(BLOCK).zip(data.chunks(BLOCK)) {
            let mut block = Box::new([0; BLOCK]);
            block[..part.len()].copy_from_slice(part);
            written.insert(at, block);
        }
        Ok(())
    }

    fn flush(&self) -> BlockResult<()> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> BlockResult<()> {
        Ok(())
    }
}
