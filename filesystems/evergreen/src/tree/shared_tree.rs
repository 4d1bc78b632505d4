//! One tree for several threads.
//!
//! The lock is held during searches in memory, never during device requests. A reader that misses a
//! node reads it without the lock, then searches again from the root. So a result is consistent,
//! and a reader waits for another one only if both need the same node.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Source, View, cache::Found, load_parts::Want};
use crate::Result;

/// The tree as readers see it, with its lock.
pub(crate) struct Shared<S: Source> {
    view: Mutex<View<S>>,
    /// Signals the end of a read, successful or not.
    loaded: Condvar,
}

impl<S: Source> Shared<S> {
    pub(super) fn new(view: View<S>) -> Self {
        Self { view: Mutex::new(view), loaded: Condvar::new() }
    }

    /// Locks the tree, for a short time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, View<S>> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`lock`](Self::lock), if the lock is free.
    #[cfg(test)]
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, View<S>>> {
        self.view.try_lock().ok()
    }

    /// Repeats a search in memory until nothing is missing. If memory is scarce, other threads may
    /// evict nodes before the search is repeated. After some turns the nodes stay pinned until the
    /// search succeeds. Then it reads only the nodes of one path.
    ///
    /// Errors: those of reading the missing parts.
    pub(crate) fn find<T>(&self, mut look: impl FnMut(&mut View<S>) -> Found<T>) -> Result<T> {
        // More turns than a path needs if its nodes stay in memory.
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

    /// Reads the missing part, or waits for another read of the same node.
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
