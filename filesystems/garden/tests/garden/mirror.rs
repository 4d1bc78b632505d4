//! The two copies of labels and of the log. Damage of one copy costs nothing, damage of both costs
//! what the report says. The next opening repairs it.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{Tree, collect_tree, find_difference},
};
use senesce_garden::{Accepted, Garden, Limits, LogDevices};

use crate::rig::{Devices, FIXED_SLOTS, Rig, SLOT, Shape, VOLUME, caller, findings, open, shared, split};

pub const SHAPE: Shape = Shape { groups: &[(4, true)], media: &[], stripes: 160, log_bytes: 400 << 10 };
pub const LIMITS: Limits = Limits { cache_bytes: 1 << 20, dirty_bytes: 1 << 20 };
pub const BLOCK: u64 = 4096;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Killed,
}

/// The devices, the tree of the last consistency point, and the tree of all acknowledged
/// operations.
pub struct Left {
    pub devices: Vec<MemoryDevice>,
    pub point: Tree,
    pub all: Tree,
}

pub fn make(rig: &Rig, name: &str, bytes: usize) {
    let ino = rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&caller(1), ino, 0, &vec![bytes as u8; bytes]).unwrap();
}

pub fn leave(devices: Vec<MemoryDevice>, end: End) -> Left {
    let kept: Vec<Arc<MemoryDevice>> = devices.into_iter().map(Arc::new).collect();
    let rig = Rig::on(&SHAPE, kept.iter().map(|device| device.clone() as _).collect(), LIMITS);
    (0..60).for_each(|number| make(&rig, &format!("old {number}"), 500 * number));
    rig.garden().consistency_point().unwrap();
    let point = collect_tree(rig.fs()).unwrap();
    (0..40).for_each(|number| make(&rig, &format!("new {number}"), 90 * number));
    let all = collect_tree(rig.fs()).unwrap();
    let point = match end {
        End::Closed => {
            rig.garden().close().unwrap();
            all.clone()
        }
        End::Killed => point,
    };
    Left { devices: kept.iter().map(|device| device.fork()).collect(), point, all }
}

pub fn fork(devices: &[MemoryDevice]) -> Devices {
    shared(devices.iter().map(MemoryDevice::fork).collect())
}

pub fn tree(garden: &Garden) -> Tree {
    collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()
}

fn spoil(device: &Arc<dyn BlockDevice>, offset: u64, len: u64, seed: u64) {
    let mut bytes = vec![0; len as usize];
    Rng::for_purpose(Seed(seed), "damage").fill(&mut bytes);
    device.write_at(offset, &bytes).unwrap();
}

#[test]
fn damaged_block_of_one_log_copy_is_repaired() {
    for end in [End::Closed, End::Killed] {
        let left = leave(SHAPE.mirrored(), end);
        for log in [5, 6] {
            for block in 0..SHAPE.log_bytes / BLOCK {
                let told = format!("{end:?}: block {block} of device {log}");
                let devices = fork(&left.devices);
                spoil(&devices[log], block * BLOCK, BLOCK, block);
                assert!(!findings(&devices).is_empty(), "{told} is not found");
                let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
                assert!(!garden.report().opening.repaired.is_empty() && garden.log_loss().is_none(), "{told}");
                drop(garden);
                assert_eq!(findings(&devices), [""; 0], "{told}: after the repair");
            }
        }
    }
}

#[test]
fn both_copies_may_be_on_one_device() {
    let log = MemoryDevice::new("log", Bytes(2 * SHAPE.log_bytes));
    let mut devices = SHAPE.devices();
    devices[5] = log;
    let shared_devices: Vec<Arc<MemoryDevice>> = devices.into_iter().map(Arc::new).collect();
    let all: Devices = shared_devices.iter().map(|device| device.clone() as _).collect();
    Garden::format(&SHAPE.options(), all[..5].to_vec(), LogDevices::twice(all[5].clone())).unwrap();
    open(&all, LIMITS).unwrap().create_volume(VOLUME, &SHAPE.volume()).unwrap();
    let mut rig = Rig::closed(all, LIMITS);
    rig.open().unwrap();
    (0..40).for_each(|number| make(&rig, &format!("file {number}"), 90 * number));
    let want = collect_tree(rig.fs()).unwrap();
    let at_rest: Vec<MemoryDevice> = shared_devices.iter().map(|device| device.fork()).collect();
    for block in 0..2 * SHAPE.log_bytes / BLOCK {
        let devices = fork(&at_rest);
        spoil(&devices[5], block * BLOCK, BLOCK, block);
        assert!(!findings(&devices).is_empty(), "block {block} is not found");
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("block {block}: {error}"));
        assert_eq!(find_difference(&want, &tree(&garden)), None, "block {block}");
        drop(garden);
        assert_eq!(findings(&devices), [""; 0], "block {block}: after the repair");
    }
}

#[test]
fn any_two_drives_without_labels_are_identified() {
    for end in [End::Closed, End::Killed] {
        let left = leave(SHAPE.mirrored(), end);
        for (one, other) in (0..5).flat_map(|one| (one..5).map(move |other| (one, other))) {
            let told = format!("{end:?}: drives {one} and {other}");
            // The drives are named in another order.
            let mut devices = fork(&left.devices);
            for drive in [one, other] {
                spoil(&devices[drive], 0, SLOT, drive as u64);
                spoil(&devices[drive], 2 * SLOT, SLOT, drive as u64);
            }
            devices[..5].rotate_left(2);
            assert!(findings(&devices).len() >= 2, "{told} are not found");
            let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
            assert_eq!(garden.report().missing_drives, [0; 0], "{told}");
            drop(garden);
            assert_eq!(findings(&devices), [""; 0], "{told}: after the repair");
        }
    }
}

#[test]
fn labels_of_the_log_replace_all_drive_labels() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let devices = fork(&left.devices);
    for (number, drive) in (0..).zip(&devices[..5]) {
        spoil(drive, 0, SLOT, number);
        spoil(drive, 2 * SLOT, SLOT, number);
    }
    let garden = open(&devices, LIMITS).unwrap();
    assert_eq!(find_difference(&left.all, &tree(&garden)), None);
    drop(garden);
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn one_damaged_block_at_the_start_is_harmless() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    for (drive, block) in (0..5).flat_map(|drive| (0..FIXED_SLOTS).map(move |block| (drive, block))) {
        let devices = fork(&left.devices);
        spoil(&devices[drive], block * BLOCK, BLOCK, block);
        let told = format!("block {block} of drive {drive}");
        assert!(!findings(&devices).is_empty(), "{told} is not found");
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
        assert_eq!(garden.report().missing_drives, [0; 0], "{told}");
        while garden.scrub_step(1000).map(|step| step.done < step.of).unwrap() {}
        drop(garden);
        assert_eq!(findings(&devices), [""; 0], "{told}: after the repair");
    }
}

#[test]
fn lost_log_copy_is_made_again() {
    for (end, lost) in [(End::Closed, 5), (End::Closed, 6), (End::Killed, 5), (End::Killed, 6)] {
        let told = format!("{end:?}, device {lost}");
        let left = leave(SHAPE.mirrored(), end);
        let all = fork(&left.devices);
        let mut devices = all.clone();
        devices.remove(lost);
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
        let log = garden.report().log;
        assert_eq!((log.whole, log.copies, log.lost.len()), (1, 2, 1), "{told}");
        drop(garden);
        assert_eq!(findings(&devices).len(), 1, "{told}");
        // The other device lacks the later operations. It is refused alone, and filled again.
        let mut rig = Rig::closed(devices, LIMITS);
        rig.open().unwrap();
        make(&rig, "later", 1000);
        let want = collect_tree(rig.fs()).unwrap();
        drop(rig);
        assert!(findings(&all).iter().any(|finding| finding.contains("older than the last superblock")), "{told}");
        let (drives, _) = split(&all);
        let alone = Garden::open(drives, &all[lost], LIMITS).err().unwrap().to_string();
        assert!(alone.contains("older than the last superblock"), "{told}: {alone}");
        let garden = open(&all, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
        assert_eq!(garden.report().log.whole, 2, "{told}");
        drop(garden);
        assert_eq!(findings(&all), [""; 0], "{told}");
        // It has all operations, alone.
        let garden = Garden::open(drives, &all[lost], LIMITS).unwrap();
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
    }
}

#[test]
fn lost_log_costs_nothing_after_a_close() {
    for end in [End::Closed, End::Killed] {
        let left = leave(SHAPE.mirrored(), end);
        let devices = fork(&left.devices);
        let (drives, _) = split(&devices);
        let new = || {
            let log = |name: &str| Arc::new(MemoryDevice::new(name, Bytes(SHAPE.log_bytes)));
            LogDevices::none().with_spare(log("log")).with_spare(log("log 2"))
        };
        let log = new();
        let garden = match end {
            End::Closed => Garden::open(drives, &log, LIMITS).unwrap(),
            End::Killed => {
                let refused = Garden::open(drives, &log, LIMITS).err().unwrap().to_string();
                assert!(refused.contains("copies is "), "{refused}");
                Garden::open_with(drives, &log, LIMITS, None, Accepted::OPERATIONS).unwrap()
            }
        };
        let loss = garden.log_loss().unwrap();
        assert_eq!((loss.was_closed, loss.kept, loss.lost), (end == End::Closed, 0, None));
        assert_eq!(find_difference(&left.point, &tree(&garden)), None, "{end:?}");
        assert_eq!(garden.report().log.whole, 2);
        while garden.scrub_step(1000).map(|step| step.done < step.of).unwrap() {}
        // The garden is changed, closed, and opened again with the new log.
        let fs = garden.volume(VOLUME).unwrap();
        fs.make_node(&caller(5), Ino::ROOT, b"behind", &NewNode::file(0o600)).unwrap();
        let want = collect_tree(&fs).unwrap();
        drop((fs, garden));
        let report = senesce_garden::check(drives, &log).unwrap();
        assert_eq!((report.findings, report.log_operations), (vec![], 1), "{end:?}");
        let garden = Garden::open(drives, &log, LIMITS).unwrap();
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{end:?}");
    }
}

/// Both copies are damaged at the same place. The operations before it are kept, and the ones after
/// it are named.
#[test]
fn record_damaged_in_both_copies_is_named() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let whole = senesce_garden::check(&fork(&left.devices)[..5], split(&fork(&left.devices)).1).unwrap();
    let mut partial = 0;
    for block in 1..SHAPE.log_bytes / BLOCK - 1 {
        let devices = fork(&left.devices);
        spoil(&devices[5], block * BLOCK, BLOCK, block);
        spoil(&devices[6], block * BLOCK, BLOCK, block + 1000);
        let (drives, log) = split(&devices);
        let Err(error) = Garden::open(drives, &log, LIMITS) else { continue };
        assert!(error.to_string().contains("damaged ("), "block {block}: {error}");
        let garden = Garden::open_with(drives, &log, LIMITS, None, Accepted::OPERATIONS).unwrap();
        let loss = garden.log_loss().unwrap();
        let (first, last) = loss.lost.unwrap();
        assert_eq!(loss.kept + (last - first + 1), whole.log_operations, "block {block}: {loss}");
        partial += u32::from(loss.kept > 0);
        // All files of the consistency point, and some of the later ones.
        let (point, now) = (&left.point, tree(&garden));
        assert!(now.len() >= point.len() && now.len() < left.all.len(), "block {block}");
        let fs = garden.volume(VOLUME).unwrap();
        fs.make_node(&caller(5), Ino::ROOT, b"behind", &NewNode::file(0o600)).unwrap();
        let want = collect_tree(&fs).unwrap();
        drop((fs, garden));
        assert_eq!(findings(&devices), [""; 0], "block {block}");
        assert_eq!(find_difference(&want, &tree(&open(&devices, LIMITS).unwrap())), None, "block {block}");
    }
    assert!(partial > 3, "{partial} damages left some operations");
}

#[test]
fn previous_checkpoint_opens_without_a_readable_log() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let devices = fork(&left.devices);
    for log in [5, 6] {
        spoil(&devices[log], 0, SHAPE.log_bytes, log as u64);
    }
    let (drives, log) = split(&devices);
    assert!(
        Garden::open_with(drives, &log, LIMITS, None, Accepted::LATER_POINT).is_err(),
        "no device may be overwritten"
    );
    let garden = Garden::open_with(drives, log.spare(), LIMITS, None, Accepted::LATER_POINT).unwrap();
    assert_eq!(find_difference(&left.point, &tree(&garden)), None);
    assert!(!garden.log_loss().unwrap().was_closed);
}
