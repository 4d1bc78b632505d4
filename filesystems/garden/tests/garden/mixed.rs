//! Disks and flash in one aggregate: no data is lost on either of them, or while blocks move
//! between them.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use senesce_block::{CrashPlan, FaultDevice, MemoryDevice};
use senesce_core::Seed;
use senesce_fsapi::{
    FileKind, FileSystem, FsResult, Ino,
    conformance::{Operation, Place, SequenceOptions, Subject, collect_tree, find_difference, run_sequence},
};
use senesce_garden::{Demotion, Error, Gardening, Medium};

use crate::{
    crash::{LIMITS, Run, check_crashes, make, path, record_on, write},
    damage::{filled, forks},
    gardening::EAGER,
    guard::guard,
    rig::{Devices, Rig, Shape, TIGHT, VOLUME, caller, findings, open, shared},
    space::fill,
};

/// A group of two disks and a parity disk, and one of two flash drives and a parity drive.
const MIXED: Shape =
    Shape { groups: &[(2, true), (2, true)], media: &[Medium::Hdd, Medium::Ssd], stripes: 160, log_bytes: 400 << 10 };
const DRIVES: usize = 6;

/// All cold blocks leave the flash.
pub const SHEDDING: Gardening = Gardening { demotion: Some(Demotion { full_percent: 0 }), ..EAGER };

/// Files that are overwritten in part, grow, are truncated and deleted. One of them does not change
/// after its start.
fn operations() -> Vec<Operation> {
    let cut = |at: &str, size| Operation::Truncate { at: Place::Path(path(at)), size };
    vec![
        make("cold", FileKind::File),
        write("cold", 0, 60_000),
        make("hot", FileKind::File),
        write("hot", 0, 40_000),
        write("hot", 4096, 5000),
        write("hot", 20_000, 100),
        write("cold", 30_000, 5000),
        write("hot", 0, 100),
        cut("cold", 50_000),
        write("hot", 4096, 5000),
        Operation::Unlink { path: path("hot") },
        make("other", FileKind::File),
        write("other", 100, 9000),
        write("other", 200, 5000),
    ]
}

fn record(missing: Option<usize>) -> Run {
    let (mut demoted, mut media) = (0, [0; 2]);
    let run = record_on(&MIXED, &operations(), missing, LIMITS, &mut |rig| {
        rig.garden().set_gardening(SHEDDING);
        rig.garden().consistency_point().unwrap();
        let report = rig.garden().report();
        demoted = report.counts.demotions;
        media =
            [0, 3].map(|drive| report.drives[drive..drive + 2].iter().map(|drive| drive.counts.writes.blocks).sum());
    });
    assert!(demoted > 10, "{demoted} blocks went from flash to disks");
    assert!(media.iter().all(|&blocks: &u64| blocks > 10), "{media:?} blocks written to disks and flash");
    run
}

#[test]
fn power_may_be_lost_during_demotion() {
    let run = record(None);
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(1) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 200, "{states} states");
}

#[test]
fn demotion_survives_power_loss_without_a_drive() {
    for missing in [1, 5] {
        let run = record(Some(missing));
        let plan = CrashPlan { exhaustive_up_to: 0, samples: 1, tears: 0, seed: Seed(2) };
        let states = check_crashes(&run.recording, &run.trees, &plan);
        assert!(states > 50, "{states} states");
    }
}

#[test]
fn power_and_one_drive_per_group_may_fail() {
    let run = record(None);
    let plan = CrashPlan { exhaustive_up_to: 0, samples: 1, tears: 1, seed: Seed(3) };
    let mut states = 0;
    run.recording.for_each_crash(&plan, |crash| {
        states += 1;
        let (told, done) = (format!("{crash}, drives lost"), crash.mark.unwrap_or(0) as usize);
        let mut devices = shared(crash.devices);
        devices.remove(3 + states % 3);
        devices.remove(states / 3 % 3);
        crate::crash::check_state(&devices, &run.trees, done, &told);
    });
    assert!(states > 100, "{states} states");
}

#[test]
fn any_one_drive_per_group_may_be_missing() {
    let at_rest = filled(&MIXED);
    let tree = |devices: &Devices| collect_tree(&open(devices, TIGHT).unwrap().volume(VOLUME).unwrap()).unwrap();
    let want = tree(&forks(&at_rest));
    for (first, second) in (0..3).flat_map(|first| (3..DRIVES).map(move |second| (first, second))) {
        let mut left = forks(&at_rest);
        left.remove(second);
        left.remove(first);
        assert_eq!(find_difference(&want, &tree(&left)), None, "without {first} and {second}");
        let garden = open(&left, TIGHT).unwrap();
        garden.set_gardening(SHEDDING);
        let fs = garden.volume(VOLUME).unwrap();
        let ino = fs.lookup(Ino::ROOT, b"file 9").unwrap().ino;
        for round in 0..6 {
            fs.write(&caller(9), ino, round * 4096, &[9; 100]).unwrap();
            garden.consistency_point().unwrap();
        }
        assert!(garden.report().counts.demotions > 0);
        let later = collect_tree(&fs).unwrap();
        drop((garden, fs));
        assert_eq!(find_difference(&later, &tree(&left)), None);
        assert_eq!(findings(&left), [""; 0], "without {first} and {second}");
    }
}

#[test]
fn demotion_continues_without_a_failing_drive() {
    for failing in [1, 2, 4, 5] {
        let all = filled(&MIXED).into_iter().map(|device| Arc::new(FaultDevice::new(device)));
        let all: Vec<Arc<FaultDevice<MemoryDevice>>> = all.collect();
        let devices: Devices = all.iter().map(|device| device.clone() as _).collect();
        let garden = open(&devices, TIGHT).unwrap();
        garden.set_gardening(SHEDDING);
        let fs = garden.volume(VOLUME).unwrap();
        let ino = fs.lookup(Ino::ROOT, b"file 9").unwrap().ino;
        let want = |round: u64| -> Vec<u8> { (0..2048_u64).flat_map(|at| (at * 7 + round).to_le_bytes()).collect() };
        for round in 0..8 {
            if round == 2 {
                all[failing].inject("fail write 2..; fail read 30..").unwrap();
            }
            fs.write(&caller(9), ino, round % 3 * 16384, &want(round)).unwrap();
            garden.consistency_point().unwrap();
        }
        assert_eq!(garden.report().missing_drives, [failing as u32]);
        assert!(garden.report().counts.demotions > 0);
        let tree = collect_tree(&fs).unwrap();
        drop((garden, fs));
        all[failing].heal();
        let mut left = devices.clone();
        left.remove(failing);
        for devices in [&devices, &left] {
            let garden = open(devices, TIGHT).unwrap();
            assert_eq!(find_difference(&tree, &collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()), None);
        }
        assert_eq!(findings(&left), [""; 0], "drive {failing}");
    }
}

struct Shedding {
    rig: Rig,
    calls: Cell<u64>,
}

static DEMOTED: AtomicU64 = AtomicU64::new(0);

impl Shedding {
    fn make() -> Box<dyn Subject> {
        let shape = Shape { stripes: 1024, log_bytes: 4 << 20, ..MIXED };
        let rig = Rig::on(&shape, guard(&shared(shape.devices())), TIGHT);
        rig.garden().set_gardening(SHEDDING);
        Box::new(Self { rig, calls: Cell::new(0) })
    }

    fn note(&self) {
        DEMOTED.fetch_add(self.rig.garden().report().counts.demotions, Relaxed);
    }
}

impl Drop for Shedding {
    fn drop(&mut self) {
        self.note();
    }
}

impl Subject for Shedding {
    fn file_system(&self) -> &dyn FileSystem {
        let call = self.calls.get();
        self.calls.set(call + 1);
        match call % 6 {
            0 | 3 => self.rig.garden().consistency_point().unwrap(),
            4 => match self.rig.garden().move_area(1, call / 6 % 3) {
                Ok(_) | Err(Error::NoSpace { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            _ => {}
        }
        self.rig.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.note();
        self.rig.reopen()?;
        self.rig.garden().set_gardening(SHEDDING);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.rig.check()
    }
}

/// The drives panic if a block is overwritten that the last consistency point uses.
#[test]
fn volume_matches_the_model_during_demotion() {
    for seed in 0..2 {
        let options = SequenceOptions {
            boundaries: vec![0, 1, 160, 4096, 8192, 10 * 4096, 60 * 4096],
            operations: 400,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&Shedding::make, Seed(seed), &options).unwrap();
    }
    let demoted = DEMOTED.load(Relaxed);
    assert!(demoted > 10, "{demoted}");
}

#[test]
fn full_aggregate_of_two_media_can_be_emptied() {
    for (gardening, bytes) in [(Gardening::default(), 9000), (SHEDDING, 9000), (SHEDDING, 300_000)] {
        let rig = Rig::on(&MIXED, guard(&shared(MIXED.devices())), TIGHT);
        rig.garden().set_gardening(gardening);
        let empty = rig.fs().space().unwrap().free;
        let mut filled = Vec::new();
        for round in 0..2 {
            let names = fill(rig.fs(), bytes);
            filled.push(names.len());
            let left = rig.fs().space().unwrap().free;
            assert!(left * 3 < empty, "{left} of {empty} blocks are left");
            assert_eq!(rig.findings(), Vec::<String>::new(), "full");
            for name in &names {
                rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
            }
            assert_eq!(rig.findings(), Vec::<String>::new(), "empty");
            assert_eq!(rig.fs().space().unwrap().free, empty, "round {round}");
        }
        assert_eq!(filled[0], filled[1]);
    }
}
