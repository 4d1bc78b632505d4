//! What an open aggregate offers about blocks that several pointers name.

use crate::{
    engine::Garden,
    error::Result,
    store::{self, DedupStep},
};

/// Blocks and inodes that are looked at while nobody else may use the aggregate.
const AT_ONCE: u64 = 256;

/// What blocks of a volume that several pointers name save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Blocks that are shared, or were and have one pointer left.
    pub shared: u64,
    /// Blocks that would be in use besides if nothing were shared.
    pub saved: u64,
}

impl Garden {
    /// Looks at `most` blocks and inodes of a volume at most, and shares blocks of files that hold the same, byte for byte;
    /// goes on where the last step ended. Durable with the next consistency point; what files hold does not change.
    ///
    /// Errors: `Invalid` if there is no such volume; `NoSpace` for maps: the next step goes on there. Cost: reads each
    /// block once, and once more for each one that looks the same.
    pub fn dedup_step(&self, volume: &[u8], most: u64) -> Result<DedupStep> {
        let space = self.space_of(volume)?;
        self.take_steps(most, AT_ONCE, |store, most| store.dedup_step(space, most, store::fingerprint))
    }

    /// Ends the pass that [`dedup_step`](Self::dedup_step) would go on with, and forgets what it remembers. What is shared
    /// stays shared. Errors: `Invalid` if there is no such volume.
    pub fn stop_dedup(&self, volume: &[u8]) -> Result<()> {
        let space = self.space_of(volume)?;
        self.shared.lock().volume_mut(space)?.dedup = None;
        Ok(())
    }

    /// What sharing saves in a volume. Errors: `Invalid` if there is no such volume.
    pub fn sharing(&self, volume: &[u8]) -> Result<Sharing> {
        let space = self.space_of(volume)?;
        let store = self.shared.lock();
        let record = &store.volume(space)?.record;
        Ok(Sharing { shared: record.shared, saved: record.saved })
    }
}
