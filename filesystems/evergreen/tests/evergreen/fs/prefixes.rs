//! After a loss of power the store has a prefix of the batches. Each of these states is one that
//! the file system had.

use senesce_core::{Bytes, Seed};
use senesce_evergreen::{EvergreenFs, KeyValue, check_files, disk::KeyOrder};
use senesce_fsapi::{
    ModelFs,
    conformance::{Draw, Player, SequenceOptions, collect_tree, find_difference, set_root},
};

use super::{
    rig::{Rig, large},
    watched::{Keeps, Watched},
};

#[test]
fn prefixes_of_batches_are_prefixes_of_calls() {
    for seed in 0..4 {
        let mut rig = Rig::new(Watched::new(Keeps::Batches), KeyOrder::BirthPath);
        let mut model = ModelFs::new(Bytes(Bytes::GIB));
        set_root(rig.fs()).and_then(|()| set_root(&model)).unwrap();
        // Pairs of a number of batches and the tree after them.
        let mut states = vec![(rig.fs().store().batches().len(), collect_tree(&model).unwrap())];
        let (mut player, mut model_player) = (Player::default(), Player::default());
        let boundaries = vec![0, 1, 4096, 20_000];
        let options = SequenceOptions { reopen: false, boundaries, ..SequenceOptions::default() };
        for operation in Draw::new(Seed(seed), &options).take(120) {
            player.play(&mut rig, &operation);
            model_player.play(&mut model, &operation);
            let done = rig.fs().store().batches().len();
            assert!(done - states.last().unwrap().0 <= 3, "numbers of inodes, the call, an orphan: {operation:?}");
            states.push((done, collect_tree(&model).unwrap()));
        }
        let store = large();
        for (done, batch) in (1..).zip(rig.fs().store().batches()) {
            store.apply(batch).unwrap();
            if done < states[0].0 {
                continue;
            }
            let copy = large();
            rig.fs().store().batches()[..done].iter().for_each(|batch| copy.apply(batch.clone()).unwrap());
            let fs = EvergreenFs::open(copy).unwrap();
            assert_eq!(check_files(fs.store()).unwrap(), [""; 0], "seed {seed}, {done} batches");
            let tree = collect_tree(&fs).unwrap();
            let before = states.partition_point(|(at, _)| *at < done).saturating_sub(1);
            let known = &states[before..(before + 3).min(states.len())];
            let is_known = known.iter().any(|(_, want)| find_difference(want, &tree).is_none());
            assert!(is_known, "seed {seed}, {done} batches: {:?}", find_difference(&known[0].1, &tree));
        }
    }
}
