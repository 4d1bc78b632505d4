//! Items made before their use, on a second thread, within a budget of bytes.

use std::{
    collections::VecDeque,
    panic,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

/// An iterator whose items another thread makes before they are requested.
///
/// Dropping it waits until that thread has made its current item, and stops it.
#[derive(Debug)]
pub struct Prefetcher<T> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<(T, u64)>,
    held_bytes: u64,
    /// Set by the maker when it has no more items, and by the user when it needs no more.
    closed: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // No code panics while it holds the lock, and the queue would be consistent even then.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue<T>>) -> MutexGuard<'a, Queue<T>> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

impl<T: Send + 'static> Prefetcher<T> {
    /// Starts making items. `cost` returns the bytes that an item holds. The thread pauses while
    /// another item would make the waiting items hold more than `budget_bytes`. It always makes at
    /// least one.
    pub fn spawn(
        items: impl Iterator<Item = T> + Send + 'static,
        budget_bytes: u64,
        cost: impl Fn(&T) -> u64 + Send + 'static,
    ) -> Self {
        let queue = Queue { items: VecDeque::new(), held_bytes: 0, closed: false };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
        let maker = CloseOnDrop(shared.clone());
        let thread = thread::spawn(move || {
            let shared = &maker.0;
            for item in items {
                let bytes = cost(&item);
                let mut queue = shared.lock();
                while !queue.closed && !queue.items.is_empty() && queue.held_bytes.saturating_add(bytes) > budget_bytes
                {
                    queue = shared.wait(queue);
                }
                if queue.closed {
                    return;
                }
                queue.held_bytes = queue.held_bytes.saturating_add(bytes);
                queue.items.push_back((item, bytes));
                drop(queue);
                shared.changed.notify_all();
            }
        });
        Self { shared, thread: Some(thread) }
    }
}

/// Marks the queue as closed, also if the maker panics.
struct CloseOnDrop<T>(Arc<Shared<T>>);

impl<T> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Iterator for Prefetcher<T> {
    type Item = T;

    /// Waits for the next item. Panics if the iterator that makes the items panicked.
    fn next(&mut self) -> Option<T> {
        let mut queue = self.shared.lock();
        loop {
            if let Some((item, bytes)) = queue.items.pop_front() {
                queue.held_bytes = queue.held_bytes.saturating_sub(bytes);
                drop(queue);
                self.shared.changed.notify_all();
                return Some(item);
            }
            if queue.closed {
                break;
            }
            queue = self.shared.wait(queue);
        }
        drop(queue);
        if let Some(Err(cause)) = self.thread.take().map(JoinHandle::join) {
            panic::resume_unwind(cause);
        }
        None
    }
}

impl<T> Drop for Prefetcher<T> {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // The items are not needed any more, so a panic of the maker is ignored.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn items_are_complete_and_in_order() {
        let got: Vec<u64> = Prefetcher::spawn(0..1000, 50, |_| 7).collect();
        assert_eq!(got, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn item_above_the_budget_is_made() {
        assert_eq!(Prefetcher::spawn(0..3, 10, |_| 1 << 40).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn budget_bounds_waiting_items() {
        let made = Arc::new(AtomicU64::new(0));
        let counter = made.clone();
        let items = (0..10_000u64).inspect(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let mut ahead = Prefetcher::spawn(items, 100, |_| 10);
        for taken in 1..=5_000 {
            ahead.next().unwrap();
            // Ten wait, and the maker holds one.
            assert!(made.load(Ordering::SeqCst) <= taken + 11);
        }
    }

    #[test]
    fn dropping_stops_an_endless_maker() {
        let mut ahead = Prefetcher::spawn(0u64.., 100, |_| 10);
        assert_eq!(ahead.next(), Some(0));
        drop(ahead);
    }

    #[test]
    #[should_panic(expected = "the maker broke")]
    fn panic_of_the_maker_reaches_the_user() {
        let items = (0..10).inspect(|&i| assert!(i < 5, "the maker broke"));
        Prefetcher::spawn(items, 1000, |_| 1).for_each(drop);
    }
}
