//! Requests that fail, and devices that lie: a clear error or the right answer, and nothing durable is lost.

use std::sync::Arc;

use bytes::Bytes;
use senesce_block::{FaultDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{Error, Evergreen, KeyValue, Limits, MakeOptions, ModelStore};

use crate::rig::{TINY, draw, entries, key, made};

const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(64 << 10), ..TINY };
/// Hardly anything stays in memory, so that there are many reads.
const FEW: Limits = Limits { cache_bytes: 4 << 10, dirty_bytes: 16 << 10 };
const KEYS: u64 = 120;

type Entries = Vec<(Bytes, Bytes)>;

/// What came of a run.
struct Outcome {
    /// How many requests were not done as they should.
    struck: u64,
    /// What was there after each batch that was done; behind them, that of the one that was refused by what stopped it all.
    states: Vec<Entries>,
    /// The last state that was promised to be durable.
    promised: usize,
    errors: Vec<String>,
}

/// Runs on a device with a fault. Errors are noted; all that is answered must be right.
fn run(device: &Arc<MemoryDevice>, fault: &str, seed: u64) -> Outcome {
    let faulty = Arc::new(FaultDevice::new(device.clone()));
    faulty.inject(fault).unwrap();
    let mut outcome = Outcome { struck: 0, states: vec![Vec::new()], promised: 0, errors: Vec::new() };
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
    outcome
}

/// Faults of a kind that strike the first, second, ... request, with growing steps, until one comes behind the end of the run.
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
            assert!(number > 30, "{fault}: there are not as many requests");
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
fn a_request_that_fails_is_told_and_nothing_durable_is_lost() {
    let start = made(4 << 20, &TIGHT);
    for kind in ["write", "flush", "read"] {
        for behind in ["", ".."] {
            each_fault(
                &start,
                |number| format!("fail {kind} {number}{behind}"),
                |fault, device, outcome| {
                    assert!(!outcome.errors.is_empty(), "{fault}: nobody was told");
                    let told =
                        outcome.errors.iter().all(|error| error.contains("injected") || error.contains("stopped"));
                    assert!(told, "{fault}: {:?}", outcome.errors.last());
                    let found = opened(device).unwrap_or_else(|error| panic!("{fault}: {error}"));
                    let durable = &outcome.states[outcome.promised..];
                    assert!(
                        durable.contains(&found),
                        "{fault}: {} entries, as at no moment since it was promised",
                        found.len()
                    );
                },
            );
        }
    }
}

#[test]
fn one_failed_write_of_a_node_is_tried_again() {
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
fn a_bit_that_is_read_wrong_is_seen() {
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
fn what_a_device_that_lies_left_is_never_taken_for_what_it_is_not() {
    let start = made(4 << 20, &TIGHT);
    for lie in ["flip write N bit M", "lose write N", "tear write N keep 512", "misdirect write N to 1200000"] {
        let fault = |number: u64| lie.replace('N', &number.to_string()).replace('M', &(number * 7919).to_string());
        each_fault(&start, fault, |fault, device, outcome| match opened(device) {
            Ok(found) => assert!(outcome.states.contains(&found), "{fault}: {} entries, as at no moment", found.len()),
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{fault}: {error}"),
        });
    }
}
