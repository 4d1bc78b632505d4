//! Semaphores with a high-water mark: a post waits while too many posts are not yet acquired.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A semaphore with a high-water mark.
#[derive(Debug)]
pub(super) struct Semaphore {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Posted and not yet acquired.
    posted: u64,
    /// The number that may still be posted.
    room: u64,
    is_closed: bool,
}

impl State {
    /// Posts `by` if the mark permits it, and returns whether it did. A closed semaphore permits
    /// every post.
    fn try_post(&mut self, by: u64) -> bool {
        let has_room = self.room >= by || self.is_closed;
        if has_room {
            self.posted += by;
            self.room = self.room.saturating_sub(by);
        }
        has_room
    }

    /// Acquires `by` if that is posted, and returns whether it did.
    fn try_take(&mut self, by: u64) -> bool {
        let is_there = self.posted >= by;
        if is_there {
            self.posted -= by;
        }
        is_there
    }
}

impl Semaphore {
    /// In: the number that may be posted before a thread waits for it.
    pub fn new(highwater: u64) -> Self {
        Self { state: Mutex::new(State { posted: 0, room: highwater, is_closed: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats `attempt` at every change until it succeeds or the semaphore is closed. Returns
    /// whether it succeeded.
    fn retry(&self, mut state: MutexGuard<'_, State>, mut attempt: impl FnMut(&mut State) -> bool) -> bool {
        loop {
            let is_done = attempt(&mut state);
            if is_done || state.is_closed {
                return is_done;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Posts `by`. Waits until the mark permits it.
    pub fn post(&self, by: u64) {
        self.retry(self.lock(), |state| state.try_post(by));
        self.changed.notify_all();
    }

    /// Raises the mark by `by`, and acquires `by` as soon as it is posted. Returns `false` if the
    /// semaphore is closed and has too few posts.
    pub fn take(&self, by: u64) -> bool {
        let mut state = self.lock();
        state.room += by;
        self.changed.notify_all();
        self.retry(state, |state| state.try_take(by))
    }

    /// Ends all waits.
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
        fn posts_stay_below_the_mark_without_deadlock(
            highwater in 0u64..20,
            wanted in 1u64..20,
            posts in prop::collection::vec(0u64..21, 1..60),
        ) {
            let semaphore = Semaphore::new(highwater);
            let mut state = semaphore.lock();
            // One thread waits for `wanted`, again and again. Each post is the largest that is
            // permitted, or less.
            let (mut posted, mut taken) = (0, 0);
            state.room += wanted;
            for by in posts {
                let by = by.min(highwater + 1);
                while !state.try_post(by) {
                    prop_assert!(posted + by > highwater + taken + wanted);
                    // The posting thread is not the one that waits.
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
    fn blocked_post_continues_after_a_wait() {
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
