//! What is counted while others write.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use senesce_block::MemoryDevice;
use senesce_core::{Bytes as Size, Rng, Seed};

use super::{Evergreen, Limits, MakeOptions};
use crate::{
    Batch, KeyValue,
    disk::{KeyOrder, Shape},
};

const KEYS: u64 = 600;

fn made() -> Evergreen {
    let device = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
    let shape = Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath };
    let options = MakeOptions { uuid: [7; 16], shape, unit_bytes: 4096, log_bytes: Some(128 << 10) };
    Evergreen::make(device.clone(), &options).unwrap();
    Evergreen::open(device, Limits { cache_bytes: 256 << 10, dirty_bytes: 256 << 10 }).unwrap()
}

fn put(store: &Evergreen, number: u64) {
    let mut batch = Batch::new();
    batch.put(format!("key {number:04}"), vec![number as u8; 100]);
    store.apply(batch).unwrap();
}

#[test]
fn leaves_that_are_to_be_moved_have_space_promised_until_they_have_it() {
    let store = made();
    (0..KEYS).for_each(|number| put(&store, number));
    store.checkpoint().unwrap();
    let core = &store.core;
    let mut rng = Rng::for_purpose(Seed(3), "moved");
    let mut were_moved = 0;
    for _ in 0..20 {
        (0..40).for_each(|_| put(&store, rng.below(KEYS)));
        let mut durable = store.turn.lock().unwrap();
        let (frozen, freed) = core.freeze(durable.generation + 1, || store.log.cut()).unwrap();
        let before = core.needed_bytes(&core.lock());
        let (_, moved) = core.groups(&frozen, u64::MAX);
        assert_eq!(core.needed_bytes(&core.lock()), before + moved);
        // As if it could not be written.
        core.unfreeze(&frozen, &freed);
        assert_eq!(core.lock().promised, 0);
        let (start, moved) = core.checkpoint(&mut durable, || store.log.cut(), u64::MAX).unwrap();
        store.log.trim(&start);
        let state = core.lock();
        assert_eq!((state.unplaced, state.promised), (0, 0));
        drop(state);
        were_moved += u64::from(moved > 0);
    }
    assert!(were_moved > 3, "{were_moved} checkpoints moved leaves");
}

/// Nobody claims anything, so nothing is worth being tidied.
#[test]
fn what_others_write_is_not_counted_as_tidied() {
    let store = made();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..).take_while(|_| !is_over.load(SeqCst)) {
                put(&store, number * 7 % KEYS);
                if number % 64 == 0 {
                    store.checkpoint().unwrap();
                }
            }
        });
        let tidied: Vec<u64> = (0..4000).map(|_| store.core.tidy(1 << 20)).filter(|bytes| *bytes > 0).collect();
        is_over.store(true, SeqCst);
        assert_eq!(tidied, []);
    });
}
