//! Disks and flash in one aggregate: where blocks are written, and which leave the flash.

use std::{collections::BTreeSet, sync::Arc};

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino};

use super::{Devices, NAME, findings, make, open, relocate::contents};
use crate::{
    Cleaning, DefragFiles, FormatOptions, Garden, Gardening, Limits, Medium, Packing, Placing, VolumeFs, VolumeOptions,
    format::{
        SLOT,
        slot::{self, Kind},
    },
    raid::slot_offset,
    store::{AGGREGATE, Demotion, Key, aggregate},
};

const BLOCK: u64 = 4096;
/// Blocks of each group.
const DISKS: u64 = 3 * 512;
const FLASH: u64 = 2 * 256;

/// A group of disks and one of flash, areas and tetrises of 16 stripes, and a volume of the size of
/// both.
pub fn mixed() -> (Devices, Garden, VolumeFs) {
    let drive = |number, stripes| MemoryDevice::new(format!("drive {number}"), Bytes(slot_offset(stripes)));
    let drives = (0..4).map(|number| drive(number, 512)).chain((4..7).map(|number| drive(number, 256)));
    let mut devices: Devices = drives.map(|drive| Arc::new(drive) as Arc<dyn BlockDevice>).collect();
    let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(4 << 20)));
    let options = FormatOptions {
        uuid: [3; 16],
        groups: vec![(3, true), (2, true)],
        media: vec![Medium::Hdd, Medium::Ssd],
        aa_stripes: vec![16],
        tetris_stripes: 16,
        zeroed: true,
    };
    Garden::format(&options, devices.clone(), log.clone()).unwrap();
    devices.push(log);
    let garden = open(&devices);
    garden.create_volume(NAME, &VolumeOptions { blocks: DISKS + FLASH, inodes: 512, seed: 1 }).unwrap();
    let fs = garden.volume(NAME).unwrap();
    (devices, garden, fs)
}

/// The VVBN of a block of a file, and the medium of its place in the container map.
fn lies(garden: &Garden, ino: Ino, block: u64) -> (u64, Medium) {
    let mut store = garden.shared().lock();
    let vvbn = store.pointer(Key::new(0, ino.0, 0, block)).unwrap().unwrap().vvbn.unwrap();
    let at = store.container(0, vvbn).unwrap().unwrap();
    (vvbn, store.raid.geometry.medium_of(at.pvbn))
}

fn write(fs: &VolumeFs, ino: Ino, block: u64, count: u64) {
    let bytes: Vec<u8> = (block..block + count).flat_map(contents).collect();
    fs.write(&Caller::default(), ino, block * BLOCK, &bytes).unwrap();
}

#[test]
fn sequential_writes_go_to_disks_others_to_flash() {
    let (devices, garden, fs) = mixed();
    let (long, short, holes) = (make(&fs, "long"), make(&fs, "short"), make(&fs, "holes"));
    write(&fs, long, 0, 200);
    write(&fs, short, 0, 15);
    (0..40).for_each(|at| write(&fs, holes, at * 7, 1));
    garden.consistency_point().unwrap();
    let media = |ino, blocks: &mut dyn Iterator<Item = u64>| -> Vec<Medium> {
        let mut media: Vec<Medium> = blocks.map(|block| lies(&garden, ino, block).1).collect();
        media.sort_unstable();
        media.dedup();
        media
    };
    assert_eq!(media(long, &mut (0..200)), [Medium::Hdd]);
    assert_eq!(media(short, &mut (0..15)), [Medium::Ssd]);
    assert_eq!(media(holes, &mut (0..40).map(|at| at * 7)), [Medium::Ssd]);
    // A run continues in the next consistency point if it is long enough alone; the same holds for
    // overwrites.
    write(&fs, long, 200, 16);
    write(&fs, long, 216 + 30, 15);
    write(&fs, long, 20, 100);
    write(&fs, short, 0, 15);
    (0..20).for_each(|at| write(&fs, long, 150 + at * 2, 1));
    garden.consistency_point().unwrap();
    assert_eq!(media(long, &mut (200..216)), [Medium::Hdd]);
    assert_eq!(media(long, &mut (0..150).chain((151..200).step_by(2))), [Medium::Hdd]);
    assert_eq!(media(long, &mut (150..190).step_by(2).chain(246..261)), [Medium::Ssd]);
    assert_eq!(media(short, &mut (0..15)), [Medium::Ssd]);
    let mut store = garden.shared().lock();
    for file in [aggregate::BITMAP, aggregate::VOLUMES, aggregate::TOP_AREAS] {
        let at = store.pointer(Key::new(AGGREGATE, file, 0, 0)).unwrap().unwrap().at;
        assert_eq!(store.raid.geometry.medium_of(at.pvbn), Medium::Ssd, "file {file}");
    }
    drop(store);
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn full_medium_falls_back_to_the_other() {
    for wanted in Medium::ALL {
        let (_, garden, _) = mixed();
        let mut store = garden.shared().lock();
        let (all, mut media) = (store.allocatable(), Vec::new());
        for _ in 0..all {
            let pvbn = store.alloc_pvbn(wanted).unwrap();
            media.push(store.raid.geometry.medium_of(pvbn));
        }
        assert!(store.alloc_pvbn(wanted).is_err());
        assert!(media.is_sorted_by_key(|&medium| medium != wanted), "all of {wanted} first");
        assert!(media.contains(&Medium::Hdd) && media.contains(&Medium::Ssd));
    }
}

#[test]
fn cold_blocks_leave_full_flash_and_keep_vvbns() {
    let (devices, garden, fs) = mixed();
    let gardening = garden.gardening();
    assert_eq!((gardening.cleaning, gardening.demotion), (Some(Cleaning::default()), Some(Demotion::default())));
    let file = make(&fs, "file");
    write(&fs, file, 0, 600);
    garden.consistency_point().unwrap();
    // Overwrites all blocks once, for which the flash has no space, and the first blocks
    // repeatedly.
    let mut numbers = vec![0; 600];
    for round in 0..60 {
        let first = round * 10;
        write(&fs, file, first, 10);
        (0..5).for_each(|at| write(&fs, file, at * 3, 1));
        garden.consistency_point().unwrap();
        (first..first + 10).for_each(|block| numbers[block as usize] = lies(&garden, file, block).0);
    }
    for round in 0..3 {
        write(&fs, file, round, 1);
        garden.consistency_point().unwrap();
    }
    let counts = garden.report().counts;
    assert!(counts.demotions > 200 && counts.demotions <= counts.relocations, "{counts:?}");
    let report = garden.report();
    let free: u64 = report.area_free[1].iter().map(|free| free.unwrap_or(0)).sum();
    assert!(FLASH - free < FLASH * 85 / 100, "{free} of {FLASH} blocks of flash are free");
    let mut on_disks = 0;
    for block in 13..600 {
        let (vvbn, medium) = lies(&garden, file, block);
        assert_eq!(vvbn, numbers[block as usize], "the VVBN of block {block} changed");
        on_disks += u64::from(medium == Medium::Hdd);
    }
    assert!(on_disks > 200, "{on_disks}");
    let hot: Vec<Medium> = [0, 3, 6, 9, 12].iter().map(|&block| lies(&garden, file, block).1).collect();
    assert_eq!(hot, [Medium::Ssd; 5]);
    let check = |fs: &VolumeFs| {
        let mut bytes = vec![0; (600 * BLOCK) as usize];
        fs.read(file, 0, &mut bytes).unwrap();
        assert!(bytes == (0..600).flat_map(contents).collect::<Vec<u8>>());
    };
    check(&fs);
    drop((garden, fs));
    assert_eq!(findings(&devices), [""; 0]);
    check(&open(&devices).volume(NAME).unwrap());
}

#[test]
fn demoted_blocks_share_no_area_with_a_stream() {
    let (devices, garden, fs) = mixed();
    let (file, stream) = (make(&fs, "file"), make(&fs, "stream"));
    write(&fs, file, 0, 600);
    garden.consistency_point().unwrap();
    // Single blocks leave the flash in the same points in which a stream is written.
    for round in 0..60 {
        write(&fs, file, round * 10, 10);
        write(&fs, stream, round % 30 * 16, 16);
        garden.consistency_point().unwrap();
    }
    let areas = |ino: Ino, blocks: u64| -> BTreeSet<u64> {
        let mut store = garden.shared().lock();
        let places = (0..blocks).map(|block| {
            let vvbn = store.pointer(Key::new(0, ino.0, 0, block)).unwrap().unwrap().vvbn.unwrap();
            let pvbn = store.container(0, vvbn).unwrap().unwrap().pvbn;
            (store.raid.geometry.medium_of(pvbn), store.place_of(pvbn).unwrap().stripe / 16)
        });
        places.filter(|(medium, _)| *medium == Medium::Hdd).map(|(_, area)| area).collect()
    };
    let (demoted, streamed) = (areas(file, 600), areas(stream, 480));
    assert!(garden.report().counts.demotions > 30 && !demoted.is_empty(), "{:?}", garden.report().counts);
    assert_eq!(demoted.intersection(&streamed).count(), 0, "{demoted:?} {streamed:?}");
    drop((garden, fs));
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn cleaning_skips_disks_by_default() {
    for disks_too in [false, true] {
        let (devices, garden, fs) = mixed();
        let cleaning = Some(Cleaning { disks_too, worth_percent: 0, quota_percent: 1000 });
        garden.set_gardening(Gardening { cleaning, ..Gardening::default() });
        let file = make(&fs, "file");
        write(&fs, file, 0, 1500);
        garden.consistency_point().unwrap();
        for round in 0..80 {
            (0..8).for_each(|at| write(&fs, file, (round * 37 + at * 149) % 400, 1));
            garden.consistency_point().unwrap();
        }
        let drives = garden.report().drives;
        let read = |drives: &[crate::DriveReport]| -> u64 {
            drives.iter().map(|drive| drive.counts.cleaning_reads.blocks).sum()
        };
        assert!(read(&drives[4..6]) > 0, "flash is cleaned");
        assert_eq!(read(&drives[..3]) > 0, disks_too);
        assert_eq!(findings(&devices), [""; 0]);
    }
}

#[test]
fn scan_skips_disks_by_default() {
    let (_, garden, fs) = mixed();
    let file = make(&fs, "file");
    write(&fs, file, 0, 800);
    garden.consistency_point().unwrap();
    garden.set_gardening(Gardening::default());
    let read = || -> u64 { garden.report().drives[..3].iter().map(|drive| drive.counts.cleaning_reads.blocks).sum() };
    for disks_too in [false, true] {
        let cleaning = Cleaning { worth_percent: 0, disks_too, ..Cleaning::default() };
        let step = garden.scan_step(1000, cleaning).unwrap();
        assert_eq!((step.done, step.of), if disks_too { (48, 48) } else { (16, 16) });
        assert_eq!(read() > 0, disks_too);
        garden.consistency_point().unwrap();
    }
}

#[test]
fn interrupted_scan_resumes_and_visits_each_area_once() {
    let (devices, garden, fs) = mixed();
    garden.set_gardening(Gardening::default());
    let file = make(&fs, "file");
    write(&fs, file, 0, 600);
    (0..100).for_each(|at| write(&fs, file, at * 6, 1));
    garden.consistency_point().unwrap();
    drop((fs, garden));
    let cleaning = Cleaning { worth_percent: 0, disks_too: true, ..Cleaning::default() };
    // An opening discards planned moves, so every scan finds the same areas.
    let begin = |from: u64| {
        let garden = open(&devices);
        garden.set_gardening(Gardening::default());
        garden.scan_from(from, cleaning).unwrap();
        garden
    };
    let cleaned = |garden: &Garden| garden.shared().lock().alloc.states.cleaning.iter().copied().collect::<Vec<_>>();
    let garden = begin(0);
    let whole = garden.scan_step(1000, cleaning).unwrap();
    let mut expected = cleaned(&garden);
    drop(garden);
    assert!(expected.len() > 12 && whole.cleaned == expected.len() as u64, "{whole:?}");
    let (mut from, mut met) = (0, Vec::new());
    while from < whole.of {
        let garden = begin(from);
        let step = garden.scan_step(5, cleaning).unwrap();
        assert_eq!((step.done, step.of), ((from + 5).min(whole.of), whole.of));
        met.extend(cleaned(&garden));
        from = step.done;
    }
    expected.sort_unstable();
    met.sort_unstable();
    assert_eq!(met, expected);
    let error = open(&devices).scan_from(whole.of, cleaning).unwrap_err().to_string();
    assert!(error.contains("after allocation area 48"), "{error}");
}

#[test]
fn single_medium_has_no_default_gardening() {
    for medium in Medium::ALL {
        let drives = (0..4).map(|number| MemoryDevice::new(format!("drive {number}"), Bytes(slot_offset(256))));
        let drives: Devices = drives.map(|drive| Arc::new(drive) as Arc<dyn BlockDevice>).collect();
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(4 << 20)));
        let options = FormatOptions {
            uuid: [3; 16],
            groups: vec![(3, true)],
            media: vec![medium],
            aa_stripes: vec![16],
            tetris_stripes: 16,
            zeroed: true,
        };
        Garden::format(&options, drives.clone(), log.clone()).unwrap();
        let garden = Garden::open(&drives, log, Limits::default()).unwrap();
        assert_eq!(garden.gardening(), Gardening::default(), "{medium}");
        garden.create_volume(NAME, &VolumeOptions { blocks: 700, inodes: 64, seed: 1 }).unwrap();
        let fs = garden.volume(NAME).unwrap();
        let file = make(&fs, "file");
        write(&fs, file, 0, 400);
        (0..6).for_each(|round| {
            (0..40).for_each(|at| write(&fs, file, at * 10 + round, 1));
            garden.consistency_point().unwrap();
        });
        let counts = garden.report().counts;
        assert_eq!((counts.relocations, counts.areas_cleaned, counts.fake_dirty), (0, 0, 0), "{medium}");
    }
}

#[test]
fn moved_chunks_keep_their_age() {
    let (devices, garden, fs) = mixed();
    garden.set_gardening(Gardening::default());
    garden.set_packing(NAME, Packing { group_blocks: 0, compaction: true }).unwrap();
    for number in 0..40 {
        let file = make(&fs, &format!("file {number}"));
        fs.write(&Caller::default(), file, 0, &vec![7; 1000]).unwrap();
    }
    garden.consistency_point().unwrap();
    let compacted = || -> Vec<(u16, u64)> {
        let drives = &devices[..devices.len() - 1];
        let mut found = Vec::new();
        for drive in drives {
            for offset in (slot_offset(0)..drive.size().0).step_by(SLOT) {
                let mut slot = slot::Slot::zeros();
                drive.read_at(offset, &mut slot[..]).unwrap();
                if let Ok(context) = slot::decode(&slot)
                    && context.kind == Kind::Compacted
                {
                    found.push((context.tag, context.cp));
                }
            }
        }
        found
    };
    let old = compacted();
    let (tag, cp) = old[0];
    assert!(!old.is_empty() && old.iter().all(|&one| one == (tag, cp)), "{old:?}");
    let cleaning = Cleaning { worth_percent: 0, ..Cleaning::default() };
    garden.scan_step(1000, cleaning).unwrap();
    garden.consistency_point().unwrap();
    let moved: Vec<(u16, u64)> = compacted().into_iter().filter(|&(own, _)| own != tag).collect();
    assert!(!moved.is_empty() && moved.iter().all(|&(_, own)| own == cp), "{moved:?} moved, written by {cp}");
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn defragmented_blocks_go_to_disks_once() {
    let (devices, garden, fs) = mixed();
    let file = make(&fs, "file");
    write(&fs, file, 0, 500);
    garden.consistency_point().unwrap();
    for round in 0..5 {
        (0..30).for_each(|at| write(&fs, file, at * 15 + round * 3, 1));
        garden.consistency_point().unwrap();
    }
    let flash = |garden: &Garden| (0..500).filter(|&at| lies(garden, file, at).1 == Medium::Ssd).count();
    assert_eq!(flash(&garden), 150);
    let done = garden.defragment(NAME, DefragFiles::All, Placing::default()).unwrap();
    assert!(done.moved > 150, "{done:?}");
    assert!(flash(&garden) < 50, "{} blocks are on flash", flash(&garden));
    let again = garden.defragment(NAME, DefragFiles::All, Placing::default()).unwrap();
    assert_eq!(again.moved, 0);
    assert_eq!(findings(&devices), [""; 0]);
}
