//! The log: a ring on the device in which batches are durable before a superblock names a tree that has them.
//!
//! Batches are records in frames, which are written one behind the other; a frame begins at a block, so that nothing durable is
//! written again. Positions count the bytes since the file system was made and never fall: a frame knows its own, and is chained to
//! the one before, so nothing of an earlier lap of the ring, or of an earlier opening, is ever taken for what belongs there.
//!
//! The order of things: [`Replay`] gives the batches behind the superblock; a superblock with the start that [`Replay::end`] gives is
//! written; only then [`Log::new`] and appending. A checkpoint takes the tree as it is at a [`Log::cut`], writes the superblock with
//! that start, and then [`Log::trim`]s.

mod erase;
mod frame;
mod record;
mod replay;
mod ring;
#[cfg(test)]
mod tests;
mod writer;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(crate) use erase::{clear_blocks, erase_frames, frames, unreadable_blocks};
pub use frame::{FRAME_HEADER, FrameHeader};
#[cfg(test)]
pub(crate) use record::encode_batch;
pub use record::{decode_batch, record_bytes};
pub use replay::Replay;
pub(crate) use ring::Ring;
pub use writer::Log;

use crate::disk::BLOCK;

/// Where replaying begins, and what the first frame there must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The position of the first frame.
    pub position: u64,
    /// The number of the first batch.
    pub sequence: u64,
    /// What the first frame is chained to.
    pub chain: u64,
}

impl LogStart {
    /// That of a new file system, whose first superblock has this generation.
    pub fn first(uuid: &[u8; 16], generation: u64) -> Self {
        Self { position: 0, sequence: 1, chain: 0 }.anew(uuid, generation)
    }

    /// Behind a block that no frame is in, and so many batches that are not in the log. Whoever reads on from before it finds no frame there,
    /// but behind it one that says that all was durable up to here: so it is told if the superblock that names this start is damaged.
    pub(crate) fn skip(self, batches: u64) -> Self {
        Self { position: self.position + BLOCK as u64, sequence: self.sequence + batches, ..self }
    }

    /// A start at the same position to which nothing that was written before is chained, when the superblock `generation` is
    /// the one that names it.
    pub fn anew(self, uuid: &[u8; 16], generation: u64) -> Self {
        let mut hasher = Xxh3::with_seed(seed(uuid));
        hasher.update(&generation.to_le_bytes());
        hasher.update(&self.position.to_le_bytes());
        Self { chain: hasher.digest(), ..self }
    }
}

/// What the checksums of a file system's frames begin with.
pub(crate) fn seed(uuid: &[u8; 16]) -> u64 {
    xxh3_64(uuid)
}
