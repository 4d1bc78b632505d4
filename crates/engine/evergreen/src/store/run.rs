//! Long runs of values in the order of their keys, which are not logged: they are written once, by a checkpoint.
//!
//! The log has a hole then: nothing behind it is written to the ring before a checkpoint has made durable what is missing. So a
//! [`sync`](crate::KeyValue::sync) is a checkpoint as long as there is a hole, and what is replayed is all before it: a prefix of the history,
//! as always. That pays if much is written between two syncs, so a run begins to be unlogged when it is of [`NODES`] nodes.

use std::ops::Range;

use bytes::Bytes;

use super::LONG_BATCH;
use crate::{Batch, Change, MAX_VALUE_BYTES, Message};

/// A run is logged until it has this many full nodes.
const NODES: usize = 2;
/// After a sync of another file during a run, runs are logged until this many full nodes came without such a sync. Otherwise each
/// sync of a small file would wait for a checkpoint of the whole stream beside it.
const QUIET_NODES: usize = 32;
/// Smaller values neither make a run nor end one.
const LEAST_BYTES: usize = MAX_VALUE_BYTES / 4;

/// The values that came last, as far as they came in the order of their keys.
#[derive(Debug)]
pub(super) struct Run {
    /// The last key of it.
    last: Bytes,
    /// Bytes of its values since it began, or since the last sync.
    bytes: usize,
    /// The last key of the last run that was at least as long as a long batch.
    stream: Bytes,
    /// Bytes of values since a sync of something else waited for a stream.
    quiet: usize,
}

impl Default for Run {
    fn default() -> Self {
        Self { last: Bytes::new(), bytes: 0, stream: Bytes::new(), quiet: usize::MAX }
    }
}

impl Run {
    /// A batch comes. Returns whether it goes on with a run that is long enough not to be logged.
    pub(super) fn is_continued_by(&self, batch: &Batch, node_bytes: usize) -> bool {
        self.bytes >= NODES * node_bytes
            && !self.expects_syncs(node_bytes)
            && self.follow(batch).is_some_and(|(_, bytes)| bytes > 0)
    }

    /// A batch came.
    pub(super) fn note(&mut self, batch: &Batch) {
        let new = Self::default();
        let (before, end) = match self.follow(batch) {
            Some(end) => (self.bytes, end),
            None => (0, new.follow(batch).unwrap_or((&new.last, 0))),
        };
        let quiet = self.quiet.saturating_add(end.1);
        let is_stream = before + end.1 >= LONG_BATCH;
        let stream = if is_stream { end.0.clone() } else { self.stream.clone() };
        *self = Self { last: end.0.clone(), bytes: before + end.1, stream, quiet };
    }

    /// A sync of something between these keys comes. `waits`: something was not logged, so that it waits for a checkpoint.
    pub(super) fn note_sync(&mut self, of: &Range<Vec<u8>>, waits: bool, node_bytes: usize) {
        let is_of_stream = of.start[..] <= self.stream[..] && self.stream[..] < of.end[..];
        if (waits || self.expects_syncs(node_bytes)) && !is_of_stream {
            self.quiet = 0;
        }
    }

    /// Whether syncs of other things came during a run not long ago: the log is then kept so short that the next one need not wait.
    pub(super) fn expects_syncs(&self, node_bytes: usize) -> bool {
        self.quiet < QUIET_NODES * node_bytes
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

    #[test]
    fn sync_of_another_file_makes_runs_logged_for_some_time() {
        const NODE: usize = 64 << 10;
        let mut run = Run::default();
        let mut next = 0;
        let mut long = || {
            let mut batch = Batch::new();
            for _ in 0..LONG_BATCH / 4096 {
                next += 1;
                batch.put(format!("stream {next:08}"), vec![1; 4096]);
            }
            batch
        };
        let (own, other) = (b"stream".to_vec()..b"strean".to_vec(), b"a".to_vec()..b"b".to_vec());
        run.note_sync(&other, false, NODE);
        assert!(!run.expects_syncs(NODE), "nothing waits");
        (0..NODES).for_each(|_| run.note(&long()));
        run.note_sync(&own, true, NODE);
        assert!(run.is_continued_by(&long(), NODE), "a sync of the stream itself waits in any case");
        // The synced file was written last.
        run.note(&batch(&["a"], 4096));
        run.note_sync(&other, true, NODE);
        (0..NODES).for_each(|_| run.note(&long()));
        assert!(!run.is_continued_by(&long(), NODE) && run.expects_syncs(NODE));
        run.note_sync(&other, false, NODE);
        for _ in 0..QUIET_NODES {
            assert!(!run.is_continued_by(&long(), NODE));
            run.note(&long());
        }
        assert!(run.is_continued_by(&long(), NODE), "none came for long");
    }
}
