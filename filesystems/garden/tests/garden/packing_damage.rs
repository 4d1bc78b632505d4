//! Damage of packed contents: damage of one drive is repaired, forged data are refused, and
//! relocation keeps the contents.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_fsapi::{
    FileSystem, Ino,
    conformance::{Tree, collect_tree, find_difference},
};
use senesce_garden::{Error, Limits, Packing, RECOMPACTED_BELOW_PERCENT};

use crate::{
    damage::{flip, forks, used},
    forged::{forge, read, use_it},
    packing::{bytes, make},
    rig::{Devices, Rig, SMALL, TIGHT, VOLUME, caller, findings, open},
    snapshot_crash::NOW,
};

const BLOCK: usize = 4096;

/// Files in groups and chunks. Some are overwritten in part, so that chunks are freed. A snapshot
/// keeps the earlier contents.
fn fill(rig: &Rig) -> Vec<Ino> {
    rig.garden().set_packing(VOLUME, Packing { group_blocks: 4, compaction: true }).unwrap();
    let files: Vec<Ino> = (0..5).map(|number| make(rig, &format!("file {number}"))).collect();
    for (number, &ino) in (0..).zip(&files) {
        rig.fs().write(&caller(2), ino, 0, &bytes(number, 9 + number, 12)).unwrap();
    }
    rig.garden().create_snapshot(VOLUME, b"monday", NOW).unwrap();
    for (number, &ino) in (0..).zip(&files) {
        rig.fs().write(&caller(3), ino, 16_384, &bytes(50 + number, 2, 100)).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    files
}

fn packed() -> Vec<MemoryDevice> {
    let devices: Vec<Arc<MemoryDevice>> = SMALL.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&SMALL, devices.iter().map(|device| device.clone() as _).collect(), TIGHT);
    fill(&rig);
    devices.iter().map(|device| device.fork()).collect()
}

/// The trees of the volume and its snapshot.
fn trees(devices: &Devices) -> [Tree; 2] {
    let garden = open(devices, TIGHT).unwrap();
    [garden.volume(VOLUME).unwrap(), garden.snapshot(VOLUME, b"monday").unwrap()].map(|fs| collect_tree(&fs).unwrap())
}

fn same(one: &[Tree; 2], other: &[Tree; 2], told: &str) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(find_difference(one, other), None, "{told}");
    }
}

/// Slots in use whose trailers have this kind.
fn of_kind(devices: &Devices, kind: u8) -> Vec<(usize, u64)> {
    used(devices).into_iter().filter(|&(drive, offset)| read(devices, drive, offset)[BLOCK + 8] == kind).collect()
}

#[test]
fn damage_of_one_drive_is_found_and_repaired() {
    let at_rest = packed();
    let whole = trees(&forks(&at_rest));
    let compacted = of_kind(&forks(&at_rest), 5);
    assert!(compacted.len() >= 4, "{} compacted blocks", compacted.len());
    for (number, (drive, offset)) in compacted.into_iter().chain(of_kind(&forks(&at_rest), 4)).enumerate() {
        let (by_reading, by_scrub) = (forks(&at_rest), forks(&at_rest));
        let told = format!("block at {offset} of drive {drive}");
        for devices in [&by_reading, &by_scrub] {
            flip(&devices[drive], offset + (number as u64 * 997) % 4160);
        }
        assert!(!findings(&by_reading).is_empty(), "{told}");
        same(&trees(&by_reading), &whole, &told);
        let garden = open(&by_scrub, TIGHT).unwrap();
        let step = garden.scrub_step(1 << 20).unwrap();
        assert!(step.lost.is_empty(), "{told}: {:?}", step.lost);
        drop(garden);
        assert_eq!(findings(&by_scrub), [""; 0], "{told}");
    }
}

#[test]
fn lost_drive_with_packed_data_is_replaced() {
    let at_rest = packed();
    let whole = trees(&forks(&at_rest));
    for drive in 0..4 {
        let mut devices = forks(&at_rest);
        let new: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::new("new", senesce_core::Bytes(devices[drive].size().0)));
        devices.remove(drive);
        same(&trees(&devices), &whole, "without a drive");
        let garden = open(&devices, TIGHT).unwrap();
        assert_eq!(garden.move_area(0, 0).unwrap().stuck, 0);
        garden.replace_drive(drive as u32, new.clone()).unwrap();
        while garden.rebuild_step(1000).unwrap().is_some() {}
        garden.consistency_point().unwrap();
        drop(garden);
        devices.insert(drive, new);
        assert_eq!(findings(&devices), [""; 0], "drive {drive}");
        same(&trees(&devices), &whole, "with a new drive");
    }
}

#[test]
fn check_names_forged_packed_metadata() {
    let at_rest = packed();
    let chunk = of_kind(&forks(&at_rest), 5)[0];
    let devices = forks(&at_rest);
    let counts = of_file(&devices, 5);
    let volumes = of_file(&devices, 2);
    let count_at = read(&devices, counts.0, counts.1)[..BLOCK].iter().position(|&byte| byte > 1).unwrap();
    // A block of a volume that starts a group of four blocks, compressed with Zstandard.
    let group = of_kind(&devices, 4).into_iter().find(|&(drive, offset)| {
        let slot = read(&devices, drive, offset);
        slot[4..12] == [4, 1, 0, 0, 0x28, 0xb5, 0x2f, 0xfd] && slot[BLOCK + 9] == 0
    });
    let mut cases = vec![
        (chunk, 0, 0, "compacted block: magic"),
        (chunk, 2, 0, "compacted block"),
        (chunk, 3, 1, "compacted block: chunk"),
        (chunk, 4, 6, "compacted block: chunk is none"),
        (chunk, 9, 7, "compacted block: chunk"),
        (chunk, 11, 7, "compression group: frame"),
        (counts, count_at, 0, "chunk counts: chunks at first"),
        (counts, count_at + 1, 0, "chunk counts: chunks left"),
        (counts, (count_at + 64) % BLOCK, 0, "chunk counts: chunks"),
        (volumes, 510, 0, "volume 0: volume record: packing is never on, expected on once, for there are chunks"),
        (
            volumes,
            510,
            0,
            "block 0: volume record: packing is never on, expected on once, for there are compression groups",
        ),
    ];
    cases.extend(group.into_iter().flat_map(|group| {
        [
            (group, 4, 0, "compression group: blocks"),
            (group, 5, 1, "compression group: method"),
            (group, 2, 0, "compression group: bytes"),
            (group, 9, 0, "compression group: frame"),
        ]
    }));
    assert!(cases.len() > 11, "no group begins with a whole block");
    for (place, byte, bit, told) in cases {
        let devices = forks(&at_rest);
        forge(&devices, place, byte, bit);
        let found = findings(&devices);
        assert!(found.iter().any(|finding| finding.contains(told)), "{told}, byte {byte}: {found:?}");
        use_it(&devices);
    }
}

#[test]
fn metadata_flagged_as_chunks_or_cold_are_refused() {
    let at_rest = packed();
    let inodes = of_file(&forks(&at_rest), 0);
    // The pointers in the inodes of the aggregate's bitmap, volumes and counts of chunks.
    for (file, bits, flags) in [(1, &[4, 5][..], 2), (2, &[4, 5], 2), (2, &[5], 3), (5, &[4, 5], 2), (5, &[5], 3)] {
        let devices = forks(&at_rest);
        bits.iter().for_each(|bit| forge(&devices, inodes, file * 256 + 96 + 7, *bit));
        let told = |text: &str| {
            text.contains(&format!("file {file} of the aggregate, level"))
                && text.contains(&format!("pointer: flags is {flags}, expected 1"))
        };
        let found = findings(&devices);
        assert!(found.iter().any(|finding| told(finding)), "{file}: {found:?}");
        // A refused block is not read, so the next point cannot contain it.
        let refused = open(&devices, TIGHT).and_then(|garden| {
            let fs = garden.volume(VOLUME)?;
            let ino = fs.lookup(Ino::ROOT, b"file 0").map_err(Error::from)?.ino;
            fs.write(&caller(5), ino, 16_384, &bytes(9, 4, 12)).map_err(Error::from)?;
            garden.consistency_point()
        });
        let refused = refused.expect_err("the block was read").to_string();
        assert!(told(&refused), "{file}: {refused}");
    }
}

/// The leaf block of a file of the aggregate.
fn of_file(devices: &Devices, file: u64) -> (usize, u64) {
    let is_it = |slot: &[u8]| slot[BLOCK + 9] == 0 && slot[BLOCK + 16..BLOCK + 24] == file.to_le_bytes();
    let found = of_kind(devices, 3).into_iter().find(|&(drive, offset)| is_it(&read(devices, drive, offset)));
    found.unwrap()
}

#[test]
fn recompaction_keeps_the_contents() {
    let mut rig = Rig::new(&SMALL, TIGHT);
    let files = fill(&rig);
    // Chunks that only the snapshot uses keep their blocks. Without the snapshot many are free.
    let whole = trees(&rig.devices);
    let before = rig.garden().survey_packing(VOLUME).unwrap();
    let step = rig.garden().recompact_step(VOLUME, u64::MAX, RECOMPACTED_BELOW_PERCENT).unwrap();
    assert_eq!((step.rewritten, step.is_done), (0, true), "{step:?}");
    for (number, &ino) in (0..).zip(&files) {
        rig.fs().write(&caller(4), ino, 0, &bytes(70 + number, 3, if number % 2 == 0 { 100 } else { 12 })).unwrap();
    }
    rig.garden().create_snapshot(VOLUME, b"tuesday", NOW).unwrap();
    let two = collect_tree(&rig.garden().snapshot(VOLUME, b"tuesday").unwrap()).unwrap();
    rig.garden().delete_snapshot(VOLUME, b"monday").unwrap();
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    rig.garden().consistency_point().unwrap();
    let free = rig.garden().report().free;

    let step = rig.garden().recompact_step(VOLUME, u64::MAX, 100).unwrap();
    assert!(step.rewritten >= 2 && step.chunks > 0 && step.unread == 0, "{step:?} {before:?}");
    assert_eq!(rig.findings(), [""; 0]);
    let gained = rig.garden().report().free as i64 - free as i64;
    assert!(gained >= 1, "{gained} blocks gained by {step:?}");
    assert_eq!(rig.garden().diff(VOLUME, b"tuesday", None).unwrap().len(), 0);
    // A second pass has nothing to do.
    let again = rig.garden().recompact_step(VOLUME, u64::MAX, 100).unwrap();
    assert_eq!((again.rewritten, again.is_done), (0, true), "{again:?}");
    rig.open().unwrap();
    assert_eq!(
        find_difference(&two, &collect_tree(&rig.garden().snapshot(VOLUME, b"tuesday").unwrap()).unwrap()),
        None
    );
    assert_eq!(find_difference(&two, &collect_tree(rig.fs()).unwrap()), None);
    assert_ne!(find_difference(&whole[0], &two), None);
}

#[test]
fn recompaction_waits_for_consistency_points() {
    let mut points = Vec::new();
    for dirty_bytes in [1 << 30, 1 << 12] {
        let rig = Rig::new(&SMALL, Limits { cache_bytes: 64 << 12, dirty_bytes });
        let files = fill(&rig);
        for &ino in &files {
            rig.fs().write(&caller(4), ino, 0, &bytes(70, 3, 100)).unwrap();
        }
        rig.garden().delete_snapshot(VOLUME, b"monday").unwrap();
        assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
        rig.garden().consistency_point().unwrap();
        let before = rig.garden().report().cp;
        let step = rig.garden().recompact_step(VOLUME, u64::MAX, 100).unwrap();
        assert!(step.is_done && step.rewritten > 1, "{step:?}");
        points.push(rig.garden().report().cp - before);
    }
    assert!(points[0] == 0 && points[1] > 1, "{points:?}");
}

#[test]
fn cleaning_an_area_packs_its_chunks_again() {
    let rig = Rig::new(&SMALL, TIGHT);
    fill(&rig);
    let whole = trees(&rig.devices);
    for area in 0..4 {
        let chunks = rig.garden().report().counts.chunks_written;
        let packed = of_kind(&rig.devices, 5).len();
        let moves = rig.garden().move_area(0, area).unwrap();
        assert_eq!(moves.stuck, 0);
        rig.garden().consistency_point().unwrap();
        assert!(rig.garden().report().counts.chunks_written > chunks || area > 0);
        assert!(of_kind(&rig.devices, 5).len() <= packed + 1);
        assert_eq!(rig.findings(), [""; 0]);
    }
    same(&trees(&rig.devices), &whole, "moved");
}
