//! Background work: a thread of the caller flushes and makes checkpoints, so that batches need not
//! wait for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Evergreen, LONG_BATCH};
use crate::{Batch, Result};

/// Signals the background thread that work may be due.
#[derive(Default)]
pub(super) struct WorkSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    has_background: bool,
    is_due: bool,
}

impl WorkSignal {
    fn notify(&self) {
        self.lock().is_due = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evergreen {
    /// Starts background work: the caller promises to [work](Self::work) when it is
    /// [due](Self::wait_for_work), until [`stop_background`](Self::stop_background). Batches then
    /// make no flushes and checkpoints, unless twice the limit waits or space is short. The bytes
    /// on the device depend on the time of the work; the contents and their durability do not.
    pub fn start_background(&self) {
        *self.signal.lock() = SignalState { has_background: true, is_due: true };
    }

    /// Stops background work: batches flush and make checkpoints again.
    pub fn stop_background(&self) {
        *self.signal.lock() = SignalState::default();
        self.signal.changed.notify_all();
    }

    /// Waits until work may be due. Returns whether background work continues.
    pub fn wait_for_work(&self) -> bool {
        let mut state = self.signal.lock();
        while state.has_background && !state.is_due {
            state = self.signal.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_due = false;
        state.has_background
    }

    /// Does one piece of work that is due: flushes the root, makes a checkpoint, or writes the log.
    /// Returns whether it did any. After [`stop_background`](Self::stop_background) it does
    /// none, so that a loop of calls stops.
    ///
    /// Errors: as for [`checkpoint`](Self::checkpoint); the work stays due.
    pub fn work(&self) -> Result<bool> {
        self.core.expect_working()?;
        if !self.has_background() {
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

    pub(super) fn has_background(&self) -> bool {
        self.signal.lock().has_background
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
            self.signal.notify();
        }
        Ok(is_possible)
    }
}
