//! Clones and deleted volumes: each volume is independent, and unused blocks become free.

use std::sync::Arc;

use senesce_block::{CrashPlan, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, FsError, FsResult, Ino, ModelFs, NewNode, Timestamp,
    conformance::{
        Draw, Operation, Place, Player, SequenceOptions, Subject, Tree, collect_tree, find_difference, run_cases,
        run_sequence, set_root,
    },
};
use senesce_garden::{Garden, VolumeFs, VolumeOptions};

use crate::{
    crash::{LIMITS, make, path, write},
    guard::guard,
    rig::{Devices, LARGE, Rig, SMALL, Shape, TIGHT, VOLUME, caller, findings, open, shared},
};

const NOW: Timestamp = Timestamp { seconds: 5, nanoseconds: 0 };
const CLONE: &[u8] = b"clone";

/// One volume of an aggregate whose rig has another.
struct Of(VolumeFs);

impl Subject for Of {
    fn file_system(&self) -> &dyn FileSystem {
        &self.0
    }

    fn reopen(&mut self) -> FsResult<()> {
        Ok(())
    }
}

fn file(fs: &dyn FileSystem, name: &str, bytes: &[u8]) -> Ino {
    let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(&caller(1), ino, 0, bytes).unwrap(), bytes.len());
    ino
}

fn read(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let mut out = vec![0; fs.attributes(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut out).unwrap(), out.len());
    out
}

/// Frees everything that waits to be freed.
fn reclaim(garden: &Garden) {
    while garden.reclaim_step(u64::MAX).unwrap() > 0 {}
}

fn refused(done: senesce_garden::Result<()>, says: &str) {
    let said = done.unwrap_err().to_string();
    assert!(said.contains(says), "{said}");
}

#[test]
fn clone_starts_as_the_snapshot_and_is_independent() {
    let rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
    let (one, two) = (file(rig.fs(), "one", &[1; 300_000]), file(rig.fs(), "two", &[2; 90_000]));
    rig.garden().consistency_point().unwrap();
    let free = rig.garden().report().free;
    rig.garden().create_snapshot(VOLUME, b"monday", NOW).unwrap();
    rig.fs().write(&caller(2), one, 0, &[3; 10_000]).unwrap();
    rig.garden().clone_volume(VOLUME, b"monday", CLONE).unwrap();
    let taken = free - rig.garden().report().free;
    assert!(taken < 60, "{taken} blocks for a clone, a snapshot and three blocks of contents");

    let clone = rig.garden().volume(CLONE).unwrap();
    assert_eq!(read(&clone, one), [1; 300_000]);
    clone.write(&caller(3), two, 50_000, &[4; 100_000]).unwrap();
    rig.fs().unlink(&caller(3), Ino::ROOT, b"two").unwrap();
    assert_eq!(read(rig.fs(), one)[..10_000], [3; 10_000]);
    assert_eq!(read(&clone, one), [1; 300_000]);
    assert_eq!(read(&clone, two)[..50_000], [2; 50_000]);
    assert_eq!(read(&clone, two)[50_000..], [4; 100_000]);
    assert_eq!(rig.findings(), Vec::<String>::new());

    assert_eq!(rig.garden().origin(CLONE).unwrap(), Some((VOLUME.to_vec(), b"monday".to_vec())));
    assert_eq!(rig.garden().origin(VOLUME).unwrap(), None);
    refused(rig.garden().delete_snapshot(VOLUME, b"monday"), "has a clone: volume clone");
    refused(rig.garden().delete_volume(VOLUME), "volume home has 1 snapshot(s)");
    refused(rig.garden().clone_volume(VOLUME, b"monday", CLONE), "a volume clone exists");
    refused(rig.garden().clone_volume(VOLUME, b"monday", &[b'x'; 129]), "129 bytes");
    refused(rig.garden().clone_volume(VOLUME, b"tuesday", b"x"), "no snapshot tuesday");
    refused(rig.garden().clone_volume(CLONE, b"monday", b"x"), "no snapshot monday");
    refused(rig.garden().delete_volume(b"x"), "no volume x");

    // A clone of a clone reads blocks of three containers.
    rig.garden().create_snapshot(CLONE, b"own", NOW).unwrap();
    rig.garden().clone_volume(CLONE, b"own", b"third").unwrap();
    let third = rig.garden().volume(b"third").unwrap();
    third.write(&caller(4), two, 140_000, &[5; 5000]).unwrap();
    clone.unlink(&caller(4), Ino::ROOT, b"two").unwrap();
    let whole = [vec![2; 50_000], vec![4; 90_000], vec![5; 5000], vec![4; 5000]].concat();
    assert_eq!(read(&third, two), whole);
    assert_eq!(read(&third, one), [1; 300_000]);
    assert_eq!(rig.findings(), Vec::<String>::new());
    drop((clone, third));

    // Blocks move in the container of the first volume and in that of the clone.
    for area in 0..48 {
        rig.garden().move_area(0, area).unwrap();
        rig.garden().consistency_point().unwrap();
    }
    let moved = rig.garden().report().counts.relocations;
    assert!(moved > 100, "{moved} blocks moved");
    let mut rig = rig;
    rig.open().unwrap();
    let third = rig.garden().volume(b"third").unwrap();
    assert_eq!(read(&third, two), whole);
    assert_eq!(read(&third, one), [1; 300_000]);
    assert!(rig.garden().report().counts.redirects > 50);
    while !rig.garden().fix_up_step(b"third", 1000).unwrap().ended {}
    assert_eq!(rig.findings(), Vec::<String>::new());
}

#[test]
fn deleted_volume_frees_its_space_and_slot() {
    let mut rig = Rig::new(&LARGE, TIGHT);
    file(rig.fs(), "kept", &[1; 100_000]);
    let free = |rig: &Rig| {
        rig.garden().consistency_point().unwrap();
        reclaim(rig.garden());
        rig.garden().consistency_point().unwrap();
        rig.garden().report().free
    };
    let options = VolumeOptions { blocks: 100_000, inodes: 1000, seed: 3 };
    let before = free(&rig);
    for round in 0..3_u8 {
        rig.garden().create_volume(b"other", &options).unwrap();
        let other = rig.garden().volume(b"other").unwrap();
        let ino = file(&other, "a", &vec![round; 6 << 20]);
        file(&other, "b", &[round; 50]);
        rig.garden().create_snapshot(b"other", b"s", NOW).unwrap();
        other.write(&caller(2), ino, 0, &[9; 1 << 20]).unwrap();
        other.open(ino).unwrap();
        refused(rig.garden().delete_volume(b"other"), &FsError::Busy.to_string());
        other.release(ino, NOW).unwrap();
        rig.garden().delete_snapshot(b"other", b"s").unwrap();
        rig.garden().delete_volume(b"other").unwrap();
        assert_eq!(rig.garden().volumes(), [VOLUME]);
        assert!(matches!(other.attributes(ino), Err(FsError::Stale)));
        assert!(matches!(other.write(&caller(3), ino, 0, &[1]), Err(FsError::Stale)));
        assert_eq!(rig.findings(), Vec::<String>::new());
        if round == 1 {
            // Its name is free at once, its slot is not.
            rig.garden().create_volume(b"other", &options).unwrap();
            rig.garden().delete_volume(b"other").unwrap();
            rig.open().unwrap();
        }
        assert_eq!(free(&rig), before, "round {round}");
        assert_eq!(rig.findings(), Vec::<String>::new());
        // The slot has another volume now, which the old handle does not reach.
        rig.garden().create_volume(b"next", &options).unwrap();
        if round != 1 {
            assert!(matches!(other.attributes(Ino::ROOT), Err(FsError::Stale)));
        }
        rig.garden().delete_volume(b"next").unwrap();
    }
    assert_eq!(free(&rig), before);
}

#[test]
fn full_aggregate_is_emptied_by_deleting_a_volume() {
    let rig = Rig::new(&SMALL, LIMITS);
    let ino = file(rig.fs(), "a", &[1; 5000]);
    rig.garden().create_snapshot(VOLUME, b"s", NOW).unwrap();
    rig.garden().clone_volume(VOLUME, b"s", CLONE).unwrap();
    let clone = rig.garden().volume(CLONE).unwrap();
    let mut at = 0;
    loop {
        match clone.write(&caller(2), ino, at, &[7; 16_384]) {
            Ok(written) => at += written as u64,
            Err(FsError::NoSpace) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(at > 400 << 12, "full after {at} bytes");
    let full = rig.garden().report().free;
    rig.garden().delete_volume(CLONE).unwrap();
    reclaim(rig.garden());
    let now = rig.garden().report().free;
    assert!(now - full > at >> 12, "{full}, then {now} free; {at} bytes");
    rig.garden().delete_snapshot(VOLUME, b"s").unwrap();
    reclaim(rig.garden());
    assert_eq!(rig.findings(), Vec::<String>::new());
    file(rig.fs(), "b", &[1; 500_000]);
}

/// Operations of a sequence that hold no file open, because a clone does not have the files that
/// are held without a name.
fn draw(seed: u64, count: usize) -> Vec<Operation> {
    let boundaries = vec![0, 1, 160, 4096, 40_960];
    let options = SequenceOptions { operations: count, boundaries, reopen: false, ..SequenceOptions::default() };
    let holds = |operation: &Operation| {
        let told = format!("{operation:?}");
        told.contains("Hold") || told.contains("Slot")
    };
    Draw::new(Seed(seed), &options).filter(|operation| !holds(operation)).take(count).collect()
}

#[test]
fn clones_and_origins_match_their_models() {
    for seed in 0..4 {
        let (common, own, other) = (draw(seed, 250), draw(100 + seed, 250), draw(200 + seed, 250));
        let mut rig = Rig::new(&LARGE, LIMITS);
        set_root(rig.fs()).unwrap();
        let models = [(); 2].map(|()| ModelFs::new(Bytes(Bytes::GIB)));
        let [mut model, mut model_of_clone] = models;
        let mut players = [(); 4].map(|()| Player::default());
        for model in [&mut model, &mut model_of_clone] {
            set_root(model).unwrap();
        }
        for operation in &common {
            players[0].play(&mut rig, operation);
            players[1].play(&mut model, operation);
            players[3].play(&mut model_of_clone, operation);
        }
        // Files that only an older snapshot holds are not in the clone.
        rig.garden().create_snapshot(VOLUME, b"older", NOW).unwrap();
        for operation in &own[..100] {
            players[0].play(&mut rig, operation);
            players[1].play(&mut model, operation);
            players[3].play(&mut model_of_clone, operation);
        }
        rig.garden().create_snapshot(VOLUME, b"s", NOW).unwrap();
        rig.garden().clone_volume(VOLUME, b"s", CLONE).unwrap();
        if seed % 2 == 0 {
            rig.garden().delete_snapshot(VOLUME, b"older").unwrap();
        }
        players[2] = Player::default();
        players[3] = Player::default();
        let mut clone = Of(rig.garden().volume(CLONE).unwrap());
        let mut trees: Vec<(String, Tree)> = Vec::new();
        for (number, (operation, of_clone)) in own[100..].iter().zip(&other).enumerate() {
            let got = players[0].play(&mut rig, operation);
            assert_eq!(format!("{got:?}"), format!("{:?}", players[1].play(&mut model, operation)), "{operation:?}");
            let got = players[2].play(&mut clone, of_clone);
            let want = players[3].play(&mut model_of_clone, of_clone);
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{of_clone:?} in the clone");
            match number % 50 {
                10 => drop(rig.garden().move_area(0, number as u64 / 50).unwrap()),
                20 => drop(rig.garden().dedup_step(CLONE, 10_000).unwrap()),
                30 => {
                    let name = format!("of the clone {number}");
                    rig.garden().create_snapshot(CLONE, name.as_bytes(), NOW).unwrap();
                    trees.push((name, collect_tree(&model_of_clone).unwrap()));
                }
                40 => {
                    drop(clone);
                    rig.open().unwrap();
                    clone = Of(rig.garden().volume(CLONE).unwrap());
                }
                _ => {}
            }
        }
        for (fs, model) in [(rig.fs(), &model), (&clone.0, &model_of_clone)] {
            assert_eq!(find_difference(&collect_tree(model).unwrap(), &collect_tree(fs).unwrap()), None, "seed {seed}");
        }
        for (name, tree) in &trees {
            let snapshot = rig.garden().snapshot(CLONE, name.as_bytes()).unwrap();
            assert_eq!(find_difference(tree, &collect_tree(&snapshot).unwrap()), None, "{name}");
        }
        assert_eq!(rig.findings(), Vec::<String>::new(), "seed {seed}");
        let (first, tree) = &trees[0];
        drop(clone);
        rig.garden().restore_snapshot(CLONE, first.as_bytes()).unwrap();
        let clone = rig.garden().volume(CLONE).unwrap();
        assert_eq!(find_difference(tree, &collect_tree(&clone).unwrap()), None, "restored");
        assert_eq!(rig.findings(), Vec::<String>::new(), "seed {seed}, restored");
        for (name, _) in &trees {
            rig.garden().delete_snapshot(CLONE, name.as_bytes()).unwrap();
        }
        reclaim(rig.garden());
        assert_eq!(rig.findings(), Vec::<String>::new(), "seed {seed}, without snapshots");
        assert_eq!(find_difference(tree, &collect_tree(&clone).unwrap()), None, "without snapshots");
        rig.garden().delete_volume(CLONE).unwrap();
        rig.garden().delete_snapshot(VOLUME, b"s").unwrap();
        reclaim(rig.garden());
        assert_eq!(rig.findings(), Vec::<String>::new(), "seed {seed}, without the clone");
    }
}

/// The trees of all volumes by name.
type State = Vec<(Vec<u8>, Tree)>;

fn state(garden: &Garden) -> State {
    let tree = |name: &Vec<u8>| (name.clone(), collect_tree(&garden.volume(name).unwrap()).unwrap());
    garden.volumes().iter().map(tree).collect()
}

fn check_state(devices: &Devices, states: &[State], done: usize, told: &str) {
    let garden = open(devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
    let got = state(&garden);
    let after = states.get(done..=done + 1).unwrap_or(&states[done..]);
    let is = |want: &State| {
        want.iter().map(|(name, _)| name).eq(got.iter().map(|(name, _)| name))
            && want.iter().zip(&got).all(|((_, want), (_, got))| find_difference(want, got).is_none())
    };
    assert!(after.iter().any(is), "{told}: not the state after {done} events or one more");
    let found = findings(devices);
    assert!(found.is_empty(), "{told}: {}", found.join("\n"));
    reclaim(&garden);
    let found = findings(devices);
    assert!(found.is_empty(), "{told}, reclaimed: {}", found.join("\n"));
}

#[test]
fn clones_and_deletions_survive_power_loss() {
    const SHAPE: Shape = Shape { groups: &[(2, true)], media: &[], stripes: 512, log_bytes: 400 << 10 };
    let devices: Vec<Arc<MemoryDevice>> = SHAPE.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&SHAPE, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    set_root(rig.fs()).unwrap();
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let (recording, devices) = Recording::new(devices.iter().map(|device| device.fork()).collect());
    let mut rig = Rig::closed(shared(devices), LIMITS);
    rig.open().unwrap();
    let mut player = Player::default();
    let mut in_home = |rig: &mut Rig, operation: Operation| {
        assert!(!format!("{:?}", player.play(rig, &operation)).contains("Failed"))
    };
    let cut = |at: &str| Operation::Truncate { at: Place::Path(path(at)), size: 0 };
    let in_clone = |rig: &mut Rig, name: &[u8], operation: Operation| {
        let mut of = Of(rig.garden().volume(name).unwrap());
        assert!(!format!("{:?}", Player::default().play(&mut of, &operation)).contains("Failed"));
    };
    let mut states = vec![state(rig.garden())];
    for event in 0..22 {
        match event {
            0 => in_home(&mut rig, make("a", FileKind::File)),
            1 => in_home(&mut rig, write("a", 0, 60_000)),
            2 => in_home(&mut rig, make("d", FileKind::Directory)),
            3 => rig.garden().create_snapshot(VOLUME, b"s", NOW).unwrap(),
            4 => in_home(&mut rig, write("a", 5000, 20_000)),
            5 => rig.garden().clone_volume(VOLUME, b"s", CLONE).unwrap(),
            6 => in_clone(&mut rig, CLONE, write("a", 30_000, 50_000)),
            7 => in_clone(&mut rig, CLONE, make("d/own", FileKind::File)),
            8 => in_home(&mut rig, cut("a")),
            9 => drop(rig.garden().move_area(0, 0).unwrap()),
            10 => rig.garden().consistency_point().unwrap(),
            11 => rig.garden().create_snapshot(CLONE, b"t", NOW).unwrap(),
            12 => rig.garden().clone_volume(CLONE, b"t", b"third").unwrap(),
            13 => in_clone(&mut rig, b"third", write("a", 10_000, 10_000)),
            14 => in_clone(&mut rig, CLONE, cut("a")),
            15 => rig.garden().delete_volume(b"third").unwrap(),
            16 => rig.garden().delete_snapshot(CLONE, b"t").unwrap(),
            17 => rig.garden().delete_volume(CLONE).unwrap(),
            18 => in_home(&mut rig, write("a", 0, 30_000)),
            19 => drop(rig.garden().reclaim_step(1).unwrap()),
            20 => rig.garden().delete_snapshot(VOLUME, b"s").unwrap(),
            _ => reclaim(rig.garden()),
        }
        recording.mark(event + 1);
        states.push(state(rig.garden()));
    }
    drop(rig);
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 5, tears: 1, seed: Seed(21) };
    let mut count = 0;
    recording.for_each_crash(&plan, |crash| {
        count += 1;
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        check_state(&shared(crash.devices), &states, done, &told);
    });
    assert!(count > 150, "{count} states");
}

/// A clone of a volume with files. It is empty after they are removed from it.
struct Cloned(Rig);

impl Cloned {
    fn make() -> Box<dyn Subject> {
        let rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
        let kept = file(rig.fs(), "kept", &[1; 200_000]);
        rig.garden().create_snapshot(VOLUME, b"s", NOW).unwrap();
        rig.fs().write(&caller(1), kept, 0, &[2; 100_000]).unwrap();
        rig.garden().clone_volume(VOLUME, b"s", CLONE).unwrap();
        rig.garden().volume(CLONE).unwrap().unlink(&caller(1), Ino::ROOT, b"kept").unwrap();
        let mut cloned = Self(rig);
        cloned.reopen().unwrap();
        Box::new(cloned)
    }
}

impl Subject for Cloned {
    fn file_system(&self) -> &dyn FileSystem {
        self.0.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.0.reopen()?;
        self.0.fs = Some(self.0.garden().volume(CLONE).unwrap());
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.0.check()
    }
}

#[test]
fn clone_is_a_complete_file_system() {
    run_cases(&Cloned::make).unwrap();
    for seed in 0..2 {
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 10 * 4096, 256 * 4096],
            operations: 200,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&Cloned::make, Seed(seed), &options).unwrap();
    }
}

#[test]
fn files_can_be_removed_after_any_clone() {
    let (mut made, mut refused) = (0, 0);
    for left in [2, 6, 12, 20, 40] {
        let rig = Rig::new(&SMALL, LIMITS);
        rig.garden().create_snapshot(VOLUME, b"s", NOW).unwrap();
        let mut names = Vec::new();
        loop {
            let name = format!("file {}", names.len());
            let node = NewNode::file(0o644);
            let Ok(at) = rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &node) else { break };
            names.push(name);
            if rig.fs().write(&caller(1), at.ino, 0, &[5; 20_000]).is_err() {
                break;
            }
        }
        for name in names.drain(..left) {
            rig.fs().unlink(&caller(2), Ino::ROOT, name.as_bytes()).unwrap();
        }
        match rig.garden().clone_volume(VOLUME, b"s", CLONE) {
            Ok(()) => made += 1,
            Err(senesce_garden::Error::NoSpace { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        for name in &names {
            rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
        }
        assert_eq!(rig.findings(), Vec::<String>::new());
    }
    assert!(made > 0 && refused > 0, "{made} clones made, {refused} refused");
}

/// Its size costs nothing, only its contents do.
#[test]
fn huge_thin_volume_is_cloned_and_deleted_quickly() {
    let rig = Rig::new(&LARGE, TIGHT);
    let before = rig.garden().report().free;
    let options = VolumeOptions { blocks: 1 << 32, inodes: 1 << 20, seed: 3 };
    match rig.garden().create_volume(b"huge", &options) {
        Ok(()) => {}
        // As large as the aggregate permits.
        Err(senesce_garden::Error::NoSpace { .. }) => {
            rig.garden().create_volume(b"huge", &VolumeOptions { blocks: 1 << 22, ..options }).unwrap();
        }
        Err(error) => panic!("{error}"),
    }
    file(&rig.garden().volume(b"huge").unwrap(), "a", &[1; 100_000]);
    rig.garden().create_snapshot(b"huge", b"s", NOW).unwrap();
    rig.garden().clone_volume(b"huge", b"s", CLONE).unwrap();
    rig.garden().delete_volume(CLONE).unwrap();
    rig.garden().delete_snapshot(b"huge", b"s").unwrap();
    rig.garden().delete_volume(b"huge").unwrap();
    let points = rig.garden().report().counts.consistency_points;
    reclaim(rig.garden());
    let points = rig.garden().report().counts.consistency_points - points;
    assert!(points < 20, "{points} consistency points");
    assert_eq!(rig.findings(), Vec::<String>::new());
    let after = rig.garden().report().free;
    assert!(before.abs_diff(after) <= 2, "{before} free, then {after}");
}
