//! What drives are asked for, written down while a garden works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;
use senesce_garden::{Trailer, read_trailer};
use senesce_sim::storage::Chain;
use senesce_trials::Rig;

/// A request to a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A chain that was read, and what its blocks' trailers say.
    Read(Chain, Vec<Option<Trailer>>),
    /// A chain that was written.
    Write(Chain),
}

/// What was read, and what was written.
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

/// Blocks of all chains.
pub(crate) fn blocks(chains: &[Chain]) -> u64 {
    chains.iter().map(|chain| u64::from(chain.blocks)).sum()
}

/// Which block of a file's contents it is, if it is one.
pub(crate) fn content(trailer: &Trailer, file: u64) -> Option<u64> {
    (trailer.of_volume && trailer.level == 0 && trailer.file == file).then_some(trailer.block)
}

#[derive(Default)]
struct Written {
    /// Since it was last taken.
    entries: Vec<Entry>,
    recording: bool,
    /// Every chain that was ever written, if that is wanted.
    history: Option<Vec<Chain>>,
}

/// What the drives of one aggregate are asked for. All drives share it.
#[derive(Clone, Default)]
pub struct Tape {
    written: Arc<Mutex<Written>>,
    /// Blocks that a drive of the simulation has before its first stripe, less slots that one of the garden has there.
    shift: u64,
}

/// Slots of a drive before its first stripe that a simulated drive has: a label and both superblocks.
const FIXED_SLOTS: u64 = 3;
/// The slot of a drive's second label, as docs/reference/garden-format.md has it. It is written once, when an aggregate is made. A simulated drive has
/// none, so that its times compare with those of format version 7.
const SECOND_LABEL: u64 = 2;

impl Tape {
    /// An empty one. Blocks are numbered so that stripes of which the number is a multiple of `unit` (the depth of a tetris) have a
    /// multiple of it as block, one unit further; labels and superblocks are the blocks just before the first stripe. With `history`
    /// every chain written is kept from the beginning: 24 bytes each.
    pub fn new(unit: u64, history: bool) -> Self {
        let written = Written { history: history.then(Vec::new), ..Written::default() };
        Self { written: Arc::new(Mutex::new(written)), shift: unit.saturating_sub(FIXED_SLOTS) }
    }

    /// From now on requests are listed, or no more.
    pub fn set_recording(&self, recording: bool) {
        self.written().recording = recording;
    }

    /// What was asked for since this was last called.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.written().entries)
    }

    /// All chains that were written so far.
    pub fn history(&self) -> Vec<Chain> {
        self.written().history.clone().unwrap_or_default()
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request is on a simulated drive, if it is there.
    fn chain(&self, drive: u32, offset: u64, len: usize) -> Option<Chain> {
        let blocks = (len as u64).div_ceil(Rig::SLOT_BYTES) as u32;
        let slot = match offset / Rig::SLOT_BYTES {
            SECOND_LABEL => return None,
            slot => slot - u64::from(slot > SECOND_LABEL),
        };
        Some(Chain { drive, block: slot + self.shift, blocks })
    }
}

/// A drive whose requests go to a tape. It does what the one behind it does.
pub struct TapedDrive<D> {
    inner: D,
    number: u32,
    tape: Tape,
}

impl<D: BlockDevice> TapedDrive<D> {
    /// The drive of that number.
    pub fn new(inner: D, number: u32, tape: Tape) -> Self {
        Self { inner, number, tape }
    }
}

impl<D: BlockDevice> BlockDevice for TapedDrive<D> {
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
