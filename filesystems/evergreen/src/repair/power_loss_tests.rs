//! Losses of power at every write of a repair. A second repair must have the same result as the
//! first one.

use std::{cell::OnceCell, sync::Arc};

use senesce_block::{BlockDevice, CrashPlan, FaultDevice, MemoryDevice, Recording};
use senesce_core::Seed;
use senesce_fsapi::conformance::{Tree, collect_tree, find_difference};

use super::{
    protected_units::kept_units,
    repair,
    single_block_tests::DOUBLE,
    start_superblocks,
    test_support::{Bench, TINY, example_with, version_1},
};
use crate::{Error, Evergreen, EvergreenFs, Limits, MakeOptions, disk::BLOCK};

/// The tree that a mount reads; `None` if it cannot open or read all of it.
fn readable(device: &Arc<dyn BlockDevice>) -> Option<Tree> {
    EvergreenFs::open_on(device.clone(), Limits::default()).ok().and_then(|fs| collect_tree(&fs).ok())
}

/// The device with unreadable blocks, which `faults` names.
fn failing<D: BlockDevice + 'static>(device: D, faults: Option<&str>) -> Arc<dyn BlockDevice> {
    let faulty = FaultDevice::new(device);
    faults.into_iter().for_each(|faults| faulty.inject(faults).unwrap());
    Arc::new(faulty)
}

/// Repairs a device, and again after each loss of power during that. Returns the number of these.
fn lose_power(damaged: &MemoryDevice, faults: Option<&str>, name: &str) -> u64 {
    let mount = |device: &MemoryDevice| readable(&failing(device.fork(), faults));
    let before = mount(damaged);
    let does_open = Evergreen::open(failing(damaged.fork(), faults), Limits::default()).is_ok();
    let (recording, mut devices) = Recording::new(vec![damaged.fork()]);
    let recorded = Arc::new(devices.remove(0));
    let report = repair(&failing(recorded.clone(), faults), false).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(report.is_done, "{name}");
    let want = mount(&recorded.fork()).unwrap_or_else(|| panic!("{name}: the repaired state cannot be read"));
    if let Some(before) = &before {
        assert_eq!(find_difference(before, &want), None, "{name}: the trees before and after: {report:#?}");
    }
    let plan = CrashPlan { exhaustive_up_to: 5, samples: 12, tears: 4, seed: Seed(1) };
    let mut states = 0;
    recording.for_each_crash(&plan, |crash| {
        states += 1;
        let case = format!("{name}, {crash}");
        let device = crash.devices.into_iter().next().expect("one device");
        if does_open {
            Evergreen::open(failing(device.fork(), faults), Limits::default())
                .unwrap_or_else(|error| panic!("{case}: {error}"));
        }
        if before.is_some() {
            let found = mount(&device).unwrap_or_else(|| panic!("{case}: a mount cannot read the tree any more"));
            assert_eq!(find_difference(&want, &found), None, "{case}: before a second repair");
        }
        let device = failing(device, faults);
        let report = repair(&device, false).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(report.check.is_clean(), "{case}");
        let found = readable(&device).unwrap_or_else(|| panic!("{case}: the repaired state cannot be read"));
        assert_eq!(find_difference(&want, &found), None, "{case}: {report:#?}");
    });
    states
}

#[test]
fn power_cut_in_a_repair_loses_nothing() {
    type Damage = fn(&Bench);
    let cases: &[(&str, &MakeOptions, u64, Damage)] = &[
        ("a copy of a superblock", &DOUBLE, 3, |bench| bench.overwrite(crate::disk::SLOTS_AT[0], 100)),
        ("both copies of the older superblock, an inner node", &DOUBLE, 3, |bench| {
            bench.spoil_older();
            bench.spoil_header(bench.nodes(1)[0]);
        }),
        ("a copy of an inner node", &DOUBLE, 0, |bench| bench.spoil_header(bench.superblock.root)),
        ("both copies of the newest superblock", &DOUBLE, 3, |bench| {
            bench.overwrite_slot(bench.superblock.generation as usize % 2, 0, 4096);
        }),
        ("a copy of the map", &DOUBLE, 3, Bench::spoil_map),
        ("a leaf", &TINY, 3, |bench| bench.spoil_header(bench.nodes(0)[4])),
        ("a part of an inner node", &TINY, 3, |bench| bench.spoil_last_part(bench.nodes(1)[1])),
        ("an inner node", &TINY, 0, |bench| bench.spoil_header(bench.nodes(1)[2])),
        ("the root", &TINY, 0, |bench| bench.spoil_header(bench.superblock.root)),
        ("the map", &TINY, 3, Bench::spoil_map),
        ("the map and a leaf", &TINY, 3, |bench| {
            bench.spoil_map();
            bench.spoil_header(bench.nodes(0)[4]);
        }),
        ("a bit of both superblocks", &TINY, 3, |bench| {
            bench.flip_slot(0, 77);
            bench.flip_slot(1, 4090);
        }),
        ("both superblocks", &TINY, 0, |bench| {
            bench.overwrite_slot(0, 0, 4096);
            bench.overwrite_slot(1, 0, 4096);
        }),
        ("both superblocks and the map", &DOUBLE, 0, |bench| {
            bench.overwrite_slot(0, 0, 4096);
            bench.overwrite_slot(1, 0, 4096);
            bench.spoil_map();
        }),
        ("a batch of the log", &TINY, 5, |bench| {
            let (geometry, replay) = (bench.superblock.geometry, bench.superblock.replay);
            let log = geometry.log_at + replay.position % geometry.log_bytes;
            bench.flip(log + 4 * 4096 + 100);
            bench.flip(log + 5 * 4096 + 100);
        }),
    ];
    for (name, options, logged, damage) in cases {
        let (device, ..) = example_with(options, *logged);
        let device = Arc::new(device.fork());
        damage(&Bench::of(device.clone()));
        let states = lose_power(&device, None, name);
        assert!(states > 20, "{name}: {states} states");
    }
}

#[test]
fn power_cut_in_version_1_repair_loses_nothing() {
    type Damage = fn(&Bench);
    let cases: &[(&str, Damage)] = &[
        ("the newest superblock", |bench| {
            bench.overwrite(crate::disk::SLOTS_AT[bench.superblock.generation as usize % 2], 100);
        }),
        ("the older superblock and a leaf", |bench| {
            bench.overwrite(crate::disk::SLOTS_AT[(bench.superblock.generation as usize + 1) % 2], 100);
            bench.spoil_header(bench.nodes(0)[4]);
        }),
        ("the map", Bench::spoil_map),
        ("a leaf", |bench| bench.spoil_header(bench.nodes(0)[4])),
        ("an inner node", |bench| bench.spoil_header(bench.nodes(1)[0])),
        ("the root", |bench| bench.spoil_header(bench.superblock.root)),
        ("the last batches of the log", |bench| {
            let (geometry, replay) = (bench.superblock.geometry, bench.superblock.replay);
            bench.flip(geometry.log_at + replay.position % geometry.log_bytes + 4096 + 100);
        }),
    ];
    for (name, damage) in cases {
        let device = Arc::new(version_1().fork());
        damage(&Bench::of(device.clone()));
        let states = lose_power(&device, None, name);
        assert!(states > 20, "{name}: {states} states");
    }
}

#[test]
fn power_cut_in_failing_device_repair_loses_nothing() {
    type Find = fn(&Bench) -> u64;
    let log_at = |bench: &Bench, block: u64| {
        let (geometry, replay) = (bench.superblock.geometry, bench.superblock.replay);
        geometry.log_at + (replay.position + block * BLOCK as u64) % geometry.log_bytes
    };
    let cases: &[(&str, &MakeOptions, Find)] = &[
        ("a leaf", &TINY, |bench| bench.at(bench.nodes(0)[4]).0),
        ("an inner node", &TINY, |bench| bench.at(bench.nodes(1)[1]).0),
        ("the root", &DOUBLE, |bench| bench.at(bench.superblock.root).0),
        ("the map", &TINY, |bench| bench.superblock.geometry.unit_at(bench.superblock.map.extents[0].first)),
        ("the map, of two copies", &DOUBLE, |bench| {
            bench.superblock.geometry.unit_at(bench.superblock.map.extents[0].first)
        }),
    ];
    for (name, options, find) in cases {
        let (device, ..) = example_with(options, 3);
        let bench = Bench::new(&device);
        let at = find(&bench);
        let states = lose_power(&device, Some(&format!("fail read at {at}+{BLOCK}")), name);
        assert!(states > 20, "{name}: {states} states");
        // An unreadable block of the log, together with damage that needs a repair.
        let log = log_at(&bench, 0);
        let device = Arc::new(device.fork());
        Bench::of(device.clone()).spoil_map();
        let faults = format!("fail read at {at}+{BLOCK}; fail read at {log}+{BLOCK}");
        lose_power(&device, Some(&faults), &format!("{name}, the map, and a block of the log"));
    }
}

/// The example with a chunk of an old map in all free units but `spare`. A repair overwrites no
/// chunk.
fn full(spare: usize) -> Arc<MemoryDevice> {
    let (device, ..) = example_with(&TINY, 3);
    let bench = Bench::new(&device);
    let geometry = bench.superblock.geometry;
    let bases = start_superblocks::of_slots(&*bench.device);
    let used = kept_units(&bench.device, &bench.superblock, &[], &bases, &OnceCell::new());
    let is_free = |unit: &u32| !used.iter().any(|extent| (extent.first..extent.end()).contains(unit));
    let mut chunk = [0; BLOCK];
    bench.device.read_at(geometry.unit_at(bench.superblock.map.extents[0].first), &mut chunk).unwrap();
    let free: Vec<u32> = (0..geometry.units).filter(is_free).collect();
    for unit in &free[spare..] {
        device.write_at(geometry.unit_at(*unit), &chunk).unwrap();
    }
    device
}

/// Like [`full`], with damage whose repair needs space.
fn full_and_damaged(spare: usize) -> Arc<MemoryDevice> {
    let device = full(spare);
    let bench = Bench::of(device.clone());
    let node = bench.nodes(1)[1];
    bench.spoil_map();
    bench.spoil_header(node);
    device
}

#[test]
fn repair_without_space_writes_nothing() {
    let is_refused = |spare: &usize| {
        let device = full_and_damaged(*spare);
        let before = device.fork();
        match repair(&(device.clone() as Arc<dyn BlockDevice>), false) {
            Err(Error::NoSpace { .. }) => {
                assert!(device.same_contents(&before), "{spare} free units: something was written");
                true
            }
            done => done.map(|_| false).unwrap_or_else(|error| panic!("{spare} free units: {error}")),
        }
    };
    let enough = (0..60).step_by(3).find(|spare| !is_refused(spare)).expect("space that is enough");
    assert!(enough > 0, "no repair was without space");
    // The remains of an interrupted repair use space, too.
    let spare = enough + 24;
    let states = lose_power(&full_and_damaged(spare), None, &format!("{spare} free units"));
    assert!(states > 20, "{states} states");
}
