//! Long runs, with checkpoints and reopening, compared with the model.

use std::sync::Arc;

use senesce_core::{Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, KeyValue, Limits, MakeOptions, ModelStore, disk::Shape};

use crate::rig::{LITTLE, TINY, draw, entries, key, made, open};

fn run(seed: u64, batches: u64, keys: u64) {
    let device = made(8 << 20, &TINY);
    let model = ModelStore::new(u64::MAX, 0);
    let mut store = open(&device);
    let mut rng = Rng::for_purpose(Seed(seed), "store");
    let mut checkpoints = 0;
    for number in 0..batches {
        let batch = draw(&mut rng, keys);
        model.apply(batch.clone()).unwrap();
        store.apply(batch).unwrap();
        let at = key(rng.below(keys));
        assert_eq!(store.get(&at).unwrap(), model.get(&at).unwrap(), "batch {number}");
        match rng.below(200) {
            0 => store.checkpoint().unwrap(),
            1 => assert_eq!(entries(&store).unwrap(), model.entries(), "batch {number}"),
            2 => {
                store.sync().unwrap();
                checkpoints += store.figures().checkpoints;
                drop(store);
                store = open(&device);
                assert_eq!(entries(&store).unwrap(), model.entries(), "batch {number}");
                assert_eq!(store.live().bytes, model.live().bytes);
            }
            _ => {}
        }
    }
    assert_eq!(entries(&store).unwrap(), model.entries());
    checkpoints += store.figures().checkpoints;
    assert!(checkpoints > 20, "{checkpoints} checkpoints");
}

#[test]
fn long_runs_with_reopening_agree_with_the_model() {
    for seed in 0..3 {
        run(seed, 2000, 1500);
    }
}

#[test]
fn checkpointed_batches_survive_without_a_sync() {
    let device = made(8 << 20, &TINY);
    let store = open(&device);
    let mut batch = senesce_evergreen::Batch::new();
    batch.put(key(1), vec![1; 10]);
    store.apply(batch.clone()).unwrap();
    store.checkpoint().unwrap();
    let mut second = senesce_evergreen::Batch::new();
    second.put(key(2), vec![1; 10]);
    store.apply(second).unwrap();
    drop(store);
    let store = open(&device);
    assert!(store.get(&key(1)).unwrap().is_some());
    assert!(store.get(&key(2)).unwrap().is_none());
}

#[test]
fn only_a_store_is_opened() {
    let device = made(8 << 20, &TINY);
    Evergreen::open(device.clone(), LITTLE).unwrap();
    senesce_evergreen::disk::clear_slots(&device).unwrap();
    let Err(error) = Evergreen::open(device, LITTLE) else { panic!("the device is empty") };
    assert!(error.to_string().contains("no evergreen file system"), "{error}");
}

#[test]
fn syncs_during_a_stream_make_no_checkpoints() {
    const NODE: u32 = 64 << 10;
    let shape = Shape { node_bytes: NODE, ..TINY.shape };
    let device = made(128 << 20, &MakeOptions { shape, log_bytes: Some(16 << 20), ..TINY });
    let limits = Limits { cache_bytes: 32 << 20, dirty_bytes: 32 << 20 };
    let store = Evergreen::open(device.clone(), limits).unwrap();
    let mut next = 0;
    let mut stream = |nodes: u32| {
        for _ in 0..nodes {
            let mut batch = Batch::new();
            for _ in 0..NODE / 4096 {
                batch.put(format!("stream {next:08}"), vec![(next % 250) as u8 + 1; 4096]);
                next += 1;
            }
            store.apply(batch).unwrap();
        }
    };
    let small = |number: u8| {
        let mut batch = Batch::new();
        batch.put("beside", vec![number + 1; 4096]);
        store.apply(batch).unwrap();
        store.sync_of(&(b"beside".to_vec()..b"besidf".to_vec())).unwrap();
    };
    stream(4);
    small(0);
    let before = store.figures();
    assert!(before.checkpoints > 0, "the stream was not logged, so the first sync of another file is a checkpoint");
    for number in 1..20 {
        stream(4);
        small(number);
    }
    let now = store.figures();
    assert_eq!((now.checkpoints, now.unlogged_bytes), (before.checkpoints, before.unlogged_bytes));
    // A loss of power here loses no data of either.
    let again = Evergreen::open(Arc::new(device.fork()), limits).unwrap();
    assert_eq!(again.get(b"beside").unwrap().unwrap(), [20; 4096][..]);
    assert_eq!(entries(&again).unwrap(), entries(&store).unwrap());
    // After a long time without such syncs, streams are unlogged again.
    stream(40);
    assert!(store.figures().unlogged_bytes > now.unlogged_bytes);
}
