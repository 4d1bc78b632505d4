//! Reads that wait for something far away: in threads of their own, so that those that serve go on.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

use fuser::ReplyData;
use senesce_fsapi::RestOfRead;

use crate::answer::data;

/// Threads that wait at once, with 1 MiB each at most. The next reads wait until one has its answer.
const MOST: usize = 64;

/// What is left to do. Dropped, it is answered with an I/O error.
type Rest = Box<dyn FnOnce() + Send>;

/// Threads that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    queue: Arc<Mutex<Queue>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    rests: VecDeque<Rest>,
    /// Threads that will look here again.
    threads: usize,
}

impl Waiting {
    /// Lets a thread do what is left of a read of so many bytes, and answer. If there cannot be one, the answer is an I/O error.
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

    /// Returns when nobody waits any more.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let _ = thread.join(); // none of them panics
        }
    }
}

/// What a thread does: one after the other, until there is none.
fn work(queue: &Mutex<Queue>) {
    loop {
        let next = {
            let mut queue = lock(queue);
            let next = queue.rests.pop_front();
            // Under the same lock: who brings one more then begins a thread.
            queue.threads -= usize::from(next.is_none());
            next
        };
        let Some(rest) = next else { return };
        // A panic is told by whoever panics; its reader has an error, and the next one its turn.
        let _ = catch_unwind(AssertUnwindSafe(rest));
    }
}

/// There could not be a thread more: the others do what is left, if there are any.
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

    /// A test that would hang fails then.
    const STUCK: Duration = Duration::from_secs(120);

    #[test]
    fn who_brings_more_than_can_wait_at_once_goes_on_and_all_are_done() {
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
        assert!(is_brought, "who brings them waits");
        waiting.join();
        assert_eq!(done.load(Relaxed), 3 * MOST);
    }

    #[test]
    fn what_panics_keeps_none_of_the_others_from_being_done() {
        let (waiting, done) = (Waiting::default(), Arc::new(AtomicUsize::new(0)));
        for number in 0..4 * MOST {
            let done = done.clone();
            waiting.add(Box::new(move || {
                assert!(!number.is_multiple_of(8), "meant to");
                done.fetch_add(1, Relaxed);
            }));
        }
        waiting.join();
        // None is left behind, and none of those that are answered with an error is held.
        let queue = lock(&waiting.queue);
        assert_eq!((queue.rests.len(), queue.threads, Arc::strong_count(&done)), (0, 0, 1));
    }
}
