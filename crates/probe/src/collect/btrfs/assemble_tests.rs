//! Space computed by hand, and against a model that checks every unit.

use proptest::prelude::*;

use super::*;
use crate::map::BtrfsStripe;

const MIB: u64 = 1 << 20;

fn extent(start_bytes: u64, length_bytes: u64) -> FreeExtent {
    FreeExtent { start_bytes, length_bytes }
}

fn chunk(start_bytes: u64, length_bytes: u64, bits: u64, sub_stripes: u16, stripes: &[(u64, u64)]) -> Chunk {
    let stripes = stripes.iter().map(|&(device_id, start_bytes)| BtrfsStripe { device_id, start_bytes }).collect();
    Chunk { start_bytes, length_bytes, group_type: BtrfsGroupType(bits), sub_stripes, stripes }
}

#[test]
fn entries_of_removed_chunks_are_ignored() {
    let trees = Trees {
        sector_bytes: 4096,
        chunks: vec![
            chunk(100 * MIB, 8 * MIB, 1, 1, &[(1, 200 * MIB)]),
            chunk(120 * MIB, 8 * MIB, 4, 1, &[(1, 300 * MIB)]),
        ],
        used_bytes: vec![(100 * MIB, 6 * MIB), (120 * MIB, 7 * MIB)],
        devices: vec![(1, 400 * MIB)],
        device_extents: vec![(1, 200 * MIB, 8 * MIB), (1, 300 * MIB, 8 * MIB)],
        entries: vec![
            extent(90 * MIB, MIB), // before every chunk
            extent(100 * MIB, MIB),
            extent(101 * MIB, MIB), // touches the one before
            extent(110 * MIB, MIB), // between chunks
            extent(127 * MIB, MIB),
            extent(200 * MIB, MIB), // behind every chunk
        ],
    };
    let space = compute_space(&trees, BtrfsSource::FreeSpaceTree);
    assert_eq!(space.stale_entries, 3);
    assert_eq!(space.groups[0].free, [extent(100 * MIB, 2 * MIB)]);
    assert_eq!(space.groups[1].free, [extent(127 * MIB, MIB)]);
    assert_eq!(space.mismatch_bytes(), 0);
    let device = &space.devices[0];
    assert_eq!((device.allocated_bytes, device.reserved_bytes), (16 * MIB, MIB));
    assert_eq!(device.unallocated, [extent(MIB, 199 * MIB), extent(208 * MIB, 92 * MIB), extent(308 * MIB, 92 * MIB)]);
    assert_eq!(space.device_position(127 * MIB), Some((1, 307 * MIB)));
}

#[test]
fn superblocks_are_reserved_in_every_profile() {
    const SINGLE: u64 = 0x1;
    const DUP: u64 = 0x24;
    let places = |chunk: &Chunk| compute_superblock_places(chunk);
    let kib = |n: u64| n << 10;
    // The second superblock is at 64 MiB of every device.
    assert_eq!(places(&chunk(500 * MIB, 8 * MIB, SINGLE, 1, &[(1, 60 * MIB)])), [extent(504 * MIB, kib(64))]);
    assert_eq!(places(&chunk(500 * MIB, 8 * MIB, SINGLE, 1, &[(1, 70 * MIB)])), []);
    assert_eq!(
        places(&chunk(500 * MIB, 8 * MIB, DUP, 1, &[(1, 70 * MIB), (1, 62 * MIB)])),
        [extent(502 * MIB, kib(64))]
    );
    // RAID0 over three devices, each with 8 MiB: stripe 32 of the second device is stripe 32 * 3 +
    // 1 of the chunk.
    let raid0 = chunk(500 * MIB, 24 * MIB, 0x9, 1, &[(1, 80 * MIB), (2, 62 * MIB), (3, 80 * MIB)]);
    assert_eq!(places(&raid0), [extent(500 * MIB + kib(64) * 97, kib(64))]);
    // RAID10 over four devices: two pairs.
    let raid10 = chunk(500 * MIB, 16 * MIB, 0x41, 2, &[(1, 80 * MIB), (2, 80 * MIB), (3, 62 * MIB), (4, 80 * MIB)]);
    assert_eq!(places(&raid10), [extent(500 * MIB + kib(64) * 65, kib(64))]);
    // RAID5 over three devices: a whole row of two data stripes is reserved.
    let raid5 = chunk(500 * MIB, 16 * MIB, 0x81, 1, &[(1, 62 * MIB), (2, 80 * MIB), (3, 80 * MIB)]);
    assert_eq!(places(&raid5), [extent(500 * MIB + kib(128) * 32, kib(128))]);
}

#[test]
fn superblock_space_is_neither_used_nor_free() {
    let trees = Trees {
        sector_bytes: 4096,
        chunks: vec![chunk(500 * MIB, 8 * MIB, 1, 1, &[(1, 60 * MIB)])],
        used_bytes: vec![(500 * MIB, 0)],
        entries: vec![extent(500 * MIB, 8 * MIB)],
        ..Trees::default()
    };
    let group = compute_space(&trees, BtrfsSource::FreeSpaceTree).groups.remove(0);
    assert_eq!(group.reserved_bytes, 64 << 10);
    assert_eq!(group.free, [extent(500 * MIB, 4 * MIB), extent(504 * MIB + (64 << 10), 4 * MIB - (64 << 10))]);
    assert_eq!(group.mismatch_bytes(), 0);
}

#[test]
fn a_malformed_chunk_does_not_panic() {
    for bits in [0x9, 0x41, 0x81, 0x101, 0x1] {
        let odd = chunk(u64::MAX - 5, u64::MAX, bits, 1, &[]);
        let trees = Trees { chunks: vec![odd], entries: vec![extent(u64::MAX - 3, 100)], ..Trees::default() };
        compute_space(&trees, BtrfsSource::FreeSpaceTree);
        compute_space(&trees, BtrfsSource::ExtentTree);
    }
}

proptest! {
    #[test]
    fn both_sources_give_the_same_space(
        chunks in prop::collection::vec((1u64..20, 0u64..6), 1..5),
        bits in prop::collection::vec(any::<bool>(), 120),
    ) {
        // Units of 64 KiB; a unit of the logical space is used if its bit is set. Chunks follow
        // each other with gaps.
        const UNIT: u64 = 64 << 10;
        let mut trees = Trees { sector_bytes: 4096, ..Trees::default() };
        let mut at = 3;
        for (length, gap) in chunks {
            trees.chunks.push(chunk(at * UNIT, length * UNIT, 1, 1, &[(1, 600 * MIB + at * UNIT)]));
            let used = (at..at + length).filter(|unit| bits[*unit as usize]).count() as u64;
            trees.used_bytes.push((at * UNIT, used * UNIT));
            at += length + gap;
        }
        let holds = |unit: u64| trees.chunks.iter().any(|c| (c.start_bytes..c.start_bytes + c.length_bytes).contains(&(unit * UNIT)));
        let units = |used: bool| -> Vec<_> {
            (0..at).filter(|unit| holds(*unit) && bits[*unit as usize] == used).map(|unit| extent(unit * UNIT, UNIT)).collect()
        };
        let (free, used) = (units(false), units(true));
        let from_free = compute_space(&Trees { entries: free.clone(), ..trees.clone() }, BtrfsSource::FreeSpaceTree);
        let from_used = compute_space(&Trees { entries: used, ..trees.clone() }, BtrfsSource::ExtentTree);
        prop_assert_eq!(&from_free.groups, &from_used.groups);
        prop_assert_eq!(from_free.mismatch_bytes(), 0);
        let total: u64 = from_free.groups.iter().map(BtrfsBlockGroup::free_bytes).sum();
        prop_assert_eq!(total, free.len() as u64 * UNIT);
        for group in &from_free.groups {
            let inside = |e: &FreeExtent| e.start_bytes >= group.start_bytes && e.start_bytes + e.length_bytes <= group.end_bytes();
            prop_assert!(group.free.iter().all(inside));
            prop_assert!(group.free.windows(2).all(|p| p[0].start_bytes + p[0].length_bytes < p[1].start_bytes));
        }
    }

    #[test]
    fn allocated_reserved_and_free_fill_the_device(lengths in prop::collection::vec((0u64..5, 1u64..5), 0..8)) {
        let (mut at, mut extents) = (1, Vec::new());
        for (gap, length) in lengths {
            extents.push((7, (at + gap) * MIB, length * MIB));
            at += gap + length;
        }
        let device = compute_device(7, (at + 3) * MIB, &extents);
        let free: u64 = device.unallocated.iter().map(|extent| extent.length_bytes).sum();
        prop_assert_eq!(device.allocated_bytes + free + device.reserved_bytes, device.size_bytes);
        prop_assert_eq!(device.reserved_bytes, MIB);
    }
}
