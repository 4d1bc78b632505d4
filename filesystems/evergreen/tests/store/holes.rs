//! Batches that are not in the log, and damaged superblocks: a replay never skips a missing batch.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_evergreen::{Batch, Evergreen, KeyValue, Limits, Result, check_store, disk::read_newest};

use crate::rig::{TINY, entries, made};

type Entries = Vec<(Bytes, Bytes)>;

fn put(store: &Evergreen, key: impl Into<Bytes>, bytes: usize) {
    let mut batch = Batch::new();
    batch.put(key, vec![1; bytes]);
    store.apply(batch).unwrap();
}

fn open(device: &Arc<MemoryDevice>) -> Evergreen {
    Evergreen::open(device.clone(), Limits::default()).unwrap()
}

/// A store with an unlogged run across a checkpoint, and its contents at that time. With the last
/// superblock the whole run exists.
fn with_a_hole() -> (Arc<MemoryDevice>, Evergreen, Entries) {
    let device = made(4 << 20, &TINY);
    let store = open(&device);
    put(&store, "a", 10);
    (0..8).for_each(|number| put(&store, format!("b/{number}"), 4000));
    store.checkpoint().unwrap();
    let (before, held, logged) =
        (read_newest(&*device).unwrap(), entries(&store).unwrap(), store.figures().unlogged_bytes);
    (0..4).for_each(|number| put(&store, format!("c/{number}"), 4000));
    assert!(store.figures().unlogged_bytes - logged > 16_000, "none of these is logged");
    store.sync().unwrap();
    assert_eq!(read_newest(&*device).unwrap().generation, before.generation + 1);
    (device, store, held)
}

/// Overwrites both copies of the newest superblock.
fn spoiled(device: &MemoryDevice) -> Arc<MemoryDevice> {
    let device = Arc::new(device.fork());
    let is_odd = read_newest(&*device).unwrap().generation % 2 == 1;
    let [slot, copy] = if is_odd { [1 << 20, 256 << 10] } else { [0, 768 << 10] };
    device.write_at(slot, &[0x5a; 4096]).unwrap();
    device.write_at(copy, &[0x5a; 4096]).unwrap();
    device
}

fn opened(device: &Arc<MemoryDevice>) -> Result<Entries> {
    entries(&Evergreen::open(device.clone(), Limits::default())?)
}

/// Opening and the check must report that there was a newer superblock.
fn expect_told(device: &MemoryDevice, name: &str) {
    let device = spoiled(device);
    let text = opened(&device).expect_err(name).to_string();
    assert!(text.contains("expected whole: it was durable when batch"), "{name}: {text}");
    assert!(text.contains(" cannot be read, which may be the newer one: superblock: magic is"), "{name}: {text}");
    let shared: Arc<dyn BlockDevice> = device;
    assert!(!check_store(&shared).unwrap().is_clean(), "{name}");
}

#[test]
fn replay_never_skips_unlogged_batches() {
    let (device, store, held) = with_a_hole();
    expect_told(&device, "nothing after a hole");
    put(&store, "d", 10);
    store.sync().unwrap();
    assert_eq!(opened(&Arc::new(device.fork())).unwrap().len(), held.len() + 5);
    expect_told(&device, "a batch after a hole");
}

#[test]
fn log_reports_a_lost_newer_superblock() {
    let (device, store, held) = with_a_hole();
    drop(store);
    let store = open(&device);
    assert_eq!(
        opened(&spoiled(&device)).unwrap().len(),
        held.len() + 4,
        "no batch followed the superblock of the opening"
    );
    put(&store, "d", 10);
    store.sync().unwrap();
    expect_told(&device, "a batch after an opening");
    // Many batches wait at a checkpoint and are never written. The next frame is far after them.
    (0..60).for_each(|number| put(&store, format!("e/{}", 99 - number), 1000));
    store.checkpoint().unwrap();
    put(&store, "f", 10);
    store.sync().unwrap();
    expect_told(&device, "a batch far after");
}
