//! Sweeps of leaves with an unreadable one.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{
    Batch, Evergreen, KeyValue,
    disk::{Area, NodeMap, read_newest},
};

use crate::rig::{LITTLE, TINY, key, made, open};

/// A store with scattered leaves and waiting messages.
fn scattered() -> Arc<MemoryDevice> {
    let device = made(4 << 20, &TINY);
    let store = open(&device);
    let mut rng = Rng::for_purpose(Seed(3), "scattered");
    for number in 0..1200 {
        let mut batch = Batch::new();
        batch.put(key(rng.below(400)), vec![number as u8 | 1; 150]);
        store.apply(batch).unwrap();
        if number % 40 == 0 {
            store.checkpoint().unwrap();
        }
    }
    store.checkpoint().unwrap();
    drop(store);
    device
}

/// The offsets and lengths of all leaves.
fn leaves(device: &Arc<MemoryDevice>) -> Vec<(u64, u32)> {
    let superblock = read_newest(&**device).unwrap();
    let area = Area::new(device.clone(), superblock.geometry);
    let map = NodeMap::load(&area, &superblock).unwrap();
    let places = map.iter().map(|(_, place)| place).filter(|place| place.second.is_empty());
    places.map(|place| (superblock.geometry.unit_at(place.extents[0].first), place.bytes)).collect()
}

#[test]
fn sweep_skips_an_unreadable_leaf_and_continues() {
    let device = scattered();
    let whole = open(&Arc::new(device.fork())).sweep().unwrap();
    assert!(whole.bytes > 40_000 && whole.unreadable == 0, "{whole:?}");
    let leaves = leaves(&device);
    assert!(leaves.len() > 15, "{}", leaves.len());
    let mut skipped = 0;
    for (at, bytes) in leaves {
        let faulty = Arc::new(FaultDevice::new(device.fork()));
        // Opening replays no log.
        faulty.inject(&format!("fail read at {at}+{bytes}")).unwrap();
        let store = Evergreen::open(faulty.clone() as Arc<dyn BlockDevice>, LITTLE).unwrap();
        let swept = store.sweep().unwrap();
        // Leaves that are only moved do not concern the sweep: the checkpoint leaves unreadable
        // ones in place.
        assert!(swept.unreadable <= 1 && swept.bytes * 4 > whole.bytes * 3, "leaf at {at}: {swept:?}, {whole:?}");
        skipped += swept.unreadable;
    }
    assert!(skipped > 5, "{skipped} leaves were skipped");
}
