//! Relocation while a volume is in use: it matches the model through moves, cleaning, fix-ups and
//! losses of power.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use senesce_block::CrashPlan;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{
    FileSystem, FsResult, Ino,
    conformance::{SequenceOptions, Subject, run_sequence},
};
use senesce_garden::{Cleaning, Error, FixUp, Garden, Gardening};

use crate::{
    crash::{LIMITS, check_crashes, record_and, story},
    guard::guard,
    rig::{LARGE, Rig, TIGHT, VOLUME, caller, shared},
    space::{NARROW, fill},
};

/// All tasks at once, and more than is worth it.
pub const EAGER: Gardening = Gardening {
    cleaning: Some(Cleaning { quota_percent: 400, worth_percent: 0, disks_too: false }),
    fix_up: FixUp::OnRead,
    demotion: None,
    write_after_read: None,
};

/// A volume in which blocks move every few calls.
struct Gardened {
    rig: Rig,
    calls: Cell<u64>,
}

/// Moved blocks and fixed pointers of all volumes.
static MOVED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

impl Gardened {
    fn make() -> Box<dyn Subject> {
        let rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
        rig.garden().set_gardening(EAGER);
        Box::new(Self { rig, calls: Cell::new(0) })
    }

    fn note(&self) {
        let counts = self.rig.garden().report().counts;
        for (sum, count) in MOVED.iter().zip([counts.relocations, counts.fix_ups]) {
            sum.fetch_add(count, Relaxed);
        }
    }
}

fn used_areas(garden: &Garden) -> Vec<u64> {
    let free = &garden.report().area_free[0];
    let most = free.iter().flatten().max().copied();
    (0..).zip(free).filter(|(_, free)| **free < most).map(|(area, _)| area).collect()
}

/// Moves an area, if there is space for it.
fn move_area(garden: &Garden, area: u64) -> u64 {
    match garden.move_area(0, area) {
        Ok(moves) => {
            assert_eq!(moves.stuck, 0);
            moves.blocks
        }
        Err(Error::NoSpace { .. }) => 0,
        Err(error) => panic!("{error}"),
    }
}

impl Subject for Gardened {
    fn file_system(&self) -> &dyn FileSystem {
        let call = self.calls.get();
        self.calls.set(call + 1);
        let (garden, mut rng) = (self.rig.garden(), Rng::for_purpose(Seed(call), "gardening"));
        match rng.below(8) {
            0 | 1 => {
                let areas = used_areas(garden);
                if !areas.is_empty() {
                    move_area(garden, areas[rng.below(areas.len() as u64) as usize]);
                }
            }
            2 => drop(garden.scan_step(5, garden.gardening().cleaning.unwrap_or_default()).unwrap()),
            3 => drop(garden.fix_up_step(VOLUME, 50).unwrap()),
            4 => garden.consistency_point().unwrap(),
            _ => {}
        }
        self.rig.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.note();
        self.rig.reopen()?;
        self.rig.garden().set_gardening(EAGER);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.rig.check()
    }
}

impl Drop for Gardened {
    fn drop(&mut self) {
        self.note();
    }
}

/// The drives panic if a block is overwritten that the last consistency point uses.
#[test]
fn volume_matches_the_model_during_relocation() {
    for seed in 0..3 {
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 10 * 4096, 60 * 4096],
            operations: 150,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&Gardened::make, Seed(seed), &options).unwrap();
    }
    let [moved, fixed] = [0, 1].map(|at: usize| MOVED[at].load(Relaxed));
    assert!(moved > 100 && fixed > 10, "{moved} moved, {fixed} fixed");
}

/// A story in which an area moves after every operation, with cleaning.
fn check_story(missing: Option<usize>, plan: &CrashPlan, least: u64) {
    let (mut number, mut moved) = (0, 0);
    let run = record_and(&story(), missing, LIMITS, &mut |rig| {
        rig.garden().set_gardening(EAGER);
        move_area(rig.garden(), number % 3);
        rig.garden().consistency_point().unwrap();
        number += 1;
        moved = rig.garden().report().counts.relocations;
    });
    assert!(moved > 200, "{moved}");
    let states = check_crashes(&run.recording, &run.trees, plan);
    assert!(states > least, "{states} states");
}

#[test]
fn power_may_be_lost_during_relocation() {
    check_story(None, &CrashPlan { exhaustive_up_to: 2, samples: 2, tears: 1, seed: Seed(1) }, 200);
}

#[test]
fn relocation_survives_power_loss_without_a_drive() {
    for missing in [0, 2] {
        check_story(Some(missing), &CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(2) }, 50);
    }
}

/// The same number of files fits as without cleaning, and all can be deleted.
#[test]
fn cleaning_yields_when_space_is_short() {
    let mut filled: Vec<Vec<usize>> = Vec::new();
    for gardening in [Gardening::default(), EAGER] {
        let rig = Rig::on(&NARROW, guard(&shared(NARROW.devices())), TIGHT);
        rig.garden().set_gardening(gardening);
        let mut counts = Vec::new();
        for _ in 0..3 {
            let names = fill(rig.fs(), 9000);
            counts.push(names.len());
            for area in (0..3).filter(|_| gardening == EAGER) {
                move_area(rig.garden(), area);
            }
            assert_eq!(rig.findings(), Vec::<String>::new());
            for name in names.iter().step_by(2).chain(names.iter().skip(1).step_by(2)) {
                rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
            }
            assert_eq!(rig.findings(), Vec::<String>::new());
        }
        assert_eq!(rig.garden().report().counts.relocations > 0, gardening == EAGER);
        filled.push(counts);
    }
    assert_eq!(filled[0], filled[1]);
}
