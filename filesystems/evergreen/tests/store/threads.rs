//! Several threads: batches are seen whole and in order, also during checkpoints and reads of
//! nodes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use bytes::Bytes;
use senesce_evergreen::{Batch, Evergreen, KeyValue, MakeOptions, disk::Shape};

use crate::rig::{LITTLE, TINY, entries, made};

const PAIRS: u64 = 40;
const ROUNDS: u64 = 60;

fn name(side: &str, pair: u64) -> Bytes {
    Bytes::from(format!("{side}/{pair:04}"))
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

#[test]
fn batches_are_seen_whole_and_in_order() {
    run(&Evergreen::open(made(8 << 20, &TINY), LITTLE).unwrap(), ROUNDS, 90);
}

/// A batch is about as large as the root's limit, so some flush at once.
#[test]
fn batches_are_atomic_with_background_work() {
    let options = MakeOptions { shape: Shape { node_bytes: 16 << 10, ..TINY.shape }, ..TINY };
    let store = Evergreen::open(made(16 << 20, &options), LITTLE).unwrap();
    store.start_background();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            while store.wait_for_work() {
                while store.work().unwrap() {}
            }
        });
        run(&store, 3 * ROUNDS, 180);
        store.stop_background();
        worker.join().unwrap();
    });
}

fn run(store: &Evergreen, rounds: u64, filled: usize) {
    let is_over = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (is_over, written) = (&is_over, &written);
                scope.spawn(move || {
                    let mut checks = 0;
                    while !is_over.load(SeqCst) || checks == 0 {
                        let pair = (checks * 7 + reader) % PAIRS;
                        let least = written.load(SeqCst);
                        let left = number(store.get(&name("left", pair)).unwrap());
                        let right = number(store.get(&name("right", pair)).unwrap());
                        assert!(left >= least && right >= left, "{left} then {right}; {least} were written");
                        checks += 1;
                    }
                })
            })
            .collect();
        let checkpoints = scope.spawn(|| {
            while !is_over.load(SeqCst) {
                store.checkpoint().unwrap();
                store.sync().unwrap();
            }
        });
        for round in 1..=rounds {
            let mut batch = Batch::new();
            for pair in 0..PAIRS {
                let value = [&round.to_le_bytes()[..], &vec![7; filled]].concat();
                batch.put(name("left", pair), value.clone());
                batch.put(name("right", pair), value);
            }
            store.apply(batch).unwrap();
            let own = number(store.get(&name("right", round % PAIRS)).unwrap());
            assert_eq!(own, round, "what was written is read");
            written.store(round, SeqCst);
        }
        is_over.store(true, SeqCst);
        for reader in readers {
            reader.join().unwrap();
        }
        checkpoints.join().unwrap();
    });
    assert_eq!(entries(store).unwrap().len() as u64, 2 * PAIRS);
}
