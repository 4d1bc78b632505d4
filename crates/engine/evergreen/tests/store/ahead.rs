//! Keys that are read one by one cost few readings if they come in their order, and one basement each if they do not.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::{BlockDevice, BlockOperation, FaultDevice, MemoryDevice, TracedDevice};
use senesce_core::{ManualClock, Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, Figures, KeyValue, Limits, MakeOptions, disk::Shape, outline};

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
    copies: senesce_evergreen::disk::Copies::Two,
};

fn key(number: u64) -> Bytes {
    Bytes::from(format!("k{number:05}"))
}

/// By far not all of it.
const LIMITS: Limits = Limits { cache_bytes: 1 << 20, dirty_bytes: 1 << 20 };

/// All keys, and how many leaves they have.
fn loaded() -> (Arc<MemoryDevice>, u64) {
    let device = made(16 << 20, &OPTIONS);
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    for number in 0..KEYS {
        let mut batch = Batch::new();
        batch.put(key(number), vec![number as u8 | 1; 220]);
        store.apply(batch).unwrap();
    }
    store.checkpoint().unwrap();
    let lying: Arc<dyn BlockDevice> = device.clone();
    let leaves = outline(&lying).unwrap().nodes.iter().filter(|node| node.height == 0).count();
    (device, leaves as u64)
}

/// What is read for keys in some order, with nothing in memory before.
fn read(device: &Arc<MemoryDevice>, numbers: impl Iterator<Item = u64>) -> Figures {
    let traced = Arc::new(TracedDevice::new(device.clone(), Arc::new(ManualClock::default())));
    let store = Evergreen::open(traced.clone(), LIMITS).unwrap();
    let (before, requests) = (store.figures(), traced.counts().reads);
    for number in numbers {
        let value = store.get(&key(number)).unwrap();
        assert_eq!(value.unwrap(), vec![number as u8 | 1; 220], "{number}");
    }
    let mut after = store.figures();
    after.leaf_reads -= before.leaf_reads;
    after.leaf_read_bytes -= before.leaf_read_bytes;
    after.inner_reads -= before.inner_reads;
    after.read_requests -= before.read_requests;
    assert_eq!(after.read_requests, traced.counts().reads - requests, "those of the device");
    after
}

#[test]
fn keys_in_order_cost_few_readings_and_others_one_basement_each() {
    let (device, leaves) = loaded();
    let all = read(&device, 0..KEYS);
    let Figures { leaf_reads, inner_reads, read_requests, .. } = all;
    let found =
        format!("{leaf_reads} readings of {leaves} leaves, {inner_reads} of others, in {read_requests} requests");
    // Where a parent ends a leaf is read as a header and two pieces.
    assert!((leaves..leaves * 5 / 4).contains(&leaf_reads), "{found}");
    // Some leaves that lie behind each other at once, as many as a quarter of the memory has room for, and small parents.
    assert!(read_requests + 2 < leaf_reads + inner_reads, "{found}");
    let stored = KEYS * 226;
    assert!((stored / 2..stored * 5 / 4).contains(&all.leaf_read_bytes), "{} bytes", all.leaf_read_bytes);
    let mut rng = Rng::for_purpose(Seed(1), "keys");
    let few = read(&device, (0..20).map(|_| rng.below(KEYS)));
    // The first bytes of a leaf are 16 KiB, and more come with few of them.
    assert!(few.leaf_read_bytes <= 20 * (24 << 10), "{} bytes", few.leaf_read_bytes);
}

#[test]
fn a_row_that_cannot_be_read_is_passed_over_only_if_its_first_leaf_can() {
    let (device, _) = loaded();
    // At which keys nothing is read for the ones before, and all requests fail from then on, or one.
    for (faults, is_told) in [("..", true), ("", false)] {
        let mut passed_over = 0;
        for from in (0..KEYS - 2000).step_by(61) {
            let faulty = Arc::new(FaultDevice::new(device.clone()));
            let store = Evergreen::open(faulty.clone(), LIMITS).unwrap();
            for number in from.saturating_sub(600)..from {
                store.get(&key(number)).unwrap();
            }
            let next = faulty.requests(BlockOperation::Read) + 1;
            faulty.inject(&format!("fail read {next}{faults}")).unwrap();
            let told =
                (from..KEYS).take_while(|_| faulty.struck() == 0).find_map(|number| store.get(&key(number)).err());
            let found = store.figures().reads_passed_over;
            // An inner node was read from its second copy.
            let copies = store.copy_figures().fallbacks;
            assert!(faulty.struck() > 0, "from {from}");
            let outcomes = u64::from(told.is_some()) + found + copies;
            assert_eq!(outcomes, 1, "from {from}: {told:?}, {found} passed over, {copies} from second copies");
            passed_over += found;
        }
        assert_eq!(passed_over == 0, is_told, "{passed_over} passed over");
    }
}
