//! Wakes the thread that holds a mount, only when there is work.

use std::{
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire, Release},
    },
    thread::{self, Thread},
    time::Duration,
};

/// Wakes one thread when calls changed the file system, and when the server stops.
///
/// Without changes the thread sleeps without a timer. While the flag is set, further changes do not
/// wake it. So a thread that [takes](Self::take_change) the flag once a second wakes once a second
/// under any load.
#[derive(Debug)]
pub struct Alarm {
    holder: Thread,
    is_changed: AtomicBool,
    is_over: AtomicBool,
}

impl Alarm {
    /// An alarm that wakes the calling thread.
    pub fn of_this_thread() -> Self {
        Self { holder: thread::current(), is_changed: AtomicBool::new(false), is_over: AtomicBool::new(false) }
    }

    /// Notes a change that is not durable. Call it after the change, so that the change is complete
    /// when the holder takes the flag.
    pub fn note_change(&self) {
        // Most calls find it set, and a load needs no exclusive cache line.
        if !self.is_changed.load(Acquire) && !self.is_changed.swap(true, AcqRel) {
            self.holder.unpark();
        }
    }

    /// Whether there was a change since the flag was taken.
    pub fn is_changed(&self) -> bool {
        self.is_changed.load(Acquire)
    }

    /// Takes the flag: returns whether there was a change since the last call. A sync that starts
    /// after this call covers all changes that returned before.
    pub fn take_change(&self) -> bool {
        self.is_changed.swap(false, AcqRel)
    }

    /// Blocks the holder until there may be work, at most for `longest`. May return early.
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
