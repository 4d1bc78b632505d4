//! Sequential reads: detection of streams, read-ahead, and rewriting of badly placed blocks.
//!
//! A stream is a reader of a file that continues at its last position. Its next blocks are read
//! with one request for each chain. The window doubles with each read-ahead up to a limit. So the
//! chains determine the number of requests for a file, not the size of the calls.
//!
//! *Write after read*: blocks that were read ahead are in memory, so a rewrite costs only the
//! write. It uses fake dirty blocks. It happens if the read chains are bad enough and the caller
//! reports that processors and drives have time. The number of blocks between two consistency
//! points is limited.

use std::ops::Range;

use super::{Store, aggregate, defrag::Placing, read_requests::WINDOW, volume};
use crate::{
    error::{Error, Result},
    format::BLOCK,
};

const BLOCK_BYTES: u64 = BLOCK as u64;
/// Known streams, at most. With more, the least recently used one is dropped.
const STREAMS: usize = 64;
/// Blocks of the first read-ahead.
const FIRST_WINDOW: u64 = 16;
/// One window may use this fraction of the memory for clean blocks.
const CACHE_PART: u64 = 8;
/// The fewest blocks that are worth a rewrite after a read.
const LEAST_REWRITTEN: u64 = 16;

/// The policy for rewriting blocks that are read in order and are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAfterRead {
    /// Blocks that one consistency point rewrites, at most.
    pub blocks_per_point: u64,
    /// Nothing is rewritten if processors have less free time than this, in percent.
    pub least_cpu_percent: u8,
    /// Nothing is rewritten if drives have less free time than this, in percent.
    pub least_io_percent: u8,
}

impl Default for WriteAfterRead {
    fn default() -> Self {
        Self { blocks_per_point: 4096, least_cpu_percent: 25, least_io_percent: 25 }
    }
}

/// The free time of the system, as the caller measures it. The default is all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Free time of processors, in percent.
    pub cpu_percent: u8,
    /// Free time of drives, in percent.
    pub io_percent: u8,
}

impl Default for Headroom {
    fn default() -> Self {
        Self { cpu_percent: 100, io_percent: 100 }
    }
}

/// A reader that continues at its last position.
#[derive(Clone, Copy, Debug)]
struct Stream {
    space: u32,
    file: u64,
    /// The byte at which it continues.
    next: u64,
    /// The first block that was not read ahead.
    ahead: u64,
    /// Blocks of the last read-ahead.
    window: u64,
    /// The time of its last read.
    at: u64,
}

/// The known streams, and the state of write after read.
#[derive(Debug)]
pub(crate) struct Reading {
    streams: Vec<Stream>,
    clock: u64,
    /// Blocks of the largest window; 0 disables read-ahead.
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

/// How a read relates to the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Noted {
    /// It starts a stream.
    New,
    /// A stream continues within its read-ahead.
    Covered,
    /// A stream continues, and these blocks must be read.
    Fetch(Range<u64>),
}

impl Reading {
    /// Records a read of `len` bytes at `offset` of a file. `most` is the largest read-ahead in
    /// blocks.
    fn note(&mut self, (space, file): (u32, u64), offset: u64, len: u64, most: u64) -> Noted {
        self.clock += 1;
        let end = offset + len;
        let goes_on = |stream: &&mut Stream| {
            let reach = stream.window * BLOCK_BYTES;
            let is_next = offset / BLOCK_BYTES == stream.next / BLOCK_BYTES;
            let is_ahead = offset > stream.next && offset < stream.ahead * BLOCK_BYTES;
            // Requests of one reader may arrive out of order.
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
        // Large windows end at the boundaries of blocks of pointers.
        let whole = if stream.window < WINDOW { 1 } else { WINDOW };
        stream.ahead = last.max((first.max(stream.ahead) + stream.window).next_multiple_of(whole));
        Noted::Fetch(first..stream.ahead)
    }

    /// Removes the streams of a volume whose contents changed as a whole.
    pub fn forget(&mut self, space: u32) {
        self.streams.retain(|stream| stream.space != space);
    }
}

impl Store {
    /// Records a client read of `len` bytes at `offset` of a regular file. Returns the blocks to
    /// read at once, if the read is sequential.
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

    /// Reads the blocks of a sequential reader at once.
    ///
    /// Errors: only those that the read itself would have.
    ///
    /// Cost: one request for each chain, as if the client had requested all of them.
    pub fn read_ahead(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<()> {
        match self.read_chains(space, file, blocks.clone()) {
            // Blocks of objects are not fetched yet.
            _ if self.wants_objects() => Ok(()),
            // The read of an unreadable block returns its error later.
            Ok(()) | Err(Error::Damaged { .. }) => self.write_after_read(space, file, blocks),
            Err(error) => Err(error),
        }
    }

    /// Makes blocks that were just read move, if the policy allows it, and it is worth it.
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
            // A failed rewrite does not concern the reader.
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
    fn windows_double_and_end_at_pointer_blocks() {
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
    fn streams_are_sequential_and_separate_by_reader() {
        let mut reading = Reading::default();
        for at in [900, 3, 500, 77, 20] {
            assert_eq!(note(&mut reading, at, 1), Noted::New, "{at}");
        }
        assert_eq!(note(&mut reading, 501, 1), Noted::Fetch(501..517));
        assert_eq!(note(&mut reading, 78, 1), Noted::Fetch(78..94));
        assert_eq!(note(&mut reading, 502, 1), Noted::Covered);
        // A later part, then the parts before it.
        assert_eq!(note(&mut reading, 510, 2), Noted::Covered);
        assert_eq!(note(&mut reading, 503, 2), Noted::Covered);
        assert_eq!(note(&mut reading, 512, 8), Noted::Fetch(512..549));
        assert_eq!(reading.note((0, 17), 79 * BLOCK_BYTES, BLOCK_BYTES, WINDOW), Noted::New);
        reading.forget(0);
        assert_eq!(note(&mut reading, 520, 1), Noted::New);
    }

    #[test]
    fn number_of_streams_is_bounded() {
        let mut reading = Reading::default();
        for file in 0..1000 {
            reading.note((0, file), 0, 10, WINDOW);
        }
        assert_eq!(reading.streams.len(), STREAMS);
        assert_eq!(reading.note((0, 999), 10, 10, WINDOW), Noted::Fetch(0..17));
    }
}
