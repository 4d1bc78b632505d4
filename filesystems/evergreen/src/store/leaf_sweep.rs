//! Sweeps of all leaves: rewrite scattered leaves in the order of keys.

use std::sync::PoisonError;

use bytes::Bytes;

use super::{Evergreen, rewrite_leaves::Thorough};
use crate::Result;

/// The bytes of leaves that one step visits, for each byte that it may rewrite.
const LOOKED_AT_FOR_EACH: u64 = 4;

/// The outcome of a sweep of all leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafSweep {
    /// The bytes of rewritten leaves.
    pub bytes: u64,
    /// The skipped leaves and subtrees that cannot be read.
    pub unreadable: u64,
}

/// A sweep of leaves in progress. If it is dropped, the leaves written so far stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The first key of the next leaves.
    from: Bytes,
    swept: LeafSweep,
    looked_bytes: u64,
    is_done: bool,
}

impl Sweep {
    /// The counts so far.
    pub fn counts(&self) -> LeafSweep {
        self.swept
    }

    /// The bytes of the visited leaves.
    pub fn looked_bytes(&self) -> u64 {
        self.looked_bytes
    }

    /// Whether all leaves were visited, or too little space is free to continue.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

impl Evergreen {
    /// Sweeps all leaves once, with [`sweep_step`](Self::sweep_step), without a limit of the
    /// written bytes.
    ///
    /// Errors: as for [`checkpoint`](Self::checkpoint); leaves written before the error stay.
    pub fn sweep(&self) -> Result<LeafSweep> {
        let mut sweep = Sweep::default();
        while !sweep.is_done {
            self.sweep_step(&mut sweep)?;
        }
        Ok(sweep.swept)
    }

    /// Continues a sweep from the first key to the last. It rewrites leaves that are scattered, or
    /// that have waiting messages, to adjacent places. A step writes about
    /// [`Limits::dirty_bytes`](super::Limits::dirty_bytes) and makes a checkpoint; batches may run
    /// meanwhile. It skips unreadable nodes. The sweep stops early if too little space is free.
    ///
    /// Errors: as for [`checkpoint`](Self::checkpoint); leaves written before the error stay.
    pub fn sweep_step(&self, sweep: &mut Sweep) -> Result<()> {
        let mut durable = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.core.limits.dirty_bytes;
        let most_looked = most.saturating_mul(LOOKED_AT_FOR_EACH);
        // Checkpoints visit leaves, too, with a position of their own.
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
