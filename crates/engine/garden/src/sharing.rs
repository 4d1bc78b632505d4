//! What an open aggregate offers about blocks that several pointers name.

use crate::{
    engine::Garden,
    error::{Error, Result},
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
        let (mut all, mut fresh) = (DedupStep::default(), false);
        while all.looked_at < most && !all.is_done {
            let mut store = self.shared.lock();
            store.check_running()?;
            let (step, done) = store.dedup_step(space, AT_ONCE.min(most - all.looked_at), store::fingerprint);
            store.shrink_cache();
            let (waits, due) = (store.is_waiting(), store.is_due());
            drop(store);
            all += step;
            let is_stuck = fresh && step.looked_at == 0;
            match done {
                Err(Error::NoSpace { .. }) if waits && !is_stuck => {}
                Err(error) => return Err(error),
                Ok(()) if due => {}
                Ok(()) => continue,
            }
            self.consistency_point()?;
            fresh = true;
        }
        Ok(all)
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
