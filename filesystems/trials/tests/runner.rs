//! The runner: equal series on every device, correct data, and figures that do not depend on the
//! scale.

use std::sync::Arc;

use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_garden::check;
use senesce_trials::{CleaningPolicy, LoadKind, Point, Rig, Rotation, Scale, Setup, Trial};

const TINY: Scale = Scale { areas: 32, areas_per_point: 2, turnover_percent: 100 };

/// Fuller than the aggregates of figures, so that cleaning has more to move.
fn setup() -> Setup {
    Setup { data_drives: 6, area_stripes: 16, fill: 765, ..Setup::published(TINY) }
}

fn contents(device: &dyn BlockDevice) -> Vec<u8> {
    let mut all = vec![0; device.size().0 as usize];
    device.read_at(0, &mut all).unwrap();
    all
}

/// In the second half of each run cleaning moves blocks. The last run also makes and deletes
/// snapshots.
#[test]
fn a_compact_device_gives_the_same_drives_as_memory() {
    let snapshots = Some(Rotation { every_percent: 10, kept: 2 });
    for (load, snapshots) in [
        (LoadKind::Random, None),
        (LoadKind::Oltp { units: 2 }, None),
        (LoadKind::Runs { longest: 200 }, None),
        (LoadKind::Runs { longest: 200 }, snapshots),
    ] {
        let setup = Setup { snapshots, ..setup() };
        let run = |make: &dyn Fn(String, Bytes) -> Arc<dyn BlockDevice>| {
            let mut trial = Trial::on(setup.clone(), load, Rig::on(&setup, make).unwrap()).unwrap();
            trial.run(350).unwrap();
            trial.set_cleaning(CleaningPolicy::Default);
            trial.run(350).unwrap();
            let drives: Vec<Vec<u8>> = trial.rig().drives().iter().map(|drive| contents(drive)).collect();
            (trial.series().clone(), drives)
        };
        let (series, drives) = run(&|name, size| Arc::new(CompactDevice::new(name, size)));
        let (others, other_drives) = run(&|name, size| Arc::new(MemoryDevice::new(name, size)));
        assert_eq!(series, others, "{load:?}");
        assert!(series.points.len() > 5 && series.sum().writes.blocks > 1000, "{load:?}");
        assert!(series.sum().relocations > 0, "{load:?}");
        for (number, (one, other)) in drives.iter().zip(&other_drives).enumerate() {
            assert!(one == other, "{load:?}: drive {number} differs");
        }
    }
}

#[test]
fn trials_leave_clean_checks_and_correct_blocks() {
    for load in [LoadKind::Random, LoadKind::Oltp { units: 1 }] {
        let mut trial = Trial::new(setup(), load).unwrap();
        trial.run(1000).unwrap();
        let blocks = trial.rig().blocks();
        trial.rig().read(0..blocks).unwrap();
        let (drives, log) = (trial.rig().drives().to_vec(), trial.rig().log().clone());
        let report = check(&drives, &log).unwrap();
        assert!(report.is_clean(), "{report:?}");
        assert!(report.blocks > blocks && report.stripes > 0, "{report:?}");
    }
}

#[test]
fn series_match_drive_counters() {
    let mut trial = Trial::new(setup(), LoadKind::Oltp { units: 1 }).unwrap();
    let before = trial.rig().garden().report();
    trial.run(1000).unwrap();
    let now = trial.rig().garden().report();
    let (series, sum) = (trial.series().clone(), trial.series().sum());
    let counts = now.raid.since(before.raid);
    assert_eq!(sum.writes.blocks, counts.data.writes.blocks);
    assert_eq!(sum.writes.requests, counts.data.writes.requests);
    assert_eq!(sum.parity_reads.blocks, counts.data.parity_reads.blocks);
    assert_eq!(sum.reads.blocks, counts.data.reads.blocks);
    assert_eq!((sum.full_stripes, sum.partial_stripes), (counts.full_stripes, counts.partial_stripes));
    assert_eq!((sum.cp, sum.points as usize), (now.cp, series.points.len()), "no other consistency points");
    assert!(sum.client_blocks >= series.turnover);
    assert_eq!(sum, series.sum_from(0));
    let turnovers = series.turnovers();
    assert_eq!(turnovers.len(), 1);
    assert_eq!(turnovers[0], sum);
    let last = series.last_turnover();
    assert!(last.client_blocks >= series.turnover && last.points < sum.points + 1);
    assert!(last.client_blocks - series.points[0].client_blocks < series.turnover);
    let used = sum.used as f64 / series.blocks as f64;
    assert!((used - 0.765).abs() < 0.02, "{used} of the blocks are in use");
}

#[test]
fn cleaning_makes_chains_longer_and_costs_moves() {
    let mut trial =
        Trial::new(Setup::published(Scale { areas: 32, areas_per_point: 1, ..TINY }), LoadKind::Random).unwrap();
    trial.run(1500).unwrap();
    let before = trial.series().last_turnover();
    trial.set_cleaning(CleaningPolicy::Default);
    trial.run(1500).unwrap();
    let after = trial.series().last_turnover();
    assert_eq!((before.relocations, before.cleaning_reads.blocks, before.fix_ups), (0, 0, 0));
    assert!(after.write_chain() > 2.0 * before.write_chain(), "{} and {}", before.write_chain(), after.write_chain());
    let parity = (before.parity_reads_per_client_block(), after.parity_reads_per_client_block());
    assert!(parity.1 < 0.75 * parity.0, "{parity:?}");
    assert!(after.relocations > 0 && after.cleaning_reads.blocks >= after.relocations, "{after:?}");
    assert!(after.ready_areas > before.ready_areas, "{after:?}");
    assert!(after.written_per_client_block() > before.written_per_client_block(), "what moves is written as well");
    let blocks = trial.rig().blocks();
    trial.rig().read(0..blocks).unwrap();
    let (drives, log) = (trial.rig().drives().to_vec(), trial.rig().log().clone());
    let report = check(&drives, &log).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn rotated_snapshots_hold_overwritten_blocks() {
    let rotation = Rotation { every_percent: 10, kept: 2 };
    let setup = Setup { snapshots: Some(rotation), ..setup() };
    assert!(setup.file_blocks() < Setup { snapshots: None, ..setup.clone() }.file_blocks() * 85 / 100);
    let mut trial = Trial::new(setup.clone(), LoadKind::Runs { longest: 200 }).unwrap();
    let before = trial.rig().garden().report();
    trial.run(1500).unwrap();
    let names = trial.rig().garden().snapshots(b"volume").unwrap();
    assert_eq!(names.len(), 2);
    assert!(trial.series().points.iter().all(|point| point.points >= 1), "making one is a point as well");
    let used = |free: u64| (before.blocks - free) as f64 / before.blocks as f64;
    let now = trial.rig().garden().report();
    assert!(
        used(now.free) > used(before.free) + 0.05 && used(now.free) < 0.8,
        "{} and {}",
        used(before.free),
        used(now.free)
    );
    let (drives, log) = (trial.rig().drives().to_vec(), trial.rig().log().clone());
    assert!(check(&drives, &log).unwrap().is_clean());
    assert!(
        Trial::new(Setup { snapshots: Some(Rotation { kept: 0, ..rotation }), ..setup }, LoadKind::Random).is_err()
    );
}

#[test]
fn correct_pointers_redirect_no_read() {
    let redirects = |cleaning| {
        let mut trial = Trial::new(setup(), LoadKind::Oltp { units: 1 }).unwrap();
        trial.run(2000).unwrap();
        trial.set_cleaning(cleaning);
        trial.run(2000).unwrap();
        trial.series().sum().redirects
    };
    assert!(redirects(CleaningPolicy::Default) > 10);
    assert_eq!(redirects(CleaningPolicy::AllRight), 0);
}

/// The last of two turnovers.
fn plateau(scale: Scale, load: LoadKind) -> Point {
    let mut trial = Trial::new(Setup::published(scale), load).unwrap();
    trial.run(2000).unwrap();
    trial.series().last_turnover()
}

#[test]
fn two_scales_agree() {
    // Areas for each consistency point grow with the areas, so that metadata are the same part of
    // the writes.
    let half = Scale { areas: 32, areas_per_point: 1, turnover_percent: 100 };
    let (one, other) =
        (plateau(half, LoadKind::Random), plateau(Scale { areas: 64, areas_per_point: 2, ..half }, LoadKind::Random));
    for (name, one, other, percent) in [
        ("write chain", one.write_chain(), other.write_chain(), 10.0),
        ("parity reads", one.parity_reads_per_block(), other.parity_reads_per_block(), 10.0),
        ("written", one.written_per_client_block(), other.written_per_client_block(), 15.0),
    ] {
        assert!((one / other - 1.0).abs() < percent / 100.0, "{name}: {one} and {other}");
    }
}

/// Without cleaning they differ, and so do the moved blocks for each block of clients:
/// docs/results/garden-trials.md.
#[test]
fn two_scales_agree_under_oltp_with_cleaning() {
    // A consistency point is the same part of the aggregate, a 64th. With a larger one, the
    // emptiest areas are often too full for cleaning to pay.
    let cleaned = |areas| {
        let setup = Setup { areas, areas_per_point: areas / 64, ..setup() };
        let mut trial = Trial::new(setup, LoadKind::Oltp { units: 1 }).unwrap();
        trial.run(2000).unwrap();
        trial.set_cleaning(CleaningPolicy::Default);
        trial.run(2000).unwrap();
        trial.series().last_turnover()
    };
    let (one, other) = (cleaned(128), cleaned(256));
    // A point ends within an area, whatever its size, so the moves caused by that are the same for
    // each point.
    let moved = |point: &Point| point.relocations as f64 / point.points as f64;
    for (name, one, other) in
        [("write chain", one.write_chain(), other.write_chain()), ("moved a point", moved(&one), moved(&other))]
    {
        assert!((one / other - 1.0).abs() < 0.1, "{name}: {one} and {other}");
    }
}
