//! Damage on devices: it is detected, repaired if parity suffices, and never read as data.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use senesce_block::{BlockDevice, MemoryDevice, TracedDevice};
use senesce_core::{Bytes, ManualClock, Rng, Seed};
use senesce_fsapi::{
    FileSystem, FsError, Ino, ModelFs, NewNode, Timestamp,
    conformance::{collect_tree, find_difference, set_root},
};
use senesce_garden::{CheckPart, CheckProgress, Limits, Stripes, check, check_telling, collect_used_slots};

use crate::rig::{Devices, FIXED_SLOTS, LARGE, Rig, SLOT, SMALL, Shape, TIGHT, VOLUME, caller, findings, open, shared};

const UNPROTECTED: Shape = Shape { groups: &[(3, false)], media: &[], stripes: 200, log_bytes: 400 << 10 };

pub fn play(fs: &dyn FileSystem) {
    set_root(fs).unwrap();
    for number in 0..12_u8 {
        let name = format!("file {number}");
        let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
        fs.write(&caller(1), ino, 0, &vec![number + 1; 6000 * usize::from(number)]).unwrap();
    }
    // The sources are on the drives now, so the clones share blocks. One shared block is
    // overwritten, and one block keeps its only pointer in the clone.
    for (number, name) in [(7, "clone"), (5, "second")] {
        let source = fs.lookup(Ino::ROOT, format!("file {number}").as_bytes()).unwrap().ino;
        let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
        assert_eq!(fs.clone_range(&caller(1), (source, 0), (ino, 0), 1 << 40).unwrap(), 6000 * number);
        fs.write(&caller(1), source, 8192, &[number as u8 + 1; 100]).unwrap();
    }
    fs.symlink(&caller(2), Ino::ROOT, b"link", b"to").unwrap();
    fs.set_xattr(&caller(2), Ino::ROOT, b"user.a", &[5; 300], senesce_fsapi::SetXattrMode::Any).unwrap();
}

/// A filled aggregate at rest.
pub fn filled(shape: &Shape) -> Vec<MemoryDevice> {
    let devices: Vec<Arc<MemoryDevice>> = shape.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(shape, devices.iter().map(|device| device.clone() as _).collect(), TIGHT);
    play(rig.fs());
    rig.garden().create_snapshot(VOLUME, b"monday", Timestamp::default()).unwrap();
    // Rewrites the same contents at another place, so that only the snapshot uses the old blocks.
    let ino = rig.fs().lookup(Ino::ROOT, b"file 11").unwrap().ino;
    rig.fs().write(&caller(1), ino, 0, &[12; 30_000]).unwrap();
    rig.garden().consistency_point().unwrap();
    devices.iter().map(|device| device.fork()).collect()
}

pub fn forks(devices: &[MemoryDevice]) -> Devices {
    shared(devices.iter().map(MemoryDevice::fork).collect())
}

pub fn used(devices: &Devices) -> Vec<(usize, u64)> {
    let (log, drives) = devices.split_last().unwrap();
    collect_used_slots(drives, log).unwrap()
}

pub fn flip(device: &Arc<dyn BlockDevice>, at: u64) {
    let mut byte = [0];
    device.read_at(at, &mut byte).unwrap();
    device.write_at(at, &[byte[0] ^ 0x10]).unwrap();
}

/// Opens the aggregate and reads everything. The result must be the written data or an error.
/// Returns whether all was read.
fn check_no_wrong_data(devices: &Devices, told: &str) -> bool {
    let opened = open(devices, Limits::default());
    let Ok(tree) = opened.map_err(FsError::from).and_then(|garden| collect_tree(&garden.volume(VOLUME)?)) else {
        return false;
    };
    let model = ModelFs::new(Bytes(Bytes::GIB));
    play(&model);
    assert_eq!(find_difference(&collect_tree(&model).unwrap(), &tree), None, "{told}");
    true
}

#[test]
fn check_reports_progress() {
    let devices = forks(&filled(&SMALL));
    let (log, drives) = devices.split_last().unwrap();
    let told: Rc<RefCell<Vec<CheckProgress>>> = Rc::default();
    let note = told.clone();
    let tell = Rc::new(move |progress| note.borrow_mut().push(progress));
    let report = check_telling(drives, log, None, Stripes::All, tell).unwrap();
    assert_eq!(report, check(drives, log).unwrap());
    let told = told.borrow();
    assert!(told.iter().all(|one| one.done <= one.of), "{told:?}");
    let stripes: Vec<u64> = told.iter().filter(|one| one.part == CheckPart::Stripes).map(|one| one.done).collect();
    assert_eq!((stripes, told[told.len() - 1].of), (vec![0, 64, 128, 192], SMALL.stripes));
}

#[test]
fn flipped_bytes_are_found_and_repaired() {
    let at_rest = filled(&SMALL);
    let mut rng = Rng::for_purpose(Seed(1), "flips");
    let places = used(&forks(&at_rest));
    assert!(places.len() > 100);
    for (number, (drive, offset)) in places.into_iter().enumerate() {
        let devices = forks(&at_rest);
        // Covers every byte of the trailer, and random places of the payload.
        let within = if number % 2 == 0 { 4096 + (number as u64 / 2) % 64 } else { rng.below(4096) };
        flip(&devices[drive], offset + within);
        let found = findings(&devices);
        let told = format!("byte {within} of the block at {offset} of drive {drive}");
        assert!(found.iter().any(|finding| finding.contains("checksum")), "{told}: {found:?}");
        assert!(found.iter().any(|finding| finding.contains("parity")), "{told}: {found:?}");
        assert!(check_no_wrong_data(&devices, &told), "{told}: one drive's damage must be put right");
    }
}

#[test]
fn reading_without_parity_fails_without_wrong_data() {
    let at_rest = filled(&UNPROTECTED);
    let mut failed = 0;
    for (drive, offset) in used(&forks(&at_rest)) {
        let devices = forks(&at_rest);
        flip(&devices[drive], offset + offset % 4096);
        failed += u32::from(!check_no_wrong_data(&devices, &format!("block at {offset} of drive {drive}")));
        assert!(!findings(&devices).is_empty());
    }
    assert!(failed > 80, "{failed} of the blocks were missed");
}

#[test]
fn labels_and_superblocks_are_checked() {
    let at_rest = filled(&SMALL);
    for drive in 0..4 {
        for slot in 0..4 {
            for within in [0, 20, 100, 600, 4096, 4110] {
                let devices = forks(&at_rest);
                flip(&devices[drive], slot * SLOT + within);
                let found = findings(&devices);
                assert!(!found.is_empty(), "byte {within} of slot {slot} of drive {drive}");
                assert!(check_no_wrong_data(&devices, "a label or superblock"), "the other drives have it");
            }
        }
    }
    let devices = forks(&at_rest);
    flip(&devices[4], 33);
    assert!(
        findings(&devices).iter().any(|finding| finding.starts_with("log label at byte 0 of log: log label: checksum"))
    );
}

#[test]
fn wrong_parity_is_found() {
    let devices = forks(&filled(&SMALL));
    flip(&devices[3], (FIXED_SLOTS + 5) * SLOT + 77);
    assert_eq!(
        findings(&devices),
        ["stripe 5 of RAID group 0: stripe: parity is a difference at byte 77, expected none"]
    );
}

#[test]
fn check_of_stripes_in_use_reads_no_others() {
    let at_rest = filled(&LARGE);
    let in_use: BTreeSet<u64> = used(&forks(&at_rest)).iter().map(|(_, offset)| offset / SLOT).collect();
    let run = |devices: &Devices, stripes| {
        let (log, drives) = devices.split_last().unwrap();
        check_telling(drives, log, None, stripes, Rc::new(|_| {})).unwrap()
    };
    let traced: Vec<Arc<TracedDevice<MemoryDevice>>> = at_rest
        .iter()
        .map(|device| Arc::new(TracedDevice::new(device.fork(), Arc::new(ManualClock::default()))))
        .collect();
    let devices: Devices = traced.iter().map(|device| device.clone() as _).collect();
    let read = || traced.iter().map(|device| device.counts().bytes_read).sum::<u64>();
    let report = run(&devices, Stripes::InUse);
    assert_eq!((report.stripes, report.findings.len()), (in_use.len() as u64, 0));
    let of_used = read();
    assert_eq!(run(&devices, Stripes::All).stripes, LARGE.stripes);
    let of_all = read() - of_used;
    assert!(of_used * 4 < of_all, "{of_used} bytes with {} stripes in use, {of_all} with all", in_use.len());

    let stripe_of = |offset: u64| offset / SLOT - FIXED_SLOTS;
    let first = stripe_of(in_use.first().unwrap() * SLOT);
    let unused = (0..LARGE.stripes).find(|stripe| !in_use.contains(&(stripe + FIXED_SLOTS))).unwrap();
    for (stripe, by_use) in [(first, 1), (unused, 0)] {
        let devices = forks(&at_rest);
        flip(&devices[4], (FIXED_SLOTS + stripe) * SLOT + 77);
        assert_eq!(run(&devices, Stripes::InUse).findings.len(), by_use, "stripe {stripe}");
        assert_eq!(run(&devices, Stripes::All).findings.len(), 1, "stripe {stripe}");
    }
}

/// Simulated lost, misdirected and torn writes: zeros, a block of another place, half a block.
#[test]
fn lost_misdirected_and_torn_writes_are_repaired() {
    let at_rest = filled(&SMALL);
    let places = used(&forks(&at_rest));
    let slot = |devices: &Devices, (drive, offset): (usize, u64)| {
        let mut bytes = vec![0; SLOT as usize];
        devices[drive].read_at(offset, &mut bytes).unwrap();
        bytes
    };
    for (number, &place) in places.iter().enumerate() {
        let other = places[(number + 17) % places.len()];
        let (devices, from) = (forks(&at_rest), forks(&at_rest));
        let (good, elsewhere) = (slot(&from, place), slot(&from, other));
        let bad = match number % 3 {
            0 => vec![0; SLOT as usize],
            1 => elsewhere,
            _ => [&elsewhere[..2048], &good[2048..]].concat(),
        };
        if bad == good {
            continue;
        }
        devices[place.0].write_at(place.1, &bad).unwrap();
        let told = format!("place {place:?}, kind {}", number % 3);
        assert!(!findings(&devices).is_empty(), "{told}");
        assert!(check_no_wrong_data(&devices, &told), "{told}");
    }
}

#[test]
fn reading_repairs_the_drive() {
    let at_rest = filled(&SMALL);
    let devices = forks(&at_rest);
    let mut flipped = BTreeSet::new();
    for (drive, offset) in used(&devices) {
        // At most one block of a stripe.
        if flipped.insert(offset) {
            flip(&devices[drive], offset + 8);
        }
    }
    assert!(findings(&devices).len() > 50);
    let garden = open(&devices, Limits::default()).unwrap();
    collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
    assert!(garden.report().raid.repairs > 50);
    drop(garden);
    let (log, drives) = devices.split_last().unwrap();
    let report = check(drives, log).unwrap();
    // Maps that are only read to be written wait for a scrub. Users' files are intact.
    let of_users = |place: &str| {
        let ino = place.strip_prefix("inode ").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        ino.is_some_and(|ino| ino == 1 || ino >= 16)
    };
    let left: Vec<_> = report.findings.iter().filter(|finding| of_users(&finding.place)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A lost write that leaves an older version of the same block: only the tag differs.
#[test]
fn older_version_of_a_block_is_detected() {
    let shape = Shape { stripes: 110, ..SMALL };
    let devices: Vec<Arc<MemoryDevice>> = shape.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&shape, devices.iter().map(|device| device.clone() as _).collect(), TIGHT);
    play(rig.fs());
    let ino = rig.fs().lookup(Ino::ROOT, b"file 1").unwrap().ino;
    let mut older: BTreeMap<(usize, u64, Vec<u8>), Vec<u8>> = BTreeMap::new();
    let mut newest = BTreeMap::new();
    for round in 0..250_u32 {
        // The contents stay those of `play`, but their blocks change.
        rig.fs().write(&caller(1), ino, 0, &[2; 6000]).unwrap();
        rig.garden().consistency_point().unwrap();
        let now = forks(&devices.iter().map(|device| device.fork()).collect::<Vec<_>>());
        for (drive, offset) in used(&now) {
            let mut slot = vec![0; SLOT as usize];
            now[drive].read_at(offset, &mut slot).unwrap();
            // Kind, level, owner and number.
            let identity = [&slot[4104..4106], &slot[4112..4128]].concat();
            let key = (drive, offset, identity);
            if round < 249 {
                older.entry(key).or_insert(slot);
            } else {
                newest.insert(key, slot);
            }
        }
    }
    let want = collect_tree(rig.fs()).unwrap();
    let at_rest: Vec<MemoryDevice> = devices.iter().map(|device| device.fork()).collect();
    let mut tried = 0;
    for (key, slot) in newest {
        let Some(old) = older.get(&key).filter(|old| **old != slot) else { continue };
        tried += 1;
        let devices = forks(&at_rest);
        devices[key.0].write_at(key.1, old).unwrap();
        let told = format!("block at {} of drive {}", key.1, key.0);
        assert!(findings(&devices).iter().any(|finding| finding.contains("tag")), "{told}");
        let garden = open(&devices, Limits::default()).unwrap();
        let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
        assert_eq!(find_difference(&want, &tree), None, "{told}");
    }
    assert!(tried > 3, "{tried} blocks had an older version in their place");
}

#[test]
fn devices_of_another_aggregate_are_refused() {
    let (one, other) = (forks(&filled(&SMALL)), shared(SMALL.devices()));
    let (log, drives) = other.split_last().unwrap();
    let options = senesce_garden::FormatOptions { uuid: [9; 16], ..SMALL.options() };
    senesce_garden::Garden::format(&options, drives.to_vec(), log.clone()).unwrap();
    let mut mixed = one.clone();
    mixed[1] = other[1].clone();
    assert_eq!(open(&mixed, TIGHT).err().unwrap().to_string(), "drive 1: a drive of another aggregate");
    let mut mixed = one.clone();
    mixed[4] = other[4].clone();
    assert_eq!(open(&mixed, TIGHT).err().unwrap().to_string(), "log: the log of another aggregate");
    let mut mixed = one.clone();
    mixed[1] = mixed[0].clone();
    assert_eq!(open(&mixed, TIGHT).err().unwrap().to_string(), "drive 0: another drive has the same place");
    let empty = shared(SMALL.devices());
    assert!(open(&empty, TIGHT).err().unwrap().to_string().contains("checksum"));
}
