//! Work in the background: flushes and checkpoints by a thread that somebody gives, so that batches need not wait for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Evergreen, LONG_BATCH};
use crate::{Batch, Result};

/// Tells the one who works that there is something to do.
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
    /// From now on somebody [works](Self::work) when something is [due](Self::wait_for_work), until [`dismiss`](Self::dismiss): batches
    /// do not flush, and make no checkpoints, but where twice as much waits as should, or space is short. What is on the device then
    /// depends on when the work is done; what is read, and what outlives a loss of power, does not.
    pub fn attend(&self) {
        *self.bell.lock() = Rung { is_attended: true, is_rung: true };
    }

    /// Nobody works any more: batches do it as they come.
    pub fn dismiss(&self) {
        *self.bell.lock() = Rung::default();
        self.bell.rung.notify_all();
    }

    /// Waits until something may be due. Returns whether the store is still attended.
    pub fn wait_for_work(&self) -> bool {
        let mut state = self.bell.lock();
        while state.is_attended && !state.is_rung {
            state = self.bell.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_rung = false;
        state.is_attended
    }

    /// Does one thing that is due: brings down what waits in the root, makes a checkpoint, or writes the log. Returns whether anything was
    /// done; nothing is where nobody [attends](Self::attend) any more, so who asks again and again comes to an end.
    ///
    /// Errors: as [`checkpoint`](Self::checkpoint) has them; it is due again then.
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

    /// Does a batch without waiting for anything, and rings if that makes something due. Returns whether it did.
    pub(super) fn apply_at_once(&self, batch: &mut Batch, record: usize) -> Result<bool> {
        self.core.expect_working()?;
        let mut state = self.core.lock();
        let live = self.core.claim(&state, &batch.claim)?;
        let (waiting, dirty) = {
            let view = self.core.shared.lock();
            (view.waiting_bytes() + record, view.cache.dirty_room().once)
        };
        let node = self.core.shape.node_bytes as usize;
        // Flushes of what a stream sent down are for its own batches to wait for.
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
