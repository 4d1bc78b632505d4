//! Outlines agree with the check, and report damage.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_evergreen::{
    Batch, Evergreen, Holds, KeyValue, Limits, MakeOptions, Outline, check_store,
    disk::{Copies, Shape},
    outline,
};

fn made(keys: u64, copies: Copies) -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Bytes(64 << 20)));
    let shape = Shape { node_bytes: 64 << 10, basement_bytes: 16 << 10, fanout: 4, ..Shape::default() };
    let options = MakeOptions { shape, unit_bytes: 4096, copies, ..MakeOptions::new([7; 16]) };
    Evergreen::make(device.clone(), &options).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    let mut rng = Rng::for_purpose(Seed(5), "outline");
    for round in 0..keys {
        let mut batch = Batch::new();
        let kind = if rng.below(4) == 0 { b'm' } else { b'd' };
        let key = [&[kind][..], &rng.below(900).to_be_bytes()].concat();
        batch.put(key, vec![round as u8; 2000]);
        if round % 40 == 39 {
            let from = rng.below(800).to_be_bytes();
            batch.delete_range([b"d", &from[..]].concat(), [b"d", &from[..], b"x"].concat());
        }
        store.apply(batch).unwrap();
    }
    store.checkpoint().unwrap();
    device
}

#[test]
fn flushes_are_counted_by_level() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Bytes(64 << 20)));
    let shape = Shape { node_bytes: 64 << 10, basement_bytes: 16 << 10, fanout: 4, ..Shape::default() };
    Evergreen::make(device.clone(), &MakeOptions { shape, unit_bytes: 4096, ..MakeOptions::new([7; 16]) }).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    let (mut rng, mut sent) = (Rng::for_purpose(Seed(5), "flushes"), 0);
    for _ in 0..1500 {
        let mut batch = Batch::new();
        batch.put([&b"d"[..], &rng.next_u64().to_be_bytes()].concat(), vec![1; 2000]);
        sent += 2000;
        store.apply(batch).unwrap();
    }
    store.checkpoint().unwrap();
    let (found, flushes) = (look(&device), store.figures().flushes);
    let levels = usize::from(found.nodes[0].height);
    assert!(levels > 1, "the tree has too few levels");
    assert!(flushes[..levels].iter().all(|level| level.count > 0 && level.bytes >= level.count), "{flushes:?}");
    assert!(flushes[levels..].iter().all(|level| level.count == 0), "{flushes:?}");
    // Each value came to a leaf once, or waits.
    let waits: u64 = found.nodes.iter().map(|node| node.waiting.bytes).sum();
    let in_leaves = flushes[0].bytes;
    assert!((sent..sent + sent / 10).contains(&(in_leaves + waits)), "{sent} sent, {in_leaves} and {waits}");
}

fn look(device: &Arc<dyn BlockDevice>) -> Outline {
    outline(device).unwrap()
}

#[test]
fn outlines_agree_with_the_check() {
    for keys in [0, 1, 3000] {
        let device = made(keys, Copies::Two);
        let (found, report) = (look(&device), check_store(&device).unwrap());
        assert!(report.is_clean(), "{:?}", report.findings);
        let leaves = || found.nodes.iter().filter(|node| node.height == 0);
        assert_eq!((found.nodes.len() as u64, leaves().count() as u64), (report.nodes, report.leaves));
        assert_eq!(u64::from(found.nodes[0].height) + 1, report.levels);
        let waiting: u64 = found.nodes.iter().map(|node| node.waiting.messages + node.waiting.ranges).sum();
        assert_eq!(waiting, report.waiting, "{keys} keys");
        for (at, node) in found.nodes.iter().enumerate() {
            assert!(node.damage.is_none() && !node.extents.is_empty(), "{node:?}");
            let waits: u64 =
                found.nodes.iter().filter(|below| below.parent == Some(at)).map(|below| below.waiting.bytes).sum();
            assert!(node.height == 0 || waits == node.weight_bytes, "{node:?}");
        }
        if keys == 3000 {
            // Blocks are before all other keys.
            let kinds: Vec<Holds> = leaves().map(|leaf| leaf.holds).collect();
            assert_eq!((kinds[0], kinds[kinds.len() - 1]), (Holds::Contents, Holds::Metadata));
            assert!(found.nodes[0].height > 1 && waiting > 0, "the tree has too few levels");
        }
    }
}

fn spoil(device: &Arc<dyn BlockDevice>, at: u64) {
    let mut block = vec![0; 4096];
    device.read_at(at, &mut block).unwrap();
    block[50] ^= 1;
    device.write_at(at, &block).unwrap();
}

#[test]
fn damage_of_one_copy_hides_nothing() {
    let device = made(3000, Copies::Two);
    let whole = look(&device);
    for node in whole.nodes.iter().filter(|node| node.height > 0) {
        spoil(&device, node.extents[0].0);
    }
    assert_eq!(look(&device), whole);
}

#[test]
fn damage_is_reported_at_its_node() {
    let device = made(3000, Copies::One);
    let whole = look(&device);
    let leaf = whole.nodes.iter().position(|node| node.height == 0).unwrap();
    spoil(&device, whole.nodes[leaf].extents[0].0);
    let found = look(&device);
    assert_eq!(found.nodes.len(), whole.nodes.len());
    let damaged: Vec<usize> = (0..found.nodes.len()).filter(|at| found.nodes[*at].damage.is_some()).collect();
    assert_eq!(damaged, [leaf]);
    assert_eq!(found.nodes[leaf].height, 0, "as its parent has it");
    // The nodes below an unreadable inner node are unknown.
    let inner = whole.nodes.iter().rposition(|node| node.height == 1).unwrap();
    let below = whole.nodes.iter().filter(|node| node.parent == Some(inner)).count();
    spoil(&device, whole.nodes[inner].extents[0].0);
    let found = look(&device);
    assert_eq!(found.nodes.len(), whole.nodes.len() - below);
    assert!(found.nodes[inner].damage.as_ref().unwrap().contains("header sum"), "{:?}", found.nodes[inner]);
}
