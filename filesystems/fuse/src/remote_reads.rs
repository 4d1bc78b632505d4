//! Reads that wait for a remote store, in their own threads, so that the server threads continue.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

use fuser::ReplyData;
use senesce_fsapi::RestOfRead;

use crate::reply::data;

/// The most waiting threads, with up to 1 MiB each. Further reads are queued.
const MOST: usize = 64;

/// The rest of a read. Dropping it replies with an I/O error.
type Rest = Box<dyn FnOnce() + Send>;

/// The waiting threads.
#[derive(Default)]
pub(crate) struct Waiting {
    queue: Arc<Mutex<Queue>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    rests: VecDeque<Rest>,
    /// The threads that will read the queue again.
    threads: usize,
}

impl Waiting {
    /// Continues a read of `size` bytes in a thread, which replies. If no thread can be started,
    /// the reply is an I/O error.
    pub fn begin(&self, rest: RestOfRead, size: usize, reply: ReplyData) {
        self.add(Box::new(move || {
            let mut bytes = vec![0; size];
            let done = rest(&mut bytes);
            data(reply, &bytes, done);
        }));
    }

    fn add(&self, rest: Rest) {
        let mut queue = lock(&self.queue);
        queue.rests.push_back(rest);
        if queue.threads == MOST {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let shared = self.queue.clone();
        let begun = Builder::new().name("fuse-waits".to_owned()).spawn(move || work(&shared));
        if begun.is_err() {
            give_up(&self.queue);
        }
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.extend(begun);
    }

    /// Waits for all threads.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join(); // none of them panics
        }
    }
}

/// The work of a thread: reads one after the other, until the queue is empty.
fn work(queue: &Mutex<Queue>) {
    loop {
        let next = {
            let mut queue = lock(queue);
            let next = queue.rests.pop_front();
            // Under the same lock, so that a later caller starts a thread.
            queue.threads -= usize::from(next.is_none());
            next
        };
        let Some(rest) = next else { return };
        // The panic hook reports a panic. Its read fails, and the thread continues with the next
        // one.
        let _ = catch_unwind(AssertUnwindSafe(rest));
    }
}

/// Handles a thread that could not be started: the other threads do the work, or the reads fail.
fn give_up(queue: &Mutex<Queue>) {
    let mut queue = lock(queue);
    queue.threads -= 1;
    let left = if queue.threads == 0 { std::mem::take(&mut queue.rests) } else { VecDeque::new() };
    drop(queue);
    drop(left);
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Condvar,
            atomic::{AtomicUsize, Ordering::Relaxed},
            mpsc,
        },
        time::Duration,
    };

    use super::*;

    /// The time limit of a test that would hang.
    const STUCK: Duration = Duration::from_secs(120);

    #[test]
    fn more_reads_than_threads_do_not_block() {
        let waiting = Arc::new(Waiting::default());
        let (gate, done) = (Arc::new((Mutex::new((0, false)), Condvar::new())), Arc::new(AtomicUsize::new(0)));
        let open = |gate: &(Mutex<(usize, bool)>, Condvar)| {
            gate.0.lock().unwrap().1 = true;
            gate.1.notify_all();
        };
        let (sender, brought) = mpsc::channel();
        let (all, behind, counted) = (waiting.clone(), gate.clone(), done.clone());
        let bringer = std::thread::spawn(move || {
            for _ in 0..3 * MOST {
                let (gate, done) = (behind.clone(), counted.clone());
                all.add(Box::new(move || {
                    let mut state = gate.0.lock().unwrap();
                    state.0 += 1;
                    gate.1.notify_all();
                    drop(gate.1.wait_while(state, |state| !state.1).unwrap());
                    done.fetch_add(1, Relaxed);
                }));
            }
            sender.send(()).unwrap();
        });
        let is_brought = brought.recv_timeout(STUCK).is_ok();
        if is_brought {
            let state = gate.1.wait_while(gate.0.lock().unwrap(), |state| state.0 < MOST).unwrap();
            assert_eq!(state.0, MOST);
        }
        assert_eq!(done.load(Relaxed), 0);
        open(&gate);
        bringer.join().unwrap();
        assert!(is_brought, "adding reads blocks");
        waiting.join();
        assert_eq!(done.load(Relaxed), 3 * MOST);
    }

    #[test]
    fn panics_do_not_stop_other_reads() {
        let (waiting, done) = (Waiting::default(), Arc::new(AtomicUsize::new(0)));
        for number in 0..4 * MOST {
            let done = done.clone();
            waiting.add(Box::new(move || {
                assert!(!number.is_multiple_of(8), "meant to");
                done.fetch_add(1, Relaxed);
            }));
        }
        waiting.join();
        // No read is left, and failed ones are dropped.
        let queue = lock(&waiting.queue);
        assert_eq!((queue.rests.len(), queue.threads, Arc::strong_count(&done)), (0, 0, 1));
    }
}
