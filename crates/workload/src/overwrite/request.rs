//! One request, and the two simple patterns.

use senesce_core::Rng;

/// The unit of positions and sizes, bytes.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// A read or an overwrite of a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The file, from 0.
    pub file: usize,
    /// The first block.
    pub block: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// Whether it is a read.
    pub reads: bool,
}

/// Requests of one size at random multiples of it.
#[derive(Clone, Debug)]
pub(super) struct Random {
    /// Positions in a file.
    pub places: u64,
    pub files: usize,
    pub blocks: u64,
    pub read_percent: u64,
}

impl Random {
    pub fn next(&self, rng: &mut Rng) -> Request {
        let file = rng.below(self.files as u64) as usize;
        let block = rng.below(self.places) * self.blocks;
        Request { file, block, blocks: self.blocks, reads: rng.chance(self.read_percent, 100) }
    }
}

/// A stream over each file, in turn.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// Blocks of a file.
    pub file_blocks: u64,
    pub blocks: u64,
    /// By file.
    pub positions: Vec<u64>,
    /// Files from this number on are overwritten; the others are read.
    pub readers: usize,
    pub turn: usize,
}

impl Streams {
    pub fn next(&mut self) -> Request {
        let file = self.turn;
        self.turn = (file + 1) % self.positions.len();
        let block = self.positions[file];
        self.positions[file] = (block + self.blocks) % self.file_blocks;
        Request { file, block, blocks: self.blocks, reads: file < self.readers }
    }
}
