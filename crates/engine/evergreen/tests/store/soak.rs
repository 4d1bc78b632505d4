//! Devices that fail now and then and bits that flip: everything is told, nothing is wrong, and nothing durable is lost.

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

/// Rounds of use on a device that refuses some requests, each ended by a kill; gives how many requests were refused.
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
            "seed {seed}, round {round}: as at no moment since it was promised"
        );
        drop(store);
        let shared: Arc<dyn BlockDevice> = device.clone();
        let report = check_store(&shared).unwrap();
        assert!(report.is_clean(), "seed {seed}, round {round}: {:?}", report.findings);
    }
    struck
}

/// Bits that flip at rest: what is read then is what was there, or an error, which names where. Gives how many flips were told.
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
    let mut told = 0;
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
            // The other one counts, as if power had been lost while this one was written; the check tells.
            let shared: Arc<dyn BlockDevice> = copy.clone();
            told += u64::from(!check_store(&shared).unwrap().copies.torn.is_empty());
            let found = opened(copy).map(|(found, _)| history.contains(&found) || states.contains(&found));
            assert!(found.is_ok_and(|is_known| is_known), "seed {seed}, flip {number} at {at}");
            continue;
        }
        match opened(copy) {
            // Where nothing lies any more; or in what was written last: that looks like a loss of power.
            Ok((found, fallbacks)) => {
                // Or its copy was read.
                told += u64::from(fallbacks > 0);
                assert!(states.contains(&found), "seed {seed}, flip {number} at {at}: as at no moment");
            }
            Err(Error::Damaged { place, what }) => {
                told += 1;
                let names = ["node", "map", "superblock", "log", "basement", "buffer"];
                assert!(names.iter().any(|name| place.contains(name) || what.contains(name)), "{place}: {what}");
            }
            Err(error) => panic!("seed {seed}, flip {number} at {at}: {error}"),
        }
    }
    told
}

/// All that a store holds, and how often a copy of something was read in place of the other.
fn opened(device: Arc<MemoryDevice>) -> Result<(Entries, u64), Error> {
    let store = Evergreen::open(device, FEW)?;
    Ok((entries(&store)?, store.copy_figures().fallbacks))
}

#[test]
fn it_gets_along_with_a_device_that_fails_at_random() {
    let struck: u64 = (0..3).map(|seed| soak(seed, 12)).sum();
    assert!(struck > 40, "{struck} requests were refused");
}

#[test]
fn no_bit_that_flips_at_rest_is_believed() {
    let told: u64 = (0..2).map(|seed| flip(seed, 150)).sum();
    // Of the others some hit what is dead, or a copy that nobody reads while the first one is whole.
    assert!(told > 15, "{told} flips were told");
}

/// For the nights: `cargo test -p senesce-evergreen --test store -- --ignored`.
#[test]
#[ignore = "minutes"]
fn it_gets_along_with_devices_that_fail_for_long() {
    for seed in 100..140 {
        soak(seed, 60);
        flip(seed, 1000);
    }
}
