//! Compression groups and compacted blocks: the saved space, and unchanged contents of the volumes.

use senesce_core::{Rng, Seed};
use senesce_fsapi::{
    FallocateMode, FileSystem, Ino, NewNode,
    conformance::{SequenceOptions, Subject, run_cases, run_sequence, set_root},
};
use senesce_garden::{Limits, Packing};

use crate::{
    guard::guard,
    rig::{LARGE, Rig, Shape, TIGHT, VOLUME, caller, shared},
};

pub const SHAPE: Shape = Shape { stripes: 1024, ..LARGE };
const BLOCK: u64 = 4096;
/// All combinations of packing.
const WAYS: [Packing; 5] = [
    Packing { group_blocks: 2, compaction: false },
    Packing { group_blocks: 2, compaction: true },
    Packing { group_blocks: 8, compaction: false },
    Packing { group_blocks: 8, compaction: true },
    Packing { group_blocks: 0, compaction: true },
];

pub fn packed(limits: Limits, packing: Packing) -> Rig {
    let rig = Rig::on(&SHAPE, guard(&shared(SHAPE.devices())), limits);
    rig.garden().set_packing(VOLUME, packing).unwrap();
    rig
}

/// Bytes that compress to slightly more than `percent` percent.
pub fn bytes(seed: u64, blocks: u64, percent: usize) -> Vec<u8> {
    let mut rng = Rng::for_purpose(Seed(seed), "packing");
    let mut all = vec![0; (blocks * BLOCK) as usize];
    for piece in all.chunks_mut(256) {
        rng.fill(&mut piece[..256 * percent / 100]);
    }
    all
}

pub fn make(rig: &Rig, name: &str) -> Ino {
    rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o600)).unwrap().ino
}

pub fn contents(rig: &Rig, ino: Ino) -> Vec<u8> {
    let mut all = vec![0; rig.fs().attributes(ino).unwrap().size as usize];
    assert_eq!(rig.fs().read(ino, 0, &mut all).unwrap(), all.len());
    all
}

/// The free blocks after a consistency point.
fn free(rig: &Rig) -> u64 {
    rig.garden().consistency_point().unwrap();
    rig.garden().report().free
}

#[test]
fn eight_kib_that_compress_to_five_use_less() {
    let five = bytes(1, 2, 60);
    for (packing, files, blocks, saved) in [
        (Packing { group_blocks: 2, compaction: false }, 12, 24, 0),
        (Packing { group_blocks: 2, compaction: true }, 12, 12 + 4, 0),
        (Packing { group_blocks: 0, compaction: true }, 12, 24, 0),
    ] {
        let rig = packed(Limits::default(), packing);
        let all: Vec<Ino> = (0..files).map(|number| make(&rig, &format!("file {number}"))).collect();
        let before = free(&rig);
        for &ino in &all {
            rig.fs().write(&caller(2), ino, 0, &five).unwrap();
        }
        // The pointers fit into the inodes of the files.
        assert_eq!(before - free(&rig), blocks, "{packing:?}");
        let counts = rig.garden().report().counts;
        assert_eq!(counts.blocks_saved, saved, "{packing:?}");
        assert_eq!(rig.findings(), Vec::<String>::new(), "{packing:?}");
        all.iter().for_each(|&ino| assert_eq!(contents(&rig, ino), five));
    }
}

#[test]
fn groups_save_blocks_and_keep_their_contents() {
    for packing in WAYS {
        let mut rig = packed(TIGHT, packing);
        let mut files = Vec::new();
        for (number, (blocks, percent)) in
            [(1, 3), (2, 3), (3, 30), (9, 5), (64, 10), (65, 45), (300, 8), (40, 100)].into_iter().enumerate()
        {
            let ino = make(&rig, &format!("file {number}"));
            let mut data = bytes(number as u64, blocks, percent);
            data.truncate(data.len() - number * 100);
            rig.fs().write(&caller(2), ino, 0, &data).unwrap();
            files.push((ino, data));
        }
        assert_eq!(rig.findings(), Vec::<String>::new(), "{packing:?}");
        let counts = rig.garden().report().counts;
        assert_eq!(counts.groups_written > 0, packing.group_blocks > 0, "{packing:?} {counts:?}");
        assert_eq!(counts.chunks_written > 0, packing.compaction, "{packing:?} {counts:?}");
        rig.open().unwrap();
        for (ino, data) in &files {
            assert!(contents(&rig, *ino) == *data, "{packing:?}");
        }
        // Parts of groups are overwritten, truncated, and freed.
        let mut rng = Rng::for_purpose(Seed(5), "parts");
        for round in 0..60 {
            let (ino, data) = &mut files[rng.below(8) as usize];
            let at = rng.below(data.len() as u64 + 5000);
            let new = bytes(100 + round, 1 + rng.below(6), [5, 50, 100][rng.below(3) as usize]);
            let new = &new[..new.len() - rng.below(4096) as usize];
            match rng.below(4) {
                0 => {
                    data.resize(at as usize, 0);
                    let change = senesce_fsapi::SetAttributes { size: Some(at), ..Default::default() };
                    rig.fs().set_attributes(&caller(3), *ino, &change).unwrap();
                }
                1 => {
                    let end = data.len().min(at as usize + new.len());
                    data[(at as usize).min(end)..end].fill(0);
                    rig.fs().allocate(&caller(3), *ino, FallocateMode::Punch, at, new.len() as u64).unwrap();
                }
                _ => {
                    data.resize(data.len().max(at as usize + new.len()), 0);
                    data[at as usize..at as usize + new.len()].copy_from_slice(new);
                    assert_eq!(rig.fs().write(&caller(3), *ino, at, new).unwrap(), new.len());
                }
            }
            if round % 7 == 0 {
                rig.garden().consistency_point().unwrap();
            }
            if round % 20 == 19 {
                assert_eq!(rig.findings(), Vec::<String>::new(), "{packing:?}, round {round}");
                rig.open().unwrap();
            }
        }
        for (ino, data) in &files {
            assert!(contents(&rig, *ino) == *data, "{packing:?}");
        }
    }
}

#[test]
fn conformance() {
    run_cases(&|| Box::new(packed(Limits::default(), Packing { group_blocks: 8, compaction: true }))).unwrap();
    for (seed, packing) in (0..).zip(WAYS) {
        let boundaries = vec![0, 1, 160, 4096, 8192, 8 * 4096, 10 * 4096, 256 * 4096];
        let options = SequenceOptions { boundaries, operations: 150, compare_every: 50, ..SequenceOptions::default() };
        run_sequence(&|| Box::new(packed(TIGHT, packing)), Seed(300 + seed), &options).unwrap();
    }
}

#[test]
fn all_space_is_freed_again() {
    for packing in WAYS {
        let mut rig = packed(TIGHT, packing);
        set_root(rig.fs()).unwrap();
        let first = free(&rig);
        let write = |rig: &Rig, round: u64| {
            for number in 0..40 {
                let ino = make(rig, &format!("file {round} {number}"));
                rig.fs()
                    .write(&caller(2), ino, 0, &bytes(number, 1 + number % 20, 10 * (number % 8) as usize))
                    .unwrap();
            }
        };
        let remove = |rig: &Rig, round: u64| {
            for number in 0..40 {
                rig.fs().unlink(&caller(3), Ino::ROOT, format!("file {round} {number}").as_bytes()).unwrap();
            }
        };
        write(&rig, 0);
        rig.garden().consistency_point().unwrap();
        write(&rig, 1);
        remove(&rig, 0);
        rig.garden().consistency_point().unwrap();
        remove(&rig, 1);
        assert_eq!(rig.check(), Ok(()), "{packing:?}");
        let lost = first.saturating_sub(free(&rig));
        assert!(lost <= 8, "{packing:?}: {lost} blocks were not freed");
    }
}

#[test]
fn full_packed_volume_allows_truncation_and_removal() {
    let shape = Shape { stripes: 256, ..LARGE };
    let mut rig = Rig::on(&shape, guard(&shared(shape.devices())), TIGHT);
    rig.garden().set_packing(VOLUME, Packing { group_blocks: 8, compaction: true }).unwrap();
    let (mut names, mut refused) = (0, 0);
    while refused < 3 {
        let name = format!("file {names}");
        let made = rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o600));
        let written = made.and_then(|made| {
            names += 1;
            rig.fs().write(&caller(2), made.ino, 0, &bytes(names, 16, [5, 30, 100][(names % 3) as usize]))
        });
        refused += u64::from(written.is_err());
    }
    assert!(names > 30, "{names} files");
    assert_eq!(rig.check(), Ok(()), "full");
    // Parts of groups are freed, so the rest becomes plain blocks again.
    for number in 0..names {
        let ino = rig.fs().lookup(Ino::ROOT, format!("file {number}").as_bytes()).unwrap().ino;
        let cut = senesce_fsapi::SetAttributes { size: Some(12 * BLOCK + number % 2), ..Default::default() };
        match number % 3 {
            0 => drop(rig.fs().set_attributes(&caller(3), ino, &cut).unwrap()),
            1 => rig.fs().allocate(&caller(3), ino, FallocateMode::Punch, BLOCK, 2 * BLOCK).unwrap(),
            _ => rig.fs().unlink(&caller(3), Ino::ROOT, format!("file {number}").as_bytes()).unwrap(),
        }
    }
    assert_eq!(rig.check(), Ok(()), "cut");
    let ino = make(&rig, "new");
    assert_eq!(rig.fs().write(&caller(4), ino, 0, &bytes(9, 32, 100)).unwrap(), 32 * BLOCK as usize);
    assert_eq!(rig.check(), Ok(()), "written again");
}

#[test]
fn diff_reports_all_blocks_of_a_group() {
    for (group_blocks, written) in [(2, 0), (2, 1), (8, 0), (8, 1), (8, 7)] {
        let rig = packed(TIGHT, Packing { group_blocks, compaction: false });
        let ino = make(&rig, "file");
        rig.fs().write(&caller(2), ino, 0, &bytes(1, 24, 5)).unwrap();
        rig.garden().create_snapshot(VOLUME, b"one", crate::snapshot_crash::NOW).unwrap();
        rig.fs().write(&caller(2), ino, (8 + written) * BLOCK, &bytes(2, 1, 5)).unwrap();
        let changes = rig.garden().diff(VOLUME, b"one", None).unwrap();
        // Each group stores one block, before and after.
        let (of, counts) = (u64::from(group_blocks), rig.garden().report().counts);
        assert_eq!((counts.groups_written, counts.blocks_saved), (24 / of + 1, (24 / of + 1) * (of - 1)));
        let runs = changes.into_iter().flat_map(|change| change.blocks).map(|run| (run.start, run.end));
        assert_eq!(runs.collect::<Vec<_>>(), [(8, 8 + of)], "{group_blocks} blocks, {written} written");
    }
}

#[test]
fn packed_clone_and_origin_are_independent() {
    let mut rig = packed(TIGHT, Packing { group_blocks: 4, compaction: true });
    let (ino, first) = (make(&rig, "file"), bytes(1, 30, 12));
    rig.fs().write(&caller(2), ino, 0, &first).unwrap();
    rig.garden().create_snapshot(VOLUME, b"one", crate::snapshot_crash::NOW).unwrap();
    rig.garden().clone_volume(VOLUME, b"one", b"clone").unwrap();
    let (second, third) = (bytes(2, 3, 12), bytes(3, 5, 100));
    rig.fs().write(&caller(3), ino, 5 * BLOCK, &second).unwrap();
    let clone = rig.garden().volume(b"clone").unwrap();
    clone.write(&caller(3), ino, 13 * BLOCK, &third).unwrap();
    rig.garden().consistency_point().unwrap();
    for area in 0..16 {
        assert_eq!(rig.garden().move_area(0, area).unwrap().stuck, 0);
        rig.garden().consistency_point().unwrap();
    }
    rig.garden().recompact_step(VOLUME, u64::MAX, 100).unwrap();
    assert_eq!(rig.check(), Ok(()));
    rig.open().unwrap();
    let with = |at: usize, part: &[u8]| {
        let mut all = first.clone();
        all[at * 4096..at * 4096 + part.len()].copy_from_slice(part);
        all
    };
    assert!(contents(&rig, ino) == with(5, &second));
    let mut found = vec![0; first.len()];
    rig.garden().volume(b"clone").unwrap().read(ino, 0, &mut found).unwrap();
    assert!(found == with(13, &third));
    // All blocks of the group count as changed.
    let changes = rig.garden().diff(VOLUME, b"one", None).unwrap();
    assert_eq!(changes.iter().map(|change| change.blocks.clone()).collect::<Vec<_>>(), vec![vec![4..8]]);
    // Cloning a range of a file copies the compressed data.
    let copy = make(&rig, "copy");
    assert_eq!(rig.fs().clone_range(&caller(4), (ino, 0), (copy, 0), 30 * BLOCK).unwrap(), 30 * BLOCK);
    assert!(contents(&rig, copy) == with(5, &second));
    rig.garden().delete_volume(b"clone").unwrap();
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    assert_eq!(rig.check(), Ok(()));
}
