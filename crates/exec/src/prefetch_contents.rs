//! Steps and their contents made before their use, one content at a time, so that no step has to
//! fit in memory.
//!
//! [`Prefetcher`](crate::Prefetcher) makes whole items ahead. Here the unit is one content: a step
//! may write more than memory holds (the first checkout of a large repository), and the budget
//! still bounds the contents that wait. This works for steps that are applied once, in the order in
//! which they are made. A content that is requested in another order is made on request.

use std::{
    collections::VecDeque,
    panic,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use senesce_oplog::{Content, ContentError, ContentSource, Op, Payload};

use crate::content::make_ready;

/// Starts a thread that reads `items`, and makes the contents of the operations that `ops_of`
/// returns for each.
///
/// Out: the items in order, and a source. The source has their contents ready if they are requested
/// in order, and uses `source` for all others. The thread pauses while contents of `budget_bytes`
/// wait. A request for the next item drops the remaining contents of earlier items. Dropping both
/// ends the thread.
pub fn prefetch_contents<T: Send + 'static>(
    items: impl Iterator<Item = T> + Send + 'static,
    ops_of: impl Fn(&T) -> Arc<[Op]> + Send + 'static,
    source: Arc<dyn ContentSource>,
    budget_bytes: u64,
) -> (PrefetchedItems<T>, Arc<dyn ContentSource>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::default()), more: Condvar::new(), less: Condvar::new() });
    let (maker, fallback) = (CloseOnDrop(shared.clone()), source.clone());
    let thread = thread::spawn(move || {
        let mut buffer = Vec::new();
        for (number, item) in (0..).zip(items) {
            let ops = ops_of(&item);
            if !maker.0.put(Entry::Item(item), size_of::<Op>() as u64 * ops.len() as u64, budget_bytes) {
                return;
            }
            for content in ops.iter().filter_map(Op::content) {
                if maker.0.is_past(number) {
                    break;
                }
                // The operation that needs a failed content makes it again, and can report its
                // place in the log.
                let Ok(ready) = make_ready(content, &*source, &mut buffer) else { continue };
                let bytes = ready.payload.held_bytes();
                if !maker.0.put(Entry::Content(content.clone(), ready.payload, ready.hash), bytes, budget_bytes) {
                    return;
                }
            }
        }
    });
    let contents = Arc::new(ContentsAhead { shared: shared.clone(), source: fallback });
    (PrefetchedItems { shared, thread: Some(thread) }, contents)
}

/// The items of [`prefetch_contents`], in order.
#[derive(Debug)]
pub struct PrefetchedItems<T> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

/// The contents of [`prefetch_contents`].
struct ContentsAhead<T> {
    shared: Arc<Shared<T>>,
    source: Arc<dyn ContentSource>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    /// Signals a new entry, or the end.
    more: Condvar,
    /// Signals that half of the budget is free, or the end.
    less: Condvar,
}

#[derive(Debug)]
enum Entry<T> {
    Item(T),
    Content(Content, Payload, u64),
}

#[derive(Debug)]
struct State<T> {
    entries: VecDeque<(Entry<T>, u64)>,
    held_bytes: u64,
    /// The maker sleeps until at most this number of bytes is held. `None` while it is awake.
    resume_at_bytes: Option<u64>,
    taker_waits: bool,
    items_asked_for: u64,
    closed: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            held_bytes: 0,
            resume_at_bytes: None,
            taker_waits: false,
            items_asked_for: 0,
            closed: false,
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code panics while it holds the lock, and the queue would be consistent even then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for space in the budget, and adds an entry. Returns whether more entries are needed.
    ///
    /// After a wait it continues only when half of the budget is free. A wakeup for every entry
    /// would cost both threads more than making one.
    fn put(&self, entry: Entry<T>, bytes: u64, budget_bytes: u64) -> bool {
        let mut state = self.lock();
        if !state.entries.is_empty() && state.held_bytes.saturating_add(bytes) > budget_bytes {
            state.resume_at_bytes = Some(budget_bytes / 2);
            while !state.closed && state.resume_at_bytes.is_some() {
                state = self.less.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if state.closed {
            return false;
        }
        state.held_bytes = state.held_bytes.saturating_add(bytes);
        state.entries.push_back((entry, bytes));
        if state.taker_waits {
            self.more.notify_all();
        }
        true
    }

    /// Waits for the next entry, and removes and returns it if `wanted` returns true.
    fn take_if(&self, wanted: impl Fn(&Entry<T>) -> bool) -> Option<Entry<T>> {
        let mut state = self.lock();
        while state.entries.is_empty() && !state.closed {
            state.taker_waits = true;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.taker_waits = false;
        }
        let (entry, bytes) = state.entries.pop_front_if(|(entry, _)| wanted(entry))?;
        state.held_bytes = state.held_bytes.saturating_sub(bytes);
        if state.resume_at_bytes.is_some_and(|at| state.held_bytes <= at || state.entries.is_empty()) {
            state.resume_at_bytes = None;
            self.less.notify_all();
        }
        Some(entry)
    }

    /// Whether an item after item `number` was requested, so that its contents are not needed any
    /// more.
    fn is_past(&self, number: u64) -> bool {
        self.lock().items_asked_for > number + 1
    }

    fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
        self.less.notify_all();
    }
}

/// Marks the queue as closed, also if the maker panics.
struct CloseOnDrop<T>(Arc<Shared<T>>);

impl<T> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Iterator for PrefetchedItems<T> {
    type Item = T;

    /// Waits for the next item. Panics if the iterator that makes the items panicked.
    fn next(&mut self) -> Option<T> {
        self.shared.lock().items_asked_for += 1;
        while let Some(entry) = self.shared.take_if(|_| true) {
            if let Entry::Item(item) = entry {
                return Some(item);
            }
        }
        if let Some(Err(cause)) = self.thread.take().map(JoinHandle::join) {
            panic::resume_unwind(cause);
        }
        None
    }
}

impl<T> Drop for PrefetchedItems<T> {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // The items are not needed any more, so a panic of the maker is ignored.
            let _ = thread.join();
        }
    }
}

impl<T: Send> ContentSource for ContentsAhead<T> {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        self.source.payload(key)
    }

    fn ready(&self, content: &Content) -> Option<(Payload, u64)> {
        match self.shared.take_if(|entry| matches!(entry, Entry::Content(next, ..) if next == content))? {
            Entry::Content(_, payload, hash) => Some((payload, hash)),
            Entry::Item(_) => unreachable!("only a content was requested"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use senesce_core::RelPath;

    use super::*;
    use crate::content::Ready;

    /// Item `n` writes `contents` seeded contents of 1,000 bytes, with the seeds `1000 * n ..`.
    fn ops(n: u64, contents: u64) -> Arc<[Op]> {
        let content = |at| Content::Seeded { seed: 1000 * n + at, len: 1000 };
        let path = RelPath::try_from("f").unwrap();
        (0..contents).map(|at| Op::Create { path: path.clone(), mode: 0o644, content: content(at) }).collect()
    }

    fn ahead(items: u64, contents: u64, budget_bytes: u64) -> (PrefetchedItems<u64>, Arc<dyn ContentSource>) {
        prefetch_contents(0..items, move |&n| ops(n, contents), Arc::new(()), budget_bytes)
    }

    fn made_at_once(content: &Content) -> Ready {
        make_ready(content, &(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn contents_requested_in_order_are_ready_and_right() {
        let (mut items, source) = ahead(50, 20, 5_500);
        for n in 0..50 {
            assert_eq!(items.next(), Some(n));
            for op in ops(n, 20).iter() {
                let content = op.content().unwrap();
                let (payload, hash) = source.ready(content).expect("requested in order");
                let expected = made_at_once(content);
                assert_eq!(hash, expected.hash);
                match (payload, expected.payload) {
                    (Payload::Bytes(got), Payload::Bytes(wanted)) => assert_eq!(got, wanted),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(items.next(), None);
    }

    #[test]
    fn unused_contents_are_dropped_with_their_item() {
        let (mut items, source) = ahead(100, 20, 2_000);
        for n in 0..100 {
            assert_eq!(items.next(), Some(n));
            let all = ops(n, 20);
            // The first two, the first again, one out of order. The rest of the item is left.
            assert!(source.ready(all[0].content().unwrap()).is_some());
            assert!(source.ready(all[1].content().unwrap()).is_some());
            assert!(source.ready(all[0].content().unwrap()).is_none(), "given once");
            assert!(source.ready(all[7].content().unwrap()).is_none(), "not in order");
        }
        assert_eq!(items.next(), None);
        assert!(source.ready(ops(0, 1)[0].content().unwrap()).is_none());
    }

    #[test]
    fn budget_bounds_contents_within_an_item() {
        let made = Arc::new(AtomicU64::new(0));
        struct Counting(Arc<AtomicU64>);
        impl ContentSource for Counting {
            fn payload(&self, _: &str) -> Result<Payload, ContentError> {
                self.0.fetch_add(1, Ordering::SeqCst);
                Ok(Payload::Bytes(vec![0; 1000].into()))
            }
        }
        let path = RelPath::try_from("f").unwrap();
        let op = |n| Op::Create { path: path.clone(), mode: 0o644, content: Content::derived(format!("{n}")) };
        let all: Arc<[Op]> = (0..2_000).map(op).collect();
        let budget_bytes = size_of::<Op>() as u64 * 2_000 + 10_000;
        let of_item = all.clone();
        let (mut items, source) =
            prefetch_contents(0..1, move |_| of_item.clone(), Arc::new(Counting(made.clone())), budget_bytes);
        assert_eq!(items.next(), Some(0));
        for (taken, op) in (1u64..).zip(all.iter()) {
            assert!(source.ready(op.content().unwrap()).is_some());
            assert!(made.load(Ordering::SeqCst) * 1000 <= taken * 1000 + budget_bytes + 2_000);
        }
        assert_eq!(made.load(Ordering::SeqCst), 2_000);
    }

    #[test]
    fn failing_content_is_made_on_request() {
        let path = RelPath::try_from("f").unwrap();
        let bad = Op::Create { path: path.clone(), mode: 0o644, content: Content::derived("unknown") };
        let all: Arc<[Op]> = [bad, ops(0, 1)[0].clone()].into();
        let of_item = all.clone();
        let (mut items, source) = prefetch_contents(0..1, move |_| of_item.clone(), Arc::new(()), 1000);
        assert_eq!(items.next(), Some(0));
        assert!(source.ready(all[0].content().unwrap()).is_none());
        assert!(source.payload("unknown").is_err());
        assert!(source.ready(all[1].content().unwrap()).is_some());
    }

    #[test]
    fn dropping_ends_a_sleeping_maker() {
        let (items, source) = ahead(u64::MAX, 100, 10);
        drop(items);
        assert!(source.ready(ops(0, 1)[0].content().unwrap()).is_none());
    }

    #[test]
    #[should_panic(expected = "the maker broke")]
    fn panic_of_the_maker_reaches_the_user() {
        let items = (0..10u64).inspect(|&i| assert!(i < 5, "the maker broke"));
        prefetch_contents(items, |&n| ops(n, 1), Arc::new(()), 100_000).0.for_each(drop);
    }
}
