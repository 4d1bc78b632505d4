//! Loss of power after every write of a run. The store opens with a prefix of the batches, at least
//! those before the last sync.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::{Rng, Seed};
use senesce_evergreen::{Batch, Claim, Evergreen, KeyValue, Limits, MakeOptions, ModelStore, check_store};

use crate::rig::{LITTLE, TINY, draw, entries, made};

/// The log is full after some dozens of batches, and the dirty limit is reached earlier.
const TIGHT: MakeOptions = MakeOptions { log_bytes: Some(64 << 10), ..TINY };
const FEW: Limits = Limits { cache_bytes: 8 << 10, dirty_bytes: 24 << 10 };

type Entries = Vec<(Bytes, Bytes)>;

/// A run on a recording device: the contents after each batch. Marks are numbers of durable
/// batches.
pub struct Run {
    pub recording: Recording,
    pub states: Vec<Entries>,
    /// The bytes of batches that were not logged.
    pub unlogged: u64,
}

/// The kind of a run.
#[derive(Clone, Copy, Default)]
pub struct Kind {
    /// Due work is done only at some moments.
    pub has_background: bool,
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

/// Applies random batches, syncs and checkpoints now and then, and reopens.
pub fn record(seed: u64, batches: usize, keys: u64, kind: Kind) -> Run {
    let start = made(4 << 20, &TIGHT);
    let (recording, mut devices) = Recording::new(vec![start.fork()]);
    let device: Arc<dyn BlockDevice> = Arc::new(devices.remove(0));
    let model = ModelStore::new(u64::MAX, 0);
    let mut rng = Rng::for_purpose(Seed(seed), "crash");
    let mut states = vec![Vec::new()];
    let open = || {
        let store = Evergreen::open(device.clone(), FEW).unwrap();
        if kind.has_background {
            store.start_background();
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
        if kind.has_background && rng.below(7) == 0 {
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

/// The claim after `batches` batches. It identifies their number. It also grows and shrinks, which
/// earns credit for rewrites.
fn claimed(batches: usize) -> i64 {
    batches as i64 + if batches.is_multiple_of(2) { 0 } else { 3000 }
}

/// Maps a short name of each state to the batches that led to it.
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

/// The check must have no findings.
fn expect_clean(device: &Arc<MemoryDevice>, case: &str) {
    let device: Arc<dyn BlockDevice> = device.clone();
    let report = check_store(&device).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(report.is_clean(), "{case}: {:?}", report.findings);
}

/// Opens the remaining state. It must have a prefix of the batches, at least the first `promised`,
/// and accept more.
fn check(device: MemoryDevice, states: &BTreeMap<u64, Vec<usize>>, promised: usize, case: &str) {
    let device = Arc::new(device);
    expect_clean(&device, case);
    let store = Evergreen::open(device.clone(), LITTLE).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = entries(&store).unwrap_or_else(|error| panic!("{case}: {error}"));
    let after = states
        .get(&name(&found))
        .unwrap_or_else(|| panic!("{case}: {} entries, which is no state of the run", found.len()));
    let last = *after.last().expect("a batch");
    assert!(last >= promised, "{case}: the state after batch {last}; {promised} was acknowledged");
    let live = store.live().bytes as i64;
    let is_claimed = after.iter().any(|batches| claimed(*batches) == live);
    assert!(is_claimed, "{case}: {live} bytes are claimed; expected those after one of {after:?} batches");
    drop(store);
    expect_clean(&device, case);
}

/// Returns the number of states.
pub fn check_crashes(run: &Run, plan: &CrashPlan) -> u64 {
    let (states, mut count) = (index(&run.states), 0);
    run.recording.for_each_crash(plan, |crash| {
        count += 1;
        let (case, promised) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        check(crash.devices.into_iter().next().expect("one device"), &states, promised, &case);
    });
    count
}

#[test]
fn power_loss_leaves_a_prefix_of_the_batches() {
    let mut states = 0;
    let with_background = Kind { has_background: true, ..Kind::default() };
    for (seed, kind) in [(0, Kind::default()), (1, Kind::default()), (2, with_background)] {
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 12, tears: 3, seed: Seed(seed) };
        states += check_crashes(&record(seed, 300, 200, kind), &plan);
    }
    assert!(states > 1000, "{states} states");
}

#[test]
fn power_loss_with_unlogged_runs_leaves_a_prefix() {
    let mut states = 0;
    for (seed, has_background) in [(0, false), (1, true)] {
        let plan = CrashPlan { exhaustive_up_to: 5, samples: 8, tears: 2, seed: Seed(seed) };
        let run = record(seed, 240, 100, Kind { has_background, has_runs: true });
        assert!(run.unlogged > 200_000, "{} bytes were not logged", run.unlogged);
        states += check_crashes(&run, &plan);
    }
    assert!(states > 500, "{states} states");
}

#[test]
fn second_power_loss_while_opening_is_safe() {
    let run = record(7, 200, 150, Kind { has_runs: true, ..Kind::default() });
    let states = index(&run.states);
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 4, tears: 1, seed: Seed(2) };
    let (mut first, mut count) = (0, 0);
    run.recording.for_each_crash(&plan, |crash| {
        first += 1;
        if first % 23 != 0 {
            return;
        }
        let (case, promised) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        let (again, mut devices) = Recording::new(crash.devices);
        drop(Evergreen::open(Arc::new(devices.remove(0)), FEW).unwrap());
        again.for_each_crash(&plan, |second| {
            count += 1;
            let case = format!("{case}; then {second}");
            check(second.devices.into_iter().next().expect("one device"), &states, promised, &case);
        });
    });
    assert!(count > 200, "{count} states");
}

/// Some hundred thousand states, for nightly runs: `cargo test -p senesce-evergreen --test store --
/// --ignored`.
#[test]
#[ignore = "minutes"]
fn a_hundred_thousand_power_losses_leave_prefixes() {
    let mut states = 0;
    for seed in 100.. {
        let kind = Kind { has_background: seed % 3 == 0, has_runs: seed % 2 == 0 };
        let plan = CrashPlan { exhaustive_up_to: 6, samples: 24, tears: 6, seed: Seed(seed) };
        states += check_crashes(&record(seed, 400, 100 + seed % 7 * 60, kind), &plan);
        if states > 100_000 {
            break;
        }
    }
}
