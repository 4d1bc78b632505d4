//! Devices with random failures and flipped bits: errors are reported, no answer is wrong, and no
//! durable data is lost.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{Error, Evergreen, KeyValue, Limits, MakeOptions, ModelStore, check_store};

use crate::rig::{TINY, draw, entries, key, made};

const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(64 << 10), ..TINY };
const FEW: Limits = Limits { cache_bytes: 4 << 10, dirty_bytes: 16 << 10 };
const KEYS: u64 = 150;

type Entries = Vec<(Bytes, Bytes)>;

/// Rounds of use on a device that fails some requests, each ended by a kill. Returns the number of
/// failed requests.
fn soak(seed: u64, rounds: u64) -> u64 {
    let device = made(4 << 20, &TIGHT);
    let mut rng = Rng::for_purpose(Seed(seed), "soak");
    let (mut struck, mut before): (u64, Entries) = (0, Vec::new());
    for round in 0..rounds {
        let faulty = Arc::new(FaultDevice::new(device.clone()));
        for _ in 0..rng.between(1, 6) {
            let kind = ["read", "write", "flush"][rng.below(3) as usize];
            faulty.inject(&format!("fail {kind} {}", rng.between(1, 120))).unwrap();
        }
        let mut states = vec![before.clone()];
        let mut promised = 0;
        if let Ok(store) = Evergreen::open(faulty.clone(), FEW) {
            let model = ModelStore::new(u64::MAX, 0);
            for (key, value) in &before {
                let mut batch = senesce_evergreen::Batch::new();
                batch.put(key.clone(), value.clone());
                model.apply(batch).unwrap();
            }
            for _ in 0..80 {
                let batch = draw(&mut rng, KEYS);
                if store.apply(batch.clone()).is_ok() {
                    model.apply(batch).unwrap();
                    states.push(model.entries());
                }
                let at = key(rng.below(KEYS));
                if let Ok(value) = store.get(&at) {
                    assert_eq!(value, model.get(&at).unwrap(), "seed {seed}, round {round}");
                }
                let durable = match rng.below(20) {
                    0 | 1 => store.sync(),
                    2 => store.checkpoint(),
                    _ => continue,
                };
                if durable.is_ok() {
                    promised = states.len() - 1;
                }
            }
        }
        struck += faulty.struck();
        let store =
            Evergreen::open(device.clone(), FEW).unwrap_or_else(|error| panic!("seed {seed}, {round}: {error}"));
        before = entries(&store).unwrap();
        assert!(
            states[promised..].contains(&before),
            "seed {seed}, round {round}: no state since the acknowledged one"
        );
        drop(store);
        let shared: Arc<dyn BlockDevice> = device.clone();
        let report = check_store(&shared).unwrap();
        assert!(report.is_clean(), "seed {seed}, round {round}: {:?}", report.findings);
    }
    struck
}

/// Bits flip at rest. A read returns the old contents, or an error with the place. Returns the
/// number of reported flips.
fn flip(seed: u64, flips: u64) -> u64 {
    let device = made(4 << 20, &TIGHT);
    let store = Evergreen::open(device.clone(), FEW).unwrap();
    let mut rng = Rng::for_purpose(Seed(seed), "flips");
    let (mut states, mut history): (Vec<Entries>, Vec<Entries>) = Default::default();
    let model = ModelStore::new(u64::MAX, 0);
    for number in 0..160 {
        let batch = draw(&mut rng, KEYS);
        store.apply(batch.clone()).unwrap();
        model.apply(batch).unwrap();
        if number % 40 == 39 {
            store.checkpoint().unwrap();
            history.append(&mut states);
        }
        if number % 9 == 0 {
            store.sync().unwrap();
        }
        states.push(model.entries());
    }
    store.sync().unwrap();
    drop(store);
    let mut reported = 0;
    let data: Vec<u64> = {
        let bytes = device.contents();
        (0..bytes.len() as u64)
            .step_by(4096)
            .filter(|at| bytes[*at as usize..][..4096].iter().any(|byte| *byte != 0))
            .collect()
    };
    for number in 0..flips {
        let copy = Arc::new(device.fork());
        let at = data[rng.below(data.len() as u64) as usize] + rng.below(4096);
        let mut byte = [0];
        copy.read_at(at, &mut byte).unwrap();
        copy.write_at(at, &[byte[0] ^ 1 << rng.below(8)]).unwrap();
        if at < 4096 || (1 << 20..(1 << 20) + 4096).contains(&at) {
            // The other superblock is used, as after a loss of power during the write; the check
            // reports it.
            let shared: Arc<dyn BlockDevice> = copy.clone();
            reported += u64::from(!check_store(&shared).unwrap().copies.torn.is_empty());
            let found = opened(copy).map(|(found, _)| history.contains(&found) || states.contains(&found));
            assert!(found.is_ok_and(|is_known| is_known), "seed {seed}, flip {number} at {at}");
            continue;
        }
        match opened(copy) {
            // The flip is in free space, or in the last write, which looks like a loss of power.
            Ok((found, fallbacks)) => {
                // The other copy was read.
                reported += u64::from(fallbacks > 0);
                assert!(states.contains(&found), "seed {seed}, flip {number} at {at}: no state of the run");
            }
            Err(Error::Damaged { place, what }) => {
                reported += 1;
                let names = ["node", "map", "superblock", "log", "basement", "buffer"];
                assert!(names.iter().any(|name| place.contains(name) || what.contains(name)), "{place}: {what}");
            }
            Err(error) => panic!("seed {seed}, flip {number} at {at}: {error}"),
        }
    }
    reported
}

/// All entries of a store, and the number of reads of a second copy.
fn opened(device: Arc<MemoryDevice>) -> Result<(Entries, u64), Error> {
    let store = Evergreen::open(device, FEW)?;
    Ok((entries(&store)?, store.copy_figures().fallbacks))
}

#[test]
fn random_failures_lose_nothing() {
    let struck: u64 = (0..3).map(|seed| soak(seed, 12)).sum();
    assert!(struck > 40, "{struck} requests were refused");
}

#[test]
fn flipped_bits_at_rest_are_detected() {
    let reported: u64 = (0..2).map(|seed| flip(seed, 150)).sum();
    // Other flips hit dead data, or a copy that no read uses while the first one is whole.
    assert!(reported > 15, "{reported} flips were reported");
}

/// For nightly runs: `cargo test -p senesce-evergreen --test store -- --ignored`.
#[test]
#[ignore = "minutes"]
fn long_random_failures_lose_nothing() {
    for seed in 100..140 {
        soak(seed, 60);
        flip(seed, 1000);
    }
}
