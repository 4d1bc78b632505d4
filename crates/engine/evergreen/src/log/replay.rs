//! Reading the log back: from where the superblock says to where the chain ends.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::BlockDevice;

use super::{
    LogStart,
    frame::{FRAME_HEADER, FrameHeader},
    record::decode_batch,
    ring::Ring,
    seed,
    writer::{max_frame_bytes, window_bytes},
};
use crate::{
    Batch, Error, Result,
    disk::{BLOCK, Damage, Decoded, Geometry, Reader},
};

/// The batches of the log behind a superblock, in order.
///
/// A frame that was cut by a loss of power is the end, and so is what an earlier lap left. A frame that cannot be read though a later
/// one says that it was durable is an error: what was acknowledged is lost.
pub struct Replay {
    ring: Ring,
    uuid: [u8; 16],
    /// Where it began.
    start: u64,
    /// Behind the last frame that was read.
    next: LogStart,
    /// Records of that frame, and how many are left in it.
    records: Reader,
    left: u32,
    /// Bytes that were read ahead, and their position.
    ahead: (u64, Bytes),
    /// The other superblock cannot be read: it may have named a later start, anywhere in the ring.
    is_newest_unknown: bool,
    is_over: bool,
}

/// What is read at once.
const READ_BYTES: u64 = 1 << 20;

impl Replay {
    /// Reads from `start` on, as the superblock has it.
    pub fn new(device: Arc<dyn BlockDevice>, geometry: &Geometry, uuid: [u8; 16], start: LogStart) -> Self {
        Self {
            ring: Ring::new(device, geometry),
            uuid,
            start: start.position,
            next: start,
            records: Reader::new("log frame", Bytes::new()),
            left: 0,
            ahead: (0, Bytes::new()),
            is_newest_unknown: false,
            is_over: false,
        }
    }

    /// The same if the superblock that has `start` may not be the newest one, for the other cannot be read, as `is_unknown` says: then
    /// all of the ring is looked through for what tells that there was a newer one.
    pub fn beside_torn(self, is_unknown: bool) -> Self {
        Self { is_newest_unknown: is_unknown, ..self }
    }

    /// Where the log is to go on, when the superblock `generation` names that place: behind a block, so that what comes there tells that this
    /// superblock was durable. Behind the last batch only.
    pub fn end(&self, generation: u64) -> LogStart {
        debug_assert!(self.is_over, "there may be more");
        self.next.skip(0).anew(&self.uuid, generation)
    }

    /// Bytes of the log that hold what was read.
    pub fn bytes(&self) -> u64 {
        self.next.position - self.start
    }

    /// Behind the last frame that was read.
    pub(crate) fn reached(&self) -> LogStart {
        self.next
    }

    fn find_next(&mut self) -> Result<Option<(u64, Batch)>> {
        while self.left == 0 {
            if !self.read_frame()? {
                return Ok(None);
            }
        }
        let number = self.next.sequence - u64::from(self.left);
        self.left -= 1;
        let record = decode_record(&mut self.records, self.left);
        let batch = record.map_err(|damage| Error::damaged(format!("batch {number} of the log"), &damage))?;
        Ok(Some((number, batch)))
    }

    /// Reads the next frame; whether there is one.
    fn read_frame(&mut self) -> Result<bool> {
        let position = self.next.position;
        let seed = seed(&self.uuid);
        let room = self.start + self.ring.bytes() - position;
        if room < BLOCK as u64 {
            return Ok(false);
        }
        let header = FrameHeader::decode(&self.read(position, BLOCK as u64)?, seed);
        let header = header.ok().filter(|header| {
            header.position == position
                && header.chain == self.next.chain
                && header.sequence == self.next.sequence
                && header.frame_bytes() <= room
        });
        if let Some(header) = header {
            let frame = self.read(position, header.frame_bytes())?;
            let body = frame.slice(FRAME_HEADER..);
            if header.compute_sum(&body, seed) == header.sum {
                self.records = Reader::new("log frame", body.slice(..header.body_bytes as usize));
                self.left = header.records;
                self.next = LogStart {
                    position: position + header.frame_bytes(),
                    sequence: header.sequence + u64::from(header.records),
                    chain: header.sum,
                };
                return Ok(true);
            }
        }
        self.expect_nothing_behind(position, room)?;
        Ok(false)
    }

    /// No frame near this position may say that the one here was durable, or that the ring was used again behind it. What is written
    /// between two flushes is no more than a window and the frame that fills it, so the search may end; but not if what was durable may have
    /// been left out, as behind a superblock that cannot be read.
    fn expect_nothing_behind(&mut self, position: u64, room: u64) -> Result<()> {
        let (seed, ring) = (seed(&self.uuid), self.ring.bytes());
        let (from, end) = match self.is_newest_unknown {
            true => (self.start, position + room),
            false => (
                self.start.max(position.saturating_sub(max_frame_bytes(ring))),
                position + room.min(window_bytes(ring) + max_frame_bytes(ring)),
            ),
        };
        for at in (from..end).step_by(BLOCK) {
            let Ok(header) = FrameHeader::decode(&self.read(at, BLOCK as u64)?, seed) else { continue };
            let (lap, place) = (header.position / ring, header.position % ring);
            let why = if header.position == at && header.durable > position {
                format!("it was durable when batch {} was written, at {at}", header.sequence)
            } else if place == at % ring && lap > at / ring {
                format!("batch {} took its place, so a newer superblock was durable", header.sequence)
            } else {
                continue;
            };
            let found = format!("damaged (batch {})", self.next.sequence);
            let damage = Damage::new("log", "frame", found, format!("whole: {why}"));
            return Err(Error::damaged(self.ring.describe(position), &damage));
        }
        Ok(())
    }

    /// Bytes at a position, with what is read ahead.
    fn read(&mut self, position: u64, len: u64) -> Result<Bytes> {
        let (from, bytes) = &self.ahead;
        if position < *from || position + len > from + bytes.len() as u64 {
            let most = (self.start + self.ring.bytes() - position).min(READ_BYTES);
            self.ahead = (position, self.ring.read(position, len.max(most) as usize)?.into());
        }
        let skipped = (position - self.ahead.0) as usize;
        Ok(self.ahead.1.slice(skipped..skipped + len as usize))
    }
}

impl Iterator for Replay {
    type Item = Result<(u64, Batch)>;

    /// The next batch and its number. Errors: `Device`; `Damaged` for one that was durable and cannot be read. Behind an error
    /// there is nothing.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.find_next();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// One record of a frame; `left` come behind it.
fn decode_record(records: &mut Reader, left: u32) -> Decoded<Batch> {
    let len = records.u32("record length")? as usize;
    let batch = decode_batch(records.take("record", len)?)?;
    if left == 0 {
        records.end()?;
    }
    Ok(batch)
}
