//! Appending to the log, and making it durable.

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

/// A frame is closed before it has more bytes of records, if it has several.
const FRAME_BYTES: usize = 256 << 10;
const WINDOW_BYTES: u64 = 4 << 20;
const MAX_RECORD_BYTES: u64 = 16 << 20;

/// The end of the log to which batches are appended.
///
/// Calls come from several threads. Those that want their batches durable at the same time share one write and one flush.
pub struct Log {
    ring: Ring,
    seed: u64,
    /// Bytes of the parity of a frame.
    parity_bytes: u64,
    state: Mutex<State>,
    synced: Condvar,
}

struct State {
    /// Bytes of the parity of a frame.
    parity_bytes: u64,
    /// What is in the ring begins here: the start of the last durable superblock.
    tail: LogStart,
    /// Where the open frame begins, the number of its first batch, and the checksum of the frame before.
    open: LogStart,
    /// Its bytes, with room for the header, and how many batches it has.
    bytes: Vec<u8>,
    records: u32,
    /// Frames that are closed and not written, in order.
    closed: Vec<(FrameHeader, Vec<u8>)>,
    /// All before this position, and all batches before this number, are durable.
    durable: u64,
    durable_sequence: u64,
    /// Batches that were left out, so far; those before the last cut; and those that a superblock has made good.
    holes: u64,
    cut_holes: u64,
    filled_holes: u64,
    /// Those of which something in the ring says that they were made good.
    witnessed_holes: u64,
    /// Somebody writes and flushes now.
    is_busy: bool,
    /// Why nothing can be written any more.
    failed: Option<String>,
}

impl Log {
    /// A log that goes on at `start`, which a durable superblock names: else what is appended would not be found, or be taken for what
    /// it is not.
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

    /// The same for a file system of format version 1, whose frames have no parity. Nothing must be appended yet.
    pub(crate) fn without_parity(self) -> Self {
        self.lock().parity_bytes = 0;
        Self { parity_bytes: 0, ..self }
    }

    /// Bytes of an [encoded](encode_batch_to) batch at most.
    pub fn max_record_bytes(&self) -> usize {
        max_body_bytes(self.ring.bytes(), self.parity_bytes) - 4
    }

    /// Whether a batch of so many encoded bytes has room.
    pub fn has_room(&self, record_bytes: usize) -> bool {
        self.lock().has_room(record_bytes, self.ring.bytes())
    }

    /// Adds a batch to those that wait in memory, and gives its number. Not durable before a [`sync`](Self::sync).
    ///
    /// Errors: `NoSpace` if the ring is full: a checkpoint must make room first. `Invalid` for a batch that is too large. `Stopped`.
    pub fn append(&self, batch: &Batch) -> Result<u64> {
        self.append_with(record_bytes(batch), |out| encode_batch_to(batch, out))
    }

    /// The same with an encoded batch.
    #[cfg(test)]
    pub fn append_record(&self, record: &[u8]) -> Result<u64> {
        self.append_with(record.len(), |out| out.extend_from_slice(record))
    }

    /// Adds a record of `len` bytes that `encode` appends: it is written to the log's memory once.
    fn append_with(&self, len: usize, encode: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        let most = self.max_record_bytes();
        if len > most {
            return Err(Error::Invalid { what: format!("a batch of {len} bytes; the log takes {most} at most") });
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

    /// A batch is left out, and is in the tree alone: nothing behind it is written before a [`trim`](Self::trim) to a cut behind it.
    ///
    /// Errors: `Stopped`.
    pub fn leave_out(&self) -> Result<()> {
        let mut state = self.lock();
        state.expect_working()?;
        state.holes += 1;
        Ok(())
    }

    /// Whether a batch was [left out](Self::leave_out) that no superblock has: a sync then waits for a checkpoint.
    pub fn has_holes(&self) -> bool {
        let state = self.lock();
        state.holes > state.filled_holes
    }

    /// All batches that were appended before are durable when it returns, unless one was [left out](Self::leave_out) that no superblock
    /// has: then it returns false, and only a checkpoint helps.
    ///
    /// Errors: `Device`; `Stopped` for all who come behind a failure, for nobody knows what it left.
    pub fn sync(&self) -> Result<bool> {
        let state = self.lock();
        let wanted = state.end();
        self.write_until(state, wanted)
    }

    /// Batches that were left out are in a tree that a durable superblock names, and this [`trim`](Self::trim) said so: what says of it in the
    /// ring, should that superblock be damaged later, is durable when it returns. That is a frame behind the mark of the cut: if none came
    /// meanwhile, one without batches.
    ///
    /// Errors: as [`sync`](Self::sync).
    pub fn witness(&self, start: &LogStart) -> Result<()> {
        let mut state = self.lock();
        if state.witnessed_holes == state.filled_holes || state.holes > state.filled_holes {
            // Of those that came since, the next one is to say it.
            return Ok(());
        }
        state.witnessed_holes = state.filled_holes;
        if state.open == *start && state.records == 0 {
            state.close_frame(self.seed);
        }
        let wanted = state.end();
        self.write_until(state, wanted).map(drop)
    }

    /// Writes what waits until all before a position is durable; false if a hole keeps from it.
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

    /// Ends the frame: where replaying begins if all that was appended so far is in a tree. Batches that were [left out](Self::leave_out)
    /// leave a mark, so that nobody reads on over them.
    pub fn cut(&self) -> LogStart {
        let mut state = self.lock();
        state.close(self.seed);
        let holes = state.holes - state.cut_holes;
        if holes > 0 {
            state.open = state.open.skip(holes);
            state.cut_holes = state.holes;
        }
        // Nothing but a frame of nothing came behind it: so a superblock that has it already need not be written again.
        if state.open.sequence == state.tail.sequence { state.tail } else { state.open }
    }

    /// A superblock with this start, that of the last cut, is durable: what lies before is needed no more, and what of it waits is durable as it is.
    pub fn trim(&self, start: &LogStart) {
        let mut state = self.lock();
        assert!(state.tail.position <= start.position && start.position <= state.open.position, "a start from a cut");
        state.tail = *start;
        state.closed.retain(|(header, _)| header.position >= start.position);
        state.filled_holes = state.cut_holes;
        state.raise_durable(start);
    }

    /// Bytes of the ring in use: since the last trim.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used()
    }

    /// Bytes of the ring.
    pub fn ring_bytes(&self) -> u64 {
        self.ring.bytes()
    }

    /// It is time for a checkpoint.
    pub fn is_half_full(&self) -> bool {
        self.used_bytes() * 2 >= self.ring.bytes()
    }

    /// Bytes that wait in memory.
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

    /// Writes frames and flushes; in windows, so that a later frame tells that one a window before it was durable.
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

    /// Gives the position behind it.
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
