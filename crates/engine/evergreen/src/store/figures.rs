//! What was read and written, by kind.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;

use crate::{
    Result,
    disk::{Area, Extent},
};

/// What was read and written since a store was opened. A read of a node is one reading of its header, of parts of it, or of all of it, however
/// many requests it took: of nodes that are read at once, for they lie one behind the other, each is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Readings of leaves.
    pub leaf_reads: u64,
    /// Bytes of these.
    pub leaf_read_bytes: u64,
    /// Readings of inner nodes.
    pub inner_reads: u64,
    /// Bytes of these.
    pub inner_read_bytes: u64,
    /// Requests to the device that gave all these: one for all of a row that lies in one piece, and one for each piece of a node that lies in several.
    pub read_requests: u64,
    /// Leaves that were written.
    pub leaf_writes: u64,
    /// Bytes of these.
    pub leaf_write_bytes: u64,
    /// Inner nodes that were written.
    pub inner_writes: u64,
    /// Bytes of these.
    pub inner_write_bytes: u64,
    /// Bytes of maps of nodes that were written.
    pub map_write_bytes: u64,
    /// Checkpoints that were made.
    pub checkpoints: u64,
    /// Bytes of batches that were not logged.
    pub unlogged_bytes: u64,
    /// Readings that failed, and that no caller was told of: they could be done without, as those that are only to make leaves lie better, or
    /// again. What they did not give is as it was before.
    pub reads_passed_over: u64,
    /// What went down from inner nodes to children, by how many levels these nodes are above the leaves: the first from nodes directly above
    /// them, the last also from all that are higher.
    pub flushes: [Flushes; FLUSHED_LEVELS],
}

/// Levels whose flushes are told apart: no tree of a device that there is has more.
pub const FLUSHED_LEVELS: usize = 8;

/// What went down from one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// How often.
    pub count: u64,
    /// The most bytes that it takes when it is encoded.
    pub bytes: u64,
}

/// Two figures, of leaves and of inner nodes.
type ByKind = [AtomicU64; 2];

/// The same while it is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    reads: ByKind,
    read_bytes: ByKind,
    read_requests: AtomicU64,
    writes: ByKind,
    write_bytes: ByKind,
    map_write_bytes: AtomicU64,
    checkpoints: AtomicU64,
    unlogged_bytes: AtomicU64,
    reads_passed_over: AtomicU64,
    flushes: [[AtomicU64; 2]; FLUSHED_LEVELS],
}

impl Counters {
    pub(super) fn note_read(&self, is_leaf: bool, bytes: usize) {
        let kind = usize::from(!is_leaf);
        self.0.reads[kind].fetch_add(1, Relaxed);
        self.0.read_bytes[kind].fetch_add(bytes as u64, Relaxed);
    }

    /// Reads from the area, and notes the requests.
    pub(super) fn read(&self, area: &Area, extents: &[Extent], at: usize, bytes: usize) -> Result<Bytes> {
        let (bytes, requests) = area.read_counting(extents, at as u64, bytes)?;
        self.0.read_requests.fetch_add(requests, Relaxed);
        Ok(bytes)
    }

    pub(super) fn note_write(&self, is_leaf: bool, bytes: usize) {
        let kind = usize::from(!is_leaf);
        self.0.writes[kind].fetch_add(1, Relaxed);
        self.0.write_bytes[kind].fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn note_flush(&self, height: u8, bytes: usize) {
        let level = usize::from(height.max(1) - 1).min(FLUSHED_LEVELS - 1);
        let [count, all] = &self.0.flushes[level];
        count.fetch_add(1, Relaxed);
        all.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn note_checkpoint(&self, map_bytes: u64) {
        self.0.map_write_bytes.fetch_add(map_bytes, Relaxed);
        self.0.checkpoints.fetch_add(1, Relaxed);
    }

    pub(super) fn note_unlogged(&self, bytes: usize) {
        self.0.unlogged_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn note_passed_over(&self, reads: u64) {
        self.0.reads_passed_over.fetch_add(reads, Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        let counts = &self.0;
        let [leaf_reads, inner_reads] = counts.reads.each_ref().map(|count| count.load(Relaxed));
        let [leaf_read_bytes, inner_read_bytes] = counts.read_bytes.each_ref().map(|count| count.load(Relaxed));
        let [leaf_writes, inner_writes] = counts.writes.each_ref().map(|count| count.load(Relaxed));
        let [leaf_write_bytes, inner_write_bytes] = counts.write_bytes.each_ref().map(|count| count.load(Relaxed));
        Figures {
            leaf_reads,
            leaf_read_bytes,
            inner_reads,
            inner_read_bytes,
            read_requests: counts.read_requests.load(Relaxed),
            leaf_writes,
            leaf_write_bytes,
            inner_writes,
            inner_write_bytes,
            map_write_bytes: counts.map_write_bytes.load(Relaxed),
            checkpoints: counts.checkpoints.load(Relaxed),
            unlogged_bytes: counts.unlogged_bytes.load(Relaxed),
            reads_passed_over: counts.reads_passed_over.load(Relaxed),
            flushes: counts
                .flushes
                .each_ref()
                .map(|[count, bytes]| Flushes { count: count.load(Relaxed), bytes: bytes.load(Relaxed) }),
        }
    }
}
