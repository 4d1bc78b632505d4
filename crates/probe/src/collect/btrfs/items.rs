//! The items of Btrfs' trees that describe space. Pure. Source: `linux/btrfs_tree.h`.

use super::tree_search::{Key, u16_at, u64_at};
use crate::map::{BtrfsGroupType, BtrfsStripe, FreeExtent};

/// Trees, by number.
pub(super) mod tree {
    pub(in super::super) const EXTENT: u64 = 2;
    pub(in super::super) const CHUNK: u64 = 3;
    pub(in super::super) const DEVICE: u64 = 4;
    pub(in super::super) const FREE_SPACE: u64 = 10;
    pub(in super::super) const BLOCK_GROUP: u64 = 11;
}

/// Kinds of items, by number.
pub(super) mod kind {
    pub(in super::super) const EXTENT: u32 = 168;
    pub(in super::super) const METADATA: u32 = 169;
    pub(in super::super) const BLOCK_GROUP: u32 = 192;
    pub(in super::super) const FREE_SPACE_EXTENT: u32 = 199;
    pub(in super::super) const FREE_SPACE_BITMAP: u32 = 200;
    pub(in super::super) const DEVICE_EXTENT: u32 = 204;
    pub(in super::super) const DEVICE: u32 = 216;
    pub(in super::super) const CHUNK: u32 = 228;
}

/// A chunk: the location of a block group on devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start_bytes: u64,
    pub(super) length_bytes: u64,
    pub(super) group_type: BtrfsGroupType,
    pub(super) sub_stripes: u16,
    pub(super) stripes: Vec<BtrfsStripe>,
}

/// Parses a chunk's item; none if it is truncated.
pub(super) fn parse_chunk(key: Key, data: &[u8]) -> Option<Chunk> {
    let count = usize::from(u16_at(data, 44)?);
    let stripe = |n: usize| {
        let at = 48 + 32 * n;
        Some(BtrfsStripe { device_id: u64_at(data, at)?, start_bytes: u64_at(data, at + 8)? })
    };
    Some(Chunk {
        start_bytes: key.offset,
        length_bytes: u64_at(data, 0)?,
        group_type: BtrfsGroupType(u64_at(data, 24)?),
        sub_stripes: u16_at(data, 46)?.max(1),
        stripes: (0..count).map(stripe).collect::<Option<_>>()?,
    })
}

/// Parses a device's item: its number and its size in bytes; none if it is truncated.
pub(super) fn parse_device(data: &[u8]) -> Option<(u64, u64)> {
    Some((u64_at(data, 0)?, u64_at(data, 8)?))
}

/// Parses the length in bytes of a device extent's item; none if it is truncated.
pub(super) fn parse_device_extent(data: &[u8]) -> Option<u64> {
    u64_at(data, 24)
}

/// Parses the used bytes of a block group's item; none if it is truncated.
pub(super) fn parse_block_group(data: &[u8]) -> Option<u64> {
    u64_at(data, 0)
}

/// Appends the free extents of an item of the free-space tree: one extent, or the set bits of a
/// bitmap with one bit a sector. Out: false for an item of another kind, and for a bitmap that is
/// too short for its range.
pub(super) fn add_free(key: Key, data: &[u8], sector_bytes: u64, free: &mut Vec<FreeExtent>) -> bool {
    match key.kind {
        kind::FREE_SPACE_EXTENT => {
            free.push(FreeExtent { start_bytes: key.object, length_bytes: key.offset });
            true
        }
        kind::FREE_SPACE_BITMAP => {
            let sectors = key.offset / sector_bytes.max(1);
            if (data.len() as u64) < sectors.div_ceil(8) {
                return false;
            }
            let is_free = |sector: u64| data[(sector / 8) as usize] >> (sector % 8) & 1 == 1;
            let mut sector = 0;
            while sector < sectors {
                let start = sector;
                while sector < sectors && is_free(sector) {
                    sector += 1;
                }
                if sector > start {
                    let start_bytes = key.object.saturating_add(start * sector_bytes);
                    free.push(FreeExtent { start_bytes, length_bytes: (sector - start) * sector_bytes });
                }
                sector += 1;
            }
            true
        }
        _ => false,
    }
}

/// The range of an extent's item of the extent tree; none for an item of another kind.
pub(super) fn parse_used(key: Key, node_bytes: u64) -> Option<FreeExtent> {
    match key.kind {
        kind::EXTENT => Some(FreeExtent { start_bytes: key.object, length_bytes: key.offset }),
        // The offset of a metadata key is the level in the tree, not a length.
        kind::METADATA => Some(FreeExtent { start_bytes: key.object, length_bytes: node_bytes }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(object: u64, kind: u32, offset: u64) -> Key {
        Key { object, kind, offset }
    }

    #[test]
    fn a_chunk_parses_and_truncations_are_none() {
        let mut data = vec![0; 48 + 2 * 32];
        data[0..8].copy_from_slice(&(8u64 << 20).to_le_bytes());
        data[24..32].copy_from_slice(&0x24u64.to_le_bytes());
        data[44..46].copy_from_slice(&2u16.to_le_bytes());
        data[46..48].copy_from_slice(&1u16.to_le_bytes());
        for (n, start) in [(0usize, 1u64 << 20), (1, 9 << 20)] {
            data[48 + 32 * n] = 1;
            data[56 + 32 * n..64 + 32 * n].copy_from_slice(&start.to_le_bytes());
        }
        let chunk = parse_chunk(key(256, kind::CHUNK, 30 << 20), &data).unwrap();
        let stripe = |start_bytes| BtrfsStripe { device_id: 1, start_bytes };
        assert_eq!((chunk.start_bytes, chunk.length_bytes), (30 << 20, 8 << 20));
        assert_eq!(chunk.stripes, [stripe(1 << 20), stripe(9 << 20)]);
        // The identifier at a stripe's end is not read.
        let needed = data.len() - 16;
        for end in 0..data.len() {
            assert_eq!(parse_chunk(key(256, kind::CHUNK, 0), &data[..end]).is_some(), end >= needed, "{end}");
        }
    }

    #[test]
    fn a_bitmap_gives_its_runs() {
        let mut free = Vec::new();
        // Sectors 0, 3..8 and 8, 9 of twelve; the bits after the range have no meaning.
        assert!(add_free(key(1 << 20, 200, 12 * 4096), &[0b1111_1001, 0b1111_0011], 4096, &mut free));
        let extent = |sector: u64, sectors: u64| FreeExtent {
            start_bytes: (1 << 20) + sector * 4096,
            length_bytes: sectors * 4096,
        };
        assert_eq!(free, [extent(0, 1), extent(3, 7)]);
        assert!(!add_free(key(0, 200, 12 * 4096), &[0xFF], 4096, &mut free), "too short a bitmap");
        assert!(!add_free(key(0, 198, 4096), &[0; 8], 4096, &mut free));
    }

    proptest! {
        #[test]
        fn every_set_sector_is_free_once(bits in prop::collection::vec(any::<u8>(), 1..40), spare in 0u64..8) {
            let sectors = bits.len() as u64 * 8 - spare;
            let mut free = Vec::new();
            prop_assert!(add_free(key(0, 200, sectors * 4096), &bits, 4096, &mut free));
            let from_runs: Vec<u64> =
                free.iter().flat_map(|run| run.start_bytes / 4096..(run.start_bytes + run.length_bytes) / 4096).collect();
            let set: Vec<u64> = (0..sectors).filter(|n| bits[(n / 8) as usize] >> (n % 8) & 1 == 1).collect();
            prop_assert_eq!(from_runs, set);
            prop_assert!(free.windows(2).all(|pair| pair[0].start_bytes + pair[0].length_bytes < pair[1].start_bytes));
        }
    }
}
