//! Background work: a thread of the caller flushes and makes checkpoints, so that batches need not
//! wait for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Evergreen, LONG_BATCH};
use crate::{Batch, Result};

/// Signals the background thread that work may be due.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<Rung>,
    rung: Condvar,
}

#[derive(Default)]
struct Rung {
    is_attended: bool,
    is_rung: bool,
}

impl Bell {
    fn ring(&self) {
        self.lock().is_rung = true;
        self.rung.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evergreen {
    /// Starts background work: the caller promises to [work](Self::work) when it is
    /// [due](Self::wait_for_work), until [`dismiss`](Self::dismiss). Batches then make no flushes
    /// and checkpoints, unless twice the limit waits or space is short. The bytes on the device
    /// depend on the time of the work; the contents and their durability do not.
    pub fn attend(&self) {
        *self.bell.lock() = Rung { is_attended: true, is_rung: true };
    }

    /// Stops background work: batches flush and make checkpoints again.
    pub fn dismiss(&self) {
        *self.bell.lock() = Rung::default();
        self.bell.rung.notify_all();
    }

    /// Waits until work may be due. Returns whether the store is still attended.
    pub fn wait_for_work(&self) -> bool {
        let mut state = self.bell.lock();
        while state.is_attended && !state.is_rung {
            state = self.bell.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_rung = false;
        state.is_attended
    }

    /// Does one piece of work that is due: flushes the root, makes a checkpoint, or writes the log.
    /// Returns whether it did any. After [`dismiss`](Self::dismiss) it does none, so that a loop of
    /// calls stops.
    ///
    /// Errors: as for [`checkpoint`](Self::checkpoint); the work stays due.
    pub fn work(&self) -> Result<bool> {
        self.core.expect_working()?;
        if !self.is_attended() {
            return Ok(false);
        }
        if self.core.settle()? {
            return Ok(true);
        }
        if self.is_checkpoint_due() {
            self.checkpoint()?;
            return Ok(true);
        }
        self.write_log_if_due()
    }

    pub(super) fn is_attended(&self) -> bool {
        self.bell.lock().is_attended
    }

    /// Applies a batch without waiting, and signals work that becomes due. Returns whether it was
    /// possible.
    pub(super) fn apply_at_once(&self, batch: &mut Batch, record: usize) -> Result<bool> {
        self.core.expect_working()?;
        let mut state = self.core.lock();
        let live = self.core.claim(&state, &batch.claim)?;
        let (waiting, dirty) = {
            let view = self.core.shared.lock();
            (view.waiting_bytes() + record, view.cache.dirty_room().once)
        };
        let node = self.core.shape.node_bytes as usize;
        // The batches of a stream wait for their own flushes.
        let most = if record >= LONG_BATCH { 2 * node } else { 3 * node };
        let is_possible = waiting <= most
            && dirty <= self.most_dirty(record)
            && self.has_log_room(&state, batch, record)
            && self.core.has_much_room(&state, record);
        if is_possible {
            self.commit(&mut state, live, batch, record)?;
        }
        drop(state);
        if !is_possible || waiting > node || self.is_checkpoint_due() || self.is_log_due() {
            self.bell.ring();
        }
        Ok(is_possible)
    }
}
