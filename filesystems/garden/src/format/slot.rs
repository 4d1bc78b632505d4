//! A slot: a block on a drive (4,096 bytes) with a trailer of 64 bytes that identifies the block
//! and its place.
//!
//! The trailer detects lost, torn, flipped and misdirected writes. A reader accepts a block only if
//! three conditions hold: its checksums match, its own PVBN is where it was read, and its owner,
//! number and tag match the pointer.

pub(crate) use senesce_block::Slot;

use super::{
    BLOCK, Block, Damage, Decoded, SLOT, block_sum,
    bytes::{put, u16_at, u32_at, u64_at},
};

/// The kind of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Label = 1,
    Superblock = 2,
    /// A block of a file of the aggregate.
    Aggregate = 3,
    /// A block of a volume, of any of its files: a block of a container file.
    Volume = 4,
    /// Chunks of several blocks of a volume.
    Compacted = 5,
}

/// The identity of a block: the part of the trailer that is not a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub kind: Kind,
    /// 0 for contents of files, more for blocks of pointers.
    pub level: u8,
    /// The low bits of the number of the consistency point that wrote the slot here. Pointers have
    /// the same tag.
    pub tag: u16,
    /// The file of the aggregate; for blocks of volumes, their container file.
    pub owner: u64,
    /// The number of the block in the owner, at its level. Of a block of a volume, the VVBN.
    pub block: u64,
    pub pvbn: u64,
    /// The consistency point that wrote the contents. After a move it is older than the one of the
    /// tag.
    pub cp: u64,
    /// Of a block of a volume: the file and the number in it at its level. A hint to find the
    /// parent.
    pub hint_file: u64,
    pub hint_block: u64,
}

/// Builds a slot from a payload and its context.
pub(crate) fn encode(payload: &Block, context: &Context) -> Slot {
    let mut slot = Slot::zeros();
    slot[..BLOCK].copy_from_slice(payload);
    seal(&mut slot, block_sum(payload), context);
    slot
}

/// Writes the trailer after a payload that is already in the slot. `sum` is the checksum of the
/// payload.
pub(crate) fn seal(slot: &mut [u8; SLOT], sum: u32, context: &Context) {
    let trailer = &mut slot[BLOCK..];
    trailer.fill(0);
    put(trailer, 0, &sum.to_le_bytes());
    trailer[8] = context.kind as u8;
    trailer[9] = context.level;
    put(trailer, 10, &context.tag.to_le_bytes());
    put(trailer, 16, &context.owner.to_le_bytes());
    put(trailer, 24, &context.block.to_le_bytes());
    put(trailer, 32, &context.pvbn.to_le_bytes());
    put(trailer, 40, &context.cp.to_le_bytes());
    put(trailer, 48, &context.hint_file.to_le_bytes());
    put(trailer, 56, &context.hint_block.to_le_bytes());
    let sum = trailer_sum(trailer);
    put(trailer, 4, &sum.to_le_bytes());
}

/// Decodes the trailer and checks both checksums. The caller compares the context with the one it
/// expects.
pub(crate) fn decode(slot: &[u8; SLOT]) -> Decoded<Context> {
    let (payload, trailer) = slot.split_at(BLOCK);
    let (found, sum) = (u32_at(trailer, 4), trailer_sum(trailer));
    if found != sum {
        return Err(Damage::new("slot", "trailer checksum", hex(found), hex(sum)));
    }
    let (found, sum) = (u32_at(trailer, 0), block_sum(payload));
    if found != sum {
        return Err(Damage::new("slot", "payload checksum", hex(found), hex(sum)));
    }
    let kind = match trailer[8] {
        1 => Kind::Label,
        2 => Kind::Superblock,
        3 => Kind::Aggregate,
        4 => Kind::Volume,
        5 => Kind::Compacted,
        other => return Err(Damage::new("slot", "kind", other, "1 to 5")),
    };
    Ok(Context {
        kind,
        level: trailer[9],
        tag: u16_at(trailer, 10),
        owner: u64_at(trailer, 16),
        block: u64_at(trailer, 24),
        pvbn: u64_at(trailer, 32),
        cp: u64_at(trailer, 40),
        hint_file: u64_at(trailer, 48),
        hint_block: u64_at(trailer, 56),
    })
}

/// The checksum of the payload, as recorded in the trailer.
pub(crate) fn sum(slot: &[u8; SLOT]) -> u32 {
    u32_at(&slot[BLOCK..], 0)
}

pub(crate) fn payload(slot: &[u8; SLOT]) -> Box<Block> {
    super::boxed(slot.first_chunk().unwrap_or_else(|| unreachable!("a slot is longer than a block")))
}

/// The checksum of the trailer without the field of the checksum.
fn trailer_sum(trailer: &[u8]) -> u32 {
    let mut others = [0; SLOT - BLOCK - 4];
    others[..4].copy_from_slice(&trailer[..4]);
    others[4..].copy_from_slice(&trailer[8..]);
    crc32c::crc32c(&others)
}

fn hex(sum: u32) -> String {
    format!("{sum:#010x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context {
            kind: Kind::Volume,
            level: 1,
            tag: 0x0203,
            owner: 17,
            block: 0x0405,
            pvbn: 0x0607,
            cp: 0x0001_0203,
            hint_file: 42,
            hint_block: 7,
        }
    }

    #[test]
    fn golden() {
        let slot = encode(&[0xab; BLOCK], &context());
        assert_eq!(decode(&slot).unwrap(), context());
        let trailer: String = slot[BLOCK..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(trailer, GOLDEN);
    }
    const GOLDEN: &str = "934137946c748486040103020000000011000000000000000504000000000000070600000000000003020100000000002a000000000000000700000000000000";

    #[test]
    fn any_flipped_bit_is_detected() {
        let good = encode(&[0x5a; BLOCK], &context());
        for byte in (0..BLOCK).step_by(61).chain(BLOCK..SLOT) {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[byte] ^= 1 << bit;
                assert!(decode(&bad).is_err(), "byte {byte} bit {bit}");
            }
        }
    }
}
