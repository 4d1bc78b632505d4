//! Reads that wait for something far away: each in a thread of its own, so that those that serve go on.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

use fuser::ReplyData;
use senesce_fsapi::RestOfRead;

use crate::answer::data;

/// Reads that wait at once, with 1 MiB each at most. The next ones are waited for by threads that serve.
const MOST: usize = 64;

/// Threads that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Waiting {
    /// Lets a thread do what is left of a read of so many bytes, and answer. If there cannot be one more, the answer is an I/O error.
    pub fn begin(&self, rest: RestOfRead, size: usize, reply: ReplyData) {
        let wait = move || {
            let mut bytes = vec![0; size];
            let done = rest(&mut bytes);
            data(reply, &bytes, done);
        };
        let mut threads = self.lock();
        threads.retain(|thread| !thread.is_finished());
        if threads.len() >= MOST {
            drop(threads);
            return wait();
        }
        threads.extend(Builder::new().name("fuse-waits".to_owned()).spawn(wait));
    }

    /// Returns when nobody waits any more.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.lock());
        for thread in threads {
            let _ = thread.join(); // a panic is told by whoever panics; its reader has an error
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
