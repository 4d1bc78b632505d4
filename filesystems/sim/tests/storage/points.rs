//! Consistency points concurrent with clients.

use senesce_core::{BlockOp, Nanos, Seed};
use senesce_sim::{
    Arrivals, CpuEvents, Distribution,
    storage::{
        Exclusive, Operation, PointTrace, SimEvent, StorageLoad, SyntheticTrace, Trace, compute_storage,
        compute_storage_observed,
    },
};

use super::{chain, disks, open, run, synthetic};

#[test]
fn a_trace_without_writes_has_no_consistency_points() {
    let read = Operation { blocks: 1, reads: vec![chain(1, 7, 1)], ..Operation::default() };
    let point = PointTrace { operations: vec![read], ..PointTrace::default() };
    let figures =
        compute_storage(&disks(3), &Trace { points: vec![point; 2], before: Vec::new() }, &open(20, 300)).unwrap();
    assert_eq!((figures.points.count, figures.reads.count, figures.writes.count), (0, 300, 0));
}

#[test]
fn a_full_log_delays_operations_and_loses_none() {
    // Ten blocks a point, each with a seek on one of two disks: far below the arrival rate.
    let trace = SyntheticTrace { operations: 10, reads_per_mille: 0, drives: 3, ..synthetic(1) };
    let arrivals = Arrivals::Closed { customers: 50, think: Distribution::Exact(Nanos(100_000)) };
    let load = StorageLoad { arrivals, warm_up: 500, operations: 3000, seed: Seed(3) };
    let figures = run(&disks(3), &trace, &load);
    assert!(figures.held.count > 2500, "{:?}", figures.held);
    // The throughput equals that of the consistency points.
    let points_per_second = 1e9 / figures.points.mean;
    assert!((figures.per_second / (10.0 * points_per_second) - 1.0).abs() < 0.05, "{figures:?}");
    assert!(figures.processors.utilisation < 0.3);
}

#[test]
fn points_complete_under_client_overload() {
    // More reads than the disks can serve: the point still completes, because its requests age.
    let trace = SyntheticTrace { reads_per_mille: 950, operations: 100, points: 80, hits_per_mille: 0, ..synthetic(8) };
    let figures = run(&disks(8), &trace, &open(4000, 6000));
    assert!(!figures.kept_up);
    assert!(figures.points.count >= 10, "{:?}", figures.points);
    let background: f64 = figures.drives.iter().map(|drive| drive.busy[1]).sum();
    assert!(background > 0.1, "{background}");
}

#[test]
fn background_points_repeat_and_scan_in_sequence() {
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
        SimEvent::Request { op: BlockOp::Read, drive, .. } => scanned.push((now.0, drive)),
        SimEvent::PointDone(number) => {
            assert_eq!(number, points);
            points += 1;
        }
        _ => {}
    };
    compute_storage_observed(&disks(3), &trace, &open(1000, 100), &mut look).unwrap();
    assert!(
        points > 3 && scanned.len() as u64 >= 3 * points,
        "no operation writes, but there were only {points} points"
    );
    // A disk returns a chain; then the thread computes, and only then it reads the next.
    for pair in scanned.windows(2) {
        assert!(pair[1].0 >= pair[0].0 + 44_000, "{pair:?}");
        assert_eq!(pair[1].1, (pair[0].1 + 1) % 3);
    }
}

#[test]
fn points_without_cost_do_not_repeat() {
    let hit = Operation { blocks: 1, cache_hits: 1, ..Operation::default() };
    let free = CpuEvents { relocation: 5, ..CpuEvents::default() };
    let point = PointTrace { operations: vec![hit], scan_events: free, events: free, ..PointTrace::default() };
    let trace = Trace { points: vec![point], before: Vec::new() };
    let mut setup = disks(3);
    let figures = compute_storage(&setup, &trace, &open(1000, 100)).unwrap();
    assert_eq!((figures.points.count, figures.reads.count), (0, 100), "moving is for nothing in this table");
    setup.cpu.times.relocation = 1_000;
    let figures = compute_storage(&setup, &trace, &open(1000, 100)).unwrap();
    assert!(figures.points.count > 100 && figures.points.mean >= 10_000.0, "{:?}", figures.points);
}

#[test]
fn operations_wait_for_exclusive_background_work() {
    let hit = Operation { blocks: 1, cache_hits: 1, ..Operation::default() };
    // 10,000 context checks need 6 ms of one of the two processors; a read alone needs 11 us of the
    // other.
    let work = CpuEvents { context_check: 10_000, ..CpuEvents::default() };
    let writes = vec![chain(0, 8192, 1)];
    let point = PointTrace { operations: vec![hit], writes, ..PointTrace::default() };
    let beside = PointTrace { scan_events: work, ..point.clone() };
    let exclusive = PointTrace { exclusive: vec![Exclusive { reads: Vec::new(), events: work }], ..point };
    let play = |point: PointTrace| {
        let trace = Trace { points: vec![point], before: Vec::new() };
        compute_storage(&disks(3), &trace, &open(1000, 3000)).unwrap()
    };
    let (free, kept_out) = (play(beside), play(exclusive));
    assert!(free.latency.max < 1_000_000, "{:?}", free.latency);
    // No operation waits longer than a part. The mean is about half of a part, times the share of
    // the time that it runs.
    assert!(kept_out.latency.mean > 500_000.0 && kept_out.latency.max < 7_000_000, "{:?}", kept_out.latency);
    assert_eq!(free.latency.count, kept_out.latency.count);
    assert!(free.kept_up && kept_out.kept_up);
}
