//! Lookups of adjacent keys need few reads; others need one basement each.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::{BlockDevice, BlockOperation, FaultDevice, MemoryDevice, TracedDevice};
use senesce_core::{ManualClock, Rng, Seed};
use senesce_evergreen::{Batch, Evergreen, Figures, KeyValue, Limits, MakeOptions, disk::Shape, outline};

use crate::rig::made;

const KEYS: u64 = 9000;
/// A leaf has up to 32 basements of about 16 keys.
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

/// A small part of the data.
const LIMITS: Limits = Limits { cache_bytes: 1 << 20, dirty_bytes: 1 << 20 };

/// A store with all keys, and the number of its leaves.
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

/// The reads for keys in some order, with an empty cache.
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
fn keys_in_order_need_few_reads() {
    let (device, leaves) = loaded();
    let all = read(&device, 0..KEYS);
    let Figures { leaf_reads, inner_reads, read_requests, .. } = all;
    let found = format!("{leaf_reads} reads of {leaves} leaves, {inner_reads} of others, in {read_requests} requests");
    // At the end of a parent a leaf is read as a header and two parts.
    assert!((leaves..leaves * 5 / 4).contains(&leaf_reads), "{found}");
    // Some adjacent leaves at once, up to a quarter of the cache, and small parents.
    assert!(read_requests + 2 < leaf_reads + inner_reads, "{found}");
    let stored = KEYS * 226;
    assert!((stored / 2..stored * 5 / 4).contains(&all.leaf_read_bytes), "{} bytes", all.leaf_read_bytes);
    let mut rng = Rng::for_purpose(Seed(1), "keys");
    let few = read(&device, (0..20).map(|_| rng.below(KEYS)));
    // The first read of a leaf has 16 KiB; few leaves need more.
    assert!(few.leaf_read_bytes <= 20 * (24 << 10), "{} bytes", few.leaf_read_bytes);
}

#[test]
fn row_reads_fail_only_with_their_first_leaf() {
    let (device, _) = loaded();
    // Fails the reads from a key on that are not for earlier keys: all, or a single one.
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
            let error =
                (from..KEYS).take_while(|_| faulty.struck() == 0).find_map(|number| store.get(&key(number)).err());
            let found = store.figures().reads_passed_over;
            // An inner node was read from its second copy.
            let copies = store.copy_figures().fallbacks;
            assert!(faulty.struck() > 0, "from {from}");
            let outcomes = u64::from(error.is_some()) + found + copies;
            assert_eq!(outcomes, 1, "from {from}: {error:?}, {found} skipped reads, {copies} from second copies");
            passed_over += found;
        }
        assert_eq!(passed_over == 0, is_told, "{passed_over} skipped reads");
    }
}
