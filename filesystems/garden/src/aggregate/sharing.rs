//! Sharing: blocks that several pointers name.

use crate::{
    aggregate::Garden,
    error::Result,
    store::{self, DedupStep},
};

/// Blocks and inodes that are scanned under one lock.
const AT_ONCE: u64 = 256;

/// Savings of a volume through shared blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Blocks that are shared, or were and have one pointer left.
    pub shared: u64,
    /// Further blocks that would be in use without sharing.
    pub saved: u64,
}

impl Garden {
    /// Scans up to `most` blocks and inodes of a volume, and shares blocks of files whose bytes are
    /// equal. Continues where the last step ended. Durable with the next consistency point;
    /// contents of files do not change.
    ///
    /// Errors: `Invalid` if the volume does not exist; `NoSpace` for maps, after which the next
    /// step continues there.
    ///
    /// Cost: reads each block once, and again for each block with the same fingerprint.
    pub fn dedup_step(&self, volume: &[u8], most: u64) -> Result<DedupStep> {
        let space = self.space_of(volume)?;
        self.take_steps(most, AT_ONCE, |store, most| store.dedup_step(space, most, store::fingerprint))
    }

    /// Ends the pass of [`dedup_step`](Self::dedup_step), and frees its memory. Shared blocks stay
    /// shared.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn stop_dedup(&self, volume: &[u8]) -> Result<()> {
        let space = self.space_of(volume)?;
        self.shared.lock().volume_mut(space)?.dedup = None;
        Ok(())
    }

    /// Returns the savings through sharing in a volume.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn sharing(&self, volume: &[u8]) -> Result<Sharing> {
        let space = self.space_of(volume)?;
        let store = self.shared.lock();
        let record = &store.volume(space)?.record;
        Ok(Sharing { shared: record.shared, saved: record.saved })
    }
}
