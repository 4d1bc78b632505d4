//! Loss of power after every write of a run: what is there then is the state after some call, none before the last sync.

use std::sync::Arc;

use senesce_block::{CrashPlan, Recording};
use senesce_core::{Bytes, Seed};
use senesce_evergreen::{EvergreenFs, Limits, MakeOptions, check_files};
use senesce_fsapi::{
    ModelFs,
    conformance::{Draw, Operation, Player, SequenceOptions, Subject, Tree, collect_tree, find_difference, set_root},
};

use super::rig::{LITTLE, Rig, TINY, made};

/// The log is full after some dozens of calls, and much is dirty after fewer.
const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(128 << 10), ..TINY };
const FEW: Limits = Limits { cache_bytes: 16 << 10, dirty_bytes: 128 << 10 };

#[test]
fn there_is_a_state_of_the_history_whenever_power_is_lost() {
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
            let (told, promised) = (crash.to_string(), crash.mark.map(|mark| mark as usize));
            let device = Arc::new(crash.devices.into_iter().next().expect("one device"));
            let fs = EvergreenFs::open_on(device, LITTLE).unwrap_or_else(|error| panic!("{told}: {error}"));
            let found = check_files(fs.store()).unwrap();
            assert!(found.is_empty(), "seed {seed}, {told}: {}", found.join("\n"));
            let Some(promised) = promised else { return }; // before the root was made that of the model
            let tree = collect_tree(&fs).unwrap_or_else(|error| panic!("{told}: {error}"));
            let is_known = trees[promised..].iter().any(|want| find_difference(want, &tree).is_none());
            let difference = find_difference(&trees[promised], &tree);
            assert!(is_known, "seed {seed}, {told}: no state since call {promised}: {difference:?}");
        });
    }
    assert!(states > 300, "{states} states");
}
