//! Drives that are missing, fail during use, come back too old, and are replaced.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, CrashPlan, FaultDevice, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, NewNode,
    conformance::{
        Operation, Player, SequenceOptions, Subject, Tree, collect_tree, find_difference, run_sequence, set_root,
    },
};
use senesce_garden::{DriveState, FormatOptions, Garden};

use crate::{
    crash::{LIMITS, TINY, story},
    damage::{filled, flip, forks, play},
    rig::{Devices, FIXED_SLOTS, Rig, SLOT, SMALL, Shape, TIGHT, VOLUME, caller, findings, format, open, shared},
};

pub const GROUPS: Shape = Shape { groups: &[(2, true), (3, true)], media: &[], stripes: 200, log_bytes: 400 << 10 };

fn tree(devices: &Devices) -> Tree {
    collect_tree(&open(devices, TIGHT).unwrap().volume(VOLUME).unwrap()).unwrap()
}

fn played() -> Tree {
    let model = ModelFs::new(Bytes(Bytes::GIB));
    play(&model);
    collect_tree(&model).unwrap()
}

pub fn without(devices: &Devices, missing: &[usize]) -> Devices {
    (0..).zip(devices).filter(|(number, _)| !missing.contains(number)).map(|(_, device)| device.clone()).collect()
}

fn refused(devices: &Devices) -> String {
    open(devices, TIGHT).err().unwrap().to_string()
}

/// Changes every part of an aggregate.
pub fn go_on(fs: &dyn FileSystem, round: u8) {
    let name = format!("later {round}");
    let ino = fs.make_node(&caller(9), Ino::ROOT, name.as_bytes(), &NewNode::file(0o600)).unwrap().ino;
    fs.write(&caller(9), ino, 0, &vec![round; 30_000]).unwrap();
    let old = fs.lookup(Ino::ROOT, b"file 7").unwrap().ino;
    fs.write(&caller(9), old, u64::from(round) * 5000, &[round; 5000]).unwrap();
}

/// Fills a new drive in steps of `stripes` stripes. Returns the number of steps; no block may be
/// lost.
pub fn fill(garden: &Garden, stripes: u64) -> u64 {
    let mut steps = 0;
    while let Some(step) = garden.rebuild_step(stripes).unwrap() {
        assert_eq!(step.lost, []);
        steps += 1;
    }
    steps
}

#[test]
fn data_stay_usable_without_a_drive_per_group() {
    let at_rest = filled(&GROUPS);
    for (first, second) in (0..3).flat_map(|first| (3..7).map(move |second| (first, second))) {
        let all = forks(&at_rest);
        let left = without(&all, &[first, second]);
        assert_eq!(find_difference(&played(), &tree(&left)), None, "without {first} and {second}");
        let garden = open(&left, TIGHT).unwrap();
        assert_eq!(garden.report().missing_drives, [first as u32, second as u32]);
        go_on(&garden.volume(VOLUME).unwrap(), 1);
        garden.consistency_point().unwrap();
        let later = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
        drop(garden);
        assert_eq!(findings(&left), [""; 0]);
        // The drives that come back are too old. They are reported and not used.
        let garden = open(&all, TIGHT).unwrap();
        assert_eq!(find_difference(&later, &collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()), None);
        let report = garden.report();
        let told: Vec<&str> = report.opening.left_out.iter().map(|left| &left.device[..]).collect();
        assert_eq!(told, [format!("drive {first}"), format!("drive {second}")]);
        assert!(report.opening.left_out[0].why.starts_with("too old: "), "{:?}", report.opening.left_out);
    }
}

#[test]
fn replaced_drive_stays_too_old() {
    let old = forks(&filled(&SMALL));
    let garden = open(&without(&old, &[1]), TIGHT).unwrap();
    let new: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("new", old[1].size()));
    garden.replace_drive(1, new).unwrap();
    fill(&garden, 1000);
    go_on(&garden.volume(VOLUME).unwrap(), 1);
    garden.consistency_point().unwrap();
    let later = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
    drop(garden);
    let garden = open(&old, TIGHT).unwrap();
    assert_eq!(find_difference(&later, &collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()), None);
    let report = garden.report();
    assert_eq!(report.missing_drives, [1]);
    let DriveState::Missing { why } = &report.drives[1].state else { panic!("{:?}", report.drives) };
    assert!(why.contains("it is at consistency point"), "{why}");
}

/// An aggregate without one of its drives.
fn degraded(missing: usize) -> impl Fn() -> Box<dyn Subject> {
    move || {
        let all = Rig::new(&SMALL, TIGHT).devices;
        let mut rig = Rig::closed(without(&all, &[missing]), TIGHT);
        rig.open().unwrap();
        Box::new(rig)
    }
}

#[test]
fn sequences_run_without_a_drive() {
    let options = SequenceOptions {
        boundaries: vec![0, 1, 160, 4096, 40_960],
        operations: 150,
        compare_every: 50,
        ..SequenceOptions::default()
    };
    for missing in 0..4 {
        run_sequence(&degraded(missing), Seed(missing as u64), &options).unwrap();
    }
}

#[test]
fn drive_that_starts_to_fail_is_left_out() {
    let faults =
        ["fail write 6..", "fail read 20..; fail write 6..", "fail flush 3..", "fail read 20..", "fail write 9"];
    for (failing, faults) in (0..4).flat_map(|failing| faults.map(move |faults| (failing, faults))) {
        let told = format!("drive {failing}: {faults}");
        let devices: Vec<Arc<FaultDevice<MemoryDevice>>> =
            forks_of(&Rig::new(&SMALL, TIGHT)).into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
        let all: Devices = devices.iter().map(|device| device.clone() as _).collect();
        devices[failing].inject(faults).unwrap();
        let garden = open(&all, TIGHT).unwrap();
        let fs = garden.volume(VOLUME).unwrap();
        play(&fs);
        for round in 1..4 {
            garden.consistency_point().unwrap();
            go_on(&fs, round);
        }
        garden.consistency_point().unwrap();
        let model = ModelFs::new(Bytes(Bytes::GIB));
        play(&model);
        (1..4).for_each(|round| go_on(&model, round));
        let want = collect_tree(&model).unwrap();
        assert_eq!(find_difference(&want, &collect_tree(&fs).unwrap()), None, "{told}");
        let is_out = garden.report().missing_drives == [failing as u32];
        let only_reads = faults == "fail read 20..";
        assert!(is_out || only_reads, "{told}: {:?}", garden.report().drives);
        drop((garden, fs));
        // The drive works again, but is not used, unless it failed after all writes and nothing was
        // written since.
        devices[failing].heal();
        assert_eq!(find_difference(&want, &tree(&all)), None, "{told}");
        let missing = open(&all, TIGHT).unwrap().report().missing_drives;
        assert!(missing == [failing as u32] || only_reads && missing.is_empty(), "{told}: {missing:?}");
        let missing: Vec<usize> = missing.into_iter().map(|drive| drive as usize).collect();
        assert_eq!(findings(&without(&all, &missing)), [""; 0], "{told}");
    }
}

/// Copies of the devices of a rig at rest.
fn forks_of(rig: &Rig) -> Vec<MemoryDevice> {
    rig.garden().consistency_point().unwrap();
    let copy = |device: &Arc<dyn BlockDevice>| {
        let mut bytes = vec![0; device.size().0 as usize];
        device.read_at(0, &mut bytes).unwrap();
        let fork = MemoryDevice::new(device.name(), device.size());
        fork.write_at(0, &bytes).unwrap();
        fork
    };
    rig.devices.iter().map(copy).collect()
}

#[test]
fn power_loss_after_a_drive_failure_loses_nothing() {
    let at_rest = forks_of(&Rig::new(&TINY, LIMITS));
    for (failing, first) in (0..3).flat_map(|failing| [1, 3, 5].map(|first| (failing, first))) {
        let (recording, devices) = Recording::new(at_rest.iter().map(MemoryDevice::fork).collect());
        let devices: Vec<_> = devices.into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
        devices[failing].inject(&format!("fail write {first}..; fail read 30..")).unwrap();
        let mut rig = Rig::closed(devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
        rig.open().unwrap();
        let trees = play_along(&mut rig, &story()[..12], &recording);
        assert_eq!(rig.garden().report().missing_drives, [failing as u32]);
        let plan = CrashPlan { exhaustive_up_to: 2, samples: 3, tears: 0, seed: Seed(1) };
        recording.for_each_crash(&plan, |crash| {
            let (told, done) = (format!("drive {failing} from {first}: {crash}"), crash.mark.unwrap_or(0) as usize);
            // The drive may be present or absent at the next opening.
            let all = shared(crash.devices.iter().map(MemoryDevice::fork).collect());
            check_tree(&all, &trees, done, &told);
            let present = without(
                &all,
                &open(&all, LIMITS).unwrap().report().missing_drives.iter().map(|&at| at as usize).collect::<Vec<_>>(),
            );
            assert_eq!(findings(&present), [""; 0], "{told}");
            let left = without(&shared(crash.devices), &[failing]);
            check_tree(&left, &trees, done, &format!("{told}, and it is away"));
        });
    }
}

/// Plays operations on a rig and a model. Returns the trees before and after each, and marks each
/// in the recording.
fn play_along(rig: &mut Rig, operations: &[Operation], recording: &Recording) -> Vec<Tree> {
    set_root(rig.fs()).unwrap();
    recording.mark(0);
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).unwrap();
    let (mut player, mut model_player) = (Player::default(), Player::default());
    let mut trees = vec![collect_tree(&model).unwrap()];
    for (number, operation) in (1..).zip(operations) {
        player.play(rig, operation);
        model_player.play(&mut model, operation);
        recording.mark(number);
        trees.push(collect_tree(&model).unwrap());
        // Fills a new drive in between.
        rig.garden().rebuild_step(16).unwrap();
    }
    assert_eq!(find_difference(trees.last().unwrap(), &collect_tree(rig.fs()).unwrap()), None);
    trees
}

fn check_tree(devices: &Devices, trees: &[Tree], done: usize, told: &str) {
    let garden = open(devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
    let got = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap_or_else(|error| panic!("{told}: {error}"));
    let after = trees.get(done..=done + 1).unwrap_or(&trees[done..]);
    // Before the first mark the root may have its initial state.
    if done > 0 && !after.iter().any(|want| find_difference(want, &got).is_none()) {
        panic!("{told}: {}", find_difference(&after[0], &got).unwrap());
    }
}

#[test]
fn new_drive_is_filled_while_volumes_are_used() {
    let at_rest = filled(&SMALL);
    for replaced in 0..4 {
        let mut devices = without(&forks(&at_rest), &[replaced]);
        let new: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("new", SMALL.devices()[0].size()));
        let garden = open(&devices, TIGHT).unwrap();
        garden.replace_drive(replaced as u32, new.clone()).unwrap();
        devices.insert(replaced, new);
        assert_eq!(findings(&devices), [""; 0]);
        let model = ModelFs::new(Bytes(Bytes::GIB));
        play(&model);
        for round in 1..4 {
            let step = garden.rebuild_step(40).unwrap().unwrap();
            assert_eq!(
                (step.drive, step.done, step.of, step.lost),
                (replaced as u32, 40 * u64::from(round), 256, vec![])
            );
            go_on(&garden.volume(VOLUME).unwrap(), round);
            go_on(&model, round);
        }
        garden.consistency_point().unwrap();
        assert_eq!(findings(&devices), [""; 0], "in the middle");
        drop(garden);
        let garden = open(&devices, TIGHT).unwrap();
        assert_eq!(garden.report().drives[replaced].state, DriveState::Filling { done: 120, of: 256 });
        assert_eq!(fill(&garden, 50), 3);
        assert_eq!(garden.report().drives[replaced].state, DriveState::Here);
        drop(garden);
        assert_eq!(findings(&devices), [""; 0]);
        // The new drive is correct: it can replace any other drive.
        for missing in (0..4).filter(|&other| other != replaced) {
            let left = without(&devices, &[missing]);
            assert_eq!(find_difference(&collect_tree(&model).unwrap(), &tree(&left)), None, "{replaced}, {missing}");
        }
    }
}

#[test]
fn power_loss_during_filling_loses_nothing() {
    for replaced in 0..3 {
        let mut start = forks_of(&Rig::new(&TINY, LIMITS));
        start[replaced] = MemoryDevice::new("new", start[0].size());
        let (recording, devices) = Recording::new(start);
        let all = shared(devices);
        let mut rig = Rig::closed(without(&all, &[replaced]), LIMITS);
        rig.open().unwrap();
        rig.garden().replace_drive(replaced as u32, all[replaced].clone()).unwrap();
        let trees = play_along(&mut rig, &story()[..14], &recording);
        assert_eq!(rig.garden().report().drives[replaced].state, DriveState::Here);
        let plan = CrashPlan { exhaustive_up_to: 2, samples: 3, tears: 1, seed: Seed(1) };
        let mut states = 0;
        recording.for_each_crash(&plan, |crash| {
            states += 1;
            let (told, done) = (format!("new drive {replaced}: {crash}"), crash.mark.unwrap_or(0) as usize);
            let devices = shared(crash.devices);
            check_tree(&devices, &trees, done, &told);
            let garden = open(&devices, LIMITS).unwrap();
            if garden.report().missing_drives == [replaced as u32] {
                garden.replace_drive(replaced as u32, devices[replaced].clone()).unwrap();
            }
            let volume = garden.volume(VOLUME).unwrap();
            let before = collect_tree(&volume).unwrap();
            fill(&garden, 64);
            drop((garden, volume));
            assert_eq!(findings(&devices), [""; 0], "{told}");
            if states % 5 == 0 {
                let left = without(&devices, &[(replaced + 1) % 3]);
                let got = collect_tree(&open(&left, LIMITS).unwrap().volume(VOLUME).unwrap()).unwrap();
                assert_eq!(find_difference(&before, &got), None, "{told}");
            }
        });
        assert!(states > 100, "{states} states");
    }
}

#[test]
fn unresponsive_drive_is_reported_not_left_out() {
    let at_rest = filled(&SMALL);
    for number in [0, 3] {
        let devices: Vec<Arc<FaultDevice<MemoryDevice>>> =
            at_rest.iter().map(|device| Arc::new(FaultDevice::new(device.fork()))).collect();
        let all: Devices = devices.iter().map(|device| device.clone() as _).collect();
        // Two failed reads of its label; two of its first superblock.
        for first in [1, 2] {
            devices[number].heal();
            let at = devices[number].requests(BlockOperation::Read) + first;
            devices[number].inject(&format!("fail read {at}; fail read {}", at + 1)).unwrap();
            let told = refused(&all);
            assert!(told.starts_with(&format!("drive {number}: it does not answer (")), "{told}");
            assert!(told.ends_with("; to continue without this drive, do not name it"), "{told}");
        }
        // A single failed read is repeated.
        devices[number].heal();
        let before = devices[number].requests(BlockOperation::Read);
        devices[number].inject(&format!("fail read {}", before + 1)).unwrap();
        assert_eq!(open(&all, TIGHT).unwrap().report().missing_drives, [0; 0]);
        assert_eq!(devices[number].struck(), 5);
        devices[number].inject("fail read 1..").unwrap();
        refused(&all);
        assert_eq!(find_difference(&played(), &tree(&without(&all, &[number]))), None);
    }
}

#[test]
fn failing_new_drive_is_missing_again() {
    let devices = without(&forks(&filled(&SMALL)), &[2]);
    let garden = open(&devices, TIGHT).unwrap();
    let new = Arc::new(FaultDevice::new(MemoryDevice::new("new", SMALL.devices()[0].size())));
    new.inject("fail write 8..").unwrap();
    garden.replace_drive(2, new.clone()).unwrap();
    let error = loop {
        match garden.rebuild_step(30) {
            Ok(step) => assert!(step.is_some_and(|step| step.done < step.of)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.starts_with("drive 2 failed while it was filled: cannot write new "), "{error}");
    assert_eq!(garden.report().missing_drives, [2]);
    go_on(&garden.volume(VOLUME).unwrap(), 1);
    new.heal();
    garden.replace_drive(2, new).unwrap();
    fill(&garden, 100);
    assert_eq!(garden.report().missing_drives, [0_u32; 0]);
}

#[test]
fn damage_on_another_drive_is_reported_during_filling() {
    let all = forks(&filled(&SMALL));
    let place = crate::damage::used(&all).into_iter().find(|(drive, _)| *drive == 0).unwrap();
    flip(&all[0], place.1 + 100);
    let garden = open(&without(&all, &[1]), TIGHT).unwrap();
    garden.replace_drive(1, Arc::new(MemoryDevice::new("new", all[1].size()))).unwrap();
    let mut lost = Vec::new();
    while let Some(step) = garden.rebuild_step(64).unwrap() {
        lost.extend(step.lost);
    }
    let stripe = place.1 / SLOT - FIXED_SLOTS;
    assert!(
        lost[0].to_string().starts_with(&format!("drive 0, stripe {stripe} of RAID group 0: slot: payload checksum"))
    );
    assert!(lost.len() <= 2, "{lost:?}");
}

#[test]
fn wrong_devices_are_refused_by_name() {
    let at_rest = filled(&SMALL);
    let mut swapped = forks(&at_rest);
    swapped[..4].reverse();
    assert_eq!(find_difference(&played(), &tree(&swapped)), None, "the order does not matter");

    assert_eq!(
        refused(&without(&forks(&at_rest), &[1, 3])),
        "RAID group 0: missing are drive 1 (it was not given), drive 3 (it was not given); parity makes up for one"
    );
    let mut blank = without(&forks(&at_rest), &[1]);
    blank[0] = Arc::new(MemoryDevice::new("blank", blank[0].size()));
    assert!(refused(&blank).contains("not used: blank (label of blank: "), "{}", refused(&blank));

    let mut more = forks(&at_rest);
    more.insert(0, Arc::new(MemoryDevice::new("spare", more[0].size())));
    assert!(refused(&more).starts_with("spare: one device too many: label of spare: "), "{}", refused(&more));

    let mut shrunk = forks(&at_rest);
    let short = MemoryDevice::new("short", Bytes(100 * SLOT));
    let mut bytes = vec![0; 100 * SLOT as usize];
    shrunk[2].read_at(0, &mut bytes).unwrap();
    short.write_at(0, &bytes).unwrap();
    shrunk[2] = Arc::new(short);
    let (has, wanted) = (100 * SLOT, (FIXED_SLOTS + 256) * SLOT);
    assert_eq!(refused(&shrunk), format!("short: shorter than when it was formatted: {has} bytes of {wanted}"));

    let mut other = forks(&at_rest);
    let geometry = shared(SMALL.devices());
    let (log, drives) = geometry.split_last().unwrap();
    let options = FormatOptions { aa_stripes: vec![32], ..SMALL.options() };
    Garden::format(&options, drives.to_vec(), log.clone()).unwrap();
    other[1] = geometry[1].clone();
    assert_eq!(refused(&other), "drive 1: its label has another geometry than those of the other drives");
    assert_eq!(find_difference(&played(), &tree(&forks(&at_rest))), None);
}

#[test]
fn only_a_missing_drive_can_be_replaced() {
    let at_rest = filled(&SMALL);
    let all = forks(&at_rest);
    let garden = open(&without(&all, &[1]), TIGHT).unwrap();
    let size = all[1].size();
    let refused = |drive, device: Arc<dyn BlockDevice>| garden.replace_drive(drive, device).unwrap_err().to_string();
    let blank = |bytes| Arc::new(MemoryDevice::new("new", Bytes(bytes)));
    assert_eq!(refused(0, blank(size.0)), "drive 0 (drive 0) is here; only a drive that is missing can be replaced");
    assert_eq!(refused(9, blank(size.0)), "there is no drive 9; the aggregate has 4");
    assert_eq!(
        refused(1, blank(size.0 - 1)),
        format!("new: too small for drive 1: {} bytes of {}", size.0 - 1, size.0)
    );
    assert_eq!(refused(1, all[2].clone()), "drive 2: it is a drive of this aggregate already");
    assert_eq!(
        refused(1, Arc::new(at_rest[2].fork())),
        "drive 2: its label says that it is drive 2 of this aggregate, not 1"
    );
    let foreign = shared(SMALL.devices());
    let (log, drives) = foreign.split_last().unwrap();
    Garden::format(&FormatOptions { uuid: [9; 16], ..SMALL.options() }, drives.to_vec(), log.clone()).unwrap();
    let told = refused(1, foreign[1].clone());
    assert!(told.starts_with("drive 1: a drive of another aggregate; clear its first"), "{told}");
    // The refusals changed nothing. The absent drive is accepted as a new one.
    garden.replace_drive(1, all[1].clone()).unwrap();
    fill(&garden, 1000);
    drop(garden);
    assert_eq!(findings(&all), [""; 0]);
    assert_eq!(find_difference(&played(), &tree(&all)), None);
}

#[test]
fn other_format_versions_are_refused() {
    for slot in 0..4 {
        let devices = forks(&filled(&SMALL));
        let mut bytes = vec![0; SLOT as usize];
        devices[2].read_at(slot * SLOT, &mut bytes).unwrap();
        bytes[8] = 9;
        let sum = crc32c::crc32c(&bytes[..4096]).to_le_bytes();
        bytes[4096..4100].copy_from_slice(&sum);
        let trailer = crc32c::crc32c_append(crc32c::crc32c(&bytes[4096..4100]), &bytes[4104..]).to_le_bytes();
        bytes[4100..4104].copy_from_slice(&trailer);
        devices[2].write_at(slot * SLOT, &bytes).unwrap();
        assert!(refused(&devices).contains("version is 9, expected 7 or 8"), "{}", refused(&devices));
    }
    let unformatted = shared(SMALL.devices());
    assert!(refused(&unformatted).starts_with("no drive of an aggregate: drive 0 ("), "{}", refused(&unformatted));
    format(&SMALL, &unformatted);
}
