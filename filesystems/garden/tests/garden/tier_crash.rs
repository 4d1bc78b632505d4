//! Cold blocks: losses of power after each write of a device and each change of the store, and
//! stores that fail at any call.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{ControlFlow, Range},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use senesce_block::{CrashPlan, MemoryDevice, Recording};
use senesce_core::Seed;
use senesce_fsapi::{DirEntry, FileKind, FileSystem, Ino, NewNode};
use senesce_garden::{Error, Garden, Limits, VolumeFs};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectCall, ObjectResult, ObjectStore, PriceList};

use crate::{
    rig::{Devices, Shape, VOLUME, caller, shared},
    tier_rig::{ALL, Store, Tiered, bytes, read},
};

const SHAPE: Shape = Shape { groups: &[(2, true)], media: &[], stripes: 256, log_bytes: 400 << 10 };
const LIMITS: Limits = Limits { cache_bytes: 16 << 12, dirty_bytes: 64 << 12 };
/// Requests are free, so every partly used object is worth rewriting.
pub const FREE: PriceList = PriceList { name: "free requests", date: "never", gb_month: 1000, put: 0, get: 0 };
const BLOCK: usize = 4096;

/// Steps of the story. Each is one operation, or changes nothing visible.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Name, first block, number of blocks, seed of the contents.
    Write(&'static [u8], usize, usize, u8),
    Unlink(&'static [u8]),
    Snapshot,
    DeleteSnapshot,
    Reclaim,
    Point,
    Tier,
    Defrag,
    Delete,
    Orphans,
    Move(u64),
}

/// Objects are created, emptied by writes, by a deleted snapshot and by defragmentation, and
/// deleted.
const STORY: &[Step] = &[
    Step::Write(b"a", 0, 14, 1),
    Step::Write(b"b", 0, 12, 2),
    Step::Tier,
    Step::Snapshot,
    Step::Write(b"a", 3, 8, 3),
    Step::Write(b"c", 0, 9, 4),
    Step::Move(0),
    Step::Tier,
    Step::DeleteSnapshot,
    Step::Reclaim,
    Step::Point,
    Step::Write(b"c", 2, 3, 5),
    Step::Defrag,
    Step::Point,
    Step::Delete,
    Step::Write(b"b", 0, 12, 6),
    Step::Tier,
    Step::Unlink(b"b"),
    Step::Point,
    Step::Delete,
    Step::Orphans,
    Step::Point,
];

/// The files of the volume, and of the snapshot if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    files: BTreeMap<Vec<u8>, Vec<u8>>,
    snapshot: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

fn collect_files(fs: &VolumeFs) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut files = Vec::new();
    let mut note = |entry: DirEntry<'_>| {
        if entry.kind == FileKind::File {
            files.push((entry.name.to_vec(), entry.ino));
        }
        ControlFlow::Continue(())
    };
    fs.read_dir(Ino::ROOT, 0, &mut note).unwrap();
    files.into_iter().map(|(name, ino)| (name, read(fs, ino, 0, 1 << 20).unwrap())).collect()
}

fn collect(garden: &Garden) -> State {
    let snapshot = garden.snapshot(VOLUME, b"s").ok();
    State { files: collect_files(&garden.volume(VOLUME).unwrap()), snapshot: snapshot.map(|fs| collect_files(&fs)) }
}

impl State {
    fn after(&self, step: Step) -> Self {
        let mut state = self.clone();
        match step {
            Step::Write(name, first, blocks, seed) => {
                let file = state.files.entry(name.to_vec()).or_default();
                file.resize(file.len().max((first + blocks) * BLOCK), 0);
                file[first * BLOCK..][..blocks * BLOCK].copy_from_slice(&bytes(blocks, seed));
            }
            Step::Unlink(name) => drop(state.files.remove(name)),
            Step::Snapshot => state.snapshot = Some(state.files.clone()),
            Step::DeleteSnapshot => state.snapshot = None,
            _ => {}
        }
        state
    }
}

/// Errors: those of the store. No other call fails.
fn play(tiered: &Tiered, step: Step) -> Result<(), Error> {
    let garden = tiered.garden();
    match step {
        Step::Write(name, first, blocks, seed) => {
            let found = tiered.fs().lookup(Ino::ROOT, name).ok().map(|found| found.ino);
            let make = || tiered.fs().make_node(&caller(1), Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
            let ino = found.unwrap_or_else(make);
            tiered.fs().write(&caller(2), ino, (first * BLOCK) as u64, &bytes(blocks, seed)).unwrap();
        }
        Step::Unlink(name) => tiered.fs().unlink(&caller(3), Ino::ROOT, name).unwrap(),
        Step::Snapshot => garden.create_snapshot(VOLUME, b"s", caller(4).now).unwrap(),
        Step::DeleteSnapshot => garden.delete_snapshot(VOLUME, b"s").unwrap(),
        Step::Reclaim => drop(garden.reclaim_step(u64::MAX).unwrap()),
        Step::Point => garden.consistency_point().unwrap(),
        Step::Tier => drop(garden.tier(ALL)?),
        Step::Defrag => drop(garden.defrag_objects(&FREE)?),
        Step::Delete => drop(garden.delete_objects()?),
        Step::Orphans => drop(garden.reclaim_objects()?),
        Step::Move(area) => assert_eq!(garden.move_area(0, area).unwrap().stuck, 0),
    }
    Ok(())
}

/// Marks each change of a store in a recording: the number of changes in the lower bits, the number
/// of finished steps in the upper bits.
pub struct Marked {
    pub store: Store,
    pub recording: Recording,
    pub steps: AtomicU64,
}

impl Marked {
    pub fn mark(&self) {
        self.recording.mark(self.steps.load(Relaxed) << 16 | self.store.calls().len() as u64);
    }
}

impl ObjectStore for Marked {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.store.put(key, bytes).map(|()| self.mark())
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        self.store.get_range(key, range)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.store.delete(key).map(|()| self.mark())
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.store.list(under)
    }
}

fn formatted() -> Vec<Arc<MemoryDevice>> {
    let devices: Vec<Arc<MemoryDevice>> = SHAPE.devices().into_iter().map(Arc::new).collect();
    drop(Tiered::on(&SHAPE, devices.iter().map(|device| device.clone() as _).collect(), LIMITS));
    devices
}

pub fn new_store() -> Store {
    Arc::new(FaultObjects::new(MemoryObjects::default()))
}

/// A store after exactly these calls.
pub fn store_after(calls: &[ObjectCall]) -> Store {
    let store = new_store();
    for call in calls {
        match call {
            ObjectCall::Put(key, bytes) => store.inner().put(key, bytes).unwrap(),
            ObjectCall::Delete(key) => store.inner().delete(key).unwrap(),
        }
    }
    store
}

/// No needed object is missing, and unneeded objects are found and deleted.
fn check_all(tiered: &Tiered, told: &str) {
    assert_eq!(tiered.looked().findings, [], "{told}");
    tiered.garden().reclaim_objects().unwrap();
    tiered.garden().consistency_point().unwrap();
    tiered.garden().delete_objects().unwrap();
    assert_eq!(tiered.findings(), [""; 0], "{told}");
    let looked = tiered.looked();
    assert_eq!(looked.orphan_objects, 0, "{told}");
    let folder = "garden-73656e657363652067617264656e2031";
    assert_eq!(tiered.store.inner().list(folder).unwrap().len() as u64, looked.objects, "{told}");
}

#[test]
fn power_loss_loses_no_cold_blocks() {
    let (recording, devices) = Recording::new(formatted().iter().map(|device| device.fork()).collect());
    let store = new_store();
    let marked = Arc::new(Marked { store: store.clone(), recording: recording.clone(), steps: AtomicU64::new(0) });
    let tiered = Tiered::behind(shared(devices), store.clone(), marked.clone(), LIMITS);
    let mut states = vec![State::default()];
    for (number, &step) in (1..).zip(STORY) {
        play(&tiered, step).unwrap();
        let state = states[states.len() - 1].after(step);
        assert_eq!(collect(tiered.garden()), state, "{step:?}");
        states.push(state);
        marked.steps.store(number, Relaxed);
        marked.mark();
    }
    let calls = store.calls();
    let deleted = calls.iter().filter(|call| matches!(call, ObjectCall::Delete(_))).count();
    assert!(calls.len() > 5 && deleted > 1, "{} calls, {deleted} of them deletions", calls.len());
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(21) };
    let (mut count, mut orphans) = (0, 0);
    recording.for_each_crash(&plan, |crash| {
        count += 1;
        let (told, mark) = (crash.to_string(), crash.mark.unwrap_or(0));
        let (done, changes) = ((mark >> 16) as usize, (mark & 0xffff) as usize);
        let store = store_after(&calls[..changes]);
        let tiered = Tiered::of(shared(crash.devices), store, LIMITS);
        orphans += tiered.looked().orphan_objects;
        let found = collect(tiered.garden());
        // One operation makes a file, and the next one writes it.
        let may_be = states.get(done..=done + 1).unwrap_or(&states[done..]);
        let is_made = |state: &State| match STORY.get(done) {
            Some(Step::Write(name, ..)) => {
                let mut made = state.clone();
                made.files.entry(name.to_vec()).or_default();
                made == found
            }
            _ => false,
        };
        assert!(may_be.contains(&found) || is_made(&states[done]), "{told}");
        check_all(&tiered, &told);
        assert_eq!(collect(tiered.garden()), found, "{told}");
        // A later run puts no object under a name of this one.
        tiered.make(b"later", &bytes(3, 7));
        tiered.garden().tier(ALL).unwrap();
        let keys = |calls: &[ObjectCall]| -> BTreeSet<String> {
            let put = |call: &ObjectCall| if let ObjectCall::Put(key, _) = call { Some(key.clone()) } else { None };
            calls.iter().filter_map(put).collect()
        };
        let new = keys(&tiered.store.calls());
        let before = keys(&calls[..changes]);
        assert!(!new.is_empty() && new.is_disjoint(&before), "{told}: {new:?}, {before:?}");
    });
    assert!(count > 150 && orphans > 0, "{count} states, {orphans} orphans");
}

#[test]
fn store_may_fail_at_any_call() {
    let devices = formatted();
    let run = |good: u64, fails: u64| -> u64 {
        let devices: Devices = devices.iter().map(|device| Arc::new(device.fork()) as _).collect();
        let mut tiered = Tiered::of(devices, new_store(), LIMITS);
        tiered.store.fail_after(good, fails);
        let mut state = State::default();
        let mut failed = 0;
        for &step in STORY {
            state = state.after(step);
            match play(&tiered, step) {
                Ok(()) => {}
                Err(Error::ColdStore { .. }) => failed += 1,
                Err(error) => panic!("call {good}: {error}"),
            }
        }
        let calls = tiered.store.counts().all();
        assert!(failed > 0 || good >= calls, "call {good} did not fail");
        tiered.store.heal();
        let told = format!("calls {good} and {fails} more failed");
        assert_eq!(collect(tiered.garden()), state, "{told}");
        tiered.garden().tier(ALL).unwrap();
        check_all(&tiered, &told);
        tiered.open();
        assert_eq!(collect(tiered.garden()), state, "{told}");
        calls
    };
    let all = run(u64::MAX / 2, 1);
    assert!(all > 20, "{all} calls");
    for good in 0..all {
        run(good, 1);
        run(good, u64::MAX);
    }
}
