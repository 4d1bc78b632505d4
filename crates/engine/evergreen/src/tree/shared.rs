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

    /// Looks for something in memory, again and again, until nothing is lacked for it any more.
    ///
    /// Errors: of reading what was lacked.
    pub(crate) fn find<T>(&self, mut look: impl FnMut(&mut View<S>) -> Found<T>) -> Result<T> {
        // Where memory is so scarce that others have forgotten what was read before it was looked at again.
        const PATIENCE: usize = 24;
        let mut view = self.lock();
        let mut turns = 0;
        loop {
            match look(&mut view) {
                Ok(found) => return Ok(found),
                Err(want) => view = self.load(view, want, turns > PATIENCE)?,
            }
            turns += 1;
        }
    }

    /// Reads what is lacked, or waits for who reads something of the same node. `is_alone`: all others wait meanwhile.
    fn load<'a>(
        &'a self,
        mut view: MutexGuard<'a, View<S>>,
        want: Want,
        is_alone: bool,
    ) -> Result<MutexGuard<'a, View<S>>> {
        if view.cache.is_loading(want.id) {
            return Ok(self.loaded.wait(view).unwrap_or_else(PoisonError::into_inner));
        }
        let load = view.cache.begin(want)?;
        let (mut view, read) = if is_alone {
            let read = load.read();
            (view, read)
        } else {
            drop(view);
            let read = load.read();
            (self.lock(), read)
        };
        let done = view.cache.finish(load, read);
        self.loaded.notify_all();
        done.map(|()| view)
    }
}
