//! The service of chains by drives, and the utilisation of drives and processors.

use senesce_core::{Nanos, Seed};
use senesce_device::find_preset;
use senesce_sim::{
    Arrivals, Distribution, SsdFill,
    storage::{
        Drives, Model, Operation, PointTrace, Spread, StorageFigures, StorageLoad, StorageSetup, SyntheticTrace, Trace,
        compute_load_curve, compute_storage,
    },
};

use super::{chain, disks, flash, open, profile, run, synthetic};

#[test]
fn utilisation_of_a_known_trace_matches_arithmetic() {
    // A read of blocks that were never written costs a command and the link: 10 us, and 4,096 bytes
    // at 550 MB/s. Each operation reads one block of drive 1. With 500 a second, drive 1 is busy
    // for 500 * 17.4 us, and four processors for 500 * (10 + 4 + 0.6) us.
    let read = Operation { blocks: 1, reads: vec![chain(1, 7, 1)], ..Operation::default() };
    let point = PointTrace { operations: vec![read], ..PointTrace::default() };
    let mut setup = flash(3, 1 << 18);
    let Model::Ssd { fill, .. } = &mut setup.groups[0].model else { panic!("flash") };
    *fill = SsdFill::Erased;
    let every = Arrivals::Open(Distribution::Exact(Nanos(2_000_000)));
    let load = StorageLoad { arrivals: every, warm_up: 10, operations: 1000, seed: Seed(1) };
    let trace = Trace { points: vec![point], before: Vec::new() };
    let figures = compute_storage(&setup, &trace, &load).unwrap();
    let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.01, "{got}, not {want}");
    near(figures.per_second, 500.0);
    near(figures.drives[1].share_busy, 500.0 * 17_447e-9);
    assert_eq!((figures.drives[0].share_busy, figures.drives[2].share_busy), (0.0, 0.0));
    near(figures.processors.utilisation, 500.0 * 14_600e-9 / 4.0);
    near(figures.latency.mean, 14_600.0 + 17_447.0);
    // The same drive with that block on flash: a page is read as well.
    let written = Trace { before: vec![chain(1, 0, 1 << 10)], ..trace };
    let longer = compute_storage(&setup, &written, &load).unwrap();
    assert!(longer.latency.mean > figures.latency.mean + 75_000.0, "{}", longer.latency.mean);
}

#[test]
fn longer_chains_make_disks_faster() {
    let load = open(500, 6000);
    let mut last: Option<StorageFigures> = None;
    for write_chain in [2, 8, 32] {
        let trace = SyntheticTrace { blocks: 4, read_chain: 4, ..synthetic(write_chain) };
        let figures = run(&disks(8), &trace, &load);
        assert!(figures.kept_up, "chains of {write_chain}: {figures:?}");
        if let Some(before) = last {
            assert!(figures.reads.mean < before.reads.mean, "{write_chain}: {:?} {:?}", figures.reads, before.reads);
            assert!(figures.group_busy[0] < before.group_busy[0]);
            assert!(figures.points.mean < before.points.mean);
        }
        last = Some(figures);
    }
    // The same for reads: 64 blocks in chains of 1, 8 and 64.
    let mut last = f64::INFINITY;
    for read_chain in [1, 8, 64] {
        let trace = SyntheticTrace { read_chain, blocks: 64, reads_per_mille: 900, operations: 200, ..synthetic(64) };
        let figures = run(&disks(8), &trace, &open(10, 1000));
        assert!(figures.reads.mean < last, "{read_chain}: {:?}", figures.reads);
        last = figures.reads.mean;
    }
}

#[test]
fn latency_and_processor_use_rise_with_load() {
    let trace = SyntheticTrace { drive_blocks: 1 << 18, operations: 4000, ..synthetic(16) };
    let curve = compute_load_curve(
        &flash(8, 1 << 18),
        &trace.make().unwrap(),
        &open(1, 20_000),
        &[2_000, 20_000, 80_000, 400_000],
    );
    let curve = curve.unwrap();
    assert!(curve.windows(2).all(|pair| pair[0].latency.mean < pair[1].latency.mean));
    assert_eq!(curve.iter().map(|figures| figures.kept_up).collect::<Vec<_>>(), [true, true, true, false]);
    for figures in curve.iter().filter(|figures| figures.kept_up) {
        let busy: f64 = figures.cores.iter().map(|cores| cores.client + cores.background).sum();
        // Work is charged at the start of an operation, and done a little later.
        let used = figures.processors.utilisation * 4.0;
        assert!((busy / used - 1.0).abs() < 0.1, "{busy} {used}");
        assert!((figures.there / (figures.per_second * figures.latency.mean / 1e9) - 1.0).abs() < 0.02, "{figures:?}");
    }
    let front_end = curve[1].cores[0].client;
    assert!((front_end - curve[1].per_second * 10_000e-9).abs() < 0.01, "{front_end}");
}

#[test]
fn a_spread_drive_has_full_disk_seeks() {
    let trace = SyntheticTrace { drive_blocks: 1 << 14, ..synthetic(4) };
    let spec = find_preset("hdd-10k").unwrap();
    let spread = Some(Spread { drive_blocks: 1 << 14, unit_blocks: 64 });
    let group = Drives { count: 8, model: Model::Disk { spec, spread } };
    let wide = run(&StorageSetup::new(vec![group], 2, profile()), &trace, &open(300, 3000));
    let narrow = run(&disks(8), &trace, &open(300, 3000));
    assert!(wide.reads.mean > 1.2 * narrow.reads.mean, "{:?} {:?}", wide.reads, narrow.reads);
    let whole = SyntheticTrace { drive_blocks: 17_000_000, ..synthetic(4) };
    let whole = run(&disks(8), &whole, &open(300, 3000));
    assert!((wide.reads.mean / whole.reads.mean - 1.0).abs() < 0.1, "{:?} {:?}", wide.reads, whole.reads);
}

#[test]
fn scattered_writes_amplify_more_than_whole_areas() {
    // All blocks are in use, with 10% spare. Short chains of a page are collected separately,
    // chains of 4 MiB together.
    let amplification = |write_chain: u32| {
        let trace = SyntheticTrace {
            drive_blocks: 1 << 14,
            drives: 3,
            operations: 512,
            reads_per_mille: 0,
            blocks: 8,
            points: 16,
            ..synthetic(write_chain)
        };
        let mut setup = flash(3, 1 << 18);
        let Model::Ssd { spec, .. } = &mut setup.groups[0].model else { panic!("flash") };
        (spec.blocks, spec.channels, spec.dies_per_channel, spec.pages_per_erase) = (1 << 14, 2, 1, 16);
        let figures = run(&setup, &trace, &StorageLoad { warm_up: 16_000, ..open(1_000, 8_000) });
        figures.flash.unwrap().write_amplification.unwrap()
    };
    let (scattered, areas) = (amplification(4), amplification(1024));
    assert!(scattered > 2.0 && areas < 0.6 * scattered, "{scattered} {areas}");
}
