//! Loss of power after every write of a run, over all drives and the log at once: nothing acknowledged is lost, nothing is
//! there that was never done, and the check is clean.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, CrashPlan, FaultDevice, MemoryDevice, RecordedDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, Ino, ModelFs, NewNode, RenameHow, SetXattrHow,
    conformance::{Draw, Operation, Place, Player, SequenceOptions, Tree, collect_tree, find_difference, set_root},
};
use senesce_garden::{Accepted, Garden, Limits, LogDevices};

use crate::rig::{Devices, Rig, SLOT, Shape, VOLUME, caller, findings, open, shared};

pub const TINY: Shape = Shape { groups: &[(2, true)], media: &[], stripes: 192, log_bytes: 400 << 10 };
pub const LIMITS: Limits = Limits { cache_bytes: 32 << 12, dirty_bytes: 12 << 12 };

pub fn path(path: &str) -> String {
    path.to_owned()
}

pub fn write(to: &str, offset: u64, len: u64) -> Operation {
    Operation::Write { at: Place::Path(path(to)), offset, len, seed: offset + len }
}

pub fn make(at: &str, kind: FileKind) -> Operation {
    Operation::MakeNode { path: path(at), kind, permissions: 0o640 }
}

/// A run that meets everything once: inline and large files, overwriting, renaming over another, holding what is unlinked,
/// holes, attributes, directories; the log is full in the middle, and dirty blocks are many.
pub fn story() -> Vec<Operation> {
    let rename = |from: &str, to: &str| Operation::Rename { from: path(from), to: path(to), how: RenameHow::Replace };
    let cut = |at: &str, size| Operation::Truncate { at: Place::Path(path(at)), size };
    let set = |len| Operation::SetXattr {
        at: Place::Path(path("d/small")),
        name: path("user.a"),
        len,
        seed: 1,
        how: SetXattrHow::Any,
    };
    vec![
        make("d", FileKind::Directory),
        make("d/small", FileKind::File),
        write("d/small", 0, 100),
        make("large", FileKind::File),
        write("large", 3, 60_000),
        set(50),
        write("large", 5000, 60_000),
        Operation::Symlink { path: path("link"), target: path("d/small") },
        make("other", FileKind::File),
        write("other", 100_000, 50_000),
        rename("other", "large"),
        set(9000),
        Operation::Link { existing: path("large"), path: path("d/second") },
        Operation::Hold { slot: 0, path: path("large") },
        Operation::Unlink { path: path("large") },
        Operation::Unlink { path: path("d/second") },
        Operation::Write { at: Place::Slot(0), offset: 0, len: 30_000, seed: 5 },
        write("d/small", 60, 200),
        make("third", FileKind::File),
        write("third", 0, 60_000),
        Operation::Release { slot: 0 },
        cut("third", 4097),
        write("third", 200_000, 10),
        cut("third", 100),
        rename("d", "e"),
        Operation::Unlink { path: path("e/small") },
        Operation::Rmdir { path: path("e") },
    ]
}

/// A run on devices that record, and what the tree is after each operation: with no names for what is only held.
pub struct Run {
    pub recording: Recording,
    pub trees: Vec<Tree>,
    pub consistency_points: u64,
}

pub fn record(operations: &[Operation]) -> Run {
    record_with(operations, None, LIMITS)
}

/// Of an aggregate that has lost a drive, or with other limits.
fn record_with(operations: &[Operation], missing: Option<usize>, limits: Limits) -> Run {
    record_and(operations, missing, limits, &mut |_| {})
}

/// The same, with something else done after each operation.
pub fn record_and(operations: &[Operation], missing: Option<usize>, limits: Limits, each: &mut dyn FnMut(&Rig)) -> Run {
    record_on(&TINY, operations, missing, limits, each)
}

/// The same on an aggregate of another shape.
pub fn record_on(
    shape: &Shape,
    operations: &[Operation],
    missing: Option<usize>,
    limits: Limits,
    each: &mut dyn FnMut(&Rig),
) -> Run {
    record_devices(shape, shape.devices(), operations, missing, limits, each)
}

/// The same on these devices.
pub fn record_devices(
    shape: &Shape,
    devices: Vec<MemoryDevice>,
    operations: &[Operation],
    missing: Option<usize>,
    limits: Limits,
    each: &mut dyn FnMut(&Rig),
) -> Run {
    let devices: Vec<Arc<MemoryDevice>> = devices.into_iter().map(Arc::new).collect();
    let rig = Rig::on(shape, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    set_root(rig.fs()).unwrap();
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let mut forks: Vec<MemoryDevice> = devices.iter().map(|device| device.fork()).collect();
    if let Some(missing) = missing {
        forks.remove(missing);
    }
    let (recording, devices) = Recording::new(forks);
    let mut rig = Rig::closed(shared(devices), limits);
    rig.open().unwrap();
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).unwrap();
    let (mut player, mut model_player) = (Player::default(), Player::default());
    let mut trees = vec![collect_tree(&model).unwrap()];
    for (number, operation) in (1..).zip(operations) {
        let (got, want) = (player.play(&mut rig, operation), model_player.play(&mut model, operation));
        assert_eq!(format!("{got:?}"), format!("{want:?}"), "{operation:?}");
        recording.mark(number);
        each(&rig);
        trees.push(collect_tree(&model).unwrap());
    }
    let consistency_points = rig.garden().report().counts.consistency_points;
    Run { recording, trees, consistency_points }
}

/// Opens what a loss of power left. What is there must be the state of the last acknowledged operation, or of the one
/// that was being done.
pub fn check_state(devices: &Devices, trees: &[Tree], done: usize, told: &str) {
    let garden = open(devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
    let fs = garden.volume(VOLUME).unwrap_or_else(|error| panic!("{told}: {error}"));
    let tree = collect_tree(&fs).unwrap_or_else(|error| panic!("{told}: {error}"));
    let after = trees.get(done..=done + 1).unwrap_or(&trees[done..]);
    if !after.iter().any(|want| find_difference(want, &tree).is_none()) {
        panic!("{told}: {}", find_difference(&after[0], &tree).unwrap());
    }
    let found = findings(devices);
    assert!(found.is_empty(), "{told}: {}", found.join("\n"));
}

/// Opens what each loss of power left, which must hold the tree of an operation at or after the last acknowledged one.
/// Returns the number of states.
pub fn check_crashes(recording: &Recording, trees: &[Tree], plan: &CrashPlan) -> u64 {
    let mut states = 0;
    recording.for_each_crash(plan, |crash| {
        states += 1;
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        check_state(&shared(crash.devices), trees, done, &told);
    });
    states
}

#[test]
fn nothing_acknowledged_is_lost_whenever_power_is() {
    let run = record(&story());
    let plan = CrashPlan { exhaustive_up_to: 8, samples: 24, tears: 8, seed: Seed(1) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 500, "{states} states");
}

#[test]
fn two_copies_of_the_log_outlive_losses_of_power() {
    let run = record_devices(&TINY, TINY.mirrored(), &story(), None, LIMITS, &mut |_| {});
    let plan = CrashPlan { exhaustive_up_to: 6, samples: 16, tears: 4, seed: Seed(9) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 300, "{states} states");
}

/// Power is lost, and the whole log with it. An aggregate that opens all the same was closed, and then nothing is lost.
#[test]
fn a_closed_aggregate_never_hides_operations_that_went_with_the_log() {
    let mut turn = 0;
    let run = record_devices(&TINY, TINY.mirrored(), &story(), None, LIMITS, &mut |rig| {
        turn += 1;
        if turn % 3 == 0 {
            rig.garden().close().unwrap();
        }
    });
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 8, tears: 2, seed: Seed(11) };
    let (mut opened, mut refused) = (0, 0);
    run.recording.for_each_crash(&plan, |crash| {
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        let drives: Devices = shared(crash.devices.into_iter().take(TINY.drives()).collect());
        let log = |name: &str| Arc::new(MemoryDevice::new(name, Bytes(TINY.log_bytes)));
        let log = LogDevices::none().with_spare(log("log")).with_spare(log("log 2"));
        match Garden::open(&drives, &log, LIMITS) {
            Ok(garden) => {
                opened += 1;
                let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
                let wanted = run.trees.get(done..=done + 1).unwrap_or(&run.trees[done..]);
                assert!(wanted.iter().any(|want| find_difference(want, &tree).is_none()), "{told}");
            }
            Err(_) => {
                refused += 1;
                let garden = Garden::open_with(&drives, &log, LIMITS, None, Accepted::OPERATIONS);
                let garden = garden.unwrap_or_else(|error| panic!("{told}: {error}"));
                assert!(!garden.log_loss().unwrap().was_closed, "{told}");
            }
        }
    });
    assert!(opened > 10 && refused > 10, "{opened} were closed, {refused} were not");
}

/// Power is lost, and either copy of the log with it: the other one has all that was acknowledged.
#[test]
fn a_loss_of_power_with_one_copy_of_the_log_loses_nothing() {
    let run = record_devices(&TINY, TINY.mirrored(), &story(), None, LIMITS, &mut |_| {});
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 2, seed: Seed(10) };
    let (mut states, logs) = (0, TINY.drives()..TINY.drives() + 2);
    run.recording.for_each_crash(&plan, |crash| {
        states += 1;
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        for lost in logs.clone() {
            let mut devices: Vec<MemoryDevice> = crash.devices.iter().map(MemoryDevice::fork).collect();
            devices.remove(lost);
            let devices = shared(devices);
            let told = format!("{told}, without {lost}");
            let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
            let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
            let wanted = run.trees.get(done..=done + 1).unwrap_or(&run.trees[done..]);
            assert!(wanted.iter().any(|want| find_difference(want, &tree).is_none()), "{told}");
        }
    });
    assert!(states > 100, "{states} states");
}

#[test]
fn power_may_be_lost_again_while_it_comes_back() {
    let run = record(&story());
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 4, tears: 1, seed: Seed(2) };
    let mut states = 0;
    run.recording.for_each_crash(&plan, |crash| {
        states += 1;
        if states % 17 != 0 {
            return;
        }
        let done = crash.mark.unwrap_or(0) as usize;
        let told = crash.to_string();
        let (again, devices) = Recording::new(crash.devices);
        drop(open(&shared(devices), LIMITS).unwrap());
        again.for_each_crash(&plan, |second| {
            let told = format!("{told}; then {second}");
            check_state(&shared(second.devices), &run.trees, done, &told);
        });
    });
    assert!(states > 200, "{states} states");
}

#[test]
fn drawn_operations_outlive_losses_of_power() {
    for seed in 0..3 {
        let options = SequenceOptions {
            operations: 600,
            boundaries: vec![0, 1, 160, 4096, 40_960],
            reopen: false,
            ..SequenceOptions::default()
        };
        let operations: Vec<Operation> = Draw::new(Seed(seed), &options).take(options.operations).collect();
        let run = record(&operations);
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 8, tears: 4, seed: Seed(seed) };
        let states = check_crashes(&run.recording, &run.trees, &plan);
        assert!(states > 50, "{states} states");
    }
}

#[test]
fn a_log_that_is_full_makes_a_consistency_point_and_loses_nothing() {
    let run = record_with(&story(), None, Limits { cache_bytes: 32 << 12, ..Limits::default() });
    assert!(run.consistency_points > 0, "the log of {} bytes was never full", TINY.log_bytes);
    let plan = CrashPlan { exhaustive_up_to: 6, samples: 12, tears: 4, seed: Seed(5) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 100, "{states} states");
}

/// Who makes a consistency point is killed before the drives' last flush, so its superblock is where others read it and not
/// durable. What they do then is no less so.
#[test]
fn what_follows_a_superblock_that_was_never_flushed_outlives_a_loss_of_power() {
    let run = |lost: &[u64]| {
        let (recording, devices) = Recording::new(TINY.devices());
        let devices: Vec<Arc<RecordedDevice>> = devices.into_iter().map(Arc::new).collect();
        let faulty: Vec<_> = devices.iter().map(|device| Arc::new(FaultDevice::new(device.clone()))).collect();
        let rig = Rig::on(&TINY, faulty.iter().map(|device| device.clone() as _).collect(), LIMITS);
        rig.fs().make_node(&caller(1), Ino::ROOT, b"before", &NewNode::file(0o600)).unwrap();
        for (device, flush) in faulty.iter().zip(lost) {
            device.inject(&format!("lose flush {flush}")).unwrap();
        }
        rig.garden().consistency_point().unwrap();
        let flushes: Vec<u64> = faulty.iter().map(|device| device.requests(BlockOperation::Flush)).collect();
        drop(rig);
        (recording, devices, flushes)
    };
    let (.., flushes) = run(&[]);
    let (recording, devices, _) = run(&flushes[..TINY.drives()]);

    let mut rig = Rig::closed(devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    rig.open().unwrap();
    rig.fs().make_node(&caller(2), Ino::ROOT, b"behind", &NewNode::file(0o600)).unwrap();
    recording.mark(1);
    rig.garden().close_point().unwrap();
    rig.fs().make_node(&caller(3), Ino::ROOT, b"last", &NewNode::file(0o600)).unwrap();
    recording.mark(2);
    let mut states = 0;
    let plan = CrashPlan { exhaustive_up_to: 6, samples: 12, tears: 2, seed: Seed(7) };
    recording.for_each_crash(&plan, |crash| {
        let (told, Some(done)) = (crash.to_string(), crash.mark) else { return };
        states += 1;
        let devices = shared(crash.devices);
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        let fs = garden.volume(VOLUME).unwrap_or_else(|error| panic!("{told}: {error}"));
        for name in [&b"before"[..], b"behind", b"last"].into_iter().take(1 + done as usize) {
            assert!(fs.lookup(Ino::ROOT, name).is_ok(), "{told}: {}", String::from_utf8_lossy(name));
        }
    });
    assert!(states > 10, "{states} states");
}

/// The number of the newest superblock of a drive.
fn newest(drive: &MemoryDevice) -> u64 {
    let cp = |slot: u64| {
        let mut bytes = [0; 8];
        drive.read_at(slot * SLOT + 32, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    };
    cp(1).max(cp(3))
}

/// A drive that alone has the newest superblock is away for an opening, in which power is lost again; then it comes back.
#[test]
fn a_drive_that_was_away_for_an_opening_is_not_believed() {
    let run = record(&story());
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 4, tears: 0, seed: Seed(6) };
    let (mut tried, mut states) = (0, 0);
    run.recording.for_each_crash(&plan, |crash| {
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        let numbers: Vec<u64> = crash.devices[..3].iter().map(newest).collect();
        let Some(away) = (0..3).find(|&drive| (0..3).all(|other| other == drive || numbers[other] < numbers[drive]))
        else {
            return;
        };
        tried += 1;
        if tried % 2 == 0 {
            return;
        }
        let mut left = crash.devices;
        let absent = left.remove(away);
        let (again, devices) = Recording::new(left);
        drop(open(&shared(devices), LIMITS).unwrap());
        again.for_each_crash(&plan, |second| {
            states += 1;
            let told = format!("{told}; without drive {away}; then {second}");
            let mut devices = second.devices;
            devices.insert(away, absent.fork());
            check_state(&shared(devices), &run.trees, done, &told);
        });
    });
    assert!(states > 100, "{states} states");
}

/// The write hole: power and a drive are lost at once, in the middle of writing stripes in part.
#[test]
fn a_drive_may_be_lost_with_the_power() {
    let run = record(&story());
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 12, tears: 1, seed: Seed(3) };
    let mut states = 0;
    run.recording.for_each_crash(&plan, |crash| {
        states += 1;
        let (told, done) = (format!("{crash}, drive {} lost", states % 3), crash.mark.unwrap_or(0) as usize);
        let mut devices = shared(crash.devices);
        devices.remove(states % 3);
        check_state(&devices, &run.trees, done, &told);
    });
    assert!(states > 300, "{states} states");
}

/// The same on an aggregate that was without a drive before.
#[test]
fn power_may_be_lost_while_a_drive_is_missing() {
    for missing in 0..3 {
        let run = record_with(&story(), Some(missing), LIMITS);
        let plan = CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 1, seed: Seed(4) };
        let states = check_crashes(&run.recording, &run.trees, &plan);
        assert!(states > 150, "{states} states");
    }
}

#[test]
fn a_drive_may_be_missing_when_power_comes_back_at_rest() {
    let run = record(&story());
    let mut at_rest = Vec::new();
    let plan = CrashPlan { exhaustive_up_to: 0, samples: 0, tears: 0, seed: Seed(0) };
    run.recording.for_each_crash(&plan, |crash| {
        if crash.lost.is_empty() {
            at_rest = crash.devices;
        }
    });
    let forks = || shared(at_rest.iter().map(MemoryDevice::fork).collect());
    for missing in 0..3 {
        let mut left = forks();
        left.remove(missing);
        let fs = open(&left, LIMITS).unwrap().volume(VOLUME).unwrap();
        let difference = find_difference(run.trees.last().unwrap(), &collect_tree(&fs).unwrap());
        assert_eq!(difference, None, "without drive {missing}");
    }
    let mut left = forks();
    left.drain(..2);
    let refused = open(&left, LIMITS).err().unwrap().to_string();
    assert_eq!(
        refused,
        "RAID group 0: missing are drive 0 (it was not given), drive 1 (it was not given); parity makes up for one"
    );
}
