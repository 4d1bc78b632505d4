//! A frame: a header of 64 bytes, records, zeros up to the end of the block, and a block of parity.
//! The parity restores any one damaged block of the frame.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::disk::{BLOCK, Damage, Decoded};
use crate::disk::{put_at, u32_at, u64_at};

const MAGIC: &[u8; 8] = b"SNSCfrm2";
/// The magic of format version 1, in which frames have no parity.
const OLD_MAGIC: &[u8; 8] = b"SNSCfram";
/// The bytes of a frame before its records.
pub const FRAME_HEADER: usize = 64;
const HEADER_SUM_AT: usize = 56;
const STRUCTURE: &str = "log frame";

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The position of the frame, in log bytes since the file system was made.
    pub position: u64,
    /// All frames before this position were durable when this one was written.
    pub durable: u64,
    /// The number of its first record.
    pub sequence: u64,
    /// The number of records.
    pub records: u32,
    /// The bytes of its records.
    pub body_bytes: u32,
    /// The checksum of the previous frame.
    pub chain: u64,
    /// The checksum of this frame: of its numbers except `durable`, and of all bytes after the
    /// header.
    pub sum: u64,
    /// Whether a block of parity follows. Frames of format version 1 have none.
    pub has_parity: bool,
}

impl FrameHeader {
    /// The bytes of the whole frame.
    pub fn frame_bytes(&self) -> u64 {
        self.content_bytes() + if self.has_parity { BLOCK as u64 } else { 0 }
    }

    /// The bytes of the frame without its parity.
    pub(crate) fn content_bytes(&self) -> u64 {
        content_bytes(self.body_bytes as usize)
    }

    /// Decodes a header with the seed of the file system. Errors: the first wrong field.
    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Decoded<Self> {
        let has_parity = bytes[..8] == MAGIC[..];
        if !has_parity && bytes[..8] != OLD_MAGIC[..] {
            return Err(Damage::new(STRUCTURE, "magic", bytes[..8].escape_ascii(), MAGIC.escape_ascii()));
        }
        let (found, sum) = (u64_at(bytes, HEADER_SUM_AT), xxh3_64_with_seed(&bytes[..HEADER_SUM_AT], seed));
        if found != sum {
            return Err(Damage::new(STRUCTURE, "header checksum", format!("{found:#018x}"), format!("{sum:#018x}")));
        }
        Ok(Self {
            position: u64_at(bytes, 8),
            durable: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            records: u32_at(bytes, 32),
            body_bytes: u32_at(bytes, 36),
            chain: u64_at(bytes, 40),
            sum: u64_at(bytes, 48),
            has_parity,
        })
    }

    /// Encodes the header into the first bytes of its frame.
    pub(super) fn encode(&self, frame: &mut [u8], seed: u64) {
        put_at(frame, 0, if self.has_parity { MAGIC } else { OLD_MAGIC });
        put_at(frame, 8, &self.position.to_le_bytes());
        put_at(frame, 16, &self.durable.to_le_bytes());
        put_at(frame, 24, &self.sequence.to_le_bytes());
        put_at(frame, 32, &self.records.to_le_bytes());
        put_at(frame, 36, &self.body_bytes.to_le_bytes());
        put_at(frame, 40, &self.chain.to_le_bytes());
        put_at(frame, 48, &self.sum.to_le_bytes());
        let sum = xxh3_64_with_seed(&frame[..HEADER_SUM_AT], seed);
        put_at(frame, HEADER_SUM_AT, &sum.to_le_bytes());
    }

    /// Computes the checksum of the frame with these bytes after the header.
    pub(crate) fn compute_sum(&self, body: &[u8], seed: u64) -> u64 {
        let mut hasher = Xxh3::with_seed(seed);
        for number in [self.position, self.sequence, u64::from(self.records), u64::from(self.body_bytes), self.chain] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(body);
        hasher.digest()
    }
}

/// The bytes of a frame with `body` bytes of records, without its parity.
pub(super) fn content_bytes(body: usize) -> u64 {
    (FRAME_HEADER + body).next_multiple_of(BLOCK) as u64
}

/// The XOR of all blocks of an undamaged frame. It is not zero, so that parity is never mistaken
/// for a block.
const WHOLE: u8 = 0xff;

/// The parity of blocks. If the parity is among the blocks, the result is zero for undamaged
/// blocks. For one damaged block it is the difference to the original.
pub(super) fn parity(blocks: &[u8]) -> Vec<u8> {
    let mut parity = vec![WHOLE; BLOCK];
    blocks.chunks_exact(BLOCK).for_each(|block| add(&mut parity, block));
    parity
}

/// Adds a block to the parity.
pub(super) fn add(sum: &mut [u8], block: &[u8]) {
    sum.iter_mut().zip(block).for_each(|(sum, byte)| *sum ^= byte);
}
