//! Reads the log from the superblock's start to the end of the chain.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use super::{
    LogStart,
    frame::{FRAME_HEADER, FrameHeader, add, parity},
    record::decode_batch,
    ring::Ring,
    seed,
    writer::{max_frame_bytes, window_bytes},
};
use crate::{
    Batch, Error, Result,
    disk::{BLOCK, Damage, Decoded, Geometry, OLDEST_VERSION, Reader},
};

/// An iterator over the batches of the log after a superblock, in order.
///
/// Parity restores a frame with one damaged block. The log ends at a frame that a loss of power
/// cut, at frames of an earlier lap, or at an unreadable block after the last frame. If a frame
/// cannot be read, but a later one records that it was durable, acknowledged batches are lost: that
/// is an error.
pub struct Replay {
    ring: Ring,
    uuid: [u8; 16],
    /// The position of the start.
    start: u64,
    /// The position after the last frame.
    next: LogStart,
    /// The records of that frame, and the number of unread ones.
    records: Reader,
    left: u32,
    /// The prefetched bytes, and their position.
    ahead: (u64, Bytes),
    /// The other superblock cannot be read: it may name a later start, anywhere in the ring.
    is_newest_unknown: bool,
    is_over: bool,
    /// Descriptions of the restored frames.
    restored: Vec<String>,
    /// Whether frames have parity. Those of format version 1 do not.
    has_parity: bool,
    /// A description of the block after the last frame, if the device cannot read it.
    skipped: Option<String>,
    /// The positions of unreadable blocks, and the errors.
    unreadable: BTreeMap<u64, Error>,
    /// The error of a block that a later read returned.
    forgotten: Option<Error>,
    /// The number of reads that failed at first and succeeded when repeated.
    repeated: u64,
}

/// The bytes of one read.
const READ_BYTES: u64 = 1 << 20;

impl Replay {
    /// A replay from the `start` of the superblock.
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
            restored: Vec::new(),
            has_parity: true,
            skipped: None,
            unreadable: BTreeMap::new(),
            forgotten: None,
            repeated: 0,
        }
    }

    /// Sets whether the other superblock is unreadable, so that `start` may not be the newest one.
    /// Then the replay searches the whole ring for frames of a newer superblock.
    pub fn beside_torn(self, is_unknown: bool) -> Self {
        Self { is_newest_unknown: is_unknown, ..self }
    }

    /// Sets the format version of the file system.
    pub fn of_version(self, version: u32) -> Self {
        Self { has_parity: version > OLDEST_VERSION, ..self }
    }

    /// The start of the new log, for the superblock `generation`. It is after an empty block, so
    /// that the next frames prove that this superblock was durable. Call it only after the last
    /// batch.
    pub fn end(&self, generation: u64) -> LogStart {
        debug_assert!(self.is_over, "there may be more");
        self.next.skip(0).anew(&self.uuid, generation)
    }

    /// The log bytes that the replay has read.
    pub fn bytes(&self) -> u64 {
        self.next.position - self.start
    }

    /// Descriptions of the frames that had a damaged block and were restored.
    pub(crate) fn restored(&self) -> &[String] {
        &self.restored
    }

    /// A description of the block after the last frame, if the device cannot read it. No batch is
    /// lost by it.
    pub(crate) fn skipped(&self) -> Option<&str> {
        self.skipped.as_deref()
    }

    /// The number of reads that failed at first and succeeded when repeated.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The position after the last frame.
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

    /// Reads the next frame; returns whether there is one.
    ///
    /// The first attempt takes an unreadable block as zeros. If a later read returns the block, the
    /// attempt is repeated. Errors: `Device` if that happens several times.
    fn read_frame(&mut self) -> Result<bool> {
        const TRIES: u32 = 4;
        for _ in 0..TRIES {
            self.forgotten = None;
            let found = self.try_frame();
            if self.forgotten.is_none() || matches!(found, Ok(true)) {
                return found;
            }
            (self.ahead, self.skipped) = ((0, Bytes::new()), None);
        }
        self.forgotten.take().map_or(Ok(false), Err)
    }

    fn try_frame(&mut self) -> Result<bool> {
        let position = self.next.position;
        let seed = seed(&self.uuid);
        let room = self.start + self.ring.bytes() - position;
        if room < BLOCK as u64 {
            return Ok(false);
        }
        let next = self.next;
        let is_next = |header: &FrameHeader| {
            header.position == position
                && header.chain == next.chain
                && header.sequence == next.sequence
                && header.frame_bytes() <= room
        };
        let header = FrameHeader::decode(&self.read(position, BLOCK as u64)?, seed).ok().filter(is_next);
        let found = match header {
            Some(header) => self.read_content(header)?.map(|content| (header, content)),
            None => self.restore_first(room, is_next)?,
        };
        if let Some((header, content)) = found {
            let body = content.slice(FRAME_HEADER..);
            self.records = Reader::new("log frame", body.slice(..header.body_bytes as usize));
            self.left = header.records;
            self.next = LogStart {
                position: position + header.frame_bytes(),
                sequence: header.sequence + u64::from(header.records),
                chain: header.sum,
            };
            return Ok(true);
        }
        self.expect_nothing_behind(position, room)?;
        self.expect_no_frame(position, header, room)?;
        Ok(false)
    }

    /// Checks unreadable blocks at the end of the log: they may be unused, or belong to the next
    /// frame. A frame with one such block is restored by its parity; so a single one is no frame.
    /// If one block is unreadable and another one damaged, the log ends there, because frames of an
    /// earlier lap look the same. `has_header`: the header at the position was read; `room`: the
    /// ring bytes from there on.
    ///
    /// Errors: `Device` if the blocks may be a durable frame, or the only proof that a newer
    /// superblock was durable.
    fn expect_no_frame(&mut self, position: u64, header: Option<FrameHeader>, room: u64) -> Result<()> {
        let most = room.min(max_frame_bytes(self.ring.bytes()));
        let reach = match header {
            _ if self.is_newest_unknown => room,
            Some(header) => header.frame_bytes(),
            None => most,
        };
        let mut blocks = self.unreadable.range(position..position + reach);
        let Some((&first, _)) = blocks.next() else { return Ok(()) };
        let is_alone = self.has_parity && blocks.next().is_none();
        if self.is_newest_unknown || header.is_some() || first == position && !is_alone {
            return self.unreadable.remove(&first).map_or(Ok(()), Err);
        }
        if first == position {
            let place = self.ring.describe(position);
            self.skipped =
                Some(format!("{place}: the device does not return the block, and no frame of the log is there"));
        }
        Ok(())
    }

    /// Reads the blocks of the next frame, without its parity. Returns `None` if more than one is
    /// damaged.
    fn read_content(&mut self, header: FrameHeader) -> Result<Option<Bytes>> {
        let seed = seed(&self.uuid);
        let is_whole = |content: &[u8]| {
            content.len() as u64 == header.content_bytes()
                && header.compute_sum(&content[FRAME_HEADER..], seed) == header.sum
        };
        let frame = self.read(header.position, header.frame_bytes())?;
        let content = frame.slice(..header.content_bytes() as usize);
        // Without parity the damaged block is unknown.
        let difference = if header.has_parity { parity(&frame) } else { vec![0; BLOCK] };
        let is_same = difference.iter().all(|&byte| byte == 0);
        if is_whole(&content) {
            if !is_same {
                self.note_restored(header.position, "its parity is damaged");
            }
            return Ok(Some(content));
        }
        if is_same {
            return Ok(None);
        }
        let mut content = content.to_vec();
        for at in (0..content.len()).step_by(BLOCK) {
            add(&mut content[at..at + BLOCK], &difference);
            if is_whole(&content) {
                self.note_restored(header.position + at as u64, "the block is damaged and was restored by the parity");
                return Ok(Some(content.into()));
            }
            add(&mut content[at..at + BLOCK], &difference);
        }
        Ok(None)
    }

    /// Restores the next frame if only its first block is damaged.
    fn restore_first(
        &mut self,
        room: u64,
        is_next: impl Fn(&FrameHeader) -> bool,
    ) -> Result<Option<(FrameHeader, Bytes)>> {
        let (seed, position) = (seed(&self.uuid), self.next.position);
        let most = room.min(max_frame_bytes(self.ring.bytes()));
        let mut first = parity(&[]);
        for end in (2 * BLOCK as u64..=most).step_by(BLOCK) {
            add(&mut first, &self.read(position + end - BLOCK as u64, BLOCK as u64)?);
            let header = FrameHeader::decode(&first, seed).ok().filter(&is_next);
            let Some(header) = header.filter(|header| header.has_parity && header.frame_bytes() == end) else {
                continue;
            };
            let rest = self.read(position + BLOCK as u64, header.content_bytes() - BLOCK as u64)?;
            let content = Bytes::from([&first[..], &rest].concat());
            if header.compute_sum(&content[FRAME_HEADER..], seed) == header.sum {
                self.note_restored(position, "the block is damaged and was restored by the parity");
                return Ok(Some((header, content)));
            }
        }
        Ok(None)
    }

    fn note_restored(&mut self, position: u64, what: &str) {
        self.restored.push(format!("{}: {what}", self.ring.describe(position)));
    }

    /// Fails if a frame near this position records that a frame here was durable, or that the ring
    /// was reused after it. Between two flushes at most a window and a frame are written, which
    /// limits the search. After an unreadable superblock the whole ring is searched, because
    /// durable frames may be missing.
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

    /// Reads bytes at a position, and prefetches.
    fn read(&mut self, position: u64, len: u64) -> Result<Bytes> {
        let (from, bytes) = &self.ahead;
        if position < *from || position + len > from + bytes.len() as u64 {
            let most = (self.start + self.ring.bytes() - position).min(READ_BYTES);
            let len = len.max(most) as usize;
            let read = self.ring.read(position, len);
            if read.is_ok() {
                let again = self.unreadable.extract_if(position..position + len as u64, |_, _| true);
                self.forgotten = again.last().map(|(_, error)| error).or(self.forgotten.take());
            }
            self.ahead = (position, read.unwrap_or_else(|_| self.read_by_block(position, len)).into());
        }
        let skipped = (position - self.ahead.0) as usize;
        Ok(self.ahead.1.slice(skipped..skipped + len as usize))
    }

    /// Reads block by block after a failed read. An unreadable block becomes zeros, and so counts
    /// as damaged.
    fn read_by_block(&mut self, position: u64, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        let mut is_any_unreadable = false;
        for at in (position..position + len as u64).step_by(BLOCK) {
            match self.ring.read(at, BLOCK.min(len - bytes.len())) {
                Ok(block) => {
                    bytes.extend_from_slice(&block);
                    self.forgotten = self.unreadable.remove(&at).or(self.forgotten.take());
                }
                Err(error) => {
                    bytes.resize((bytes.len() + BLOCK).min(len), 0);
                    self.unreadable.insert(at, error);
                    is_any_unreadable = true;
                }
            }
        }
        self.repeated += u64::from(!is_any_unreadable);
        bytes
    }
}

impl Iterator for Replay {
    type Item = Result<(u64, Batch)>;

    /// Returns the next batch and its number. Errors: `Device`; `Damaged` for a batch that was
    /// durable and cannot be read. After an error the iterator is empty.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.find_next();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// Decodes one record of a frame; `left` records follow.
fn decode_record(records: &mut Reader, left: u32) -> Decoded<Batch> {
    let len = records.u32("record length")? as usize;
    let batch = decode_batch(records.take("record", len)?)?;
    if left == 0 {
        records.end()?;
    }
    Ok(batch)
}
