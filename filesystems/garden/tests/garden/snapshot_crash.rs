//! Snapshots and losses of power, and random runs against a model that keeps a tree for each
//! snapshot.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use senesce_block::{CrashPlan, MemoryDevice, Recording};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, Timestamp,
    conformance::{Draw, Operation, Player, SequenceOptions, Subject, Tree, collect_tree, find_difference, set_root},
};
use senesce_garden::{DefragFiles, Error, Gardening, Limits, Packing, Placing, Tiering, VolumeFs, check_with};
use senesce_objects::{ObjectCall, ObjectStore};

use crate::{
    crash::{LIMITS, story},
    guard::guard,
    rig::{Devices, LARGE, Rig, Shape, TIGHT, VOLUME, findings_with, open_with, shared},
    tier_crash::{FREE, Marked, new_store, store_after},
};

pub const NOW: Timestamp = Timestamp { seconds: 5, nanoseconds: 0 };
pub const SHAPE: Shape = Shape { groups: &[(2, true)], media: &[], stripes: 512, log_bytes: 400 << 10 };

/// Events of an aggregate with snapshots.
#[derive(Clone, Debug)]
pub enum Event {
    Do(Operation),
    Create(String),
    Delete(String),
    Restore(String),
    Reclaim(u64),
    Point,
    /// Gardening: an area, or a step of a pass. None of it changes visible contents.
    MoveArea(u64),
    Scan(u64),
    FixUp(u64),
    Dedup(u64),
    Recompact(u64),
    /// Defragments the files.
    Defrag,
    /// Reads blocks of a file in order, from the first one; fragmented blocks may be rewritten.
    Read(String, u64, u64),
    /// Objects: move blocks that were last written this many consistency points ago to objects,
    /// merge mostly empty objects, delete unneeded ones, and delete those that no consistency point
    /// names.
    Tier(u16),
    DefragObjects,
    DeleteObjects,
    Orphans,
}

/// The expected trees of a volume and its snapshots.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub tree: Tree,
    pub snapshots: BTreeMap<String, Tree>,
}

impl State {
    /// A difference between an aggregate and this state.
    pub fn find_difference(&self, garden: &senesce_garden::Garden) -> Option<String> {
        let names = garden.snapshots(VOLUME).unwrap();
        let names: Vec<String> = names.into_iter().map(|one| String::from_utf8(one.name).unwrap()).collect();
        let mut sorted = names.clone();
        sorted.sort();
        if !sorted.iter().eq(self.snapshots.keys()) {
            return Some(format!("snapshots {sorted:?}, not {:?}", self.snapshots.keys()));
        }
        let live = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
        let own = find_difference(&self.tree, &live).map(|difference| format!("the volume: {difference}"));
        own.or_else(|| {
            self.snapshots.iter().find_map(|(name, want)| {
                let tree = collect_tree(&garden.snapshot(VOLUME, name.as_bytes()).unwrap()).unwrap();
                find_difference(want, &tree).map(|difference| format!("snapshot {name}: {difference}"))
            })
        })
    }
}

/// Plays events on an aggregate and on its model.
pub struct Play {
    model: ModelFs,
    players: [Player; 2],
    pub state: State,
    /// Moved blocks, fixed pointers, shared blocks.
    pub gardened: [u64; 3],
    /// Chunks that recompaction moved.
    pub recompacted: u64,
    /// Blocks moved to objects, blocks moved between objects, blocks rewritten after reading, and
    /// deleted objects.
    pub cold: [u64; 4],
    gardening: Gardening,
}

impl Play {
    pub fn new(gardening: Gardening) -> Self {
        let model = ModelFs::new(Bytes(Bytes::GIB));
        set_root(&model).unwrap();
        let state = State { tree: collect_tree(&model).unwrap(), ..State::default() };
        Self {
            model,
            players: [Player::default(), Player::default()],
            state,
            gardened: [0; 3],
            recompacted: 0,
            cold: [0; 4],
            gardening,
        }
    }

    pub fn play(&mut self, rig: &mut Rig, event: &Event) {
        if rig.garden().gardening() != self.gardening {
            rig.garden().set_gardening(self.gardening);
        }
        let before = rig.garden().report().counts;
        match event {
            Event::Do(operation) => {
                let got = self.players[0].play(rig, operation);
                let want = self.players[1].play(&mut self.model, operation);
                assert_eq!(format!("{got:?}"), format!("{want:?}"), "{operation:?}");
                self.state.tree = collect_tree(&self.model).unwrap();
            }
            Event::Create(name) => {
                rig.garden().create_snapshot(VOLUME, name.as_bytes(), NOW).unwrap();
                self.state.snapshots.insert(name.clone(), self.state.tree.clone());
            }
            Event::Delete(name) => {
                rig.garden().delete_snapshot(VOLUME, name.as_bytes()).unwrap();
                self.state.snapshots.remove(name);
            }
            // At the end only, because the model has no restore.
            Event::Restore(name) => {
                rig.garden().restore_snapshot(VOLUME, name.as_bytes()).unwrap();
                self.state.tree = self.state.snapshots[name].clone();
            }
            Event::Reclaim(blocks) => {
                rig.garden().reclaim_step(*blocks).unwrap();
            }
            Event::Point => rig.garden().consistency_point().unwrap(),
            Event::MoveArea(area) => match rig.garden().move_area(0, *area) {
                Ok(moves) => assert_eq!(moves.stuck, 0),
                Err(Error::NoSpace { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            Event::Scan(areas) => {
                let cleaning = rig.garden().gardening().cleaning.unwrap_or_default();
                rig.garden().scan_step(*areas, cleaning).unwrap();
            }
            Event::FixUp(pointers) => drop(rig.garden().fix_up_step(VOLUME, *pointers).unwrap()),
            Event::Recompact(vvbns) => {
                let step = rig.garden().recompact_step(VOLUME, *vvbns, 100).unwrap();
                assert_eq!(step.unread, 0);
                self.recompacted += step.chunks;
            }
            Event::Defrag => {
                rig.garden().defragment(VOLUME, DefragFiles::All, Placing::FakeDirty).unwrap();
            }
            Event::Read(name, first, blocks) => read_in_order(rig.fs(), name, *first, *blocks),
            Event::Tier(age) => {
                let done = rig.garden().tier(Tiering { age: *age, with_cached: true }).unwrap();
                assert_eq!(done.unread, 0);
                self.cold[0] += done.tiered;
            }
            Event::DefragObjects => {
                let done = rig.garden().defrag_objects(&FREE).unwrap();
                assert_eq!(done.unread, 0);
                self.cold[1] += done.blocks;
            }
            Event::DeleteObjects => self.cold[3] += rig.garden().delete_objects().unwrap(),
            Event::Orphans => drop(rig.garden().reclaim_objects().unwrap()),
            Event::Dedup(blocks) => self.gardened[2] += rig.garden().dedup_step(VOLUME, *blocks).unwrap().shared,
        }
        let after = rig.garden().report().counts;
        // An opening resets the counts to 0.
        self.gardened[0] += after.relocations.saturating_sub(before.relocations);
        self.gardened[1] += after.fix_ups.saturating_sub(before.fix_ups);
        self.cold[2] += after.rewritten_after_read.saturating_sub(before.rewritten_after_read);
    }
}

/// Reads blocks of a file sequentially, if the file exists.
fn read_in_order(fs: &VolumeFs, name: &str, first: u64, blocks: u64) {
    let Ok(found) = fs.lookup(Ino::ROOT, name.as_bytes()) else { return };
    let mut data = vec![0; 4 << 12];
    for block in (first..first + blocks).step_by(4) {
        fs.read(found.ino, block << 12, &mut data).unwrap();
    }
}

/// The story of crash tests, with snapshots created and deleted during it.
pub fn events() -> Vec<Event> {
    let mut events: Vec<Event> = story().into_iter().map(Event::Do).collect();
    let name = |name: &str| name.to_owned();
    let last = events.len();
    for (at, event) in [
        (last, Event::Restore(name("c"))),
        (last, Event::Delete(name("d"))),
        (24, Event::Reclaim(1)),
        (23, Event::Delete(name("b"))),
        (22, Event::Create(name("d"))),
        (18, Event::Create(name("c"))),
        (16, Event::Point),
        (15, Event::Delete(name("a"))),
        (12, Event::Create(name("b"))),
        (5, Event::Create(name("a"))),
    ] {
        events.insert(at, event);
    }
    events
}

/// The aggregate on which events are played.
#[derive(Clone, Debug)]
pub struct Setting {
    /// A missing drive.
    pub missing: Option<usize>,
    pub gardening: Gardening,
    pub packing: Packing,
    pub limits: Limits,
    /// Whether there is an object store.
    pub has_objects: bool,
}

impl Default for Setting {
    fn default() -> Self {
        let (gardening, packing) = (Gardening::default(), Packing::default());
        Self { missing: None, gardening, packing, limits: LIMITS, has_objects: false }
    }
}

pub struct Run {
    recording: Recording,
    states: Vec<State>,
    limits: Limits,
    /// The calls to the object store, if there is one.
    calls: Option<Vec<ObjectCall>>,
    pub cold: [u64; 4],
    pub gardened: [u64; 3],
    pub recompacted: u64,
}

fn record(events: &[Event], missing: Option<usize>) -> Run {
    record_with(events, missing, Gardening::default())
}

pub fn record_with(events: &[Event], missing: Option<usize>, gardening: Gardening) -> Run {
    record_packed(events, missing, gardening, Packing::default())
}

/// The same for a volume with packing.
pub fn record_packed(events: &[Event], missing: Option<usize>, gardening: Gardening, packing: Packing) -> Run {
    record_as(events, &Setting { missing, gardening, packing, ..Setting::default() })
}

pub fn record_as(events: &[Event], setting: &Setting) -> Run {
    let Setting { missing, gardening, packing, limits, has_objects } = setting.clone();
    let devices: Vec<Arc<MemoryDevice>> = SHAPE.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&SHAPE, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    set_root(rig.fs()).unwrap();
    if packing != Packing::default() {
        rig.garden().set_packing(VOLUME, packing).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let mut forks: Vec<MemoryDevice> = devices.iter().map(|device| device.fork()).collect();
    missing.into_iter().for_each(|missing| drop(forks.remove(missing)));
    let (recording, devices) = Recording::new(forks);
    let mut rig = Rig::closed(shared(devices), limits);
    let marked = Arc::new(Marked { store: new_store(), recording: recording.clone(), steps: AtomicU64::new(0) });
    rig.store = has_objects.then(|| marked.clone() as _);
    rig.open().unwrap();
    let mut play = Play::new(gardening);
    let mut states = vec![play.state.clone()];
    for (number, event) in (1..).zip(events) {
        play.play(&mut rig, event);
        marked.steps.store(number, Relaxed);
        marked.mark();
        states.push(play.state.clone());
    }
    assert_eq!(play.state.find_difference(rig.garden()), None);
    let calls = has_objects.then(|| marked.store.calls());
    let Play { gardened, recompacted, cold, .. } = play;
    Run { recording, states, limits, calls, cold, gardened, recompacted }
}

/// Opens an aggregate after a loss of power. The volume and its snapshots are in the state after
/// the last finished event, or after the event in progress.
fn check_state(devices: &Devices, store: Option<&Arc<dyn ObjectStore>>, run: &Run, done: usize, told: &str) {
    let (states, limits) = (&run.states, run.limits);
    let garden = open_with(devices, limits, store.cloned()).unwrap_or_else(|error| panic!("{told}: {error}"));
    let after = states.get(done..=done + 1).unwrap_or(&states[done..]);
    let differences: Vec<String> = after.iter().map_while(|state| state.find_difference(&garden)).collect();
    assert!(differences.len() < after.len(), "{told}: {}", differences.join("; or "));
    let found = findings_with(devices, store);
    assert!(found.is_empty(), "{told}: {}", found.join("\n"));
    // The rest can be reclaimed.
    assert_eq!(garden.reclaim_step(u64::MAX).unwrap(), 0, "{told}");
    let found = findings_with(devices, store);
    assert!(found.is_empty(), "{told}, reclaimed: {}", found.join("\n"));
    if let Some(store) = store {
        garden.reclaim_objects().unwrap_or_else(|error| panic!("{told}: {error}"));
        garden.consistency_point().unwrap();
        garden.delete_objects().unwrap();
        garden.consistency_point().unwrap();
        let (log, drives) = devices.split_last().unwrap();
        let looked = check_with(drives, log, Some(store)).unwrap();
        assert_eq!((looked.findings.len(), looked.orphan_objects), (0, 0), "{told}: {:?}", looked.findings);
        assert_eq!(garden.cold().deletable, 0, "{told}");
    }
}

pub fn check_run(run: &Run, plan: &CrashPlan, lose: impl Fn(usize, &mut Devices)) -> usize {
    check_some(run, plan, 1, lose)
}

/// The same for every `of`-th state. Returns the number of checked states.
pub fn check_some(run: &Run, plan: &CrashPlan, of: usize, lose: impl Fn(usize, &mut Devices)) -> usize {
    let mut count = 0;
    run.recording.for_each_crash(plan, |crash| {
        count += 1;
        if count % of != 0 {
            return;
        }
        let (told, mark) = (crash.to_string(), crash.mark.unwrap_or(0));
        let (done, changes) = ((mark >> 16) as usize, (mark & 0xffff) as usize);
        let store = run.calls.as_ref().map(|calls| store_after(&calls[..changes]) as Arc<dyn ObjectStore>);
        let mut devices = shared(crash.devices);
        lose(count, &mut devices);
        check_state(&devices, store.as_ref(), run, done, &told);
    });
    count / of
}

#[test]
fn snapshots_are_complete_or_absent_after_power_loss() {
    let run = record(&events(), None);
    let plan = CrashPlan { exhaustive_up_to: 2, samples: 3, tears: 1, seed: Seed(11) };
    let count = check_run(&run, &plan, |_, _| {});
    assert!(count > 200, "{count} states");
}

#[test]
fn snapshots_survive_losing_a_drive_and_power() {
    let run = record(&events(), None);
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 2, tears: 0, seed: Seed(12) };
    let count = check_run(&run, &plan, |count, devices| drop(devices.remove(count % 3)));
    assert!(count > 100, "{count} states");
    let run = record(&events(), Some(1));
    let count = check_run(&run, &plan, |_, _| {});
    assert!(count > 100, "{count} states");
}

/// Random operations, with snapshots that are created, deleted and reclaimed at random.
fn draw(seed: Seed, options: &SequenceOptions) -> Vec<Event> {
    let mut rng = Rng::for_purpose(seed, "snapshots");
    let (mut events, mut names, mut number) = (Vec::new(), Vec::new(), 0);
    for operation in Draw::new(seed, options).take(options.operations) {
        events.push(Event::Do(operation));
        match rng.below(40) {
            0..=2 if names.len() < 5 => {
                names.push(format!("snapshot {number}"));
                number += 1;
                events.extend(names.last().cloned().map(Event::Create));
            }
            3..=4 if !names.is_empty() => {
                let at = rng.below(names.len() as u64) as usize;
                events.push(Event::Delete(names.remove(at)));
            }
            5 => events.push(Event::Reclaim(1)),
            6 => events.push(Event::Point),
            _ => {}
        }
    }
    // No file is held any more.
    events.push(Event::Do(Operation::Reopen));
    events.extend(names.first().cloned().map(Event::Restore));
    events
}

#[test]
fn snapshots_match_the_model() {
    let shape = Shape { stripes: 2 * LARGE.stripes, ..LARGE };
    for seed in 0..4 {
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 40_960, 256 * 4096],
            operations: 250,
            ..SequenceOptions::default()
        };
        let limits = if seed % 2 == 0 { TIGHT } else { Limits::default() };
        let mut rig = Rig::on(&shape, guard(&shared(shape.devices())), limits);
        set_root(rig.fs()).unwrap();
        let mut play = Play::new(Gardening::default());
        let (mut created, mut deleted) = (0, 0);
        for (number, event) in (1..).zip(draw(Seed(seed), &options)) {
            play.play(&mut rig, &event);
            created += u32::from(matches!(event, Event::Create(_)));
            deleted += u32::from(matches!(event, Event::Delete(_)));
            if number % 60 == 0 {
                assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, event {number}");
                assert_eq!(rig.check(), Ok(()), "seed {seed}, event {number}");
            }
        }
        assert!(created > 5 && deleted > 3, "seed {seed}: {created} created, {deleted} deleted");
        for reopened in [false, true] {
            assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, reopened: {reopened}");
            assert_eq!(rig.check(), Ok(()), "seed {seed}");
            rig.open().unwrap();
        }
        assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
        assert_eq!(rig.check(), Ok(()), "seed {seed}, reclaimed");
        assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, reclaimed");
    }
}
