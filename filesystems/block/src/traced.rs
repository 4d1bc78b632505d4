//! A device that counts and lists its requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use senesce_core::{BlockOp, BlockRequest, Bytes, Clock, SECTOR_BYTES};

use crate::{BlockDevice, BlockResult};

/// Counts of the requests to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes of all reads.
    pub bytes_read: u64,
    /// Bytes of all writes.
    pub bytes_written: u64,
}

/// Counts and lists all requests to another device, including failed ones.
pub struct TracedDevice<D> {
    inner: D,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    counts: RequestCounts,
    requests: Vec<BlockRequest>,
}

impl<D: BlockDevice> TracedDevice<D> {
    /// Traces `inner`; requests are listed with the times of `clock`.
    pub fn new(inner: D, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, seen: Mutex::default() }
    }

    /// The device below.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The counts since the device was made.
    pub fn counts(&self) -> RequestCounts {
        self.seen().counts
    }

    /// Takes the requests since the last call, in the order of arrival. An unaligned request counts
    /// all sectors that it touches.
    pub fn take_requests(&self) -> Vec<BlockRequest> {
        std::mem::take(&mut self.seen().requests)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, op: BlockOp, offset: u64, len: u64) {
        let sector = offset / SECTOR_BYTES;
        let end = offset.saturating_add(len).div_ceil(SECTOR_BYTES);
        let mut seen = self.seen();
        let counts = &mut seen.counts;
        match op {
            BlockOp::Read => (counts.reads, counts.bytes_read) = (counts.reads + 1, counts.bytes_read + len),
            BlockOp::Write => (counts.writes, counts.bytes_written) = (counts.writes + 1, counts.bytes_written + len),
            BlockOp::Discard => counts.discards += 1,
            BlockOp::Flush => counts.flushes += 1,
        }
        let issued = self.clock.now();
        // A discard can have 2 TiB or more; it is listed in pieces.
        let mut at = sector;
        loop {
            let sectors = u32::try_from(end - at).unwrap_or(u32::MAX);
            seen.requests.push(BlockRequest { issued, op, sector: at, sectors });
            at += u64::from(sectors);
            if at == end || sectors == 0 {
                return;
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for TracedDevice<D> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Bytes {
        self.inner.size()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.note(BlockOp::Read, offset, out.len() as u64);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.note(BlockOp::Write, offset, data.len() as u64);
        self.inner.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.note(BlockOp::Flush, 0, 0);
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.note(BlockOp::Discard, offset, len);
        self.inner.discard(offset, len)
    }
}
