//! Semaphores with a high-water mark: who posts waits for who is too far behind.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One of them.
#[derive(Debug)]
pub(super) struct Semaphore {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// What was posted and not taken.
    posted: u64,
    /// What may still be posted.
    room: u64,
    is_closed: bool,
}

impl Semaphore {
    /// In: how much may be posted before anybody waits for it.
    pub fn new(highwater: u64) -> Self {
        Self { state: Mutex::new(State { posted: 0, room: highwater, is_closed: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        must: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        while must(&state) && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Adds, as soon as there is room.
    pub fn post(&self, by: u64) {
        let mut state = self.wait_while(self.lock(), |state| state.room < by);
        state.posted += by;
        state.room = state.room.saturating_sub(by);
        self.changed.notify_all();
    }

    /// Makes room for as much, and takes it when it is there. False: it is closed, and so much will never be there.
    pub fn take(&self, by: u64) -> bool {
        let mut state = self.lock();
        state.room += by;
        self.changed.notify_all();
        let mut state = self.wait_while(state, |state| state.posted < by);
        let is_there = state.posted >= by;
        if is_there {
            state.posted -= by;
        }
        is_there
    }

    /// Nobody waits any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}
