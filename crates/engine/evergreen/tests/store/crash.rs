//! Loss of power after every write of a run: it opens, and holds all batches up to one that is not before the last sync.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{Batch, Claim, Evergreen, KeyValue, Limits, MakeOptions, ModelStore, check_store};

use crate::rig::{LITTLE, TINY, draw, entries, made};

/// The log is full after some dozens of batches, and much is dirty after fewer.
const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(64 << 10), ..TINY };
const FEW: Limits = Limits { cache_bytes: 8 << 10, dirty_bytes: 24 << 10 };

type Entries = Vec<(Bytes, Bytes)>;

/// A run on a device that records: after each batch what the store holds; marks are numbers of batches that are durable.
pub struct Run {
    pub recording: Recording,
    pub states: Vec<Entries>,
    /// Bytes of batches that were not logged.
    pub unlogged: u64,
}

/// What a run is beside drawn batches.
#[derive(Clone, Copy, Default)]
pub struct Kind {
    /// What is due is done at some moments only.
    pub is_attended: bool,
    /// Half of the batches are long runs of values in order.
    pub has_runs: bool,
}

/// One of fifteen batches of a run.
fn run_batch(number: usize) -> Batch {
    let mut batch = Batch::new();
    for value in 0..3 {
        let bytes = vec![(number % 250) as u8 + 1; 1500 + (number * 37 + value * 911) % 2500];
        batch.put(format!("c/{:02}/{value}", number % 15), bytes);
    }
    batch.claim = Claim { bytes: 1, is_removal: false };
    batch
}

/// Applies drawn batches, syncs and checkpoints now and then, and opens again.
pub fn record(seed: u64, batches: usize, keys: u64, kind: Kind) -> Run {
    let start = made(4 << 20, &TIGHT);
    let (recording, mut devices) = Recording::new(vec![start.fork()]);
    let device: Arc<dyn BlockDevice> = Arc::new(devices.remove(0));
    let model = ModelStore::new(u64::MAX, 0);
    let mut rng = Rng::for_purpose(Seed(seed), "crash");
    let mut states = vec![Vec::new()];
    let open = || {
        let store = Evergreen::open(device.clone(), FEW).unwrap();
        if kind.is_attended {
            store.attend();
        }
        store
    };
    let (mut store, mut unlogged) = (open(), 0);
    for number in 1..=batches {
        let is_run = kind.has_runs && number % 30 >= 15;
        let mut batch = if is_run { run_batch(number) } else { draw(&mut rng, keys) };
        batch.claim.bytes = claimed(number) - claimed(number - 1);
        model.apply(batch.clone()).unwrap();
        states.push(model.entries());
        store.apply(batch).unwrap();
        if kind.is_attended && rng.below(7) == 0 {
            store.work().unwrap();
        }
        match rng.below(40) {
            0..=3 => store.sync().unwrap(),
            4 => store.checkpoint().unwrap(),
            5 => {
                store.sync().unwrap();
                unlogged += store.figures().unlogged_bytes;
                drop(store);
                store = open();
            }
            _ => continue,
        }
        recording.mark(number as u64);
    }
    unlogged += store.figures().unlogged_bytes;
    Run { recording, states, unlogged }
}

/// What is claimed after so many batches: it tells how many, and comes and goes, which earns that leaves are written that need not be.
fn claimed(batches: usize) -> i64 {
    batches as i64 + if batches.is_multiple_of(2) { 0 } else { 3000 }
}

/// By a short name of each state, the batches after which it was there.
fn index(states: &[Entries]) -> BTreeMap<u64, Vec<usize>> {
    let mut all: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, state) in states.iter().enumerate() {
        all.entry(name(state)).or_default().push(number);
    }
    all
}

fn name(state: &Entries) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// What the check finds, without the engine.
fn expect_clean(device: &Arc<MemoryDevice>, told: &str) {
    let device: Arc<dyn BlockDevice> = device.clone();
    let report = check_store(&device).unwrap_or_else(|error| panic!("{told}: {error}"));
    assert!(report.is_clean(), "{told}: {:?}", report.findings);
}

/// Opens what is left; the batches up to one at or behind `promised` are there, and it goes on.
fn check(device: MemoryDevice, states: &BTreeMap<u64, Vec<usize>>, promised: usize, told: &str) {
    let device = Arc::new(device);
    expect_clean(&device, told);
    let store = Evergreen::open(device.clone(), LITTLE).unwrap_or_else(|error| panic!("{told}: {error}"));
    let found = entries(&store).unwrap_or_else(|error| panic!("{told}: {error}"));
    let after = states.get(&name(&found)).unwrap_or_else(|| panic!("{told}: {} entries of no moment", found.len()));
    let last = *after.last().expect("a batch");
    assert!(last >= promised, "{told}: the state after batch {last}; {promised} was promised");
    let live = store.live().bytes as i64;
    let is_claimed = after.iter().any(|batches| claimed(*batches) == live);
    assert!(is_claimed, "{told}: {live} bytes are claimed, those of one of {after:?} batches should be");
    drop(store);
    expect_clean(&device, told);
}

/// Gives the number of states.
pub fn check_crashes(run: &Run, plan: &CrashPlan) -> u64 {
    let (states, mut count) = (index(&run.states), 0);
    run.recording.for_each_crash(plan, |crash| {
        count += 1;
        let (told, promised) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        check(crash.devices.into_iter().next().expect("one device"), &states, promised, &told);
    });
    count
}

#[test]
fn it_holds_a_prefix_of_the_history_whenever_power_is_lost() {
    let mut states = 0;
    let attended = Kind { is_attended: true, ..Kind::default() };
    for (seed, kind) in [(0, Kind::default()), (1, Kind::default()), (2, attended)] {
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 12, tears: 3, seed: Seed(seed) };
        states += check_crashes(&record(seed, 300, 200, kind), &plan);
    }
    assert!(states > 1000, "{states} states");
}

#[test]
fn it_does_so_though_long_runs_are_not_logged() {
    let mut states = 0;
    for (seed, is_attended) in [(0, false), (1, true)] {
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 8, tears: 2, seed: Seed(seed) };
        let run = record(seed, 240, 100, Kind { is_attended, has_runs: true });
        assert!(run.unlogged > 200_000, "{} bytes were not logged", run.unlogged);
        states += check_crashes(&run, &plan);
    }
    assert!(states > 500, "{states} states");
}

#[test]
fn power_may_be_lost_again_while_it_opens() {
    let run = record(7, 200, 150, Kind { has_runs: true, ..Kind::default() });
    let states = index(&run.states);
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 4, tears: 1, seed: Seed(2) };
    let (mut first, mut count) = (0, 0);
    run.recording.for_each_crash(&plan, |crash| {
        first += 1;
        if first % 23 != 0 {
            return;
        }
        let (told, promised) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        let (again, mut devices) = Recording::new(crash.devices);
        drop(Evergreen::open(Arc::new(devices.remove(0)), FEW).unwrap());
        again.for_each_crash(&plan, |second| {
            count += 1;
            let told = format!("{told}; then {second}");
            check(second.devices.into_iter().next().expect("one device"), &states, promised, &told);
        });
    });
    assert!(count > 200, "{count} states");
}

/// Some hundred thousand states, for the nights: `cargo test -p senesce-evergreen --test store -- --ignored`.
#[test]
#[ignore = "minutes"]
fn it_holds_a_prefix_of_the_history_in_a_hundred_thousand_states() {
    let mut states = 0;
    for seed in 100.. {
        let kind = Kind { is_attended: seed % 3 == 0, has_runs: seed % 2 == 0 };
        let plan = CrashPlan { exhaustive_up_to: 6, samples: 24, tears: 6, seed: Seed(seed) };
        states += check_crashes(&record(seed, 400, 100 + seed % 7 * 60, kind), &plan);
        if states > 100_000 {
            break;
        }
    }
}
