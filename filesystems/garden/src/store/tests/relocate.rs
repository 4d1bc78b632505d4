//! Relocation: changes, invariants, and reads of old places.

use senesce_fsapi::{Caller, FileSystem, Ino, SetAttributes};

use super::{Devices, NAME, Small, findings, make, open};
use crate::{
    FixUp, Garden, Gardening, Medium, VolumeFs,
    format::pointer::{Physical, Pointer},
    store::{AGGREGATE, Key, Store, container_of, shape_of, volume},
};

const BLOCK: u64 = 4096;

/// Areas of 16 stripes on three drives.
fn small() -> Small {
    Small { groups: vec![3], stripes: 512, aa_stripes: 16, tetris_stripes: 16 }
}

/// The contents of each block of the file.
pub(super) fn contents(block: u64) -> Vec<u8> {
    (block + 1).to_le_bytes().repeat(BLOCK as usize / 8)
}

/// A durable file whose blocks all differ.
fn with_file(blocks: u64) -> (Devices, Garden, VolumeFs, Ino) {
    with_file_on(&small(), blocks)
}

fn with_file_on(small: &Small, blocks: u64) -> (Devices, Garden, VolumeFs, Ino) {
    let (devices, garden, fs) = small.garden();
    let ino = make(&fs, "file");
    let all: Vec<u8> = (0..blocks).flat_map(contents).collect();
    assert_eq!(fs.write(&Caller::default(), ino, 0, &all).unwrap(), all.len());
    garden.consistency_point().unwrap();
    (devices, garden, fs, ino)
}

pub(super) fn check_contents(fs: &VolumeFs, ino: Ino, blocks: u64) {
    let mut got = vec![0; (blocks * BLOCK) as usize];
    assert_eq!(fs.read(ino, 0, &mut got).unwrap(), got.len());
    for block in 0..blocks {
        assert_eq!(got[(block * BLOCK) as usize..][..BLOCK as usize], contents(block), "block {block}");
    }
}

/// All pointers of the volume's files, in the state in memory.
pub(super) fn pointers(store: &mut Store) -> Vec<(Key, Pointer)> {
    let mut found = Vec::new();
    for file in 0..store.volume(0).unwrap().record.inodes {
        if file > 0 && store.count_bits(0, volume::INODE_MAP, file..file + 1).unwrap() == 0 {
            continue;
        }
        let inode = store.inode(0, file).unwrap();
        for level in (0..=inode.height).filter(|_| !inode.inline) {
            for index in 0..shape_of(0).capacity(inode.height - level).min(3000) {
                let key = Key::new(0, file, level, index);
                found.extend(store.pointer(key).unwrap().map(|pointer| (key, pointer)));
            }
        }
    }
    found
}

pub(super) fn map(store: &mut Store) -> Vec<(u64, Physical)> {
    let blocks = store.volume(0).unwrap().record.blocks;
    (0..blocks).filter_map(|vvbn| Some((vvbn, store.container(0, vvbn).unwrap()?))).collect()
}

pub(super) fn stale_pointers(devices: &Devices) -> u64 {
    let (log, drives) = devices.split_last().unwrap();
    crate::check(drives, log).unwrap().stale_pointers
}

#[test]
fn moving_an_area_leaves_the_volume_unchanged() {
    let (devices, garden, fs, ino) = with_file(300);
    for area in [0, 1, 3] {
        let (before, map_before) = {
            let store = &mut *garden.shared().lock();
            (pointers(store), map(store))
        };
        let cp = garden.report().cp;
        let writes = garden.report().counts.volume_writes;
        let moves = garden.move_area(0, area).unwrap();
        assert!(moves.blocks + moves.metadata > 0 && moves.stuck == 0, "{moves:?}");
        let report = garden.report();
        garden.consistency_point().unwrap();
        let after = garden.report();
        assert_eq!((after.cp, after.counts.volume_writes), (cp + 1, writes), "no block of the volume is written");
        assert_eq!(after.counts.relocations - report.counts.relocations, moves.blocks);
        assert_eq!(after.area_free[0][area as usize], Some(48), "the area is free");
        let store = &mut *garden.shared().lock();
        assert_eq!(pointers(store), before, "pointers stay, with the old places");
        let map_after = map(store);
        assert!(map_before.iter().map(|at| at.0).eq(map_after.iter().map(|at| at.0)), "VVBNs stay");
        let moved = map_before.iter().zip(&map_after).filter(|(old, new)| old != new).count();
        assert_eq!(moved as u64, moves.blocks);
        assert!(map_after.iter().all(|(_, at)| store.raid.geometry.area_of(at.pvbn) != Some((0, area as u32))));
        assert_eq!(findings(&devices), Vec::<String>::new());
    }
    assert!(stale_pointers(&devices) > 90);
    check_contents(&fs, ino, 300);
    drop((fs, garden));
    let garden = open(&devices);
    check_contents(&garden.volume(NAME).unwrap(), ino, 300);
    assert_eq!(findings(&devices), Vec::<String>::new());
}

/// Contents and pointers of files of users, inodes, bits.
#[test]
fn blocks_of_every_kind_and_level_move() {
    let (devices, garden, fs, ino) = with_file_on(&Small { stripes: 1200, ..small() }, 2600);
    drop(fs);
    let mut kinds = std::collections::BTreeSet::new();
    for area in 0..75_u32 {
        let store = &mut *garden.shared().lock();
        let before = pointers(store);
        let in_area = |store: &Store, pvbn| store.raid.geometry.area_of(pvbn) == Some((0, area));
        let moves = store.move_whole((0, area)).unwrap();
        let moved: Vec<u64> = store.moves.keys().map(|key| key.index()).collect();
        assert_eq!(moved.len() as u64, moves.blocks);
        for (key, pointer) in before {
            let at = store.container(0, pointer.vvbn.unwrap()).unwrap().unwrap();
            if in_area(store, at.pvbn) {
                assert!(moved.contains(&pointer.vvbn.unwrap()), "{key:?}");
                kinds.insert((key.file(), key.level()));
            }
        }
        store.consistency_point().unwrap();
        assert_eq!(store.alloc.groups[0].get(area).unwrap().free, 48, "area {area}");
    }
    for expected in [(0, 0), (1, 0), (2, 0), (3, 0), (16, 0), (16, 1), (16, 2)] {
        assert!(kinds.contains(&expected), "{expected:?} of {kinds:?}");
    }
    drop(garden);
    assert_eq!(findings(&devices), Vec::<String>::new());
    check_contents(&open(&devices).volume(NAME).unwrap(), ino, 2600);
}

/// Pointers of the container of an idle volume.
#[test]
fn blocks_of_the_aggregate_move() {
    let (devices, garden, fs, ino) = with_file(300);
    garden.create_volume(b"idle", &crate::VolumeOptions { blocks: 20_000, inodes: 100, seed: 1 }).unwrap();
    let idle = garden.volume(b"idle").unwrap();
    let other = make(&idle, "file");
    idle.write(&Caller::default(), other, 0, &contents(3)).unwrap();
    for _ in 0..20 {
        fs.write(&Caller::default(), ino, 0, &contents(0)).unwrap();
        garden.consistency_point().unwrap();
    }
    let place = |store: &mut Store| {
        let pointer = store.pointer(Key::new(AGGREGATE, container_of(1), 1, 0)).unwrap().unwrap();
        (pointer.at, store.raid.geometry.area_of(pointer.at.pvbn).unwrap())
    };
    let (at, (group, area)) = place(&mut garden.shared().lock());
    fs.write(&Caller::default(), ino, 0, &contents(0)).unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(place(&mut garden.shared().lock()).0, at, "it is written only if it changes, or moves");
    assert!(garden.move_area(group, area.into()).unwrap().metadata > 0);
    garden.consistency_point().unwrap();
    assert_ne!(place(&mut garden.shared().lock()).1, (group, area));
    assert_eq!(garden.report().area_free[group][area as usize], Some(48));
    drop((idle, fs, garden));
    let garden = open(&devices);
    let mut got = vec![0; BLOCK as usize];
    garden.volume(b"idle").unwrap().read(other, 0, &mut got).unwrap();
    assert_eq!(got, contents(3));
    assert_eq!(findings(&devices), Vec::<String>::new());
}

/// Counts of an action: blocks read from drives, lookups in the map, redirects.
fn reads(garden: &Garden, act: impl FnOnce()) -> (u64, u64, u64) {
    let before = garden.report();
    act();
    let after = garden.report();
    let counts = (after.counts, before.counts);
    (
        after.raid.since(before.raid).data.reads.blocks,
        counts.0.map_lookups - counts.1.map_lookups,
        counts.0.redirects - counts.1.redirects,
    )
}

/// The place of the file's block in its pointer.
fn cached_place(garden: &Garden, ino: Ino, block: u64) -> Physical {
    let store = &mut *garden.shared().lock();
    store.pointer(Key::new(0, ino.0, 0, block)).unwrap().unwrap().at
}

/// Removes contents of the file, and nothing else, from memory.
fn forget_contents(garden: &Garden, ino: Ino, blocks: u64) {
    let store = &mut *garden.shared().lock();
    (0..blocks).for_each(|block| store.cache.remove(Key::new(0, ino.0, 0, block)));
}

/// Writes another file until a place is used again.
fn reuse(garden: &Garden, fs: &VolumeFs, place: Physical) {
    let other = make(fs, "other");
    for round in 0..200 {
        fs.write(&Caller::default(), other, round * 8 * BLOCK, &[round as u8; 8 * BLOCK as usize]).unwrap();
        garden.consistency_point().unwrap();
        if garden.shared().lock().is_used(place.pvbn).unwrap() {
            return;
        }
    }
    panic!("{place:?} was not used again");
}

#[test]
fn old_place_needs_the_map_only_after_reuse() {
    let (devices, garden, fs, ino) = with_file(40);
    let old = cached_place(&garden, ino, 7);
    let (_, area) = garden.shared().lock().raid.geometry.area_of(old.pvbn).unwrap();
    garden.move_area(0, area.into()).unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(cached_place(&garden, ino, 7), old);
    let block = |fs: &VolumeFs, at: u64| {
        let mut got = vec![0; BLOCK as usize];
        fs.read(ino, at * BLOCK, &mut got).unwrap();
        assert_eq!(got, contents(at));
    };
    forget_contents(&garden, ino, 40);
    assert_eq!(reads(&garden, || block(&fs, 7)), (1, 0, 0), "the old place is not overwritten yet");
    reuse(&garden, &fs, old);
    forget_contents(&garden, ino, 40);
    garden.shared().lock().container(0, 0).unwrap();
    assert_eq!(reads(&garden, || block(&fs, 7)), (2, 1, 1), "the wrong block, and the right one");
    forget_contents(&garden, ino, 40);
    // As part of a longer read, it costs no more.
    let (blocks, lookups, redirects) = reads(&garden, || check_contents(&fs, ino, 40));
    assert!(redirects >= 1 && lookups == redirects && blocks == 40 + redirects, "{blocks} {lookups} {redirects}");
    assert_eq!(findings(&devices), Vec::<String>::new());
}

#[test]
fn blocks_that_moved_together_are_read_together() {
    let (_, garden, fs, ino) = with_file(40);
    let old: Vec<Physical> = (0..40).map(|block| cached_place(&garden, ino, block)).collect();
    let area_of = |at: &Physical| garden.shared().lock().raid.geometry.area_of(at.pvbn).unwrap().1;
    let area = area_of(&old[0]);
    let moved: Vec<Physical> = old.into_iter().filter(|at| area_of(at) == area).collect();
    garden.move_area(0, area.into()).unwrap();
    garden.consistency_point().unwrap();
    reuse(&garden, &fs, moved[moved.len() - 1]);
    forget_contents(&garden, ino, 40);
    garden.shared().lock().container(0, 0).unwrap();
    let before = garden.report();
    check_contents(&fs, ino, 40);
    let after = garden.report();
    let redirects = after.counts.redirects - before.counts.redirects;
    let requests = after.raid.since(before.raid).data.reads.requests;
    // Each run of the file is requested at its old place and at its new one.
    assert!(moved.len() > 15 && redirects == moved.len() as u64, "{redirects} redirects of {}", moved.len());
    assert!(requests <= 10, "{requests} requests for {redirects} redirects");
}

/// Old places get the same tag again, 65,536 consistency points later, with other blocks and with
/// the same ones.
#[test]
fn old_place_with_the_same_tag_is_rejected() {
    let (devices, garden, fs, ino) = with_file(40);
    let old: Vec<Physical> = (0..40).map(|block| cached_place(&garden, ino, block)).collect();
    let areas: std::collections::BTreeSet<u32> = {
        let store = garden.shared().lock();
        old.iter().map(|at| store.raid.geometry.area_of(at.pvbn).unwrap().1).collect()
    };
    for &area in &areas {
        garden.move_area(0, area.into()).unwrap();
    }
    garden.consistency_point().unwrap();
    // One consistency point writes all old places. Its number ends in the same 16 bits.
    let other = make(&fs, "second");
    garden.consistency_point().unwrap();
    {
        let store = &mut *garden.shared().lock();
        store.sb.cp += (65_535 + u64::from(old[0].tag) - store.sb.cp % 65_536) % 65_536;
        // Restricts allocation to these areas.
        let all = store.raid.geometry.areas(0) as u32;
        store.alloc.states.cleaning = (0..all).filter(|area| !areas.contains(area)).map(|area| (0, area)).collect();
        store.begin_in_best_area();
    }
    fs.write(&Caller::default(), other, 0, &[9; 140 * BLOCK as usize]).unwrap();
    garden.consistency_point().unwrap();
    let same_tag = {
        let store = &mut *garden.shared().lock();
        assert_eq!(store.sb.cp as u16, old[0].tag);
        let map: std::collections::BTreeSet<_> = map(store).into_iter().map(|(_, at)| (at.pvbn, at.tag)).collect();
        old.iter().filter(|at| map.contains(&(at.pvbn, at.tag))).count() as u64
    };
    assert!(same_tag >= 30, "{same_tag}");
    forget_contents(&garden, ino, 40);
    let (_, lookups, redirects) = reads(&garden, || check_contents(&fs, ino, 40));
    assert!(redirects >= same_tag && lookups == redirects, "{same_tag} {lookups} {redirects}");
    drop((fs, garden));
    check_contents(&open(&devices).volume(NAME).unwrap(), ino, 40);
    assert_eq!(findings(&devices), Vec::<String>::new());
}

#[test]
fn changed_blocks_are_not_moved() {
    let (devices, garden, fs, ino) = with_file(100);
    let mut moved = 0;
    for area in 0..4 {
        moved += garden.move_area(0, area).unwrap().blocks;
    }
    fs.write(&Caller::default(), ino, 10 * BLOCK, &[1; 30 * BLOCK as usize]).unwrap();
    let change = senesce_fsapi::SetAttributes { size: Some(60 * BLOCK), ..Default::default() };
    fs.set_attributes(&Caller::default(), ino, &change).unwrap();
    garden.consistency_point().unwrap();
    let counts = garden.report().counts;
    assert!(counts.moves_dropped >= 70, "30 written over, 40 freed: {counts:?}");
    assert_eq!(counts.moves_dropped + counts.relocations, moved);
    assert!(garden.shared().lock().moves.is_empty());
    assert_eq!(findings(&devices), Vec::<String>::new());
    let mut got = vec![0; 60 * BLOCK as usize];
    fs.read(ino, 0, &mut got).unwrap();
    assert!(got[(10 * BLOCK) as usize..][..30 * BLOCK as usize].iter().all(|&byte| byte == 1));
    assert_eq!(got[(45 * BLOCK) as usize..][..BLOCK as usize], contents(45));
}

/// A stale pointer is fixed after a redirected read, by a scan, or never.
#[test]
fn stale_pointers_are_fixed_by_policy() {
    for fix_up in [FixUp::Never, FixUp::OnRead, FixUp::Scan] {
        let (devices, garden, fs, ino) = with_file(600);
        garden.set_gardening(Gardening { fix_up, ..Gardening::default() });
        for area in 0..16 {
            garden.move_area(0, area).unwrap();
        }
        garden.consistency_point().unwrap();
        let old = cached_place(&garden, ino, 7);
        reuse(&garden, &fs, old);
        let stale = stale_pointers(&devices);
        assert!(stale >= 600, "{stale}");
        forget_contents(&garden, ino, 600);
        let (_, _, first) = reads(&garden, || check_contents(&fs, ino, 600));
        assert!(first > 0);
        fs.write(&Caller::default(), ino, 700 * BLOCK, &[1]).unwrap();
        garden.consistency_point().unwrap();
        if fix_up == FixUp::Scan {
            let mut steps = 0;
            while !garden.fix_up_step(NAME, 100).unwrap().ended {
                steps += 1;
            }
            assert!((6..40).contains(&steps), "{steps}");
            garden.consistency_point().unwrap();
        }
        let (fixed, left) = (garden.report().counts.fix_ups, stale_pointers(&devices));
        match fix_up {
            FixUp::Never => assert_eq!(fixed, 0),
            FixUp::OnRead => assert!(fixed == first && left <= stale - fixed, "{fixed} {first} {left} {stale}"),
            FixUp::Scan => assert!(fixed >= 500 && left == 0, "{fixed} {left} {stale}"),
        }
        forget_contents(&garden, ino, 600);
        let (_, lookups, again) = reads(&garden, || check_contents(&fs, ino, 600));
        match fix_up {
            FixUp::Never => assert!(again >= first && lookups == again, "{first} {again} {lookups}"),
            FixUp::OnRead => assert!(again < first && lookups == again, "{first} {again} {lookups}"),
            FixUp::Scan => assert_eq!((again, lookups), (0, 0)),
        }
        assert_eq!(findings(&devices), Vec::<String>::new());
    }
}

/// A stale pointer is fixed at the next consistency point. In the meantime the file may become
/// inline. Then its contents are where its pointers were, and here they look like a stale pointer.
#[test]
fn inline_contents_are_not_fixed_as_pointers() {
    let (devices, garden, fs, ino) = with_file(8);
    garden.set_gardening(Gardening { fix_up: FixUp::OnRead, ..Gardening::default() });
    let other = make(&fs, "second");
    fs.write(&Caller::default(), other, 0, &contents(0)).unwrap();
    for area in 0..16 {
        garden.move_area(0, area).unwrap();
    }
    garden.consistency_point().unwrap();
    let old = cached_place(&garden, ino, 7);
    reuse(&garden, &fs, old);
    forget_contents(&garden, ino, 8);
    let (_, _, redirects) = reads(&garden, || check_contents(&fs, ino, 8));
    assert!(redirects > 0);
    let own = garden.shared().lock().pointer(Key::new(0, other.0, 0, 0)).unwrap().unwrap();
    let forged = Pointer { at: Physical { pvbn: own.at.pvbn ^ 1, ..own.at }, ..own };
    let mut bytes = [0; 160];
    (0..10).for_each(|slot| shape_of(0).encode(&mut bytes, slot, Some(forged)));
    let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
    fs.set_attributes(&Caller::default(), ino, &cut).unwrap();
    fs.write(&Caller::default(), ino, 0, &bytes).unwrap();
    garden.consistency_point().unwrap();
    let mut got = [0; 160];
    assert_eq!(fs.read(ino, 0, &mut got).unwrap(), 160);
    assert_eq!(got, bytes);
    assert_eq!(findings(&devices), Vec::<String>::new());
}

/// The metadata cost of a move: through the container, and as an overwrite by the volume.
#[test]
fn relocation_writes_less_metadata_than_rewriting() {
    let (_, garden, fs, ino) = with_file_on(&Small { stripes: 1200, ..small() }, 2600);
    let blocks: Vec<u64> = (0..2600).step_by(65).collect();
    let metadata = |garden: &Garden| {
        garden.consistency_point().unwrap();
        garden.report().raid_last_point.data.writes.blocks - blocks.len() as u64
    };
    {
        let store = &mut *garden.shared().lock();
        for &block in &blocks {
            let pointer = store.pointer(Key::new(0, ino.0, 0, block)).unwrap().unwrap();
            let at = store.container(0, pointer.vvbn.unwrap()).unwrap().unwrap();
            let place = store.raid.geometry.locate(at.pvbn).unwrap();
            let slot = store.raid.read_slot(place.group, place.drive, place.stripe).unwrap();
            let (context, data) = store.identify(place, Some(slot)).unwrap().unwrap();
            store.move_block(&context, data, Medium::Hdd).unwrap();
        }
    }
    let by_container = metadata(&garden);
    for &block in &blocks {
        fs.write(&Caller::default(), ino, block * BLOCK, &contents(block)).unwrap();
    }
    let by_volume = metadata(&garden);
    check_contents(&fs, ino, 2600);
    println!("metadata blocks for {} moved: {by_container} by container, {by_volume} in the volume", blocks.len());
    assert!(2 * by_container < by_volume + by_container, "{by_container} and {by_volume}");
    // Pointers of the container, 512 in a block, and the blocks that every consistency point
    // writes.
    assert!(by_container <= 6 + 6, "{by_container}");
    // In addition pointers of the file, 256 in a block, the block above them, the inode, and bits
    // of VVBNs.
    assert!(by_volume >= by_container + 11 + 3, "{by_volume}");
}

/// Random overwrites of three quarters of an aggregate, in small; examples/placement.rs has a
/// larger one.
#[test]
fn cleaning_lengthens_chains_and_saves_parity_reads() {
    let run = |quota: u64| {
        let (devices, garden, fs) =
            Small { groups: vec![6], stripes: 1536, aa_stripes: 32, tetris_stripes: 32 }.garden();
        let (blocks, ino) = (6600, make(&fs, "file"));
        for first in (0..blocks).step_by(200) {
            fs.write(&Caller::default(), ino, first * BLOCK, &vec![1; 200 * BLOCK as usize]).unwrap();
        }
        let cleaning = (quota > 0).then_some(crate::Cleaning { quota_percent: quota, ..crate::Cleaning::default() });
        garden.set_gardening(Gardening { cleaning, ..Gardening::default() });
        let mut rng = senesce_core::Rng::for_purpose(senesce_core::Seed(1), "random overwrites");
        let mut before = garden.report();
        for point in 0..30 {
            if point == 15 {
                before = garden.report();
            }
            for _ in 0..400 {
                fs.write(&Caller::default(), ino, rng.below(blocks) * BLOCK, &[2; BLOCK as usize]).unwrap();
            }
            garden.consistency_point().unwrap();
        }
        assert_eq!(findings(&devices), Vec::<String>::new());
        let (raid, counts) = (garden.report().raid.since(before.raid), garden.report().counts);
        let moved =
            (counts.relocations - before.counts.relocations, counts.volume_writes - before.counts.volume_writes);
        let taken = (
            counts.ready_areas_taken - before.counts.ready_areas_taken,
            counts.other_areas_taken - before.counts.other_areas_taken,
        );
        println!("quota {quota}: {raid:?}, {moved:?} moved and written, {taken:?} ready and others taken");
        let parity = raid.data.parity_reads.blocks as f64 / raid.data.writes.blocks as f64;
        (raid.data.writes.mean().unwrap(), parity, moved, taken)
    };
    let (without, unlimited, limited) = (run(0), run(1000), run(40));
    assert!(unlimited.0 > 3.0 * without.0 && unlimited.1 * 3.0 < without.1, "{without:?} {unlimited:?}");
    // A limited quota is in between, and moves no more than allowed.
    assert!(limited.0 > without.0 && limited.0 < unlimited.0, "{without:?} {limited:?} {unlimited:?}");
    let (moved, written) = limited.2;
    assert!(100 * moved <= 40 * written + 100 * 192 && moved > 0, "{limited:?}");
    assert!(without.3.0 < without.3.1 && unlimited.3.1 < unlimited.3.0 && limited.3.1 > 0, "{without:?} {limited:?}");
}
