//! One tree for many threads.
//!
//! The lock is held as long as something is looked for in memory, and never while a device works: who lacks a node reads it without the
//! lock, and looks again from the root on. So what is found is of one moment, and nobody waits for what others read, but for the same node.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Source, View, cache::Found, load::Want};
use crate::Result;

/// A tree as its readers see it, behind a lock.
pub(crate) struct Shared<S: Source> {
    view: Mutex<View<S>>,
    /// Something was read, or could not be.
    loaded: Condvar,
}

impl<S: Source> Shared<S> {
    pub(super) fn new(view: View<S>) -> Self {
        Self { view: Mutex::new(view), loaded: Condvar::new() }
    }

    /// The tree for oneself, for a short time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, View<S>> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same if nobody has it.
    #[cfg(test)]
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, View<S>>> {
        self.view.try_lock().ok()
    }

    /// Looks for something in memory, again and again, until nothing is lacked for it any more. Where memory is so scarce that others have
    /// forgotten what was read before it was looked at again, what is read stays in memory until it is found: then no more is read than what
    /// lies on one way down.
    ///
    /// Errors: of reading what was lacked.
    pub(crate) fn find<T>(&self, mut look: impl FnMut(&mut View<S>) -> Found<T>) -> Result<T> {
        // A way down is shorter, if what was read is there.
        const PATIENCE: usize = 24;
        let mut view = self.lock();
        let (mut turns, mut pinned) = (0, Vec::new());
        let found = loop {
            let want = match look(&mut view) {
                Ok(found) => break Ok(found),
                Err(want) => want,
            };
            if turns > PATIENCE {
                view.cache.pin(want.id);
                pinned.push(want.id);
            }
            match self.load(view, want) {
                Ok(again) => view = again,
                Err(error) => {
                    view = self.lock();
                    break Err(error);
                }
            }
            turns += 1;
        };
        pinned.into_iter().for_each(|id| view.cache.unpin(id));
        found
    }

    /// Reads what is lacked, or waits for who reads something of the same node.
    fn load<'a>(&'a self, mut view: MutexGuard<'a, View<S>>, want: Want) -> Result<MutexGuard<'a, View<S>>> {
        if view.cache.is_loading(want.id) {
            return Ok(self.loaded.wait(view).unwrap_or_else(PoisonError::into_inner));
        }
        let load = view.cache.begin(want)?;
        drop(view);
        let read = load.read();
        let mut view = self.lock();
        let done = view.cache.finish(load, read);
        self.loaded.notify_all();
        done.map(|()| view)
    }
}
