//! The costs of a single operation on an idle system.

use senesce_sim::storage::{Operation, PointTrace, Trace, compute_storage};

use super::{alone, chain, disks, flash, write};

#[test]
fn a_single_operation_costs_the_sum_of_its_parts() {
    let read = Operation { blocks: 2, reads: vec![chain(1, 0, 2)], ..Operation::default() };
    let hit = Operation { blocks: 3, cache_hits: 3, ..Operation::default() };
    for (operation, want) in [
        // Front end and three blocks of the cache.
        (hit, 10_000 + 3 * 1_000),
        // Front end, one chain, the disk (0.2 ms, no seek at the outermost track, at most half a
        // turn, two blocks), checks.
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
fn pointer_and_map_blocks_are_read_in_sequence() {
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
    // Three reads of a page in sequence need three times the time of one, and five reads five
    // times.
    let read = parallel - 10_000.0 - 3.0 * 4_000.0 - 3.0 * 600.0;
    assert!((serial / (25_800.0 + 3.0 * read) - 1.0).abs() < 0.02, "{serial} {parallel}");
    assert!((stale / (10_000.0 + 5.0 * 4_600.0 + 700.0 + 5.0 * read) - 1.0).abs() < 0.02, "{stale} {parallel}");
}
