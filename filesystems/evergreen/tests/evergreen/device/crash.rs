//! Loss of power after every write of a run. The state is then that after some call, at least that
//! of the last sync.

use std::sync::Arc;

use senesce_block::{CrashPlan, Recording};
use senesce_core::{Bytes, Seed};
use senesce_evergreen::{EvergreenFs, KeyValue, Limits, MakeOptions, check_files};
use senesce_fsapi::{
    Caller, FileSystem, Ino, ModelFs, NewNode, RenameMode, SetXattrMode,
    conformance::{Draw, Operation, Player, SequenceOptions, Subject, Tree, collect_tree, find_difference, set_root},
};

use super::rig::{LITTLE, Rig, TINY, made};

/// The log is full after some dozens of calls, and the dirty limit is reached earlier.
const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(128 << 10), ..TINY };
const FEW: Limits = Limits { cache_bytes: 16 << 10, dirty_bytes: 128 << 10 };

#[test]
fn power_loss_leaves_a_state_of_the_history() {
    let mut states = 0;
    for seed in 0..3 {
        let (recording, mut devices) = Recording::new(vec![made(16 << 20, &TIGHT)]);
        let mut rig = Rig::on(Arc::new(devices.remove(0)), FEW);
        let mut model = ModelFs::new(Bytes(Bytes::GIB));
        set_root(rig.fs()).and_then(|()| set_root(&model)).unwrap();
        rig.file_system().sync_all().unwrap();
        recording.mark(0);
        let (mut player, mut model_player) = (Player::default(), Player::default());
        let mut trees: Vec<Tree> = vec![collect_tree(&model).unwrap()];
        let boundaries = vec![0, 1, 4096, 20_000];
        let options = SequenceOptions { boundaries, ..SequenceOptions::default() };
        for (number, operation) in (1..).zip(Draw::new(Seed(seed), &options).take(500)) {
            let (got, want) = (player.play(&mut rig, &operation), model_player.play(&mut model, &operation));
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{operation:?}");
            trees.push(collect_tree(&model).unwrap());
            let is_durable = matches!(operation, Operation::Sync { .. } | Operation::SyncAll | Operation::Reopen);
            if is_durable && want == senesce_fsapi::conformance::Answer::Done {
                recording.mark(number);
            }
        }
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 24, tears: 6, seed: Seed(seed) };
        recording.for_each_crash(&plan, |crash| {
            states += 1;
            let (case, promised) = (crash.to_string(), crash.mark.map(|mark| mark as usize));
            let device = Arc::new(crash.devices.into_iter().next().expect("one device"));
            let fs = EvergreenFs::open_on(device, LITTLE).unwrap_or_else(|error| panic!("{case}: {error}"));
            let found = check_files(fs.store()).unwrap();
            assert!(found.is_empty(), "seed {seed}, {case}: {}", found.join("\n"));
            let Some(promised) = promised else { return }; // before the root equals that of the model
            let tree = collect_tree(&fs).unwrap_or_else(|error| panic!("{case}: {error}"));
            let is_known = trees[promised..].iter().any(|want| find_difference(want, &tree).is_none());
            let difference = find_difference(&trees[promised], &tree);
            assert!(is_known, "seed {seed}, {case}: no state since call {promised}: {difference:?}");
        });
    }
    assert!(states > 300, "{states} states");
}

/// Directories are renamed, then swept in small steps, with checkpoints that sweep leaves. After
/// every loss of power the tree is the same.
#[test]
fn sweeps_keep_the_tree_whenever_power_is_lost() {
    let (mut states, mut half_moved) = (0, 0);
    for seed in 0..2 {
        let (recording, mut devices) = Recording::new(vec![made(16 << 20, &TIGHT)]);
        let rig = Rig::on(Arc::new(devices.remove(0)), FEW);
        let fs = rig.fs();
        rename_directories(fs);
        fs.sync_all().unwrap();
        let want = collect_tree(fs).unwrap();
        recording.mark(0);
        let mut sweep = fs.begin_key_sweep();
        let mut number = 0;
        while !fs.key_sweep_step(&mut sweep, 20_000).unwrap() {
            number += 1;
            match number % 4 {
                0 => fs.store().checkpoint().unwrap(),
                2 => fs.store().sync().unwrap(),
                _ => {}
            }
        }
        let moved = sweep.counts().moved;
        assert!(moved > 40, "{:?}", sweep.counts());
        fs.store().sweep().unwrap();
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 16, tears: 4, seed: Seed(seed) };
        recording.for_each_crash(&plan, |crash| {
            if crash.mark.is_none() {
                return; // before the tree is complete
            }
            states += 1;
            let at = format!("seed {seed}, {crash}");
            let device = Arc::new(crash.devices.into_iter().next().expect("one device"));
            let fs = EvergreenFs::open_on(device, LITTLE).unwrap_or_else(|error| panic!("{at}: {error}"));
            let found = check_files(fs.store()).unwrap();
            assert!(found.is_empty(), "{at}: {}", found.join("\n"));
            let tree = collect_tree(&fs).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(find_difference(&want, &tree), None, "{at}");
            // A new sweep continues with the rest.
            let mut rest = fs.begin_key_sweep();
            while !fs.key_sweep_step(&mut rest, u64::MAX).unwrap() {}
            half_moved += u64::from(rest.counts().moved > 0 && rest.counts().moved < moved);
        });
    }
    assert!(states > 200 && half_moved > 50, "{states} states, {half_moved} in the middle of the sweep");
}

/// Exchanges the names of some directories with files, links and attributes.
fn rename_directories(fs: &impl FileSystem) {
    let caller = Caller::default();
    let directory = |parent: Ino, name: &str| {
        fs.make_node(&caller, parent, name.as_bytes(), &NewNode::directory(0o755)).unwrap().ino
    };
    for number in 0..8u8 {
        let ino = directory(Ino::ROOT, &format!("d{number}"));
        let below = directory(ino, "below");
        fs.set_xattr(&caller, below, b"user.a", &[number + 1; 3000], SetXattrMode::Any).unwrap();
        for (parent, name) in [(ino, "a"), (ino, "b"), (below, "c"), (below, "d")] {
            let file = fs.make_node(&caller, parent, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
            fs.write(&caller, file, 0, &vec![number + 1; 2000 + 4000 * usize::from(number % 3)]).unwrap();
            if name == "d" {
                fs.link(&caller, file, ino, b"again").unwrap();
            }
        }
    }
    for number in 0..8 {
        let (from, to) = (format!("d{number}"), format!("e{}", 5 * number % 8));
        fs.rename(&caller, (Ino::ROOT, from.as_bytes()), (Ino::ROOT, to.as_bytes()), RenameMode::NoReplace).unwrap();
    }
}
