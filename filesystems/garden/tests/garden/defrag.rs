//! Defragmentation of files in use: contents match the model, also after losses of power.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use senesce_block::CrashPlan;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, FsResult, Ino, NewNode, Timestamp,
    conformance::{Operation, SequenceOptions, Subject, Tree, collect_tree, find_difference, run_sequence},
};
use senesce_garden::{Cleaning, Defrag, DefragCounts, DefragFiles, FixUp, Garden, Gardening, Placing, WriteAfterRead};

use crate::{
    crash::{LIMITS, check_state, make, record_and, write},
    guard::guard,
    rig::{LARGE, Rig, TIGHT, VOLUME, caller, open, shared},
    space::{NARROW, fill},
};

const BLOCK: u64 = 4096;
const NOW: Timestamp = Timestamp { seconds: 5, nanoseconds: 0 };

fn begin(garden: &Garden, placing: Placing) -> Defrag {
    garden.begin_defrag(VOLUME, DefragFiles::All, placing, false).unwrap()
}

fn defragment(garden: &Garden) -> DefragCounts {
    garden.defragment(VOLUME, DefragFiles::All, Placing::FakeDirty).unwrap()
}

/// A volume that is defragmented in steps between other operations.
struct Laid {
    rig: Rig,
    calls: Cell<u64>,
    running: RefCell<Option<Defrag>>,
    /// The trees of the snapshots when they were made.
    snapshots: RefCell<BTreeMap<String, Tree>>,
}

/// Blocks that moved in all volumes.
static MOVED: AtomicU64 = AtomicU64::new(0);

impl Laid {
    fn make() -> Box<dyn Subject> {
        let rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
        let laid = Self { rig, calls: Cell::new(0), running: RefCell::default(), snapshots: RefCell::default() };
        laid.set_gardening();
        Box::new(laid)
    }

    fn set_gardening(&self) {
        let cleaning = Some(Cleaning { quota_percent: 400, worth_percent: 0, disks_too: false });
        self.rig.garden().set_gardening(Gardening {
            cleaning,
            demotion: None,
            fix_up: FixUp::OnRead,
            write_after_read: Some(WriteAfterRead::default()),
        });
    }

    fn step(&self) {
        let call = self.calls.get();
        self.calls.set(call + 1);
        let (garden, mut rng) = (self.rig.garden(), Rng::for_purpose(Seed(call), "defrag"));
        let mut running = self.running.borrow_mut();
        match rng.below(14) {
            0..=3 => {
                let placing = if rng.chance(1, 6) { Placing::Traditional } else { Placing::FakeDirty };
                let defrag = running.get_or_insert_with(|| begin(garden, placing));
                garden.defrag_step(defrag, 1 + rng.below(300)).unwrap();
                if defrag.is_done() {
                    *running = None;
                }
            }
            // Often, so that later writes go to other places.
            9.. => garden.consistency_point().unwrap(),
            4 => drop(garden.dedup_step(VOLUME, 30).unwrap()),
            5 => drop(garden.fix_up_step(VOLUME, 50).unwrap()),
            6 => drop(garden.move_area(0, rng.below(8))),
            7 if self.snapshots.borrow().len() < 3 => {
                let name = format!("at {call}");
                let tree = collect_tree(self.rig.fs()).unwrap();
                garden.create_snapshot(VOLUME, name.as_bytes(), NOW).unwrap();
                self.snapshots.borrow_mut().insert(name, tree);
            }
            _ => {}
        }
    }

    fn note(&self) {
        MOVED.fetch_add(self.rig.garden().report().counts.fake_writes, Relaxed);
    }
}

impl Subject for Laid {
    fn file_system(&self) -> &dyn FileSystem {
        self.step();
        self.rig.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.note();
        self.rig.reopen()?;
        self.set_gardening();
        self.running.take();
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        for (name, want) in &*self.snapshots.borrow() {
            let tree = collect_tree(&self.rig.garden().snapshot(VOLUME, name.as_bytes()).unwrap()).unwrap();
            find_difference(want, &tree).map_or(Ok(()), |difference| Err(format!("snapshot {name}: {difference}")))?;
        }
        self.rig.check()
    }
}

impl Drop for Laid {
    fn drop(&mut self) {
        self.note();
    }
}

/// The drives panic if a block is overwritten that the last consistency point uses.
#[test]
fn volume_matches_the_model_during_defragmentation() {
    for seed in 0..4 {
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 10 * 4096, 60 * 4096],
            operations: 300,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&Laid::make, Seed(seed), &options).unwrap();
    }
    // In such sequences few files are scattered enough for a rewrite; those of the story below are.
    assert!(MOVED.load(Relaxed) > 15, "{MOVED:?} blocks moved");
}

/// Two files whose blocks are written alternately in random order.
fn story() -> Vec<Operation> {
    let mut operations = vec![make("a", FileKind::File), make("b", FileKind::File)];
    let mut order: Vec<u64> = (0..11).collect();
    Rng::for_purpose(Seed(1), "story").shuffle(&mut order);
    for block in order {
        operations.extend(["a", "b"].map(|file| write(file, block * BLOCK, BLOCK)));
    }
    operations
}

/// Power is lost after any write of a story with constant defragmentation. A snapshot stays
/// unchanged.
fn check_story(missing: Option<usize>, plan: &CrashPlan, least: u64) {
    let (mut number, mut moved, mut kept) = (0, 0, None);
    let run = record_and(&story(), missing, LIMITS, &mut |rig| {
        rig.garden().consistency_point().unwrap();
        number += 1;
        if number == 13 {
            let tree = collect_tree(rig.fs()).unwrap();
            rig.garden().create_snapshot(VOLUME, b"kept", NOW).unwrap();
            kept = Some(tree);
        }
        if number % 4 == 0 {
            defragment(rig.garden());
        }
        moved = rig.garden().report().counts.fake_writes;
    });
    assert!(moved > 20, "{moved}");
    let (mut states, mut with_snapshot) = (0, 0);
    run.recording.for_each_crash(plan, |crash| {
        let (told, done) = (crash.to_string(), crash.mark.unwrap_or(0) as usize);
        let devices = shared(crash.devices);
        check_state(&devices, &run.trees, done, &told);
        states += 1;
        let garden = open(&devices, LIMITS).unwrap();
        if let Ok(snapshot) = garden.snapshot(VOLUME, b"kept") {
            with_snapshot += 1;
            assert_eq!(find_difference(kept.as_ref().unwrap(), &collect_tree(&snapshot).unwrap()), None, "{told}");
        }
    });
    assert!(states > least && with_snapshot > least / 4, "{states} states, {with_snapshot} with the snapshot");
}

#[test]
fn power_may_be_lost_during_defragmentation() {
    check_story(None, &CrashPlan { exhaustive_up_to: 1, samples: 2, tears: 1, seed: Seed(1) }, 100);
}

#[test]
fn defragmentation_survives_power_loss_without_a_drive() {
    for missing in [0, 2] {
        check_story(Some(missing), &CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(2) }, 50);
    }
}

/// Without space nothing moves, and everything can be deleted.
#[test]
fn defragmentation_needs_free_space() {
    let rig = Rig::on(&NARROW, guard(&shared(NARROW.devices())), TIGHT);
    let names = fill(rig.fs(), 9000);
    for name in names.iter().step_by(2) {
        rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
    }
    let mut late = Vec::new();
    while let Ok(made) =
        rig.fs().make_node(&caller(4), Ino::ROOT, format!("late {}", late.len()).as_bytes(), &NewNode::file(0o644))
    {
        late.push(format!("late {}", late.len()));
        if rig.fs().write(&caller(4), made.ino, 0, &[8; 70_000]).is_err() {
            break;
        }
    }
    let tree = collect_tree(rig.fs()).unwrap();
    let done = defragment(rig.garden());
    assert!(done.requests > done.predicted || done.moved == 0, "{done:?}");
    assert_eq!(find_difference(&tree, &collect_tree(rig.fs()).unwrap()), None);
    assert_eq!(rig.findings(), Vec::<String>::new());
    for name in late.iter().chain(names.iter().skip(1).step_by(2)) {
        rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
    }
    assert_eq!(rig.findings(), Vec::<String>::new());
}
