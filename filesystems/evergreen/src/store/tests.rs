//! Space accounting with concurrent writers, and replay by single and by grouped batches.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes as Size, Rng, Seed};

use super::{Evergreen, Limits, MakeOptions, open::Step};
use crate::{
    Batch, KeyValue, Message, check_store,
    disk::{Copies, KeyOrder, Shape},
    log::encode_batch,
};

const KEYS: u64 = 600;
const LIMITS: Limits = Limits { cache_bytes: 256 << 10, dirty_bytes: 256 << 10 };

fn made() -> Evergreen {
    let device = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
    let shape = Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath };
    let options =
        MakeOptions { uuid: [7; 16], shape, unit_bytes: 4096, log_bytes: Some(128 << 10), copies: Copies::Two };
    Evergreen::make(device.clone(), &options).unwrap();
    Evergreen::open(device, LIMITS).unwrap()
}

fn put(store: &Evergreen, number: u64) {
    let mut batch = Batch::new();
    batch.put(format!("key {number:04}"), vec![number as u8; 100]);
    store.apply(batch).unwrap();
}

#[test]
fn moved_leaves_have_space_reserved_until_written() {
    let store = made();
    (0..KEYS).for_each(|number| put(&store, number));
    store.checkpoint().unwrap();
    let core = &store.core;
    let mut rng = Rng::for_purpose(Seed(3), "moved");
    let mut were_moved = 0;
    for _ in 0..20 {
        (0..40).for_each(|_| put(&store, rng.below(KEYS)));
        let mut durable = store.turn.lock().unwrap();
        let frozen = core.freeze(durable.generation + 1, || store.log.cut()).unwrap();
        let before = core.needed_bytes(&core.lock());
        let (_, moved) = core.groups(&frozen, u64::MAX);
        assert_eq!(core.needed_bytes(&core.lock()), before + moved);
        // Undo it, as after a failed write.
        core.unfreeze(&frozen);
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

/// A round gathers the requested bytes, and at most one leaf more, with any concurrent writes.
#[test]
fn concurrent_writes_do_not_count_as_tidied() {
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
        let most = 3 * u64::from(store.shape().node_bytes);
        let turns = std::iter::repeat_with(|| store.core.tidy(most));
        let tidied: Vec<u64> = turns.filter(|bytes| *bytes > 0).take(500).collect();
        is_over.store(true, SeqCst);
        assert!(tidied.iter().all(|bytes| *bytes <= 4 * most / 3), "{tidied:?}");
    });
}

#[test]
fn replay_by_batch_and_by_group_agree() {
    let limits = Limits { cache_bytes: 64 << 10, dirty_bytes: 1 << 20 };
    for seed in 0..6 {
        let device = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
        let shape = Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath };
        let options =
            MakeOptions { uuid: [7; 16], shape, unit_bytes: 4096, log_bytes: Some(2 << 20), copies: Copies::Two };
        Evergreen::make(device.clone(), &options).unwrap();
        let store = Evergreen::open(device.clone(), limits).unwrap();
        let mut rng = Rng::for_purpose(Seed(seed), "steps");
        let key = |rng: &mut Rng| format!("{}{:03}", ["a", "directory/", "b"][rng.below(3) as usize], rng.below(150));
        for _ in 0..1500 {
            let mut batch = Batch::new();
            for _ in 0..rng.between(1, 4) {
                let bytes = vec![rng.below(250) as u8 + 1; rng.between(1, 200) as usize];
                match rng.weighted(&[50, 10, 30, 10, 2]) {
                    0 => batch.put(key(&mut rng), bytes),
                    1 => batch.delete(key(&mut rng)),
                    2 => batch.send(key(&mut rng), Message::patch(rng.below(300) as u32, bytes.into())),
                    3 => batch.send(key(&mut rng), Message::cut(rng.below(200) as u32)),
                    _ => batch.delete_range(key(&mut rng), key(&mut rng)),
                }
            }
            store.apply(batch).unwrap();
        }
        store.sync().unwrap();
        let want = entries(&store);
        drop(store);
        let mut flushes = Vec::new();
        for step in [Step::ByBatch, Step::ByGroup] {
            let copy = Arc::new(device.fork());
            let store = Evergreen::open_by(copy.clone(), limits, step, &[]).unwrap();
            assert!(entries(&store) == want, "seed {seed}");
            flushes.push(store.figures().flushes.iter().map(|flushes| flushes.count).sum::<u64>());
            drop(store);
            let report = check_store(&(copy as Arc<dyn BlockDevice>)).unwrap();
            assert!(report.is_clean() && report.log_batches == 0, "seed {seed}: {:?}", report.findings);
        }
        assert!(flushes[0] > flushes[1] && flushes[1] > 4, "seed {seed}: {flushes:?} flushes");
    }
}

fn entries(store: &Evergreen) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    store
        .scan(b"", &[0xff; 4], &mut |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

/// A log with correct checksums may have any claim.
#[test]
fn replayed_claims_stay_within_the_superblock_limit() {
    let store = made();
    let device = store.core.area.device().clone();
    let mut batch = Batch::new();
    batch.put(&b"key"[..], &b"value"[..]);
    batch.claim.bytes = i64::MAX;
    store.log.append_record(&encode_batch(&batch)).unwrap();
    store.sync().unwrap();
    drop(store);
    for _ in 0..3 {
        let store = Evergreen::open(device.clone(), LIMITS).unwrap();
        // A change that is possible even if all space is claimed.
        let mut batch = Batch::new();
        batch.delete(&b"key"[..]);
        batch.claim.is_removal = true;
        store.apply(batch).unwrap();
        store.checkpoint().unwrap();
    }
}
