//! The log: a ring on the device. It makes batches durable before a superblock names a tree that
//! has them.
//!
//! Batches are records in frames, and frames follow each other. A frame starts at a block, so that
//! no durable block is rewritten. Positions count the log bytes since the file system was made, and
//! never decrease. A frame has its own position and the checksum of the frame before. So a frame of
//! an earlier lap of the ring, or of an earlier mount, is never accepted.
//!
//! Order of calls: [`Replay`] returns the batches after the superblock. The caller then writes a
//! superblock with the start from [`Replay::end`], and only then calls [`Log::new`] and appends. A
//! checkpoint takes the tree at a [`Log::cut`], writes the superblock with that start, and then
//! calls [`Log::trim`].

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

/// The start of a replay, and the expected values of the first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The position of the first frame.
    pub position: u64,
    /// The number of the first batch.
    pub sequence: u64,
    /// The checksum that the first frame has as that of its predecessor.
    pub chain: u64,
}

impl LogStart {
    /// The start for a new file system whose first superblock has this generation.
    pub fn first(uuid: &[u8; 16], generation: u64) -> Self {
        Self { position: 0, sequence: 1, chain: 0 }.anew(uuid, generation)
    }

    /// The start after an empty block and after `batches` batches that are not in the log. A replay
    /// from before this start finds no frame in the block. It finds a later frame, which records
    /// that all was durable up to there. So it detects that the superblock with this start is
    /// damaged.
    pub(crate) fn skip(self, batches: u64) -> Self {
        Self { position: self.position + BLOCK as u64, sequence: self.sequence + batches, ..self }
    }

    /// A start at the same position that no earlier frame is chained to; the superblock
    /// `generation` names it.
    pub fn anew(self, uuid: &[u8; 16], generation: u64) -> Self {
        let mut hasher = Xxh3::with_seed(seed(uuid));
        hasher.update(&generation.to_le_bytes());
        hasher.update(&self.position.to_le_bytes());
        Self { chain: hasher.digest(), ..self }
    }
}

/// The seed of the checksums of a file system's frames.
pub(crate) fn seed(uuid: &[u8; 16]) -> u64 {
    xxh3_64(uuid)
}
