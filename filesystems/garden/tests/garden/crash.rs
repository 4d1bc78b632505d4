//! Losses of power after every write of a run, on all drives and the log at once. No acknowledged
//! operation is lost, nothing else appears, and the check is clean.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, CrashPlan, FaultDevice, MemoryDevice, RecordedDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, Ino, ModelFs, NewNode, RenameMode, SetXattrMode,
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

/// A run that covers inline and large files, overwrites, a rename over a file, a held file that is
/// unlinked, holes, attributes and directories. The log fills up in the middle, and many blocks are
/// dirty.
pub fn story() -> Vec<Operation> {
    let rename = |from: &str, to: &str| Operation::Rename { from: path(from), to: path(to), how: RenameMode::Replace };
    let cut = |at: &str, size| Operation::Truncate { at: Place::Path(path(at)), size };
    let set = |len| Operation::SetXattr {
        at: Place::Path(path("d/small")),
        name: path("user.a"),
        len,
        seed: 1,
        how: SetXattrMode::Any,
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

/// A run on recording devices, and the tree after each operation. The trees have no names for files
/// that are only held.
pub struct Run {
    pub recording: Recording,
    pub trees: Vec<Tree>,
    pub consistency_points: u64,
}

pub fn record(operations: &[Operation]) -> Run {
    record_with(operations, None, LIMITS)
}

/// A run on an aggregate without one drive, or with other limits.
fn record_with(operations: &[Operation], missing: Option<usize>, limits: Limits) -> Run {
    record_and(operations, missing, limits, &mut |_| {})
}

/// A run with an action after each operation.
pub fn record_and(operations: &[Operation], missing: Option<usize>, limits: Limits, each: &mut dyn FnMut(&Rig)) -> Run {
    record_on(&TINY, operations, missing, limits, each)
}

/// A run on an aggregate of another shape.
pub fn record_on(
    shape: &Shape,
    operations: &[Operation],
    missing: Option<usize>,
    limits: Limits,
    each: &mut dyn FnMut(&Rig),
) -> Run {
    record_devices(shape, shape.devices(), operations, missing, limits, each)
}

/// A run on given devices.
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

/// Opens the state after a loss of power. It must be that of the last acknowledged operation, or of
/// the one in progress.
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

/// Opens every state after a loss of power, which must match the tree of an operation at or after
/// the last acknowledged one. Returns the number of states.
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
fn acknowledged_operations_survive_power_losses() {
    let run = record(&story());
    let plan = CrashPlan { exhaustive_up_to: 8, samples: 24, tears: 8, seed: Seed(1) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 500, "{states} states");
}

#[test]
fn two_log_copies_survive_power_losses() {
    let run = record_devices(&TINY, TINY.mirrored(), &story(), None, LIMITS, &mut |_| {});
    let plan = CrashPlan { exhaustive_up_to: 6, samples: 16, tears: 4, seed: Seed(9) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 300, "{states} states");
}

/// Power is lost together with the whole log. If the aggregate opens nevertheless, it was closed,
/// and no operation is lost.
#[test]
fn closed_aggregate_loses_nothing_with_its_log() {
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

/// Power is lost together with one copy of the log. The other copy has all acknowledged operations.
#[test]
fn power_loss_with_one_log_copy_loses_nothing() {
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
fn power_may_fail_again_during_recovery() {
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
fn random_operations_survive_power_losses() {
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
fn full_log_makes_a_point_and_loses_nothing() {
    let run = record_with(&story(), None, Limits { cache_bytes: 32 << 12, ..Limits::default() });
    assert!(run.consistency_points > 0, "the log of {} bytes was never full", TINY.log_bytes);
    let plan = CrashPlan { exhaustive_up_to: 6, samples: 12, tears: 4, seed: Seed(5) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 100, "{states} states");
}

/// The process is killed before the drives' last flush in a consistency point, so its superblock is
/// readable but not durable. Later operations must be durable anyway.
#[test]
fn operations_after_an_unflushed_superblock_survive() {
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
    rig.garden().commit_checkpoint().unwrap();
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

/// The only drive with the newest superblock is absent during an opening, in which power is lost
/// again. Then it comes back.
#[test]
fn drive_absent_during_an_opening_is_not_used() {
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

/// The write hole: power and a drive are lost together, while stripes are written in part.
#[test]
fn drive_and_power_may_be_lost_together() {
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

/// Power losses of an aggregate that already lacks a drive.
#[test]
fn power_may_be_lost_without_a_drive() {
    for missing in 0..3 {
        let run = record_with(&story(), Some(missing), LIMITS);
        let plan = CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 1, seed: Seed(4) };
        let states = check_crashes(&run.recording, &run.trees, &plan);
        assert!(states > 150, "{states} states");
    }
}

#[test]
fn drive_may_be_lost_after_a_clean_stop() {
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
