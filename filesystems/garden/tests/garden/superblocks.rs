//! Superblocks that are damaged on all drives: all recoverable data are there, and opening reports
//! lost data.

use std::sync::Arc;

use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::Seed;
use senesce_fsapi::{
    FileSystem, Ino, NewNode, Timestamp,
    conformance::{Tree, collect_tree, find_difference},
};
use senesce_garden::{Accepted, Acknowledge, Error, Garden, LOST_POINT, Limits};

use crate::{
    crash::{self, check_crashes, record_on, story},
    rig::{Devices, Rig, SLOT, Shape, VOLUME, caller, findings, open, shared},
};

const ONE: Shape = Shape { groups: &[(1, false)], media: &[], stripes: 1024, log_bytes: 400 << 10 };
const PLAIN: Shape = Shape { groups: &[(1, false), (2, false)], ..ONE };
const PROTECTED: Shape = Shape { groups: &[(2, true)], stripes: 512, ..ONE };
const SHAPES: [Shape; 3] = [ONE, PLAIN, PROTECTED];

/// Only requested consistency points are made. Changes of more than an eighth of the memory stay
/// out of the log, if allowed.
pub const LIMITS: Limits = Limits { dirty_bytes: 64 << 12, ..crash::LIMITS };

/// Changes after a consistency point. Each is a step that ends with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Operations in the log.
    Operations,
    /// A snapshot, which is not in the log.
    Snapshot,
    /// Operations that were never in the log, and a sync.
    LeftOut,
    /// Relocations, which do not change visible contents.
    Moves,
}

/// Events after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Power is lost.
    Nothing,
    /// The garden is closed.
    Closed,
    /// The garden is closed and opened, and operations follow.
    ClosedAndOperations,
    /// Operations follow.
    Operations,
    /// Operations follow, and the next point is about to be written.
    OperationsAndPoint,
}

fn make(rig: &Rig, name: &str, bytes: usize) {
    let ino = rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&caller(1), ino, 0, &vec![bytes as u8; bytes]).unwrap();
}

/// The devices afterwards, and the trees at the earlier point, at the point, and after it.
pub fn play(shape: &Shape, step: Step, behind: Behind) -> (Vec<MemoryDevice>, [Tree; 3]) {
    let devices: Vec<Arc<MemoryDevice>> = shape.devices().into_iter().map(Arc::new).collect();
    let mut rig = Rig::on(shape, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    make(&rig, "before", 9000);
    rig.garden().commit_checkpoint().unwrap();
    rig.open().unwrap();
    let before = collect_tree(rig.fs()).unwrap();
    match step {
        Step::Operations => (0..3).for_each(|number| make(&rig, &format!("file {number}"), 3000 * (number + 1))),
        Step::Snapshot => rig.garden().create_snapshot(VOLUME, b"monday", Timestamp::default()).unwrap(),
        Step::LeftOut => {
            rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
            make(&rig, "large", 40_000);
            rig.garden().sync().unwrap();
            rig.garden().set_acknowledge(Acknowledge::Durable).unwrap();
        }
        Step::Moves => {
            let areas =
                (0..shape.groups.len()).flat_map(|group| (0..shape.stripes / 64).map(move |area| (group, area)));
            let moved: u64 = areas.map(|(group, area)| rig.garden().move_area(group, area).unwrap().blocks).sum();
            assert!(moved > 0);
        }
    }
    rig.garden().consistency_point().unwrap();
    let at = collect_tree(rig.fs()).unwrap();
    if matches!(behind, Behind::Closed | Behind::ClosedAndOperations) {
        rig.garden().commit_checkpoint().unwrap();
    }
    if matches!(behind, Behind::ClosedAndOperations) {
        rig.open().unwrap();
    }
    if matches!(behind, Behind::ClosedAndOperations | Behind::Operations | Behind::OperationsAndPoint) {
        make(&rig, "behind", 5000);
        rig.fs().unlink(&caller(2), Ino::ROOT, b"before").unwrap();
    }
    let last = collect_tree(rig.fs()).unwrap();
    if behind != Behind::OperationsAndPoint {
        return (devices.iter().map(|device| device.fork()).collect(), [before, at, last]);
    }
    // Power is lost after the log names the writes of the point.
    drop(rig);
    let (recording, on) = Recording::new(devices.iter().map(|device| device.fork()).collect());
    open(&shared(on), LIMITS).unwrap().consistency_point().unwrap();
    let (mut states, mut found) = (0, None);
    recording.for_each_crash(&CrashPlan { exhaustive_up_to: 0, samples: 0, tears: 0, seed: Seed(0) }, |crash| {
        states += 1;
        if states == 3 {
            found = Some(crash.devices);
        }
    });
    (found.unwrap(), [before, at, last])
}

fn number_of(device: &dyn BlockDevice, slot: u64) -> u64 {
    let mut bytes = [0; 8];
    device.read_at(slot * SLOT + 32, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// The number of the newest superblock of a drive, even if it is damaged.
fn newest(drive: &dyn BlockDevice) -> u64 {
    number_of(drive, 1).max(number_of(drive, 3))
}

/// Overwrites 32 bytes of the newest superblock of all drives, or of the older one.
pub fn damage(devices: &[MemoryDevice], newest: bool) {
    for drive in &devices[..devices.len() - 1] {
        let second_is_newest = number_of(drive, 3) > number_of(drive, 1);
        let slot = if second_is_newest == newest { 3 } else { 1 };
        drive.write_at(slot * SLOT + 100, &[0x5a; 32]).unwrap();
    }
}

pub fn fork(devices: &[MemoryDevice]) -> Devices {
    shared(devices.iter().map(MemoryDevice::fork).collect())
}

fn tree_of(garden: &Garden) -> Tree {
    collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()
}

fn older(devices: &Devices) -> Garden {
    let (log, drives) = devices.split_last().unwrap();
    Garden::open_with(drives, log.clone(), LIMITS, None, Accepted::LATER_POINT).unwrap()
}

const STEPS: [Step; 4] = [Step::Operations, Step::Snapshot, Step::LeftOut, Step::Moves];
const BEHIND: [Behind; 5] =
    [Behind::Nothing, Behind::Closed, Behind::ClosedAndOperations, Behind::Operations, Behind::OperationsAndPoint];

#[test]
fn damage_of_the_older_superblock_loses_nothing() {
    for (shape, step, behind) in cases() {
        let told = format!("{:?}, {step:?}, {behind:?}", shape.groups);
        let (devices, [_, _, last]) = play(&shape, step, behind);
        damage(&devices, false);
        let devices = fork(&devices);
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&last, &tree_of(&garden)), None, "{told}");
        let unread = garden.report().opening.unread_superblocks;
        assert_eq!(unread.len(), devices.len() - 1, "{told}: {unread:?}");
        assert!(unread[0].starts_with("superblock ") && unread[0].contains("checksum"), "{unread:?}");
        garden.consistency_point().unwrap();
    }
}

pub fn cases() -> impl Iterator<Item = (Shape, Step, Behind)> {
    let steps = || STEPS.into_iter().flat_map(|step| BEHIND.into_iter().map(move |behind| (step, behind)));
    SHAPES.into_iter().flat_map(move |shape| steps().map(move |(step, behind)| (shape, step, behind)))
}

#[test]
fn damage_of_the_newest_superblock_is_reported() {
    let (mut refused, mut whole) = (0, 0);
    for (shape, step, behind) in cases() {
        let told = format!("{:?}, {step:?}, {behind:?}", shape.groups);
        let (at_rest, [before, at, last]) = play(&shape, step, behind);
        damage(&at_rest, true);
        let devices = fork(&at_rest);
        // The loss of a change without a record is unknown if nothing was written after it.
        let is_known = behind != Behind::Nothing;
        let is_logged = matches!(step, Step::Operations | Step::Moves);
        let has_more = !matches!(behind, Behind::Nothing | Behind::Closed);
        let found = open(&devices, LIMITS);
        if is_known && (has_more || !is_logged) {
            refused += 1;
            let error = found.err().unwrap_or_else(|| panic!("{told}: it opened"));
            let is_lost = matches!(&error, Error::Damaged { damage, .. } if damage.field == LOST_POINT);
            assert!(is_lost && error.to_string().contains("superblock "), "{told}: {error}");
            for (device, was) in devices.iter().zip(&at_rest) {
                let mut bytes = vec![0; device.size().0 as usize];
                device.read_at(0, &mut bytes).unwrap();
                assert!(bytes == was.contents(), "{told}: {} was written", device.name());
            }
            let checked = findings(&devices);
            assert!(checked.iter().any(|finding| finding.contains("consistency point")), "{told}: {checked:?}");
            assert!(checked.iter().any(|finding| finding.starts_with("superblock ")), "{told}: {checked:?}");

            // On request the older point opens, if nothing was overwritten since.
            if behind == Behind::OperationsAndPoint {
                continue;
            }
            let garden = older(&devices);
            let want = if step == Step::Operations { &at } else { &before };
            assert_eq!(find_difference(want, &tree_of(&garden)), None, "{told}");
            assert_eq!(garden.snapshots(VOLUME).unwrap(), [], "{told}");
            drop(garden);
            assert_eq!(findings(&devices), [""; 0], "{told}");
            assert_eq!(find_difference(want, &tree_of(&open(&devices, LIMITS).unwrap())), None, "{told}");
            continue;
        }
        whole += 1;
        let garden = found.unwrap_or_else(|error| panic!("{told}: {error}"));
        let want = if is_logged { &last } else { &before };
        assert_eq!(find_difference(want, &tree_of(&garden)), None, "{told}");
        assert_eq!(garden.report().opening.unread_superblocks.len(), devices.len() - 1, "{told}");
        drop(garden);
        assert_eq!(findings(&devices), [""; 0], "{told}");
        // A loss of power during the opening loses nothing either, and the number of the lost point
        // is not reused.
        let lost = newest(&at_rest[0]);
        let (recording, on) = Recording::new(at_rest.iter().map(MemoryDevice::fork).collect());
        drop(open(&shared(on), LIMITS).unwrap());
        recording.for_each_crash(&CrashPlan { exhaustive_up_to: 3, samples: 2, tears: 4, seed: Seed(1) }, |crash| {
            let told = format!("{told}: {crash}");
            let devices = shared(crash.devices);
            let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(find_difference(want, &tree_of(&garden)), None, "{told}");
            // The damaged superblock may still be there: the next one overwrites it.
            let left = findings(&devices);
            assert!(left.iter().all(|finding| finding.starts_with("superblock ")), "{told}: {left:?}");
            let fs = garden.volume(VOLUME).unwrap();
            fs.make_node(&caller(3), Ino::ROOT, b"later", &NewNode::file(0o600)).unwrap();
            garden.consistency_point().unwrap();
            assert_eq!(findings(&devices), [""; 0], "{told}");
            assert!(!is_known || newest(&*devices[0]) > lost + 1, "{told}: {} behind {lost}", newest(&*devices[0]));
        });
    }
    assert_eq!((refused, whole), (3 * 14, 3 * 6));
}

/// If the unit of the log's marker holds older contents, the operations after it do not count as
/// interrupted.
#[test]
fn operations_after_a_missing_marker_are_missed() {
    for shape in SHAPES {
        let devices: Vec<Arc<MemoryDevice>> = shape.devices().into_iter().map(Arc::new).collect();
        let rig = Rig::on(&shape, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
        make(&rig, "file", 9000);
        rig.garden().consistency_point().unwrap();
        let log = devices.last().unwrap();
        let old = log.contents();
        rig.garden().commit_checkpoint().unwrap();
        let new = log.contents();
        let unit = (0..new.len() / 512).map(|unit| unit * 512..(unit + 1) * 512);
        let changed: Vec<_> = unit.filter(|unit| old[unit.clone()] != new[unit.clone()]).collect();
        let [marker] = &changed[..] else { panic!("{changed:?} were written") };
        rig.fs().unlink(&caller(2), Ino::ROOT, b"file").unwrap();
        log.write_at(marker.start as u64, &old[marker.clone()]).unwrap();
        drop(rig);
        let devices = shared(devices.iter().map(|device| device.fork()).collect());
        let error = open(&devices, LIMITS).err().expect("it opened");
        assert!(matches!(&error, Error::Damaged { damage, .. } if damage.structure == "log"), "{error}");
        assert!(findings(&devices).iter().any(|finding| finding.contains("log")), "{:?}", findings(&devices));
    }
}

#[test]
fn power_may_be_lost_while_closing() {
    for shape in SHAPES {
        let mut count = 0;
        let run = record_on(&shape, &story(), None, crash::LIMITS, &mut |rig| {
            count += 1;
            if count % 4 == 0 {
                rig.garden().commit_checkpoint().unwrap();
            }
        });
        let plan = CrashPlan { exhaustive_up_to: 4, samples: 6, tears: 3, seed: Seed(2) };
        let states = check_crashes(&run.recording, &run.trees, &plan);
        assert!(states > 200, "{states} states");
    }
}
