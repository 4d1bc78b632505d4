//! Keys that are read one by one cost few readings if they come in their order, and one basement each if they do not.

use bytes::Bytes;
use senesce_core::{Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, Figures, KeyValue, Limits, MakeOptions, disk::Shape};

use crate::rig::made;

const KEYS: u64 = 9000;
/// A leaf has up to 32 basements of 16 or so keys.
const OPTIONS: MakeOptions = MakeOptions {
    uuid: [7; 16],
    shape: Shape {
        node_bytes: 128 << 10,
        basement_bytes: 4 << 10,
        fanout: 8,
        key_order: senesce_evergreen::disk::KeyOrder::BirthPath,
    },
    unit_bytes: 4096,
    log_bytes: Some(256 << 10),
};

fn key(number: u64) -> Bytes {
    Bytes::from(format!("k{number:05}"))
}

/// What is read for keys in some order, with nothing in memory before, and by far not all of it then.
fn read(device: &std::sync::Arc<senesce_block::MemoryDevice>, numbers: impl Iterator<Item = u64>) -> Figures {
    let limits = Limits { cache_bytes: 1 << 20, ..Limits::default() };
    let store = Evergreen::open(device.clone(), limits).unwrap();
    let before = store.figures();
    for number in numbers {
        let value = store.get(&key(number)).unwrap();
        assert_eq!(value.unwrap(), vec![number as u8 | 1; 220], "{number}");
    }
    let mut after = store.figures();
    after.leaf_reads -= before.leaf_reads;
    after.leaf_read_bytes -= before.leaf_read_bytes;
    after
}

#[test]
fn keys_in_order_cost_few_readings_and_others_one_basement_each() {
    let device = made(16 << 20, &OPTIONS);
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    for number in 0..KEYS {
        let mut batch = Batch::new();
        batch.put(key(number), vec![number as u8 | 1; 220]);
        store.apply(batch).unwrap();
    }
    store.checkpoint().unwrap();
    let leaves = store.figures().leaf_writes;
    drop(store);
    let all = read(&device, 0..KEYS);
    // Two leaves at once, as many as a quarter of the memory has room for; where a parent ends a header and two pieces.
    assert!(all.leaf_reads <= leaves * 3 / 4 + 4, "{} readings of {leaves} leaves", all.leaf_reads);
    let stored = KEYS * 226;
    assert!((stored / 2..stored * 5 / 4).contains(&all.leaf_read_bytes), "{} bytes", all.leaf_read_bytes);
    let mut rng = Rng::for_purpose(Seed(1), "keys");
    let few = read(&device, (0..20).map(|_| rng.below(KEYS)));
    // The first bytes of a leaf are 16 KiB, and more come with few of them.
    assert!(few.leaf_read_bytes <= 20 * (24 << 10), "{} bytes", few.leaf_read_bytes);
}
