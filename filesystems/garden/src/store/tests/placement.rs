//! Placement of blocks on the drives.

use std::ops::Range;

use senesce_fsapi::{Caller, FileSystem, Ino};

use super::{Small, findings, make, open};
use crate::{Chains, Garden, VolumeFs, raid::Place, store::Key};

const BLOCK: u64 = 4096;

/// Tetrises of 16 stripes, three drives, areas of four tetrises.
fn small() -> Small {
    Small { groups: vec![3], stripes: 512, aa_stripes: 64, tetris_stripes: 16 }
}

/// The places of a file's blocks.
fn places(garden: &Garden, ino: Ino, blocks: Range<u64>) -> Vec<Place> {
    let mut store = garden.shared().lock();
    let mut place = |block| {
        let pointer = store.pointer(Key::new(0, ino.0, 0, block)).unwrap().unwrap();
        store.raid.geometry.locate(pointer.at.pvbn).unwrap()
    };
    blocks.map(&mut place).collect()
}

/// The number of pieces of a file, in the order of its blocks.
fn pieces(places: &[Place]) -> usize {
    1 + places.windows(2).filter(|two| !follows(two[0], two[1])).count()
}

fn follows(one: Place, other: Place) -> bool {
    (one.group, one.drive, one.stripe + 1) == (other.group, other.drive, other.stripe)
}

fn write(fs: &VolumeFs, ino: Ino, block: u64, byte: u8) {
    fs.write(&Caller::default(), ino, block * BLOCK, &[byte; BLOCK as usize]).unwrap();
}

/// A file of `blocks` blocks in an aggregate of its own, durable.
fn with_file(blocks: u64) -> (super::Devices, Garden, VolumeFs, Ino) {
    let (devices, garden, fs) = small().garden();
    let ino = make(&fs, "file");
    fs.write(&Caller::default(), ino, 0, &vec![1; (blocks * BLOCK) as usize]).unwrap();
    garden.consistency_point().unwrap();
    (devices, garden, fs, ino)
}

#[test]
fn consecutive_blocks_fill_drives_tetris_by_tetris() {
    let (_, garden, _, ino) = with_file(150);
    let places = places(&garden, ino, 0..150);
    // Runs of the depth of a tetris on one drive after another. The first run starts where earlier
    // allocations ended.
    let breaks: Vec<usize> = (1..150).filter(|&at| !follows(places[at - 1], places[at])).collect();
    assert!(breaks.windows(2).all(|two| two[1] - two[0] == 16), "{breaks:?}");
    assert!((150 / 16..=150 / 16 + 1).contains(&breaks.len()), "{breaks:?}");
    assert!(breaks.iter().all(|&at| places[at].drive == (places[at - 1].drive + 1) % 3), "{places:?}");
}

#[test]
fn neighbours_overwritten_in_one_point_stay_neighbours() {
    let (devices, garden, fs, ino) = with_file(150);
    for block in [37, 35, 38, 34, 36, 33] {
        write(&fs, ino, block, 2);
    }
    garden.consistency_point().unwrap();
    let places = places(&garden, ino, 33..39);
    assert!(pieces(&places) <= 2, "one tetris may end among six blocks: {places:?}");
    assert_eq!(findings(&devices), Vec::<String>::new());
}

#[test]
fn neighbours_overwritten_in_different_points_separate() {
    let (_, garden, fs, ino) = with_file(150);
    for block in 33..39 {
        write(&fs, ino, block, 2);
        garden.consistency_point().unwrap();
    }
    // The metadata of its consistency point follows each block.
    assert_eq!(pieces(&places(&garden, ino, 33..39)), 6);
}

#[test]
fn read_chains_match_the_pieces_of_a_file() {
    let (devices, garden, fs, ino) = with_file(150);
    for block in (20..120).step_by(10) {
        write(&fs, ino, block, 2);
        garden.consistency_point().unwrap();
    }
    let places = places(&garden, ino, 0..150);
    // One request reads adjacent blocks, in any order of the file.
    let mut sorted = places.clone();
    sorted.sort_unstable_by_key(|place| (place.drive, place.stripe));
    let expected = pieces(&sorted);
    let on = |drive: usize| places.iter().filter(|place| place.drive == drive).count() as u64;
    drop((fs, garden));

    let garden = open(&devices);
    let fs = garden.volume(super::NAME).unwrap();
    // loads the pointers into memory
    garden.shared().lock().pointer(Key::new(0, ino.0, 0, 0)).unwrap();
    let before = garden.report();
    let mut bytes = vec![0; 150 * BLOCK as usize];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), bytes.len());
    assert!(bytes.chunks(BLOCK as usize).enumerate().all(|(at, block)| {
        let byte = if (20..120).contains(&at) && at % 10 == 0 { 2 } else { 1 };
        block.iter().all(|&other| other == byte)
    }));
    let after = garden.report();
    let reads = after.raid.since(before.raid).data.reads;
    assert_eq!(reads, Chains { blocks: 150, requests: expected as u64 });
    assert_eq!(reads.mean(), Some(150.0 / expected as f64));
    for (drive, (before, after)) in before.drives.iter().zip(&after.drives).enumerate() {
        let blocks = after.counts.since(before.counts).reads.blocks;
        assert_eq!((after.parity, blocks), (drive == 3, if drive == 3 { 0 } else { on(drive) }), "drive {drive}");
    }
    assert_eq!(after.counts.volume_reads - before.counts.volume_reads, 150);
    // Cached blocks are not read again.
    fs.read(ino, 0, &mut bytes).unwrap();
    assert_eq!(garden.report().raid, after.raid);
}

#[test]
fn drive_counts_are_per_consistency_point() {
    let (_, garden, fs, ino) = with_file(300);
    let sum = |garden: &Garden| {
        let report = garden.report();
        let stripes = report.raid_last_point.full_stripes + report.raid_last_point.partial_stripes;
        let data = report.drives.iter().filter(|drive| !drive.parity).map(|drive| drive.last_point.writes.blocks);
        assert_eq!(data.sum::<u64>(), report.raid_last_point.data.writes.blocks);
        let parity: u64 =
            report.drives.iter().filter(|drive| drive.parity).map(|drive| drive.last_point.writes.blocks).sum();
        assert_eq!(parity, stripes, "one block of parity for each stripe");
        report.raid_last_point
    };
    let large = sum(&garden);
    assert!(large.data.writes.blocks > 300 && large.full_stripes > 90, "{large:?}");
    write(&fs, ino, 7, 9);
    garden.consistency_point().unwrap();
    let small = sum(&garden);
    assert!((2..30).contains(&small.data.writes.blocks), "{small:?}");
    // With three data drives, a partly written stripe needs one or two reads.
    let reads = small.data.parity_reads;
    assert!((small.partial_stripes..=2 * small.partial_stripes).contains(&reads.blocks), "{small:?}");
    assert!(reads.requests < reads.blocks, "reads for parity are adjacent: {reads:?}");
}

#[test]
fn worth_of_areas_counts_blocks_in_use() {
    let (_, garden, fs, ino) = with_file(300);
    for block in (0..300).step_by(7) {
        write(&fs, ino, block, 2);
    }
    garden.consistency_point().unwrap();
    garden.count_areas(u64::MAX).unwrap();
    let report = garden.report();
    for (area, free) in (0..).zip(&report.area_free[0]) {
        let worth = garden.area_worth(0, area).unwrap();
        assert_eq!(worth.moved + free.unwrap(), 64 * 3, "area {area}");
    }
    let unused = garden.area_worth(0, 7).unwrap();
    assert!(!unused.is_worth(0) && garden.area_worth(0, 0).unwrap().reads_saved > 0);
    assert!(garden.area_worth(0, 8).is_err() && garden.area_worth(1, 0).is_err());
}

#[test]
fn random_overwrites_shorten_chains_and_read_parity() {
    // Like examples/placement.rs, which prints figures for larger sizes.
    let (_, garden, fs) = Small { groups: vec![10], stripes: 768, aa_stripes: 64, tetris_stripes: 64 }.garden();
    let (blocks, ino) = (5600, make(&fs, "file"));
    for first in (0..blocks).step_by(200) {
        fs.write(&Caller::default(), ino, first * BLOCK, &vec![1; 200 * BLOCK as usize]).unwrap();
    }
    garden.consistency_point().unwrap();
    let fresh = garden.report().raid_last_point;
    assert!(fresh.data.writes.mean().unwrap() > 40.0, "{fresh:?}");
    let mut rng = senesce_core::Rng::for_purpose(senesce_core::Seed(1), "random overwrites");
    for _ in 0..12 {
        for _ in 0..640 {
            write(&fs, ino, rng.below(blocks), 2);
        }
        garden.consistency_point().unwrap();
    }
    let report = garden.report();
    let (last, writes) = (report.raid_last_point, report.raid_last_point.data.writes);
    assert!(writes.mean().unwrap() < 8.0, "{last:?}");
    assert!(last.data.parity_reads.blocks * 3 > writes.blocks, "{last:?}");
    assert!(last.partial_stripes > last.full_stripes, "{last:?}");
}
