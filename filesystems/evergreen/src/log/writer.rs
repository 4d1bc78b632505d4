//! Appends to the log, and makes it durable.

mod frames;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use senesce_block::BlockDevice;

use super::{
    LogStart,
    frame::{FRAME_HEADER, FrameHeader, parity},
    record::{encode_batch_to, record_bytes},
    ring::Ring,
    seed,
};
use crate::{
    Batch, Error, Result,
    disk::{BLOCK, Geometry},
};

use frames::max_body_bytes;
pub(super) use frames::{max_frame_bytes, window_bytes};

/// A frame with several records is closed before its records exceed this size.
const FRAME_BYTES: usize = 256 << 10;
const WINDOW_BYTES: u64 = 4 << 20;
const MAX_RECORD_BYTES: u64 = 16 << 20;

/// The end of the log, to which batches are appended.
///
/// Several threads may call it. Concurrent syncs share one write and one flush.
pub struct Log {
    ring: Ring,
    seed: u64,
    /// The bytes of a frame's parity.
    parity_bytes: u64,
    state: Mutex<State>,
    synced: Condvar,
}

struct State {
    /// The bytes of a frame's parity.
    parity_bytes: u64,
    /// The start of the used part of the ring, from the last durable superblock.
    tail: LogStart,
    /// The start of the open frame.
    open: LogStart,
    /// The bytes of the open frame, with space for the header, and the number of its batches.
    bytes: Vec<u8>,
    records: u32,
    /// Closed frames that are not written, in order.
    closed: Vec<(FrameHeader, Vec<u8>)>,
    /// All frames before this position, and all batches before this number, are durable.
    durable: u64,
    durable_sequence: u64,
    /// The holes (batches that are not logged): all, those before the last cut, and those in the
    /// tree of a durable superblock.
    holes: u64,
    cut_holes: u64,
    filled_holes: u64,
    /// The holes that a frame in the ring proves to be in a durable tree.
    witnessed_holes: u64,
    /// Whether a thread writes and flushes now.
    is_busy: bool,
    /// The error after which no write is possible.
    failed: Option<String>,
}

impl Log {
    /// A log that continues at `start`, which a durable superblock must name. Otherwise a replay
    /// would not find the new frames, or would misinterpret them.
    pub fn new(device: Arc<dyn BlockDevice>, geometry: &Geometry, uuid: &[u8; 16], start: LogStart) -> Self {
        let state = State {
            parity_bytes: BLOCK as u64,
            tail: start,
            open: start,
            bytes: vec![0; FRAME_HEADER],
            records: 0,
            closed: Vec::new(),
            durable: start.position,
            durable_sequence: start.sequence,
            holes: 0,
            cut_holes: 0,
            filled_holes: 0,
            witnessed_holes: 0,
            is_busy: false,
            failed: None,
        };
        let (ring, parity_bytes) = (Ring::new(device, geometry), state.parity_bytes);
        Self { ring, seed: seed(uuid), parity_bytes, state: Mutex::new(state), synced: Condvar::new() }
    }

    /// Switches to format version 1, whose frames have no parity. Call it before the first append.
    pub(crate) fn without_parity(self) -> Self {
        self.lock().parity_bytes = 0;
        Self { parity_bytes: 0, ..self }
    }

    /// The most bytes of an [encoded](encode_batch_to) batch.
    pub fn max_record_bytes(&self) -> usize {
        max_body_bytes(self.ring.bytes(), self.parity_bytes) - 4
    }

    /// Whether a batch of `record_bytes` encoded bytes fits the ring.
    pub fn has_room(&self, record_bytes: usize) -> bool {
        self.lock().has_room(record_bytes, self.ring.bytes())
    }

    /// Adds a batch to the waiting ones in memory, and returns its number. Durable after a
    /// [`sync`](Self::sync).
    ///
    /// Errors: `NoSpace` if the ring is full, until a checkpoint. `Invalid` if the batch is too
    /// large. `Stopped`.
    pub fn append(&self, batch: &Batch) -> Result<u64> {
        self.append_with(record_bytes(batch), |out| encode_batch_to(batch, out))
    }

    /// Like [`append`](Self::append), with an encoded batch.
    #[cfg(test)]
    pub fn append_record(&self, record: &[u8]) -> Result<u64> {
        self.append_with(record.len(), |out| out.extend_from_slice(record))
    }

    /// Adds a record of `len` bytes. `encode` appends it directly to the frame, without a copy.
    fn append_with(&self, len: usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        let most = self.max_record_bytes();
        if len > most {
            return Err(Error::Invalid { what: format!("a batch of {len} bytes; the log takes at most {most}") });
        }
        let mut state = self.lock();
        state.expect_working()?;
        if !state.has_room(len, self.ring.bytes()) {
            let free = self.ring.bytes().saturating_sub(state.used());
            return Err(Error::NoSpace { wanted: len as u64, free });
        }
        if state.is_closed_by(len, self.ring.bytes()) {
            state.close(self.seed);
        }
        state.bytes.reserve(4 + len);
        state.bytes.extend_from_slice(&(len as u32).to_le_bytes());
        let at = state.bytes.len();
        encode(&mut state.bytes);
        debug_assert_eq!(state.bytes.len(), at + len, "the length that was announced");
        state.records += 1;
        Ok(state.next_sequence() - 1)
    }

    /// Notes a batch that is only in the tree. Later batches are not written before a
    /// [`trim`](Self::trim) to a later cut.
    ///
    /// Errors: `Stopped`.
    pub fn leave_out(&self) -> Result<()> {
        let mut state = self.lock();
        state.expect_working()?;
        state.holes += 1;
        Ok(())
    }

    /// Whether a batch was [left out](Self::leave_out) that no durable superblock has. Then a sync
    /// needs a checkpoint.
    pub fn has_holes(&self) -> bool {
        let state = self.lock();
        state.holes > state.filled_holes
    }

    /// Makes all earlier batches durable. Returns false if one of them was [left
    /// out](Self::leave_out) and no durable superblock has it; then only a checkpoint helps.
    ///
    /// Errors: `Device`; `Stopped` for all callers after a failure, because the state of the device
    /// is unknown.
    pub fn sync(&self) -> Result<bool> {
        let state = self.lock();
        let wanted = state.end();
        self.write_until(state, wanted)
    }

    /// Makes durable, after this [`trim`](Self::trim), the proof that the holes are in a durable
    /// tree. If that superblock is damaged later, a replay finds the proof: a frame after the mark
    /// of the cut. If no batch follows, it is an empty frame.
    ///
    /// Errors: as for [`sync`](Self::sync).
    pub fn witness(&self, start: &LogStart) -> Result<()> {
        let mut state = self.lock();
        if state.witnessed_holes == state.filled_holes || state.holes > state.filled_holes {
            // The next witness covers newer holes.
            return Ok(());
        }
        state.witnessed_holes = state.filled_holes;
        if state.open == *start && state.records == 0 {
            state.close_frame(self.seed);
        }
        let wanted = state.end();
        self.write_until(state, wanted).map(drop)
    }

    /// Writes waiting frames until all before a position is durable. Returns false if a hole
    /// prevents it.
    fn write_until<'a>(&'a self, mut state: MutexGuard<'a, State>, wanted: u64) -> Result<bool> {
        loop {
            if state.holes > state.filled_holes {
                return Ok(false);
            }
            if state.durable >= wanted {
                return Ok(true);
            }
            state.expect_working()?;
            if state.is_busy {
                state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.close(self.seed);
            let frames = std::mem::take(&mut state.closed);
            let (end, durable) = (state.open, state.durable);
            state.is_busy = true;
            drop(state);
            let written = self.write(frames, durable);
            state = self.lock();
            state.is_busy = false;
            match &written {
                Ok(()) => state.raise_durable(&end),
                Err(error) => state.failed = Some(error.to_string()),
            }
            self.synced.notify_all();
            written?;
        }
    }

    /// Closes the frame. Returns the start of a replay, if all batches so far are in a durable
    /// tree. [Left out](Self::leave_out) batches leave a mark, so that no replay skips them.
    pub fn cut(&self) -> LogStart {
        let mut state = self.lock();
        state.close(self.seed);
        let holes = state.holes - state.cut_holes;
        if holes > 0 {
            state.open = state.open.skip(holes);
            state.cut_holes = state.holes;
        }
        // Only an empty frame follows the tail, so a superblock with the tail need not be
        // rewritten.
        if state.open.sequence == state.tail.sequence { state.tail } else { state.open }
    }

    /// Frees the ring before `start`, which is from the last cut and in a durable superblock.
    /// Frames that wait before it are never written.
    pub fn trim(&self, start: &LogStart) {
        let mut state = self.lock();
        assert!(state.tail.position <= start.position && start.position <= state.open.position, "a start from a cut");
        state.tail = *start;
        state.closed.retain(|(header, _)| header.position >= start.position);
        state.filled_holes = state.cut_holes;
        state.raise_durable(start);
    }

    /// The bytes of the ring in use since the last trim.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used()
    }

    /// The length of the ring, in bytes.
    pub fn ring_bytes(&self) -> u64 {
        self.ring.bytes()
    }

    /// Whether a checkpoint is due.
    pub fn is_half_full(&self) -> bool {
        self.used_bytes() * 2 >= self.ring.bytes()
    }

    /// The bytes that wait in memory.
    pub fn waiting_bytes(&self) -> u64 {
        let state = self.lock();
        state.used() - (state.durable - state.tail.position)
    }

    /// The number of the next batch.
    pub fn next_sequence(&self) -> u64 {
        self.lock().next_sequence()
    }

    /// Batches before this number are durable.
    pub fn durable_sequence(&self) -> u64 {
        self.lock().durable_sequence
    }

    /// Writes frames in windows with a flush each. So a later frame records that the window before
    /// it is durable.
    fn write(&self, frames: Vec<(FrameHeader, Vec<u8>)>, durable: u64) -> Result<()> {
        let (mut durable, mut window, mut position) = (durable, Vec::new(), None);
        for (header, mut bytes) in frames {
            let header = FrameHeader { durable, ..header };
            header.encode(&mut bytes, self.seed);
            if header.has_parity {
                let parity = parity(&bytes);
                bytes.extend_from_slice(&parity);
            }
            position.get_or_insert(header.position);
            window.append(&mut bytes);
            if window.len() as u64 >= window_bytes(self.ring.bytes()) {
                durable = self.write_window(position.take(), &mut window)?;
            }
        }
        self.write_window(position, &mut window)?;
        Ok(())
    }

    /// Returns the position after the window.
    fn write_window(&self, position: Option<u64>, window: &mut Vec<u8>) -> Result<u64> {
        let Some(position) = position else { return Ok(0) };
        self.ring.write_durably(position, window)?;
        let end = position + window.len() as u64;
        window.clear();
        Ok(end)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
