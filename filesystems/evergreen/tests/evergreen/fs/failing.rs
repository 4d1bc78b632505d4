//! A failed call changes nothing, neither in the store nor in memory.

use senesce_core::{Bytes, Seed};
use senesce_evergreen::disk::KeyOrder;
use senesce_fsapi::{
    ModelFs,
    conformance::{Answer, Draw, Operation, Player, SequenceOptions, Subject, collect_tree, find_difference, set_root},
};

use super::{
    rig::Rig,
    watched::{Keeps, Watched},
};

#[test]
fn failed_calls_have_no_effect() {
    let mut failures = 0;
    for seed in 0..4 {
        let mut rig = Rig::new(Watched::new(Keeps::Entries), KeyOrder::BirthPath);
        let mut model = ModelFs::new(Bytes(Bytes::GIB));
        set_root(rig.fs()).and_then(|()| set_root(&model)).unwrap();
        let (mut player, mut model_player) = (Player::default(), Player::default());
        let options =
            SequenceOptions { reopen: false, boundaries: vec![0, 1, 4096, 20_000], ..SequenceOptions::default() };
        for operation in Draw::new(Seed(seed), &options).take(400) {
            // The store does not undo holds.
            if !matches!(operation, Operation::Hold { .. } | Operation::Release { .. }) {
                let before = rig.fs().store().entries();
                rig.fs().store().set_failing(true);
                let failed = player.play(&mut rig, &operation);
                rig.fs().store().set_failing(false);
                let would = model_player.play(&mut model.fork(), &operation);
                assert!(failed == would || failed == Answer::Failed(5), "{operation:?}: {failed:?}, not {would:?}");
                assert!(before == rig.fs().store().entries(), "{operation:?}");
                failures += u64::from(failed == Answer::Failed(5));
            }
            let (got, want) = (player.play(&mut rig, &operation), model_player.play(&mut model, &operation));
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "seed {seed}: {operation:?}");
        }
        rig.check().unwrap();
        let trees = (collect_tree(&model).unwrap(), collect_tree(rig.fs()).unwrap());
        assert_eq!(find_difference(&trees.0, &trees.1), None);
    }
    assert!(failures > 150, "{failures} calls failed");
}
