//! Runs: long sequences of values in the order of their keys. They are not logged, so a checkpoint
//! writes them once.
//!
//! The log has a hole then: no later frame is written before a checkpoint makes the missing batches
//! durable. So a [`sync`](crate::KeyValue::sync) is a checkpoint while there is a hole. A replay
//! returns all batches before the hole, which is a prefix of the history as always. This saves
//! writes if syncs are far apart, so a run is logged until it has [`NODES`] nodes.

use std::ops::Range;

use bytes::Bytes;

use super::LONG_BATCH;
use crate::{Batch, Change, MAX_VALUE_BYTES, Message};

/// A run is logged until it has this many full nodes.
const NODES: usize = 2;
/// After a sync of another file during a run, runs are logged until this many full nodes came
/// without such a sync. Otherwise each sync of a small file would wait for a checkpoint of the
/// concurrent stream.
const QUIET_NODES: usize = 32;
/// Smaller values neither extend nor end a run.
const LEAST_BYTES: usize = MAX_VALUE_BYTES / 4;

/// The last values, as far as they came in the order of their keys.
#[derive(Debug)]
pub(super) struct Run {
    /// The last key of the run.
    last: Bytes,
    /// The bytes of its values since its start, or since the last sync.
    bytes: usize,
    /// The last key of the last run that was at least as long as a long batch.
    stream: Bytes,
    /// The bytes of values since a sync of another file waited for a stream.
    quiet: usize,
}

impl Default for Run {
    fn default() -> Self {
        Self { last: Bytes::new(), bytes: 0, stream: Bytes::new(), quiet: usize::MAX }
    }
}

impl Run {
    /// Whether a batch continues a run that is long enough not to be logged.
    pub(super) fn is_continued_by(&self, batch: &Batch, node_bytes: usize) -> bool {
        self.bytes >= NODES * node_bytes
            && !self.expects_syncs(node_bytes)
            && self.follow(batch).is_some_and(|(_, bytes)| bytes > 0)
    }

    /// Notes a batch.
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

    /// Notes a sync of these keys. `waits`: a hole in the log makes it wait for a checkpoint.
    pub(super) fn note_sync(&mut self, of: &Range<Vec<u8>>, waits: bool, node_bytes: usize) {
        let is_of_stream = of.start[..] <= self.stream[..] && self.stream[..] < of.end[..];
        if (waits || self.expects_syncs(node_bytes)) && !is_of_stream {
            self.quiet = 0;
        }
    }

    /// Whether another file was synced recently during a run. Then the log is kept short, so that
    /// the next sync need not wait.
    pub(super) fn expects_syncs(&self, node_bytes: usize) -> bool {
        self.quiet < QUIET_NODES * node_bytes
    }

    /// Starts a new run after a sync: all before is durable.
    pub(super) fn restart(&mut self) {
        self.bytes = 0;
    }

    /// The last key of the run with a batch, and the bytes that the batch adds. `None` if the batch
    /// has a value before the last key.
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
    fn only_long_ascending_runs_are_unlogged() {
        let mut run = Run::default();
        let whole = |keys| batch(keys, 4096);
        run.note(&whole(&["b", "c"]));
        assert!(!run.is_continued_by(&whole(&["d"]), 4096 + 1), "the run is too short");
        assert!(run.is_continued_by(&whole(&["d"]), 4096));
        assert!(!run.is_continued_by(&whole(&["a"]), 4096), "the key is before the run");
        assert!(!run.is_continued_by(&whole(&["e", "d"]), 4096), "the keys do not ascend");
        assert!(!run.is_continued_by(&batch(&["d"], 5), 4096), "the value is too small");
        run.note(&batch(&["a"], 5));
        assert!(run.is_continued_by(&whole(&["d"]), 4096), "a small value does not end the run");
        run.restart();
        assert!(!run.is_continued_by(&whole(&["d"]), 4096));
        run.note(&whole(&["d", "e"]));
        run.note(&whole(&["a"]));
        assert!(!run.is_continued_by(&whole(&["f"]), 4096), "another run has started");
    }

    #[test]
    fn sync_of_another_file_makes_runs_logged() {
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
        assert!(run.is_continued_by(&long(), NODE), "no such sync came for long");
    }
}
