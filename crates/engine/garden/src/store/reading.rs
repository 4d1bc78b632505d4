//! Files that are read in order: that is noticed, what comes next is read with it, and what lies badly may be written together.
//!
//! A stream is a reader of a file that goes on where it was. What it wants next comes with one request for each chain,
//! twice as much each time up to a window; so the chain, not the size of a call, decides how many requests a file takes.
//!
//! *Write after read*: what was read so is in memory, and only its writing is to be paid. It is done by fake dirty, if the read
//! chains are bad enough, if who runs the engine says that processors and drives have time, and for so many blocks at most
//! between two consistency points.

use std::ops::Range;

use super::{Store, aggregate, defrag::Placing, layout::WINDOW, volume};
use crate::{
    error::{Error, Result},
    format::BLOCK,
};

const BLOCK_BYTES: u64 = BLOCK as u64;
/// Streams that are known at once; of more, the one that went on longest ago is forgotten.
const STREAMS: usize = 64;
/// What is read ahead the first time, in blocks.
const FIRST_WINDOW: u64 = 16;
/// The part of the memory for clean blocks that one window may take is one in so many.
const CACHE_PART: u64 = 8;
/// Fewer blocks than these are not worth looking at after reading.
const LEAST_REWRITTEN: u64 = 16;

/// Files that are read in order are written together again where their blocks lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAfterRead {
    /// Blocks that are written again at most by one consistency point.
    pub blocks_per_point: u64,
    /// It is left alone if processors have less time than this, in percent.
    pub least_cpu_percent: u8,
    /// The same of drives.
    pub least_io_percent: u8,
}

impl Default for WriteAfterRead {
    fn default() -> Self {
        Self { blocks_per_point: 4096, least_cpu_percent: 25, least_io_percent: 25 }
    }
}

/// How much time is left, as whoever runs the engine measures it. All, until it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Of processors, in percent.
    pub cpu_percent: u8,
    /// Of drives, in percent.
    pub io_percent: u8,
}

impl Default for Headroom {
    fn default() -> Self {
        Self { cpu_percent: 100, io_percent: 100 }
    }
}

/// A reader that goes on where it was.
#[derive(Clone, Copy, Debug)]
struct Stream {
    space: u32,
    file: u64,
    /// The byte at which it goes on.
    next: u64,
    /// The first block that was not read ahead.
    ahead: u64,
    /// Blocks that were read ahead the last time.
    window: u64,
    /// When it went on.
    at: u64,
}

/// What is known of readers, and what was done after reading.
#[derive(Debug)]
pub(crate) struct Reading {
    streams: Vec<Stream>,
    clock: u64,
    /// Blocks of the largest window; 0 for none.
    pub most: u64,
    pub headroom: Headroom,
    /// Blocks that were made to move since the last consistency point.
    pub(super) rewritten: u64,
}

impl Default for Reading {
    fn default() -> Self {
        Self { streams: Vec::new(), clock: 0, most: WINDOW, headroom: Headroom::default(), rewritten: 0 }
    }
}

/// What a read means to the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Noted {
    /// Nobody was there.
    New,
    /// A stream goes on within what was read ahead.
    Covered,
    /// A stream goes on, and these blocks are to be read at once.
    Fetch(Range<u64>),
}

impl Reading {
    /// A read of `len` bytes at `offset` of a file. `most`: blocks that may be read at once.
    fn note(&mut self, (space, file): (u32, u64), offset: u64, len: u64, most: u64) -> Noted {
        self.clock += 1;
        let end = offset + len;
        let goes_on = |stream: &&mut Stream| {
            let reach = stream.window * BLOCK_BYTES;
            let is_next = offset / BLOCK_BYTES == stream.next / BLOCK_BYTES;
            let is_ahead = offset > stream.next && offset < stream.ahead * BLOCK_BYTES;
            // Requests of one reader may come in another order.
            let is_late = end <= stream.next && end + reach > stream.next && stream.window > 0;
            (stream.space, stream.file) == (space, file) && (is_next || is_ahead || is_late)
        };
        let Some(stream) = self.streams.iter_mut().find(goes_on) else {
            if self.streams.len() >= STREAMS {
                let oldest = (0..STREAMS).min_by_key(|&at| self.streams[at].at).unwrap_or(0);
                self.streams.swap_remove(oldest);
            }
            let ahead = end.div_ceil(BLOCK_BYTES);
            self.streams.push(Stream { space, file, next: end, ahead, window: 0, at: self.clock });
            return Noted::New;
        };
        stream.at = self.clock;
        stream.next = stream.next.max(end);
        let (first, last) = (offset / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES));
        if last <= stream.ahead && stream.window > 0 {
            return Noted::Covered;
        }
        stream.window = (2 * stream.window).max(FIRST_WINDOW).min(most);
        // Windows end where blocks of pointers do, once they are as large.
        let whole = if stream.window < WINDOW { 1 } else { WINDOW };
        stream.ahead = last.max((first.max(stream.ahead) + stream.window).next_multiple_of(whole));
        Noted::Fetch(first..stream.ahead)
    }

    /// A volume's contents are others now.
    pub fn forget(&mut self, space: u32) {
        self.streams.retain(|stream| stream.space != space);
    }
}

impl Store {
    /// Notes that somebody reads `len` bytes at `offset` of a regular file, and says which blocks are to be read at once, if that is
    /// in order.
    pub fn note_read(&mut self, space: u32, file: u64, offset: u64, len: u64) -> Result<Option<Range<u64>>> {
        let inode = self.inode(space, file)?;
        let len = len.min(inode.size.saturating_sub(offset));
        let most = self.reading.most.min(self.limits.cache_bytes / BLOCK_BYTES / CACHE_PART);
        if inode.inline || len == 0 || most < 2 || file < volume::FIRST_USER {
            return Ok(None);
        }
        let noted = self.reading.note((space, file), offset, len, most);
        self.counts.sequential_reads += u64::from(noted != Noted::New);
        let Noted::Fetch(blocks) = noted else { return Ok(None) };
        let blocks = blocks.start..blocks.end.min(inode.size.div_ceil(BLOCK_BYTES));
        let asked = (offset + len).div_ceil(BLOCK_BYTES);
        self.counts.read_aheads += u64::from(blocks.end > asked);
        self.counts.read_ahead_blocks += blocks.end.saturating_sub(asked);
        Ok(Some(blocks))
    }

    /// Reads blocks at once that somebody reads in order.
    ///
    /// Errors: none that reading itself would not have. Cost: one request for each chain, as if all that was asked for.
    pub fn read_ahead(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<()> {
        match self.read_chains(space, file, blocks.clone()) {
            // What is to come from objects is not there yet.
            _ if self.wants_objects() => Ok(()),
            // Whoever wants a block that cannot be read is told then.
            Ok(()) | Err(Error::Damaged { .. }) => self.write_after_read(space, file, blocks),
            Err(error) => Err(error),
        }
    }

    /// Makes what was just read move, if that is wanted, worth it and affordable.
    fn write_after_read(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<()> {
        let Some(policy) = self.gardener.gardening.write_after_read else { return Ok(()) };
        let Headroom { cpu_percent, io_percent } = self.reading.headroom;
        let left = policy.blocks_per_point.saturating_sub(self.reading.rewritten);
        let blocks = blocks.start..blocks.end.min(blocks.start.saturating_add(left));
        if space >= aggregate::MAX_VOLUMES || self.stopped.is_some() {
            return Ok(());
        }
        let is_busy = cpu_percent < policy.least_cpu_percent || io_percent < policy.least_io_percent;
        if is_busy || self.is_due() || blocks.end < blocks.start + LEAST_REWRITTEN {
            self.counts.rewrites_put_off += 1;
            return Ok(());
        }
        match self.improve(space, file, blocks, Placing::FakeDirty, false) {
            Ok(counts) => {
                self.reading.rewritten += counts.moved;
                self.counts.rewritten_after_read += counts.moved;
                Ok(())
            }
            // There is nobody to be told.
            Err(Error::NoSpace { .. } | Error::Damaged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: (u32, u64) = (0, 16);

    fn note(reading: &mut Reading, first: u64, blocks: u64) -> Noted {
        reading.note(FILE, first * BLOCK_BYTES, blocks * BLOCK_BYTES, WINDOW)
    }

    #[test]
    fn windows_double_up_to_the_largest_and_end_with_blocks_of_pointers() {
        let mut reading = Reading::default();
        assert_eq!(note(&mut reading, 0, 4), Noted::New);
        let mut windows = Vec::new();
        for at in (4..2000).step_by(4) {
            match note(&mut reading, at, 4) {
                Noted::Fetch(blocks) => {
                    assert_eq!(blocks.start, at);
                    windows.push(blocks.end);
                }
                noted => assert_eq!(noted, Noted::Covered),
            }
        }
        assert_eq!(windows, [20, 52, 116, 244, 512, 768, 1024, 1280, 1536, 1792, 2048]);
    }

    #[test]
    fn who_jumps_is_no_stream_and_two_readers_are_two() {
        let mut reading = Reading::default();
        for at in [900, 3, 500, 77, 20] {
            assert_eq!(note(&mut reading, at, 1), Noted::New, "{at}");
        }
        assert_eq!(note(&mut reading, 501, 1), Noted::Fetch(501..517));
        assert_eq!(note(&mut reading, 78, 1), Noted::Fetch(78..94));
        assert_eq!(note(&mut reading, 502, 1), Noted::Covered);
        // Somewhat later, then what was left out.
        assert_eq!(note(&mut reading, 510, 2), Noted::Covered);
        assert_eq!(note(&mut reading, 503, 2), Noted::Covered);
        assert_eq!(note(&mut reading, 512, 8), Noted::Fetch(512..549));
        assert_eq!(reading.note((0, 17), 79 * BLOCK_BYTES, BLOCK_BYTES, WINDOW), Noted::New);
        reading.forget(0);
        assert_eq!(note(&mut reading, 520, 1), Noted::New);
    }

    #[test]
    fn few_streams_are_remembered() {
        let mut reading = Reading::default();
        for file in 0..1000 {
            reading.note((0, file), 0, 10, WINDOW);
        }
        assert_eq!(reading.streams.len(), STREAMS);
        assert_eq!(reading.note((0, 999), 10, 10, WINDOW), Noted::Fetch(0..17));
    }
}
