//! Frames that wait in memory, and their sizes.

use super::{
    super::{
        LogStart,
        frame::{FRAME_HEADER, FrameHeader, content_bytes},
    },
    FRAME_BYTES, MAX_RECORD_BYTES, State, WINDOW_BYTES,
};
use crate::{Error, Result, disk::BLOCK};

impl State {
    pub(super) fn expect_working(&self) -> Result<()> {
        match &self.failed {
            Some(reason) => Err(Error::Stopped { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.open.sequence + u64::from(self.records)
    }

    /// The position before which all must be durable, for a sync of all batches so far.
    pub(super) fn end(&self) -> u64 {
        self.open.position + u64::from(self.records > 0)
    }

    /// Notes that all before `start` is durable.
    pub(super) fn raise_durable(&mut self, start: &LogStart) {
        self.durable = self.durable.max(start.position);
        self.durable_sequence = self.durable_sequence.max(start.sequence);
    }

    /// The ring bytes in use, up to the end of the open frame.
    pub(super) fn used(&self) -> u64 {
        let open = if self.records == 0 { 0 } else { self.frame_bytes(self.bytes.len() - FRAME_HEADER) };
        self.open.position + open - self.tail.position
    }

    pub(super) fn frame_bytes(&self, body: usize) -> u64 {
        content_bytes(body) + self.parity_bytes
    }

    /// Whether the open frame is closed before a record of `record` bytes.
    pub(super) fn is_closed_by(&self, record: usize, ring: u64) -> bool {
        let most = FRAME_BYTES.min(max_body_bytes(ring, self.parity_bytes));
        self.records > 0 && self.bytes.len() + 4 + record > FRAME_HEADER + most
    }

    pub(super) fn has_room(&self, record: usize, ring: u64) -> bool {
        let added = if self.is_closed_by(record, ring) {
            self.used() + self.frame_bytes(4 + record)
        } else {
            self.open.position - self.tail.position + self.frame_bytes(self.bytes.len() - FRAME_HEADER + 4 + record)
        };
        added <= ring
    }

    /// Closes the open frame, unless it is empty.
    pub(super) fn close(&mut self, seed: u64) {
        if self.records > 0 {
            self.close_frame(seed);
        }
    }

    /// Closes the open frame, even if it is empty.
    pub(super) fn close_frame(&mut self, seed: u64) {
        let mut bytes = std::mem::replace(&mut self.bytes, vec![0; FRAME_HEADER]);
        let body_bytes = (bytes.len() - FRAME_HEADER) as u32;
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        let mut header = FrameHeader {
            position: self.open.position,
            durable: 0,
            sequence: self.open.sequence,
            records: std::mem::take(&mut self.records),
            body_bytes,
            chain: self.open.chain,
            sum: 0,
            has_parity: self.parity_bytes > 0,
        };
        header.sum = header.compute_sum(&bytes[FRAME_HEADER..], seed);
        self.open = LogStart {
            position: self.open.position + header.frame_bytes(),
            sequence: self.open.sequence + u64::from(header.records),
            chain: header.sum,
        };
        self.closed.push((header, bytes));
    }
}

/// The most bytes of the records of a frame.
pub(super) fn max_body_bytes(ring: u64, parity_bytes: u64) -> usize {
    (max_frame_bytes(ring) - parity_bytes) as usize - FRAME_HEADER
}

/// The most bytes of a frame: four fit the ring.
pub(in crate::log) fn max_frame_bytes(ring: u64) -> u64 {
    (ring / 4).min(MAX_RECORD_BYTES) / BLOCK as u64 * BLOCK as u64
}

/// The size of a window, between two flushes; its last frame may exceed it.
pub(in crate::log) fn window_bytes(ring: u64) -> u64 {
    WINDOW_BYTES.min(ring / 4)
}
