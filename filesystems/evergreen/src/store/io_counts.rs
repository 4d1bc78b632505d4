//! Counts of reads and writes, by kind.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use bytes::Bytes;

use crate::{
    Result,
    disk::{Area, Extent},
};

/// Counts of reads and writes since a store was opened. A read of a node loads its header, some
/// parts, or the whole node, with any number of requests. If one request loads several adjacent
/// nodes, each counts as a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Reads of leaves.
    pub leaf_reads: u64,
    /// Their bytes.
    pub leaf_read_bytes: u64,
    /// Reads of inner nodes.
    pub inner_reads: u64,
    /// Their bytes.
    pub inner_read_bytes: u64,
    /// Requests to the device for these reads: one for a row of adjacent nodes, and one for each
    /// piece of a fragmented node.
    pub read_requests: u64,
    /// Leaves written.
    pub leaf_writes: u64,
    /// Their bytes.
    pub leaf_write_bytes: u64,
    /// Inner nodes written.
    pub inner_writes: u64,
    /// Their bytes.
    pub inner_write_bytes: u64,
    /// Bytes of maps of nodes written.
    pub map_write_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Bytes of batches that were not logged.
    pub unlogged_bytes: u64,
    /// Failed reads that no caller received, because they were optional (moves of leaves) or were
    /// repeated. The nodes stay unchanged.
    pub reads_passed_over: u64,
    /// Flushes from inner nodes to children, by height of the inner node: the first entry is for
    /// parents of leaves. The last entry includes all higher nodes.
    pub flushes: [Flushes; FLUSHED_LEVELS],
}

/// The number of heights with separate counts of flushes. No tree on a real device is higher.
pub const FLUSHED_LEVELS: usize = 8;

/// Flushes from one height.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// The number of flushes.
    pub count: u64,
    /// The most bytes of the encoded messages.
    pub bytes: u64,
}

/// Two counts, for leaves and for inner nodes.
type ByKind = [AtomicU64; 2];

/// The counters of [`Figures`].
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

    /// Reads from the area, and counts the requests.
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
