//! Reports of drives that fail while an aggregate is in use, and of losses that parity does not
//! cover.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_fsapi::{FileSystem, Ino, NewNode, conformance::set_root};
use senesce_garden::{DriveFailure, DriveState, Garden};

use crate::{
    damage::{filled, forks},
    drives::{GROUPS, fill, go_on, without},
    rig::{Devices, Rig, SMALL, Shape, TIGHT, VOLUME, caller, findings, format, open, shared},
};

/// A garden on drives, one of which fails writes or flushes on demand.
fn watched(shape: &Shape, failing: usize) -> (Garden, Arc<FaultDevice<MemoryDevice>>, Devices) {
    let fault = Arc::new(FaultDevice::new(shape.devices().swap_remove(failing)));
    let mut devices: Devices = shared(shape.devices());
    devices[failing] = fault.clone();
    format(shape, &devices);
    let garden = open(&devices, TIGHT).unwrap();
    garden.create_volume(VOLUME, &shape.volume()).unwrap();
    set_root(&garden.volume(VOLUME).unwrap()).unwrap();
    garden.consistency_point().unwrap();
    (garden, fault, devices)
}

#[test]
fn first_failure_of_a_drive_is_reported_once() {
    let (garden, fault, devices) = watched(&GROUPS, 1);
    let failures = garden.watch_drives();
    let fs = garden.volume(VOLUME).unwrap();
    fs.make_node(&caller(8), Ino::ROOT, b"file 7", &NewNode::file(0o600)).unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(failures.try_iter().count(), 0, "no drive failed");
    fault.inject("fail write 1..").unwrap();
    (0..3).for_each(|round| {
        go_on(&fs, round);
        garden.consistency_point().unwrap();
    });
    let found: Vec<DriveFailure> = failures.try_iter().collect();
    let [failure] = &found[..] else { panic!("{found:?}") };
    assert!(failure.drive == 1 && failure.is_left_out && failure.device == devices[1].name(), "{failure:?}");
    let DriveState::Missing { why } = &garden.report().drives[1].state else { panic!("drive 1 is not missing") };
    assert_eq!(*why, failure.why);
    // A replacement drive can fail again.
    fault.heal();
    garden.replace_drive(1, Arc::new(GROUPS.devices().swap_remove(1))).unwrap();
    fill(&garden, 64);
    go_on(&fs, 9);
    garden.consistency_point().unwrap();
    assert_eq!(failures.try_iter().count(), 0, "the new drive is whole");
    garden.unwatch_drives();
    assert!(failures.recv().is_err(), "the channel has ended");
}

/// Two drives without parity.
const BARE: Shape = Shape { groups: &[(2, false)], ..GROUPS };

#[test]
fn write_failure_without_parity_is_reported() {
    let (garden, fault, _) = watched(&BARE, 0);
    let failures = garden.watch_drives();
    let fs = garden.volume(VOLUME).unwrap();
    fs.make_node(&caller(8), Ino::ROOT, b"file 7", &NewNode::file(0o600)).unwrap();
    fault.inject("fail write 1..").unwrap();
    garden.consistency_point().unwrap_err();
    let found: Vec<DriveFailure> = failures.try_iter().collect();
    assert!(found.len() == 1 && found[0].drive == 0 && !found[0].is_left_out, "{found:?}");
}

#[test]
fn read_failure_without_parity_is_reported_once() {
    let (garden, fault, devices) = watched(&BARE, 1);
    let fs = garden.volume(VOLUME).unwrap();
    let ino = fs.make_node(&caller(8), Ino::ROOT, b"file 7", &NewNode::file(0o600)).unwrap().ino;
    fs.write(&caller(8), ino, 0, &[7; 60_000]).unwrap();
    garden.consistency_point().unwrap();
    drop(fs);
    drop(garden);
    let garden = open(&devices, TIGHT).unwrap();
    let failures = garden.watch_drives();
    fault.inject("fail read 1..").unwrap();
    let fs = garden.volume(VOLUME).unwrap();
    let read = || fs.lookup(Ino::ROOT, b"file 7").and_then(|found| fs.read(found.ino, 0, &mut [0; 60_000]));
    (0..2).for_each(|_| drop(read().unwrap_err()));
    let found: Vec<DriveFailure> = failures.try_iter().collect();
    assert!(found.len() == 1 && found[0].drive == 1 && !found[0].is_left_out, "{found:?}");
}

#[test]
fn check_finds_missing_drives_beyond_parity() {
    let empty = |shape: &Shape| {
        let devices: Devices = shared(shape.devices());
        format(shape, &devices);
        devices
    };
    // Even if it holds no block in use.
    for (number, devices) in (0..2).map(|number| (number, without(&empty(&BARE), &[number]))) {
        let found = findings(&devices);
        assert!(
            found.iter().any(|found| found.contains("RAID group 0") && found.contains(&format!("[{number}]"))),
            "{found:?}"
        );
    }
    let used = forks(&filled(&BARE));
    assert_eq!(findings(&used), [""; 0]);
    assert!(findings(&without(&used, &[0])).len() > 1);
    let all = empty(&GROUPS);
    for missing in [&[0][..], &[3], &[2, 6]] {
        assert_eq!(findings(&without(&all, missing)), [""; 0], "without {missing:?}");
    }
    for missing in [[0, 1], [0, 2], [4, 6]] {
        let found = findings(&without(&all, &missing));
        assert!(found.iter().any(|found| found.contains(&format!("{missing:?}"))), "{found:?}");
    }
}

/// Parity covers the missing drive only in stripes that the drive being filled already holds.
#[test]
fn check_finds_losses_beside_a_drive_being_filled() {
    let rig = Rig::new(&SMALL, TIGHT);
    let ino = rig.fs().make_node(&caller(1), Ino::ROOT, b"file", &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&caller(1), ino, 0, &vec![7; 900_000]).unwrap();
    rig.garden().consistency_point().unwrap();
    let devices = rig.devices.clone();
    drop(rig);
    let mut left = devices.clone();
    left.remove(1);
    let garden = open(&left, TIGHT).unwrap();
    let new: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("drive new", devices[1].size()));
    garden.replace_drive(1, new.clone()).unwrap();
    garden.rebuild_step(64).unwrap();
    drop(garden);
    let held: Devices = vec![new, devices[2].clone(), devices[3].clone(), devices[4].clone()];
    let found = findings(&held);
    assert!(found[0].contains("[0], and drive 1 holds 64 of 256 stripes"), "{found:?}");
    assert!(found.iter().any(|found| found.contains("another of its RAID group is missing")), "{found:?}");
    assert!(open(&held, TIGHT).is_err());
}
