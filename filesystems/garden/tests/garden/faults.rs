//! Devices that fail and return wrong data while the engine runs.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, NewNode,
    conformance::{Answer, Operation, Player, Tree, collect_tree, find_difference, set_root},
};
use senesce_garden::Limits;

use crate::{
    crash::{LIMITS, TINY, story},
    rig::{Devices, Rig, VOLUME, caller, findings, open, shared},
};

type Faulty = Arc<FaultDevice<MemoryDevice>>;

/// A formatted aggregate with a volume, at rest.
fn at_rest() -> Vec<MemoryDevice> {
    let devices: Vec<Arc<MemoryDevice>> = TINY.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&TINY, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    set_root(rig.fs()).unwrap();
    rig.garden().consistency_point().unwrap();
    drop(rig);
    devices.iter().map(|device| device.fork()).collect()
}

fn faulty(devices: &[MemoryDevice]) -> Vec<Faulty> {
    devices.iter().map(|device| Arc::new(FaultDevice::new(device.fork()))).collect()
}

fn rig(devices: &[Faulty], limits: Limits) -> Rig {
    let devices: Devices = devices.iter().map(|device| device.clone() as _).collect();
    let mut rig = Rig::closed(devices, limits);
    rig.open().unwrap();
    rig
}

/// The tree after each operation of the story, and the result of each operation.
fn model(operations: &[Operation]) -> (Vec<Tree>, Vec<Answer>) {
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).unwrap();
    let mut player = Player::default();
    let (mut trees, mut answers) = (vec![collect_tree(&model).unwrap()], Vec::new());
    for operation in operations {
        answers.push(player.play(&mut model, operation));
        trees.push(collect_tree(&model).unwrap());
    }
    (trees, answers)
}

/// The devices must hold all acknowledged operations, and at most one more.
fn check_reopened(devices: &[Faulty], trees: &[Tree], done: usize, told: &str) {
    let left: Vec<MemoryDevice> = devices.iter().map(|device| device.inner().fork()).collect();
    let left = shared(left);
    let garden = open(&left, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
    let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap_or_else(|error| panic!("{told}: {error}"));
    let after = trees.get(done..=done + 1).unwrap_or(&trees[done..]);
    assert!(
        after.iter().any(|want| find_difference(want, &tree).is_none()),
        "{told}: {}",
        find_difference(&after[0], &tree).unwrap_or_default()
    );
    assert_eq!(findings(&left), Vec::<String>::new(), "{told}");
}

/// Plays the story with one failing write or flush of a device. Returns the number of faults that
/// occurred.
fn strike(device: usize, numbers: impl Iterator<Item = u64>, check: &dyn Fn(&Rig, usize, &str)) -> u32 {
    let (operations, start) = (story(), at_rest());
    let (trees, answers) = model(&operations);
    let mut struck = 0;
    for fault in numbers.flat_map(|number| [format!("fail write {number}"), format!("fail flush {number}")]) {
        let devices = faulty(&start);
        let mut rig = rig(&devices, LIMITS);
        devices[device].inject(&fault).unwrap();
        let mut player = Player::default();
        let done = operations
            .iter()
            .zip(&answers)
            .take_while(|(operation, want)| player.play(&mut rig, operation) == **want)
            .count();
        if devices[device].struck() == 0 {
            assert_eq!(done, operations.len());
            continue; // fewer requests than this number
        }
        devices[device].heal();
        let told = format!("{fault} of {}, after {done} operations", devices[device].name());
        check(&rig, done, &told);
        drop(rig);
        check_reopened(&devices, &trees, done, &told);
        struck += 1;
    }
    struck
}

#[test]
fn failing_log_stops_the_engine_without_loss() {
    let check = |rig: &Rig, done: usize, told: &str| {
        assert!(done < story().len(), "{told}: the failure was not told");
        // Nothing is changed any more, even if the devices work again; existing data can be read.
        let refused = rig.fs().unlink(&caller(9), Ino::ROOT, b"d");
        assert_eq!(refused.unwrap_err().errno(), 30, "{told}");
    };
    let struck = strike(at_rest().len() - 1, (1..100).step_by(4), &check);
    assert!(struck > 12, "{struck} faults struck");
}

#[test]
fn drive_that_fails_once_is_left_out() {
    for device in 0..at_rest().len() - 1 {
        let check = |rig: &Rig, done: usize, told: &str| {
            assert_eq!(done, story().len(), "{told}");
            assert_eq!(rig.garden().report().missing_drives, [device as u32], "{told}");
        };
        let struck = strike(device, (1..100).step_by(3), &check);
        assert!(struck > 5, "{struck} faults struck drive {device}");
    }
}

/// One data drive fails reads or returns wrong data: reads return the written data anyway.
#[test]
fn one_faulty_drive_does_no_harm() {
    let (operations, start) = (story(), at_rest());
    let (trees, answers) = model(&operations);
    let tight = Limits { cache_bytes: 0, ..LIMITS };
    let mut struck = 0;
    for drive in 0..2 {
        for number in (1..120).step_by(5) {
            let kinds = [
                format!("fail read {number}"),
                format!("flip read {number} bit {}", number * 977),
                format!("lose write {number}"),
                format!("tear write {number} keep {}", 512 * (1 + number % 9)),
                format!("misdirect write {number} to {}", 4160 * (number % 60)),
            ];
            for fault in kinds {
                let devices = faulty(&start);
                let mut rig = rig(&devices, tight);
                devices[drive].inject(&fault).unwrap();
                let mut player = Player::default();
                for (operation, want) in operations.iter().zip(&answers) {
                    assert_eq!(player.play(&mut rig, operation), *want, "{fault} of drive {drive}: {operation:?}");
                }
                rig.garden().consistency_point().unwrap();
                drop(rig);
                let left = shared(devices.iter().map(|device| device.inner().fork()).collect());
                let told = format!("{fault} of drive {drive}");
                let garden = open(&left, tight).unwrap_or_else(|error| panic!("{told}: {error}"));
                let tree =
                    collect_tree(&garden.volume(VOLUME).unwrap()).unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(find_difference(trees.last().unwrap(), &tree), None, "{told}");
                struck += devices[drive].struck();
            }
        }
    }
    assert!(struck > 50, "{struck} faults struck");
}

/// An operation fails halfway, after an earlier one changed the same blocks: memory differs from
/// the log.
#[test]
fn operation_failing_halfway_stops_the_engine() {
    let devices: Vec<Faulty> = faulty(&at_rest());
    let mut rig = rig(&devices, LIMITS);
    let (root, who) = (Ino::ROOT, caller(5));
    let large = rig.fs().make_node(&who, root, b"large", &NewNode::file(0o644)).unwrap().ino;
    for block in 0..40 {
        assert_eq!(rig.fs().write(&who, large, block * 4096, &[7; 4096]).unwrap(), 4096);
    }
    rig.garden().consistency_point().unwrap();
    rig.open().unwrap();
    // The root directory and its inodes are cached and dirty; the pointers to the file's blocks are
    // not cached.
    rig.fs().make_node(&who, root, b"other", &NewNode::file(0o644)).unwrap();
    for device in &devices[..devices.len() - 1] {
        device.inject("fail read 1..").unwrap();
    }
    rig.fs().unlink(&who, root, b"large").unwrap_err();
    devices.iter().for_each(|device| device.heal());
    let refused = rig.fs().make_node(&who, root, b"large", &NewNode::file(0o644)).unwrap_err();
    assert_eq!(refused.errno(), 30, "{refused}");
    rig.open().unwrap();
    assert_eq!(rig.fs().lookup(root, b"large").unwrap().ino, large);
    rig.fs().lookup(root, b"other").unwrap();
    assert_eq!(rig.findings(), Vec::<String>::new());
}
