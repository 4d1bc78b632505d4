//! Early acknowledgement: a loss of power leaves the state of some moment at or after the last
//! sync.

use std::sync::Arc;

use senesce_block::{BlockOperation, CrashPlan, FaultDevice, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, NewNode,
    conformance::{Draw, Operation, Player, SequenceOptions, Tree, collect_tree, find_difference, set_root},
};
use senesce_garden::{Acknowledge, Limits};

use crate::{
    crash::{LIMITS, TINY, story},
    guard::guard,
    rig::{Devices, Rig, Shape, VOLUME, caller, findings, open, shared},
};

/// The run syncs after this number of operations.
const SYNC_EVERY: u64 = 7;

struct Run {
    recording: Recording,
    /// The tree after each operation.
    trees: Vec<Tree>,
    /// Consistency points that were written in the background.
    beside: u64,
}

/// Without parity, consistency points are written in the background.
const PLAIN: Shape = Shape { groups: &[(1, false), (2, false)], media: &[], stripes: 1024, log_bytes: 400 << 10 };

fn record(shape: &Shape, operations: &[Operation], limits: Limits) -> Run {
    let devices: Vec<Arc<MemoryDevice>> = shape.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(shape, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    set_root(rig.fs()).unwrap();
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let (recording, devices) = Recording::new(devices.iter().map(|device| device.fork()).collect());
    let mut rig = Rig::closed(guard(&shared(devices)), limits);
    rig.open().unwrap();
    rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
    let model = &mut ModelFs::new(Bytes(Bytes::GIB));
    set_root(model).unwrap();
    let (mut player, mut model_player) = (Player::default(), Player::default());
    let mut trees = vec![collect_tree(model).unwrap()];
    for (number, operation) in (1..).zip(operations) {
        let (got, want) = (player.play(&mut rig, operation), model_player.play(model, operation));
        assert_eq!(format!("{got:?}"), format!("{want:?}"), "{operation:?}");
        trees.push(collect_tree(model).unwrap());
        if number % SYNC_EVERY == 0 {
            // A sync of any file syncs all.
            if number % 2 == 0 {
                rig.fs().sync(Ino::ROOT).unwrap()
            } else {
                rig.fs().sync_all().unwrap()
            }
            recording.mark(number);
        }
    }
    let beside = rig.garden().report().counts.points_beside;
    Run { recording, trees, beside }
}

/// The number of the operation whose tree matches; it must be at or after the last sync.
fn find_moment(devices: &Devices, run: &Run, synced: usize, told: &str) -> usize {
    let garden = open(devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
    let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap_or_else(|error| panic!("{told}: {error}"));
    let found = findings(devices);
    assert!(found.is_empty(), "{told}: {}", found.join("\n"));
    let moment = run.trees[synced..].iter().position(|want| find_difference(want, &tree).is_none());
    synced + moment.unwrap_or_else(|| panic!("{told}: no tree from operation {synced} on is there"))
}

fn check(run: &Run, plan: &CrashPlan) -> (u64, u64) {
    let (mut states, mut between) = (0, 0);
    run.recording.for_each_crash(plan, |crash| {
        let (told, synced) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        states += 1;
        between += u64::from(find_moment(&shared(crash.devices), run, synced, &told) > synced);
    });
    (states, between)
}

#[test]
fn state_is_at_or_after_the_last_sync() {
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 8, tears: 3, seed: Seed(1) };
    let roomy = Limits { dirty_bytes: 64 << 20, ..LIMITS };
    for (shape, limits) in [(TINY, LIMITS), (TINY, roomy), (PLAIN, LIMITS)] {
        let run = record(&shape, &story(), limits);
        let (states, between) = check(&run, &plan);
        assert!(states > 60 && between > 10, "{states} states, {between} of them after the last sync");
        assert_eq!(run.beside > 0, shape.groups == PLAIN.groups, "{} points while operations went on", run.beside);
    }
}

/// Random sequences: the seed, the number of operations, the shape, whether all fits into memory,
/// and the number of states checked at each moment.
const DRAWN: &[(u64, usize, Shape, bool, usize)] = &[
    (0, 300, TINY, false, 6),
    (1, 200, TINY, true, 4),
    (2, 900, PLAIN, false, 2),
    (3, 150, TINY, true, 4),
    (4, 200, TINY, false, 4),
    (5, 600, PLAIN, true, 4),
    (6, 600, PLAIN, false, 2),
];

#[test]
fn random_operations_survive_to_the_last_sync() {
    let (mut all_between, mut beside) = (0, 0);
    for &(seed, operations, shape, is_roomy, samples) in DRAWN {
        let largest = if shape.stripes > 512 { 160_000 } else { 40_960 };
        let boundaries = vec![0, 1, 160, 4096, largest];
        let options = SequenceOptions { boundaries, reopen: false, ..SequenceOptions::default() };
        let drawn: Vec<Operation> = Draw::new(Seed(seed), &options).take(operations).collect();
        let dirty_bytes = if is_roomy { 64 << 20 } else { LIMITS.dirty_bytes };
        let run = record(&shape, &drawn, Limits { dirty_bytes, ..LIMITS });
        let plan = CrashPlan { exhaustive_up_to: 4, samples, tears: 2, seed: Seed(seed) };
        let (states, between) = check(&run, &plan);
        assert!(states > 10, "seed {seed}: {states} states");
        all_between += between;
        beside += run.beside;
    }
    assert!(all_between > 10, "{all_between} states after the last sync");
    assert!(beside > 10, "{beside} points while operations went on");
}

#[test]
fn early_acknowledgement_needs_fewer_log_flushes() {
    let roomy = Limits { dirty_bytes: 64 << 20, ..LIMITS };
    let mut devices = TINY.devices();
    let log = Arc::new(FaultDevice::new(devices.pop().unwrap()));
    let mut devices = shared(devices);
    devices.push(log.clone());
    let mut rig = Rig::on(&TINY, devices, roomy);
    let flushes = || log.requests(BlockOperation::Flush);
    let mut player = Player::default();
    let mut play = |rig: &mut Rig, operations: &[Operation]| {
        let before = flushes();
        operations.iter().for_each(|operation| drop(player.play(rig, operation)));
        flushes() - before
    };
    let story = story();
    assert_eq!(play(&mut rig, &story[..5]), 5);
    rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
    assert_eq!(play(&mut rig, &story[5..9]), 0);
    let before = flushes();
    rig.fs().sync_all().unwrap();
    rig.fs().sync_all().unwrap();
    assert_eq!(flushes(), before + 1, "a second sync changes nothing");
    assert_eq!(play(&mut rig, &story[9..10]), 0);
    rig.garden().set_acknowledge(Acknowledge::Durable).unwrap();
    assert_eq!(flushes(), before + 2);
    assert_eq!(play(&mut rig, &story[10..12]), 2);
}

#[test]
fn data_without_sync_are_written_once() {
    const BLOCK: usize = 1 << 20;
    let shape = Shape { stripes: 8192, log_bytes: 128 << 20, ..TINY };
    let mut devices = shape.devices();
    let log = Arc::new(FaultDevice::new(devices.pop().unwrap()));
    let mut devices = shared(devices);
    devices.push(log.clone());
    let rig = Rig::on(&shape, devices, Limits { cache_bytes: 128 << 20, dirty_bytes: 128 << 20 });
    let ino = rig.fs().make_node(&caller(1), Ino::ROOT, b"file", &NewNode::file(0o644)).unwrap().ino;
    rig.garden().consistency_point().unwrap();
    rig.garden().set_acknowledge(Acknowledge::Done).unwrap();
    let data = vec![7; BLOCK / 2];
    let points = || rig.garden().report().counts.consistency_points;
    let (mut before, first) = (log.requests(BlockOperation::Write), points());
    // 16 MiB wait for a log of 64 MiB in each half; 96 MiB exceed a half.
    for (count, to_log) in [(31, 1), (192, 0)] {
        for number in 0..count {
            rig.fs().write(&caller(2), ino, (number % 8) * data.len() as u64, &data).unwrap();
        }
        assert_eq!((log.requests(BlockOperation::Write), points()), (before, first), "{count} writes");
        rig.fs().sync_all().unwrap();
        // A consistency point names in the log the stripes that it writes.
        assert_eq!(points() - first, 1 - to_log, "{count} writes");
        assert!(log.requests(BlockOperation::Write) > before);
        before = log.requests(BlockOperation::Write);
        rig.fs().sync_all().unwrap();
        assert_eq!(log.requests(BlockOperation::Write), before, "a second sync changes nothing");
    }
    // The log accepts later records.
    rig.fs().write(&caller(3), ino, 0, &data).unwrap();
    rig.fs().sync_all().unwrap();
    assert_eq!((log.requests(BlockOperation::Write), points()), (before + 1, first + 1));
}
