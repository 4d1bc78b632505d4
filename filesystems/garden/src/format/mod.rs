//! The on-disk format: codecs without state. docs/reference/garden-format.md draws it to scale.
//!
//! All numbers are little-endian. Each codec decodes its own output. It refuses other bytes and
//! names the field.

pub(crate) mod bytes;
pub(crate) mod compacted;
pub(crate) mod compression_group;
pub(crate) mod data;
pub(crate) mod directory;
pub(crate) mod inode;
pub(crate) mod label;
pub(crate) mod log_half;
pub(crate) mod log_lap;
pub(crate) mod log_record;
pub(crate) mod object;
pub(crate) mod operation;
pub(crate) mod page;
pub(crate) mod pointer;
pub(crate) mod slot;
pub(crate) mod snapshot;
pub(crate) mod superblock;
pub(crate) mod top_areas;
pub(crate) mod volume;

pub use senesce_fsapi::Damage;
pub(crate) use senesce_fsapi::Decoded;

/// Bytes of a block above the RAID layer.
pub(crate) const BLOCK: usize = 4096;
/// Bytes of the trailer after each block on a drive.
pub(crate) const TRAILER: usize = 64;
/// Bytes of a block with its trailer: the unit of drives and of parity.
pub(crate) const SLOT: usize = BLOCK + TRAILER;
/// The version of new labels, superblocks and logs.
pub(crate) const VERSION: u32 = 8;
/// The previous version: one label a drive, one copy of the log. It is read and written without
/// conversion.
pub(crate) const OLD_VERSION: u32 = 7;
/// The version of objects and of lists of areas, which version 8 did not change.
pub(crate) const INNER_VERSION: u32 = 7;

/// The payload of a block.
pub(crate) type Block = [u8; BLOCK];

/// The CRC-32C of a block. This library is the faster one for whole blocks, and every block that is
/// read or written is summed. Shorter structures use the `crc32c` crate.
pub(crate) fn block_sum(block: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(block)
}

/// A block of zeros on the heap.
pub(crate) fn zero_block() -> Box<Block> {
    Box::new([0; BLOCK])
}

/// Copies an array to the heap, without zeroing the memory first and without a copy on the stack.
pub(crate) fn boxed<const N: usize>(bytes: &[u8; N]) -> Box<[u8; N]> {
    let all: Box<[u8]> = Box::from(&bytes[..]);
    all.try_into().unwrap_or_else(|_| unreachable!("it has {N} bytes"))
}
