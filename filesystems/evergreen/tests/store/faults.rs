//! Requests that fail, and devices that return wrong data. The result is a clear error or the right
//! answer, and no durable data is lost.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{
    Batch, Error, Evergreen, KeyValue, Limits, MakeOptions, ModelStore, check_store,
    disk::{Area, NodeMap, read_newest},
};

use crate::rig::{TINY, draw, entries, key, made};

const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(64 << 10), ..TINY };
/// Hardly any cache, so that there are many reads.
const FEW: Limits = Limits { cache_bytes: 4 << 10, dirty_bytes: 16 << 10 };
const KEYS: u64 = 120;

type Entries = Vec<(Bytes, Bytes)>;

/// The outcome of a run.
struct Outcome {
    /// The number of requests with a fault.
    struck: u64,
    /// The contents after each applied batch; at the end those of the batch that failed with the
    /// stop.
    states: Vec<Entries>,
    /// The last acknowledged state.
    promised: usize,
    errors: Vec<String>,
    /// The failed reads that the store counts as not reported.
    passed_over: u64,
}

/// Runs on a device with a fault. Errors are noted; all answers must be right.
fn run(device: &Arc<MemoryDevice>, fault: &str, seed: u64) -> Outcome {
    let faulty = Arc::new(FaultDevice::new(device.clone()));
    faulty.inject(fault).unwrap();
    let mut outcome = Outcome { struck: 0, states: vec![Vec::new()], promised: 0, errors: Vec::new(), passed_over: 0 };
    let store = match Evergreen::open(faulty.clone(), FEW) {
        Ok(store) => store,
        Err(error) => {
            outcome.errors.push(error.to_string());
            outcome.struck = faulty.struck();
            return outcome;
        }
    };
    let model = ModelStore::new(u64::MAX, 0);
    let mut rng = Rng::for_purpose(Seed(seed), "faults");
    for number in 0..160 {
        let batch = draw(&mut rng, KEYS);
        match store.apply(batch.clone()) {
            Ok(()) => {
                model.apply(batch).unwrap();
                outcome.states.push(model.entries());
            }
            Err(error) => outcome.errors.push(error.to_string()),
        }
        let at = key(rng.below(KEYS));
        match store.get(&at) {
            Ok(value) => assert_eq!(value, model.get(&at).unwrap(), "{fault}, batch {number}"),
            Err(error) => outcome.errors.push(error.to_string()),
        }
        let durable = match rng.below(30) {
            0..=2 => store.sync(),
            3 => store.checkpoint(),
            _ => continue,
        };
        match durable {
            Ok(()) => outcome.promised = outcome.states.len() - 1,
            Err(error) => outcome.errors.push(error.to_string()),
        }
    }
    match entries(&store) {
        Ok(found) => assert!(found == model.entries(), "{fault}"),
        Err(error) => outcome.errors.push(error.to_string()),
    }
    outcome.struck = faulty.struck();
    outcome.passed_over = store.figures().reads_passed_over + store.copy_figures().fallbacks;
    outcome
}

/// Runs with a fault at the first, second, ... request, in growing steps, until it is after the end
/// of the run.
fn each_fault(
    start: &Arc<MemoryDevice>,
    fault: impl Fn(u64) -> String,
    mut check: impl FnMut(&str, MemoryDevice, Outcome),
) {
    let mut number = 1;
    loop {
        let device = Arc::new(start.fork());
        let fault = fault(number);
        let outcome = run(&device, &fault, 1);
        if outcome.struck == 0 {
            assert!(number > 30, "{fault}: too few requests");
            return;
        }
        check(&fault, device.fork(), outcome);
        number += 1 + number / 12;
    }
}

fn opened(device: MemoryDevice) -> Result<Entries, Error> {
    entries(&Evergreen::open(Arc::new(device), FEW)?)
}

#[test]
fn failed_requests_are_reported_and_lose_nothing() {
    let start = made(4 << 20, &TIGHT);
    let mut passed_over = 0;
    for kind in ["write", "flush", "read"] {
        for suffix in ["", ".."] {
            each_fault(
                &start,
                |number| format!("fail {kind} {number}{suffix}"),
                |fault, device, outcome| {
                    // A read for a better layout, or one that was repeated, is only counted.
                    assert!(!outcome.errors.is_empty() || outcome.passed_over > 0, "{fault}: no error was reported");
                    assert!(kind == "read" || outcome.passed_over == 0, "{fault}: no read failed");
                    if suffix.is_empty() {
                        let reported = outcome.errors.len() as u64 + outcome.passed_over;
                        assert!(
                            reported <= 1 || kind != "read",
                            "{fault}: reported {reported} times: {:?}",
                            outcome.errors
                        );
                        passed_over += outcome.passed_over;
                    }
                    let is_reported =
                        outcome.errors.iter().all(|error| error.contains("injected") || error.contains("stopped"));
                    assert!(is_reported, "{fault}: {:?}", outcome.errors.last());
                    let found = opened(device).unwrap_or_else(|error| panic!("{fault}: {error}"));
                    let durable = &outcome.states[outcome.promised..];
                    assert!(
                        durable.contains(&found),
                        "{fault}: {} entries, which is no state since the acknowledged one",
                        found.len()
                    );
                },
            );
        }
    }
    assert!(passed_over > 1, "{passed_over} reads were skipped");
}

#[test]
fn failed_write_of_a_node_is_retried() {
    let start = made(4 << 20, &TIGHT);
    let mut went_on = 0;
    each_fault(
        &start,
        |number| format!("fail write {number}"),
        |_, _, outcome| {
            went_on += u64::from(outcome.errors.len() == 1);
        },
    );
    assert!(went_on > 5, "{went_on} runs had one error only");
}

#[test]
fn bit_flips_in_reads_are_detected() {
    let start = made(4 << 20, &TIGHT);
    each_fault(
        &start,
        |number| format!("flip read {number} bit {}", number * 7919),
        |fault, device, outcome| {
            let found = opened(device).unwrap_or_else(|error| panic!("{fault}: {error}"));
            assert!(outcome.states[outcome.promised..].contains(&found), "{fault}");
        },
    );
}

#[test]
fn wrong_data_of_a_device_is_never_accepted() {
    let start = made(4 << 20, &TIGHT);
    for lie in ["flip write N bit M", "lose write N", "tear write N keep 512", "misdirect write N to 1200000"] {
        let fault = |number: u64| lie.replace('N', &number.to_string()).replace('M', &(number * 7919).to_string());
        each_fault(&start, fault, |fault, device, outcome| match opened(device) {
            Ok(found) => assert!(
                outcome.states.contains(&found),
                "{fault}: {} entries, which is no state of the run",
                found.len()
            ),
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{fault}: {error}"),
        });
    }
}

/// The place of a leaf: offset and length.
fn a_leaf(device: &Arc<MemoryDevice>) -> (u64, u64) {
    let superblock = read_newest(&**device).unwrap();
    let area = Area::new(device.clone(), superblock.geometry);
    let map = NodeMap::load(&area, &superblock).unwrap();
    let leaf = map.iter().map(|(_, place)| place).find(|place| {
        let levels = area.read(&place.extents, 0, 40).unwrap()[21];
        levels == 0 && place.bytes > 2000
    });
    let place = leaf.expect("there are leaves");
    (superblock.geometry.unit_at(place.extents[0].first), place.bytes.into())
}

#[test]
fn an_unreadable_leaf_does_not_block_others() {
    a_leaf_cannot_be_read(&|_| 0);
}

#[test]
fn background_work_ends_with_an_unreadable_leaf() {
    a_leaf_cannot_be_read(&|store| {
        store.start_background();
        let is_at_end = |done: &Result<bool, Error>| !matches!(done, Ok(true));
        let last = (0..100).map(|_| store.work()).find(is_at_end);
        last.expect("the work does not end").is_err().into()
    });
}

/// Calls `work` after each write; it returns the number of failures.
fn a_leaf_cannot_be_read(work: &dyn Fn(&Evergreen) -> usize) {
    const KEYS: u64 = 600;
    let device = made(4 << 20, &TINY);
    let store = Evergreen::open(device.clone(), FEW).unwrap();
    let mut model = BTreeMap::new();
    let mut put = |store: &Evergreen, key: Bytes, byte: u8| {
        let mut batch = Batch::new();
        batch.put(key.clone(), vec![byte; 100]);
        let done = store.apply(batch);
        if done.is_ok() {
            model.insert(key, byte);
        }
        done
    };
    (0..KEYS).for_each(|number| put(&store, key(number), 1).unwrap());
    store.checkpoint().unwrap();
    drop(store);
    let (at, len) = a_leaf(&device);
    let faulty = Arc::new(FaultDevice::new(device));
    faulty.inject(&format!("fail read at {at}+{len}")).unwrap();
    let store = Evergreen::open(faulty.clone(), FEW).unwrap();
    let mut rng = Rng::for_purpose(Seed(5), "writes");
    let mut write = |number: u64| put(&store, [&key(rng.below(KEYS))[..], &number.to_le_bytes()].concat().into(), 2);
    let (mut refused, mut failed) = (0, 0);
    for number in 0..2000 {
        refused += usize::from(write(number).is_err());
        failed += work(&store);
    }
    assert!(refused < 20 && refused + failed > 0, "{refused} of 2000 were refused, {failed} times work failed");
    store.sync().unwrap();
    store.stop_background();
    assert!(!store.work().unwrap(), "background work is stopped");
    drop(store);
    // Like after a kill: the messages for that leaf are in the log or in the nodes above.
    let store = Evergreen::open(faulty, FEW).unwrap();
    let mut lost = 0;
    for (key, byte) in &model {
        match store.get(key) {
            Ok(value) => assert_eq!(value.unwrap(), vec![*byte; 100], "{key:?}"),
            Err(_) => lost += 1,
        }
    }
    assert!((1..60).contains(&lost), "{lost} of {} cannot be read", model.len());
}

#[test]
fn unreadable_superblock_leaves_the_other_one() {
    // The newer superblock is at 0. Frames of the log prove that it was durable.
    for (slot, copy, is_newer) in [(0, 768 << 10, true), (1 << 20, 256 << 10, false)] {
        let device = made(4 << 20, &TIGHT);
        let store = Evergreen::open(device.clone(), FEW).unwrap();
        let mut batch = Batch::new();
        batch.put(key(1), vec![1; 100]);
        store.apply(batch).unwrap();
        store.sync().unwrap();
        drop(store);
        let faulty = Arc::new(FaultDevice::new(device));
        faulty.inject(&format!("fail read at {slot}+4096")).unwrap();
        faulty.inject(&format!("fail read at {copy}+4096")).unwrap();
        let report = check_store(&(faulty.clone() as Arc<dyn BlockDevice>)).unwrap();
        assert_eq!(report.is_clean(), !is_newer, "{slot}: {:?}", report.findings);
        let torn = report.torn_superblock.unwrap();
        assert!(torn.to_string().contains("one that can be read"), "{slot}: {torn}");
        match Evergreen::open(faulty, FEW) {
            Ok(store) => {
                assert!(!is_newer && entries(&store).unwrap().len() == 1, "{slot}");
                let text = store.torn().unwrap().to_string();
                assert!(text.starts_with("superblock at 1 MiB could not be read, superblock 2 and the log"), "{text}");
            }
            Err(error) => assert!(is_newer && matches!(error, Error::Damaged { .. }), "{slot}: {error}"),
        }
    }
}

#[test]
fn log_of_an_earlier_store_is_ignored() {
    let device = made(4 << 20, &TIGHT);
    let store = Evergreen::open(device.clone(), FEW).unwrap();
    for number in 0..6 {
        let mut batch = Batch::new();
        batch.put(key(number), vec![1; 100]);
        store.apply(batch).unwrap();
        store.sync().unwrap();
    }
    drop(store);
    assert_eq!(opened(device.fork()).unwrap().len(), 6);
    Evergreen::make(device.clone(), &TIGHT).unwrap();
    assert_eq!(opened(device.fork()).unwrap(), []);
}

#[test]
fn unreadable_ring_block_keeps_all_batches() {
    let start = made(4 << 20, &TIGHT);
    let store = Evergreen::open(start.clone(), FEW).unwrap();
    let put = |store: &Evergreen, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let mut batch = Batch::new();
            batch.put(key(number), vec![number as u8 + 1; 600]);
            store.apply(batch).unwrap();
            store.sync().unwrap();
        }
    };
    put(&store, 0..20);
    store.checkpoint().unwrap();
    put(&store, 20..23);
    drop(store);
    let geometry = read_newest(&*start).unwrap().geometry;
    for at in geometry.log().step_by(4096) {
        let device = Arc::new(FaultDevice::new(start.fork()));
        device.inject(&format!("fail read at {at}+4096")).unwrap();
        let opened = || Evergreen::open(device.clone(), FEW).unwrap_or_else(|error| panic!("block at {at}: {error}"));
        let store = opened();
        assert_eq!(entries(&store).unwrap().len(), 23, "block at {at}");
        // The log continues, also over that block.
        put(&store, 23..26);
        drop(store);
        assert_eq!(entries(&opened()).unwrap().len(), 26, "block at {at}");
    }
}
