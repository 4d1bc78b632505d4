//! Deduplication: blocks with equal bytes are found and shared, and contents of files never change.

use senesce_block::{CrashPlan, MemoryDevice, Recording};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{
    FallocateMode, FileKind, FileSystem, Ino, ModelFs, NewNode,
    conformance::{Operation, Place, Player, collect_tree, find_difference, set_root},
};
use senesce_garden::{DedupStep, Limits, Sharing};

use crate::{
    crash::{LIMITS, TINY, check_crashes},
    guard::guard,
    rig::{LARGE, Rig, TIGHT, VOLUME, caller, shared},
};

const BLOCK: usize = 4096;

fn make(fs: &dyn FileSystem, name: &str, data: &[u8]) -> Ino {
    let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(&caller(1), ino, 0, data).unwrap(), data.len());
    ino
}

/// Blocks of a few different kinds.
fn few(rng: &mut Rng, blocks: usize, kinds: u64) -> Vec<u8> {
    (0..blocks).flat_map(|_| [1 + rng.below(kinds) as u8; BLOCK]).collect()
}

/// Runs steps until the pass ends, and returns their sum.
fn pass(rig: &Rig, at_once: u64) -> DedupStep {
    let mut all = DedupStep::default();
    while !all.is_done {
        all += rig.garden().dedup_step(VOLUME, at_once).unwrap();
    }
    all
}

#[test]
fn equal_blocks_are_shared_and_contents_stay() {
    for at_once in [1, 7, 10_000] {
        let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
        rig.garden().consistency_point().unwrap();
        let empty = rig.garden().report().free;
        let mut rng = Rng::for_purpose(Seed(at_once), "dedup");
        for number in 0..6 {
            let mut data = few(&mut rng, 50, 20);
            data.truncate(50 * BLOCK - 100 * number);
            make(rig.fs(), &format!("file {number}"), &data);
        }
        rig.garden().consistency_point().unwrap();
        let (tree, before) = (collect_tree(rig.fs()).unwrap(), rig.garden().report().free);
        let done = pass(&rig, at_once);
        // 300 blocks of 20 kinds; the 5 incomplete last blocks may or may not be equal.
        assert!((275..=280).contains(&done.shared), "{done:?}");
        assert_eq!((done.different, done.unread), (0, 0));
        rig.garden().consistency_point().unwrap();
        let won = rig.garden().report().free - before;
        assert!(won + 5 > done.shared && won <= done.shared, "{won} blocks won of {}", done.shared);
        assert_eq!(sharing(&rig).saved, done.shared);
        for reopened in [false, true] {
            if reopened {
                rig.open().unwrap();
            }
            assert_eq!(find_difference(&tree, &collect_tree(rig.fs()).unwrap()), None);
            assert_eq!(rig.findings(), Vec::<String>::new());
        }
        assert_eq!(pass(&rig, at_once).shared, 0, "a second pass finds nothing");
        for number in 0..6 {
            rig.fs().unlink(&caller(3), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
        }
        assert_eq!(rig.findings(), Vec::<String>::new());
        assert_eq!(sharing(&rig), Sharing::default());
        // The pointers to the volume's own blocks may now cross the boundary of a block of the
        // container map.
        assert!(empty - rig.garden().report().free <= 1, "{} blocks are lost", empty - rig.garden().report().free);
    }
}

fn sharing(rig: &Rig) -> Sharing {
    rig.garden().sharing(VOLUME).unwrap()
}

#[test]
fn pass_continues_or_starts_again() {
    let mut rig = Rig::new(&LARGE, Limits::default());
    let data = few(&mut Rng::for_purpose(Seed(1), "dedup"), 40, 1000);
    make(rig.fs(), "a", &data);
    make(rig.fs(), "b", &data);
    rig.garden().consistency_point().unwrap();
    let first = rig.garden().dedup_step(VOLUME, 60).unwrap();
    assert!((first.looked_at, first.is_done) == (60, false) && first.shared > 0, "{first:?}");
    // Stopping discards the remembered fingerprints, not the sharing.
    rig.garden().stop_dedup(VOLUME).unwrap();
    assert_eq!(sharing(&rig).saved, first.shared);
    let rest = pass(&rig, 11);
    let all = sharing(&rig).saved;
    assert_eq!(first.shared + rest.shared, all);
    assert_eq!(rig.findings(), Vec::<String>::new());
    // An opening starts the pass again too.
    rig.open().unwrap();
    assert_eq!((pass(&rig, 11).shared, sharing(&rig).saved), (0, all));
    assert!(rig.garden().dedup_step(b"none", 1).is_err());
}

/// An operation on one of a few files, many blocks of which are equal.
pub fn draw(rng: &mut Rng) -> Operation {
    let mut name = || format!("file {}", rng.below(5));
    let (path, other) = (name(), name());
    let at = Place::Path(path.clone());
    let mut block = |blocks| 4096 * rng.below(blocks);
    let (offset, to_offset) = (block(40), block(40));
    let len = 4096 + block(12);
    match rng.below(12) {
        0 => Operation::Unlink { path },
        1 => Operation::MakeNode { path, kind: FileKind::File, permissions: 0o600 },
        2 => Operation::Truncate { at, size: offset + rng.below(5000) },
        3 => Operation::Allocate { at, how: FallocateMode::Punch, offset, len },
        4 | 5 => Operation::CloneRange { from: at, from_offset: offset, to: Place::Path(other), to_offset, len },
        6 => Operation::Write { at, offset: offset + rng.below(9000), len: rng.below(9000), seed: 9 },
        _ => Operation::Write { at, offset, len, seed: rng.below(3) },
    }
}

/// Interleaves operations, steps and moves of blocks, with very little memory, and compares with
/// the model.
#[test]
fn operations_continue_during_a_pass() {
    for seed in 0..4 {
        let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
        set_root(rig.fs()).unwrap();
        let mut model = ModelFs::new(Bytes(1 << 30));
        set_root(&model).unwrap();
        let mut rng = Rng::for_purpose(Seed(seed), "dedup among operations");
        let (mut player, mut model_player) = (Player::default(), Player::default());
        let (mut shared, mut moved) = (0, 0);
        for _ in 0..500 {
            let operation = if rng.chance(1, 60) { Operation::Reopen } else { draw(&mut rng) };
            let (got, want) = (player.play(&mut rig, &operation), model_player.play(&mut model, &operation));
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "seed {seed}: {operation:?}");
            if rng.chance(1, 10) {
                rig.garden().consistency_point().unwrap();
            }
            if rng.chance(1, 6) {
                shared += rig.garden().dedup_step(VOLUME, 1 + rng.below(200)).unwrap().shared;
            }
            if rng.chance(1, 10) {
                let free = rig.garden().report().area_free.remove(0);
                let used: Vec<u64> =
                    (0..).zip(free).filter(|(_, free)| *free < Some(256)).map(|(area, _)| area).collect();
                moved += rig.garden().move_area(0, used[rng.below(used.len() as u64) as usize]).unwrap().blocks;
            }
        }
        assert!(shared > 50 && moved > 50, "seed {seed}: {shared} blocks were shared, {moved} moved");
        let (want, got) = (collect_tree(&model).unwrap(), collect_tree(rig.fs()).unwrap());
        assert_eq!(find_difference(&want, &got), None, "seed {seed}");
        assert_eq!(rig.findings(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn pass_survives_power_losses() {
    let devices: Vec<std::sync::Arc<MemoryDevice>> = TINY.devices().into_iter().map(std::sync::Arc::new).collect();
    let rig = Rig::on(&TINY, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    let mut rng = Rng::for_purpose(Seed(4), "dedup");
    for number in 0..4 {
        let data = few(&mut rng, 12, 6);
        make(rig.fs(), &format!("file {number}"), &data);
    }
    rig.garden().consistency_point().unwrap();
    let mut trees = vec![collect_tree(rig.fs()).unwrap()];
    drop(rig);
    let (recording, devices) = Recording::new(devices.iter().map(|device| device.fork()).collect());
    let mut rig = Rig::closed(shared(devices), LIMITS);
    rig.open().unwrap();
    for step in 0..4 {
        let done = rig.garden().dedup_step(VOLUME, 13).unwrap();
        assert!(done.shared > 0);
        let ino = rig.fs().lookup(Ino::ROOT, format!("file {step}").as_bytes()).unwrap().ino;
        rig.fs().write(&caller(9), ino, 5000, &[step as u8; 9000]).unwrap();
        recording.mark(step + 1);
        trees.push(collect_tree(rig.fs()).unwrap());
        if step % 2 == 0 {
            rig.garden().consistency_point().unwrap();
        }
    }
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 6, tears: 3, seed: Seed(12) };
    let states = check_crashes(&recording, &trees, &plan);
    assert!(states > 50, "{states} states");
}
