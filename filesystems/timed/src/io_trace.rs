//! Records the requests of drives while a garden works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;
use senesce_garden::{Trailer, read_trailer};
use senesce_sim::storage::Chain;
use senesce_trials::Rig;

/// A request to a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A chain that was read, with the trailers of its blocks.
    Read(Chain, Vec<Option<Trailer>>),
    /// A chain that was written.
    Write(Chain),
}

/// Divides entries into reads and writes.
pub(crate) fn part(entries: Vec<Entry>) -> (Vec<Chain>, Vec<Chain>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Entry::Read(chain, _) => reads.push(chain),
            Entry::Write(chain) => writes.push(chain),
        }
    }
    (reads, writes)
}

/// The total number of blocks.
pub(crate) fn blocks(chains: &[Chain]) -> u64 {
    chains.iter().map(|chain| u64::from(chain.blocks)).sum()
}

/// The number of the block in the file, if it is a block of the file's contents.
pub(crate) fn content(trailer: &Trailer, file: u64) -> Option<u64> {
    (trailer.of_volume && trailer.level == 0 && trailer.file == file).then_some(trailer.block)
}

#[derive(Default)]
struct Written {
    /// Entries since the last `take`.
    entries: Vec<Entry>,
    recording: bool,
    /// Every chain that was ever written, if requested.
    history: Option<Vec<Chain>>,
}

/// The recorded requests of the drives of one aggregate, which share it.
#[derive(Clone, Default)]
pub struct IoTrace {
    written: Arc<Mutex<Written>>,
    /// Blocks of a simulated drive before its first stripe, minus the slots of a garden's drive
    /// before it.
    shift: u64,
}

/// Slots before the first stripe that a simulated drive has too: a label and both superblocks.
const FIXED_SLOTS: u64 = 3;
/// The slot of a drive's second label, see docs/reference/garden-format.md. It is written once,
/// when an aggregate is made. A simulated drive has none, so that its times are comparable with
/// those of format version 7.
const SECOND_LABEL: u64 = 2;

impl IoTrace {
    /// An empty recording. If the number of a stripe is a multiple of `unit` (the depth of a
    /// tetris), its block number is a multiple too, one unit higher. Labels and superblocks are the
    /// blocks just before the first stripe. With `history` every written chain is stored from the
    /// start: 24 bytes each.
    pub fn new(unit: u64, history: bool) -> Self {
        let written = Written { history: history.then(Vec::new), ..Written::default() };
        Self { written: Arc::new(Mutex::new(written)), shift: unit.saturating_sub(FIXED_SLOTS) }
    }

    /// Starts or stops the recording of requests.
    pub fn set_recording(&self, recording: bool) {
        self.written().recording = recording;
    }

    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.written().entries)
    }

    /// All chains written so far.
    pub fn history(&self) -> Vec<Chain> {
        self.written().history.clone().unwrap_or_default()
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chain of a request on a simulated drive, if it has these blocks.
    fn chain(&self, drive: u32, offset: u64, len: usize) -> Option<Chain> {
        let blocks = (len as u64).div_ceil(Rig::SLOT_BYTES) as u32;
        let slot = match offset / Rig::SLOT_BYTES {
            SECOND_LABEL => return None,
            slot => slot - u64::from(slot > SECOND_LABEL),
        };
        Some(Chain { drive, block: slot + self.shift, blocks })
    }
}

/// A drive that records its requests and passes them to the inner drive.
pub struct TracingDrive<D> {
    inner: D,
    number: u32,
    tape: IoTrace,
}

impl<D: BlockDevice> TracingDrive<D> {
    /// Wraps a drive under this number.
    pub fn new(inner: D, number: u32, tape: IoTrace) -> Self {
        Self { inner, number, tape }
    }
}

impl<D: BlockDevice> BlockDevice for TracingDrive<D> {
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
        self.inner.read_at(offset, out)?;
        let mut written = self.tape.written();
        if written.recording
            && let Some(chain) = self.tape.chain(self.number, offset, out.len())
        {
            let trailers = out.chunks(Rig::SLOT_BYTES as usize).map(read_trailer).collect();
            written.entries.push(Entry::Read(chain, trailers));
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let chain = self.tape.chain(self.number, offset, data.len());
        let mut written = self.tape.written();
        if let Some(history) = &mut written.history {
            history.extend(chain);
        }
        if written.recording {
            written.entries.extend(chain.map(Entry::Write));
        }
        drop(written);
        self.inner.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.inner.discard(offset, len)
    }
}
