//! Wakes the thread that holds a mount, and only when there is something to do.

use std::{
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire, Release},
    },
    thread::{self, Thread},
    time::Duration,
};

/// Wakes one thread when calls changed the file system, and when serving ended.
///
/// While nothing changes the thread sleeps without a timer. While the flag is set further changes wake it no more, so a
/// thread that [takes](Self::take_change) the flag once a second is woken once a second by any load.
#[derive(Debug)]
pub struct Alarm {
    holder: Thread,
    is_changed: AtomicBool,
    is_over: AtomicBool,
}

impl Alarm {
    /// Wakes the calling thread.
    pub fn of_this_thread() -> Self {
        Self { holder: thread::current(), is_changed: AtomicBool::new(false), is_over: AtomicBool::new(false) }
    }

    /// Notes a change that is not durable yet. The caller makes the change first, so that it is complete when the holder takes the flag.
    pub fn note_change(&self) {
        // Most calls find it set, and a load needs no exclusive cache line.
        if !self.is_changed.load(Acquire) && !self.is_changed.swap(true, AcqRel) {
            self.holder.unpark();
        }
    }

    /// Whether something changed since the flag was taken.
    pub fn is_changed(&self) -> bool {
        self.is_changed.load(Acquire)
    }

    /// Returns whether something changed since the flag was last taken, and takes it. Changes that returned before are
    /// covered by a sync that starts after this call.
    pub fn take_change(&self) -> bool {
        self.is_changed.swap(false, AcqRel)
    }

    /// Blocks the holder until it may have something to do, at most for `longest`. May return early.
    pub fn wait(&self, longest: Option<Duration>) {
        match longest {
            Some(longest) => thread::park_timeout(longest),
            None => thread::park(),
        }
    }

    pub(crate) fn note_end(&self) {
        self.is_over.store(true, Release);
        self.holder.unpark();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn change_in_another_thread_wakes_the_holder() {
        let alarm = Arc::new(Alarm::of_this_thread());
        let other = alarm.clone();
        let changer = thread::spawn(move || (0..1000).for_each(|_| other.note_change()));
        while !alarm.is_changed() {
            alarm.wait(None);
        }
        changer.join().unwrap();
        assert!(alarm.take_change());
        assert!(!alarm.take_change() && !alarm.is_changed());
    }

    #[test]
    fn end_wakes_the_holder_without_a_change() {
        let alarm = Arc::new(Alarm::of_this_thread());
        let other = alarm.clone();
        let server = thread::spawn(move || other.note_end());
        while !alarm.is_over() {
            alarm.wait(None);
        }
        server.join().unwrap();
        assert!(!alarm.is_changed());
    }
}
