//! Long runs of values in the order of their keys, which are not logged: they are written once, by a checkpoint.
//!
//! The log has a hole then: nothing behind it is written to the ring before a checkpoint has made durable what is missing. So a
//! [`sync`](crate::KeyValue::sync) is a checkpoint as long as there is a hole, and what is replayed is all before it: a prefix of the history,
//! as always. That pays if much is written between two syncs, so a run begins to be unlogged when it is of [`NODES`] nodes.

use bytes::Bytes;

use crate::{Batch, Change, MAX_VALUE_BYTES, Message};

/// A run is logged until it is of so many full nodes.
const NODES: usize = 2;
/// Smaller values neither make a run nor end one.
const LEAST_BYTES: usize = MAX_VALUE_BYTES / 4;

/// The values that came last, as far as they came in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The last key of it.
    last: Bytes,
    /// Bytes of its values since it began, or since the last sync.
    bytes: usize,
}

impl Run {
    /// A batch comes. Returns whether it goes on with a run that is long enough not to be logged.
    pub(super) fn is_continued_by(&self, batch: &Batch, node_bytes: usize) -> bool {
        self.bytes >= NODES * node_bytes && self.follow(batch).is_some_and(|(_, bytes)| bytes > 0)
    }

    /// A batch came.
    pub(super) fn note(&mut self, batch: &Batch) {
        let new = Self::default();
        let (before, end) = match self.follow(batch) {
            Some(end) => (self.bytes, end),
            None => (0, new.follow(batch).unwrap_or((&new.last, 0))),
        };
        *self = Self { last: end.0.clone(), bytes: before + end.1 };
    }

    /// All is durable now: a new run begins where this one goes on.
    pub(super) fn restart(&mut self) {
        self.bytes = 0;
    }

    /// The last key of the run with a batch, and how many bytes of values that adds; none if the batch has a value before it.
    fn follow<'a>(&'a self, batch: &'a Batch) -> Option<(&'a Bytes, usize)> {
        let values = batch.changes().iter().filter_map(|change| match change {
            Change::One { key, message: Message::Put(value) } if value.len() >= LEAST_BYTES => Some((key, value.len())),
            _ => None,
        });
        let mut end = (&self.last, 0);
        for (key, bytes) in values {
            if key <= end.0 {
                return None;
            }
            end = (key, end.1 + bytes);
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(keys: &[&'static str], bytes: usize) -> Batch {
        let mut batch = Batch::new();
        keys.iter().for_each(|key| batch.put(*key, vec![1; bytes]));
        batch
    }

    #[test]
    fn only_long_runs_in_order_are_not_logged() {
        let mut run = Run::default();
        let whole = |keys| batch(keys, 4096);
        run.note(&whole(&["b", "c"]));
        assert!(!run.is_continued_by(&whole(&["d"]), 4096 + 1), "it is too short");
        assert!(run.is_continued_by(&whole(&["d"]), 4096));
        assert!(!run.is_continued_by(&whole(&["a"]), 4096), "that is before it");
        assert!(!run.is_continued_by(&whole(&["e", "d"]), 4096), "that is in no order");
        assert!(!run.is_continued_by(&batch(&["d"], 5), 4096), "that is little");
        run.note(&batch(&["a"], 5));
        assert!(run.is_continued_by(&whole(&["d"]), 4096), "little does not end it");
        run.restart();
        assert!(!run.is_continued_by(&whole(&["d"]), 4096));
        run.note(&whole(&["d", "e"]));
        run.note(&whole(&["a"]));
        assert!(!run.is_continued_by(&whole(&["f"]), 4096), "another one has begun");
    }
}
