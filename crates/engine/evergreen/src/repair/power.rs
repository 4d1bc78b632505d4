//! Loss of power at every write of a repair: a second repair makes of what is there then what the first one would have made.

use std::sync::Arc;

use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::Seed;
use senesce_fsapi::conformance::find_difference;

use super::{
    bench::{Bench, TINY, example_with, shared, tree},
    repair,
    single_blocks::DOUBLE,
};
use crate::{Evergreen, Limits, MakeOptions};

/// Repairs a device, and again after each loss of power in that. Returns the number of these.
fn lose_power(damaged: &MemoryDevice, name: &str) -> u64 {
    let does_open = Evergreen::open(Arc::new(damaged.fork()), Limits::default()).is_ok();
    let (recording, mut devices) = Recording::new(vec![damaged.fork()]);
    let recorded = Arc::new(devices.remove(0));
    let report = repair(&(recorded.clone() as Arc<dyn BlockDevice>), false).unwrap();
    assert!(report.is_done, "{name}");
    let want = tree(&shared(&recorded.fork()));
    let plan = CrashPlan { exhaustive_up_to: 5, samples: 12, tears: 4, seed: Seed(1) };
    let mut states = 0;
    recording.for_each_crash(&plan, |crash| {
        states += 1;
        let told = format!("{name}, {crash}");
        let device = crash.devices.into_iter().next().expect("one device");
        if does_open {
            Evergreen::open(Arc::new(device.fork()), Limits::default())
                .unwrap_or_else(|error| panic!("{told}: {error}"));
        }
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        let report = repair(&device, false).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert!(report.check.is_clean(), "{told}");
        let difference = find_difference(&want, &tree(&device));
        assert_eq!(difference, None, "{told}: {report:#?}");
    });
    states
}

#[test]
fn power_cut_in_a_repair_loses_nothing_more() {
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
        let states = lose_power(&device, name);
        assert!(states > 20, "{name}: {states} states");
    }
}
