//! An aggregate in memory with a file of known contents.

use std::{ops::Range, sync::Arc};

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode, Timestamp};
use senesce_garden::{Garden, VolumeFs, VolumeOptions};

use crate::{
    Error, Result, Setup,
    setup::{BLOCK, SLOT},
};

/// Blocks of the longest request.
const MOST: u64 = 64;

/// An open aggregate of one volume with one file. Each block repeats a word made of its number and
/// the number of its writes. Each read compares it.
pub struct Rig {
    garden: Garden,
    fs: VolumeFs,
    file: Ino,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: Arc<dyn BlockDevice>,
    /// The number of writes of each block.
    written: Vec<u32>,
    buffer: Vec<u8>,
    /// The numbers of the existing snapshots; the next one gets the end of the range.
    snapshots: Range<u64>,
}

impl Rig {
    /// Makes the aggregate on compact devices. The file is empty.
    pub fn new(setup: &Setup) -> Result<Self> {
        Self::on(setup, &|name, size| Arc::new(CompactDevice::new(name, size)))
    }

    /// Does the same on drives that `make` returns by name and size. They must hold zeros.
    pub fn on(setup: &Setup, make: &dyn Fn(String, Bytes) -> Arc<dyn BlockDevice>) -> Result<Self> {
        setup.check()?;
        let drives = setup.drives(make);
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", setup.log_bytes()));
        Garden::format(&setup.format_options(), drives.clone(), log.clone())?;
        let garden = Garden::open(&drives, log.clone(), setup.limits())?;
        // The runner reads ahead, because its loads mark sequential reads.
        garden.set_read_ahead(0);
        garden
            .create_volume(Self::VOLUME, &VolumeOptions { blocks: setup.blocks(), inodes: 4096, seed: setup.seed })?;
        let fs = garden.volume(Self::VOLUME)?;
        let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
        let written = vec![0; setup.file_blocks() as usize];
        Ok(Self { garden, fs, file, drives, log, written, buffer: vec![0; (MOST * BLOCK) as usize], snapshots: 0..0 })
    }

    /// The aggregate.
    pub fn garden(&self) -> &Garden {
        &self.garden
    }

    /// The drives; those of parity are last in their group.
    pub fn drives(&self) -> &[Arc<dyn BlockDevice>] {
        &self.drives
    }

    /// The log.
    pub fn log(&self) -> &Arc<dyn BlockDevice> {
        &self.log
    }

    /// The number of the file's inode.
    pub fn file(&self) -> u64 {
        self.file.0
    }

    /// Blocks of the file.
    pub fn blocks(&self) -> u64 {
        self.written.len() as u64
    }

    /// Writes blocks, each with a new word.
    pub fn write(&mut self, blocks: Range<u64>) -> Result<()> {
        for piece in split(blocks) {
            let bytes = &mut self.buffer[..((piece.end - piece.start) * BLOCK) as usize];
            for (block, payload) in piece.clone().zip(bytes.chunks_exact_mut(BLOCK as usize)) {
                let count = &mut self.written[block as usize];
                *count += 1;
                let word = word(block, *count).to_le_bytes();
                payload.as_chunks_mut::<8>().0.fill(word);
            }
            let mut done = 0;
            while done < bytes.len() {
                let offset = piece.start * BLOCK + done as u64;
                done += self.fs.write(&Caller::default(), self.file, offset, &bytes[done..])?;
            }
        }
        Ok(())
    }

    /// Deletes the oldest snapshot if `kept` snapshots exist, and makes one.
    pub(crate) fn rotate_snapshots(&mut self, kept: u64) -> Result<()> {
        let name = |number: u64| format!("snapshot {number}").into_bytes();
        if self.snapshots.end - self.snapshots.start >= kept {
            self.garden.delete_snapshot(Self::VOLUME, &name(self.snapshots.start))?;
            self.snapshots.start += 1;
        }
        self.garden.create_snapshot(Self::VOLUME, &name(self.snapshots.end), Timestamp::default())?;
        self.snapshots.end += 1;
        Ok(())
    }

    /// Reads blocks. Errors: `WrongData` if a block does not hold the last write to it.
    pub fn read(&mut self, blocks: Range<u64>) -> Result<()> {
        for piece in split(blocks) {
            let bytes = &mut self.buffer[..((piece.end - piece.start) * BLOCK) as usize];
            bytes.fill(0);
            self.fs.read(self.file, piece.start * BLOCK, bytes)?;
            for (block, payload) in piece.zip(bytes.chunks_exact(BLOCK as usize)) {
                let wanted = word(block, self.written[block as usize]);
                let words = payload.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                if let Some(found) = words.into_iter().find(|&found| found != wanted) {
                    return Err(Error::WrongData { block, found, wanted });
                }
            }
        }
        Ok(())
    }

    /// The volume of all trials.
    pub const VOLUME: &[u8] = b"volume";

    /// Bytes of a block on a drive.
    pub const SLOT_BYTES: u64 = SLOT;
}

fn split(blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = blocks.end;
    blocks.step_by(MOST as usize).map(move |first| first..end.min(first + MOST))
}

/// Returns the word of a block after `written` writes: 0 before the first one, else never 0.
fn word(block: u64, written: u32) -> u64 {
    if written == 0 {
        return 0;
    }
    let mixed = (block << 32 | u64::from(written)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29) | 1
}
