//! Sweeps of all leaves: scattered leaves are written again, in the order of keys.

use std::sync::PoisonError;

use bytes::Bytes;

use super::{Evergreen, tidy::Thorough};
use crate::Result;

/// Bytes of leaves that one step reads, for each that it may write again.
const LOOKED_AT_FOR_EACH: u64 = 4;

/// The outcome of a sweep of all leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafSweep {
    /// Bytes of leaves that were written again.
    pub bytes: u64,
    /// Leaves, or all that is below an inner node, that cannot be read and were skipped.
    pub unreadable: u64,
}

/// A sweep of leaves that is under way. Dropping it leaves what was written as it is.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The first key of the leaves that come next.
    from: Bytes,
    swept: LeafSweep,
    looked_bytes: u64,
    is_done: bool,
}

impl Sweep {
    /// What it has done so far.
    pub fn counts(&self) -> LeafSweep {
        self.swept
    }

    /// Bytes of the leaves that it has gone over.
    pub fn looked_bytes(&self) -> u64 {
        self.looked_bytes
    }

    /// Whether it has gone over all leaves, or too little is free to continue.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

impl Evergreen {
    /// Sweeps all leaves once, whatever that writes, by [`sweep_step`](Self::sweep_step).
    ///
    /// Errors: as [`checkpoint`](Self::checkpoint) has them; what was written until then stays.
    pub fn sweep(&self) -> Result<LeafSweep> {
        let mut sweep = Sweep::default();
        while !sweep.is_done {
            self.sweep_step(&mut sweep)?;
        }
        Ok(sweep.swept)
    }

    /// Continues a sweep from the first key to the last: leaves that are scattered, or for which
    /// something waits, are written again, adjacent to each other. A step writes about
    /// [`Limits::dirty_bytes`](super::Limits::dirty_bytes) and makes a checkpoint; batches may come
    /// meanwhile. Skips what cannot be read. The sweep ends early where too little is free.
    ///
    /// Errors: as [`checkpoint`](Self::checkpoint) has them; what was written until then stays.
    pub fn sweep_step(&self, sweep: &mut Sweep) -> Result<()> {
        let mut durable = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.core.limits.dirty_bytes;
        let most_looked = most.saturating_mul(LOOKED_AT_FOR_EACH);
        // Checkpoints go over leaves, too, from a place of their own.
        self.core.tree().exchange_gathered(&mut sweep.from);
        let tidied = self.core.tidy_round(most, most_looked, Thorough::Yes);
        self.core.tree().exchange_gathered(&mut sweep.from);
        let (start, _) = self.core.checkpoint(&mut durable, || self.log.cut(), most)?;
        self.log.trim(&start);
        self.log.witness(&start)?;
        sweep.swept.bytes += tidied.bytes;
        sweep.swept.unreadable += tidied.unreadable;
        sweep.looked_bytes += tidied.looked;
        sweep.is_done = tidied.is_at_end || (tidied.bytes == 0 && tidied.looked < most_looked);
        Ok(())
    }
}
