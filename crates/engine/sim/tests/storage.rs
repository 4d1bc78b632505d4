//! The whole system, with made-up traces.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use senesce_core::{BlockOp, Nanos, Seed};
use senesce_device::find_preset;
use senesce_sim::{
    Arrivals, CpuEvents, CpuOrigin, CpuProfile, Distribution, SsdFill, SsdSpec,
    storage::{
        Chain, Drives, Happening, Model, Operation, PointTrace, Spread, StorageFigures, StorageLoad, StorageSetup,
        SyntheticTrace, Trace, compute_load_curve, compute_storage, compute_storage_observed,
    },
};

/// A table of round numbers, so that sums can be done by hand.
fn profile() -> CpuProfile {
    let times = CpuEvents {
        front_end: 10_000,
        cache_hit: 1_000,
        log_append: 2_000,
        block_clean: 3_000,
        chain_issue: 4_000,
        xor: 500,
        context_check: 600,
        map_lookup: 700,
        ..CpuEvents::default()
    };
    CpuProfile { name: "test".into(), origin: CpuOrigin::Assumed, times }
}

fn disks(count: u32) -> StorageSetup {
    let model = Model::Disk { spec: find_preset("hdd-10k").unwrap(), spread: None };
    StorageSetup::new(vec![Drives { count, model }], 2, profile())
}

fn flash(count: u32, blocks: u64) -> StorageSetup {
    let spec = SsdSpec::from_device(&find_preset("sata-ssd").unwrap(), blocks, 4).unwrap();
    let model = Model::Ssd { spec, fill: SsdFill::Sequential, depth: 32, spread: None };
    StorageSetup::new(vec![Drives { count, model }], 4, profile())
}

fn open(per_second: u64, operations: u64) -> StorageLoad {
    let arrivals = Arrivals::Open(Distribution::Exponential(Nanos(1_000_000_000 / per_second)));
    StorageLoad { arrivals, warm_up: operations / 5, operations, seed: Seed(1) }
}

/// One client, who thinks for so many ns after each answer.
fn alone(think: u64, operations: u64) -> StorageLoad {
    let arrivals = Arrivals::Closed { customers: 1, think: Distribution::Exact(Nanos(think)) };
    StorageLoad { arrivals, warm_up: 0, operations, seed: Seed(1) }
}

/// 8,000 operations: a run that goes around would find what disks still have in their buffers.
fn synthetic(write_chain: u32) -> SyntheticTrace {
    SyntheticTrace {
        drives: 8,
        drive_blocks: 1 << 20,
        points: 8,
        operations: 1000,
        reads_per_mille: 500,
        blocks: 1,
        hits_per_mille: 300,
        read_chain: 1,
        write_chain,
        parity_reads_per_mille: 0,
        seed: Seed(7),
    }
}

fn run(setup: &StorageSetup, trace: &SyntheticTrace, load: &StorageLoad) -> StorageFigures {
    compute_storage(setup, &trace.make().unwrap(), load).unwrap()
}

fn write(blocks: u32) -> Operation {
    Operation { write: true, blocks, ..Operation::default() }
}

fn chain(drive: u32, block: u64, blocks: u32) -> Chain {
    Chain { drive, block, blocks }
}

/// Two points of a small system of three disks: reads, one of them redirected; parity reads; writes.
fn small_trace() -> Trace {
    let read = Operation { blocks: 4, reads: vec![chain(1, 100, 3), chain(2, 9, 1)], ..Operation::default() };
    let redirected = vec![chain(2, 70_000, 1)];
    let stale = Operation { blocks: 1, reads: vec![chain(1, 500, 1)], redirected, ..Operation::default() };
    let hit = Operation { blocks: 1, cache_hits: 1, ..Operation::default() };
    let events = CpuEvents { block_clean: 12, xor: 12, ..CpuEvents::default() };
    let first = PointTrace {
        operations: vec![read, write(8), hit, write(4)],
        reads: vec![chain(1, 4096, 2)],
        writes: vec![chain(1, 4098, 6), chain(2, 4096, 6), chain(0, 4096, 8), chain(2, 64, 1)],
        events,
        ..PointTrace::default()
    };
    let writes = vec![chain(1, 8192, 2), chain(0, 8192, 2)];
    let second = PointTrace { operations: vec![write(2), stale], writes, ..PointTrace::default() };
    Trace { points: vec![first, second], before: Vec::new() }
}

#[test]
fn the_sequence_of_events_is_pinned_for_ever() {
    let arrivals = Arrivals::Closed { customers: 3, think: Distribution::Exponential(Nanos(2_000_000)) };
    let load = StorageLoad { arrivals, warm_up: 0, operations: 14, seed: Seed(1) };
    let mut lines = Vec::new();
    let mut observer = |now: Nanos, happening: Happening| lines.push(format!("{:>9} {happening:?}\n", now.0));
    compute_storage_observed(&disks(3), &small_trace(), &load, &mut observer).unwrap();
    let got: String = lines.concat();
    assert_eq!(got, include_str!("golden-sim-1.txt"), "the events are:\n{got}");
}

#[test]
fn an_operation_alone_takes_the_sum_of_its_parts() {
    let read = Operation { blocks: 2, reads: vec![chain(1, 0, 2)], ..Operation::default() };
    let hit = Operation { blocks: 3, cache_hits: 3, ..Operation::default() };
    for (operation, want) in [
        // Front end and three blocks of the cache.
        (hit, 10_000 + 3 * 1_000),
        // Front end, one chain, the disk (0.2 ms, no seek at the outermost track, half a turn at most, two blocks), checks.
        (read, 10_000 + 4_000 + 200_000 + 2 * 600),
        // Front end, two blocks to the log: 10 us and 8 KiB at 2 GB/s.
        (write(2), 10_000 + 2 * 2_000 + 10_000 + 4_096),
    ] {
        let read = !operation.reads.is_empty();
        let point = PointTrace { operations: vec![operation, write(1)], ..PointTrace::default() };
        let load = alone(50_000_000, 1);
        let figures = compute_storage(&disks(3), &Trace { points: vec![point], before: Vec::new() }, &load).unwrap();
        let got = figures.latency.max;
        match read {
            true => assert!((want..want + 6_300_000).contains(&got), "{got} {want}"),
            false => assert_eq!(got, want),
        }
    }
}

#[test]
fn stale_pointers_cost_another_read() {
    let load = alone(1_000_000, 400);
    let latency = |redirects: usize| {
        let reads = vec![chain(1, 90_000, 1)];
        let redirected = vec![chain(2, 40_000, 1); redirects];
        let stale = Operation { blocks: 1, reads, redirected, ..Operation::default() };
        let operations = vec![write(1), stale];
        let point = PointTrace { operations, ..PointTrace::default() };
        let figures =
            compute_storage(&flash(3, 1 << 18), &Trace { points: vec![point], before: Vec::new() }, &load).unwrap();
        (figures.reads.mean, figures.drives.iter().map(|drive| drive.responses[0].count).sum::<u64>())
    };
    let ((good, reads), (stale, more)) = (latency(0), latency(1));
    assert_eq!((reads, more), (200, 400));
    assert!(stale > 1.8 * good && stale < 2.2 * good, "{good} {stale}");
}

#[test]
fn blocks_of_pointers_and_maps_are_read_one_after_the_other() {
    let load = alone(1_000_000, 50);
    let mean = |operation: Operation| {
        let point = PointTrace { operations: vec![operation], ..PointTrace::default() };
        let trace = Trace { points: vec![point], before: Vec::new() };
        compute_storage(&flash(3, 1 << 18), &trace, &load).unwrap().latency.mean
    };
    let at = |drive| chain(drive, 90_000 + u64::from(drive) * 512, 1);
    let all = vec![at(0), at(1), at(2)];
    let parallel = mean(Operation { blocks: 3, reads: all.clone(), ..Operation::default() });
    let serial = mean(Operation { blocks: 3, pointers: all.clone(), ..Operation::default() });
    let stale = Operation {
        blocks: 1,
        reads: vec![at(0)],
        lookups: all.clone(),
        redirected: vec![at(1)],
        ..Operation::default()
    };
    let stale = mean(stale);
    // Three reads of a page take three times as long one after the other, and five of them five times.
    let read = parallel - 10_000.0 - 3.0 * 4_000.0 - 3.0 * 600.0;
    assert!((serial / (25_800.0 + 3.0 * read) - 1.0).abs() < 0.02, "{serial} {parallel}");
    assert!((stale / (10_000.0 + 5.0 * 4_600.0 + 700.0 + 5.0 * read) - 1.0).abs() < 0.02, "{stale} {parallel}");
}

#[test]
fn a_trace_without_writes_has_no_consistency_points() {
    let read = Operation { blocks: 1, reads: vec![chain(1, 7, 1)], ..Operation::default() };
    let point = PointTrace { operations: vec![read], ..PointTrace::default() };
    let figures =
        compute_storage(&disks(3), &Trace { points: vec![point; 2], before: Vec::new() }, &open(20, 300)).unwrap();
    assert_eq!((figures.points.count, figures.reads.count, figures.writes.count), (0, 300, 0));
}

#[test]
fn a_known_trace_keeps_drives_and_processors_as_busy_as_arithmetic_says() {
    // Blocks that were never written take a command and the link: 10 us and 4,096 bytes at 550 MB/s. Each operation reads one of
    // drive 1; of 500 a second, drive 1 is busy for 500 * 17.4 us, and four processors for 500 * (10 + 4 + 0.6) us.
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
    // The same for chains that are read: 64 blocks in pieces of 1, 8 and 64.
    let mut last = f64::INFINITY;
    for read_chain in [1, 8, 64] {
        let trace = SyntheticTrace { read_chain, blocks: 64, reads_per_mille: 900, operations: 200, ..synthetic(64) };
        let figures = run(&disks(8), &trace, &open(10, 1000));
        assert!(figures.reads.mean < last, "{read_chain}: {:?}", figures.reads);
        last = figures.reads.mean;
    }
}

#[test]
fn latency_rises_with_the_load_and_processors_are_used_in_proportion() {
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
        // What was charged at the beginning of an operation is done a little later.
        let used = figures.processors.utilisation * 4.0;
        assert!((busy / used - 1.0).abs() < 0.1, "{busy} {used}");
        assert!((figures.there / (figures.per_second * figures.latency.mean / 1e9) - 1.0).abs() < 0.02, "{figures:?}");
    }
    let front_end = curve[1].cores[0].client;
    assert!((front_end - curve[1].per_second * 10_000e-9).abs() < 0.01, "{front_end}");
}

#[test]
fn a_full_log_holds_operations_back_and_loses_none() {
    // Ten blocks a point, each a seek on one of two disks: a fraction of what comes.
    let trace = SyntheticTrace { operations: 10, reads_per_mille: 0, drives: 3, ..synthetic(1) };
    let arrivals = Arrivals::Closed { customers: 50, think: Distribution::Exact(Nanos(100_000)) };
    let load = StorageLoad { arrivals, warm_up: 500, operations: 3000, seed: Seed(3) };
    let figures = run(&disks(3), &trace, &load);
    assert!(figures.held.count > 2500, "{:?}", figures.held);
    // As fast as consistency points come, to the last operation.
    let points_per_second = 1e9 / figures.points.mean;
    assert!((figures.per_second / (10.0 * points_per_second) - 1.0).abs() < 0.05, "{figures:?}");
    assert!(figures.processors.utilisation < 0.3);
}

#[test]
fn points_get_done_however_many_clients_come() {
    // More reads than the disks can serve: the point still ends, because its requests age.
    let trace = SyntheticTrace { reads_per_mille: 950, operations: 100, points: 80, hits_per_mille: 0, ..synthetic(8) };
    let figures = run(&disks(8), &trace, &open(4000, 6000));
    assert!(!figures.kept_up);
    assert!(figures.points.count >= 10, "{:?}", figures.points);
    let background: f64 = figures.drives.iter().map(|drive| drive.busy[1]).sum();
    assert!(background > 0.1, "{background}");
}

#[test]
fn a_scaled_drive_spread_over_a_disk_has_the_seeks_of_the_disk() {
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
fn scattered_writes_cost_flash_more_than_whole_areas() {
    // All blocks in use, 10% spare: chains of a page are collected apart from each other, those of 4 MiB together.
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

#[test]
fn what_is_done_beside_clients_goes_on_by_itself_and_its_one_thread_reads_one_after_the_other() {
    let hit = Operation { blocks: 1, cache_hits: 1, ..Operation::default() };
    let point = PointTrace {
        operations: vec![hit],
        scanned: vec![chain(1, 0, 1), chain(2, 0, 1), chain(0, 64, 1)],
        // 120 us, so 40 and the chain's 4 each.
        scan_events: CpuEvents { context_check: 200, ..CpuEvents::default() },
        writes: vec![chain(0, 8192, 1)],
        ..PointTrace::default()
    };
    let trace = Trace { points: vec![point], before: Vec::new() };
    let (mut scanned, mut points) = (Vec::new(), 0);
    let mut look = |now: Nanos, happening| match happening {
        Happening::Request { op: BlockOp::Read, drive, .. } => scanned.push((now.0, drive)),
        Happening::PointDone(number) => {
            assert_eq!(number, points);
            points += 1;
        }
        _ => {}
    };
    compute_storage_observed(&disks(3), &trace, &open(1000, 100), &mut look).unwrap();
    assert!(points > 3 && scanned.len() as u64 >= 3 * points, "nobody writes, and still there were {points} points");
    // A disk gives what it was asked for; then the thread works, and only then it reads on.
    for pair in scanned.windows(2) {
        assert!(pair[1].0 >= pair[0].0 + 44_000, "{pair:?}");
        assert_eq!(pair[1].1, (pair[0].1 + 1) % 3);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let good = small_trace();
    let load = open(100, 10);
    let mut setup = disks(2);
    let refused = |setup: &StorageSetup, trace: &Trace| compute_storage(setup, trace, &load).unwrap_err().to_string();
    assert!(refused(&setup, &good).contains("drive 2 of 2"));
    assert!(refused(&disks(3), &Trace::default()).contains("no consistency points"));
    let idle = Trace { points: vec![PointTrace::default()], before: Vec::new() };
    assert!(refused(&disks(3), &idle).contains("no operation that writes"));
    setup.cores = 0;
    assert!(refused(&setup, &good).contains("0 processors"));
    let none = StorageLoad { operations: 0, ..load };
    assert!(compute_storage(&disks(3), &good, &none).is_err());
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn every_operation_is_answered_once_and_the_accounts_hold(
        kinds in prop::collection::vec((0u8..4, 1u32..9, 0u32..4, 0u64..1 << 18), 2..40),
        points in 1usize..4,
        customers in 1u32..20,
        flash_drives: bool,
        seed: u64,
    ) {
        let mut trace = Trace { points: vec![PointTrace::default(); points], before: Vec::new() };
        for (index, (kind, blocks, drive, block)) in kinds.into_iter().enumerate() {
            let point = &mut trace.points[index % points];
            let at = chain(drive, block, blocks);
            match kind {
                0 => point.operations.push(Operation { blocks, reads: vec![at, at], redirected: vec![at], ..Operation::default() }),
                1 => point.reads.push(at),
                2 => point.writes.push(at),
                _ => point.operations.push(Operation { write: true, blocks, ..Operation::default() }),
            }
        }
        trace.points.iter_mut().for_each(|point| point.operations.push(write(1)));
        let setup = if flash_drives { flash(4, 1 << 18) } else { disks(4) };
        let arrivals = Arrivals::Closed { customers, think: Distribution::Exponential(Nanos(1_000_000)) };
        let load = StorageLoad { arrivals, warm_up: 20, operations: 200, seed: Seed(seed) };
        let (mut arrived, mut answered, mut began, mut done) = (0, Vec::new(), 0, 0);
        let mut last = Nanos(0);
        let figures = compute_storage_observed(&setup, &trace, &load, &mut |now, happening| {
            assert!(now >= last);
            last = now;
            match happening {
                Happening::Arrived(_) => arrived += 1,
                Happening::Answered(number) => answered.push(number),
                Happening::PointBegan(number) => { assert_eq!((number, done), (began, began)); began += 1 }
                Happening::PointDone(number) => { assert_eq!(number, done); done += 1 }
                _ => {}
            }
        }).unwrap();
        answered.sort_unstable();
        answered.dedup();
        prop_assert_eq!(answered.len(), 220);
        prop_assert!(arrived - answered.len() <= customers as usize);
        prop_assert_eq!(figures.latency.count, 200);
        prop_assert_eq!(figures.reads.count + figures.writes.count, 200);
        let again = compute_storage(&setup, &trace, &load).unwrap();
        prop_assert_eq!(again, figures);
    }
}
