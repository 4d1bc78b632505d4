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

impl State {
    /// Adds if there is room, and tells whether it did. A closed one has room for all.
    fn try_post(&mut self, by: u64) -> bool {
        let has_room = self.room >= by || self.is_closed;
        if has_room {
            self.posted += by;
            self.room = self.room.saturating_sub(by);
        }
        has_room
    }

    /// Takes as much if it is there, and tells whether it was.
    fn try_take(&mut self, by: u64) -> bool {
        let is_there = self.posted >= by;
        if is_there {
            self.posted -= by;
        }
        is_there
    }
}

impl Semaphore {
    /// In: how much may be posted before anybody waits for it.
    pub fn new(highwater: u64) -> Self {
        Self { state: Mutex::new(State { posted: 0, room: highwater, is_closed: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries again at every change, until it is closed. Tells whether it came to something.
    fn retry(&self, mut state: MutexGuard<'_, State>, mut attempt: impl FnMut(&mut State) -> bool) -> bool {
        loop {
            let is_done = attempt(&mut state);
            if is_done || state.is_closed {
                return is_done;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds, as soon as there is room.
    pub fn post(&self, by: u64) {
        self.retry(self.lock(), |state| state.try_post(by));
        self.changed.notify_all();
    }

    /// Makes room for as much, and takes it when it is there. False: it is closed, and so much will never be there.
    pub fn take(&self, by: u64) -> bool {
        let mut state = self.lock();
        state.room += by;
        self.changed.notify_all();
        self.retry(state, |state| state.try_take(by))
    }

    /// Nobody waits any more.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nobody_gets_further_ahead_than_the_mark_and_somebody_can_always_go_on(
            highwater in 0u64..20,
            wanted in 1u64..20,
            posts in prop::collection::vec(0u64..21, 1..60),
        ) {
            let semaphore = Semaphore::new(highwater);
            let mut state = semaphore.lock();
            // One waits for `wanted`, over and over; each post is the largest that is allowed, or less.
            let (mut posted, mut taken) = (0, 0);
            state.room += wanted;
            for by in posts {
                let by = by.min(highwater + 1);
                while !state.try_post(by) {
                    prop_assert!(posted + by > highwater + taken + wanted);
                    // The other is not the one that waits.
                    prop_assert!(state.try_take(wanted), "both wait: {posted} posted, {taken} taken");
                    taken += wanted;
                    state.room += wanted;
                }
                posted += by;
                prop_assert!(posted <= highwater + taken + wanted);
            }
            state.is_closed = true;
            prop_assert!(state.try_post(1000));
        }
    }

    #[test]
    fn who_has_no_room_goes_on_when_somebody_takes() {
        let semaphore = Semaphore::new(2);
        semaphore.post(2);
        assert!(!semaphore.lock().try_post(1));
        std::thread::scope(|scope| {
            scope.spawn(|| semaphore.post(1));
            assert!(semaphore.take(3));
        });
        semaphore.close();
        assert!(!semaphore.take(1));
        semaphore.post(5);
        assert!(semaphore.take(5) && !semaphore.take(1));
    }
}
