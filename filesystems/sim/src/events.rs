//! A queue of events in virtual time.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use senesce_core::Nanos;

/// Future events, the earliest first. Events of the same time keep the order in which they were
/// scheduled.
///
/// Cost: the logarithm of the number of events, for each event.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    now: Nanos,
    scheduled: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), now: Nanos(0), scheduled: 0 }
    }

    /// The time of the last taken event.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The number of future events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is scheduled.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Schedules `event` at `at`; a past time counts as now.
    pub fn schedule(&mut self, at: Nanos, event: E) {
        self.heap.push(Reverse(Entry { at: at.max(self.now), number: self.scheduled, event }));
        self.scheduled += 1;
    }

    /// Removes the next event; its time becomes the current time.
    pub fn take(&mut self) -> Option<(Nanos, E)> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some((entry.at, entry.event))
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (Nanos, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn past_events_happen_now() {
        let mut queue = EventQueue::new();
        queue.schedule(Nanos(10), 'a');
        assert_eq!(queue.take(), Some((Nanos(10), 'a')));
        queue.schedule(Nanos(3), 'b');
        assert_eq!((queue.take(), queue.now()), (Some((Nanos(10), 'b')), Nanos(10)));
    }

    proptest! {
        #[test]
        fn events_are_ordered_by_time_then_schedule(times in prop::collection::vec(0u64..20, 0..100)) {
            let mut queue = EventQueue::new();
            let mut model: Vec<(Nanos, usize)> = times.iter().map(|&at| Nanos(at)).zip(0..).collect();
            model.iter().for_each(|&(at, number)| queue.schedule(at, number));
            model.sort();
            let taken: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
            prop_assert_eq!(taken, model);
            prop_assert!(queue.is_empty());
        }
    }
}
