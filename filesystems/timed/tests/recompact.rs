//! E10 in time: recompaction runs on the store during the simulation, and its costs are in the
//! figures.

use senesce_sim::{CpuEvents, CpuProfile, storage::compute_storage};
use senesce_timed::{Experiment, PackedTrial, published_machines};
use senesce_trials::{Kind, Scale};

const TINY: Scale = Scale { areas: 16, areas_per_point: 1, turnover_percent: 13 };

#[test]
fn recompaction_is_traced_and_costs_latency_and_processors() {
    let mut trial = PackedTrial::new(Kind::Mixed, TINY).unwrap();
    let before = trial.rig().report().counts;
    let (window, step) = trial.collect_recompaction(4, 800).unwrap();
    let counts = trial.rig().report().counts;
    assert!(step.is_done && step.rewritten > 50 && step.chunks >= step.rewritten, "{step:?}");
    let points = &window.trace.points;
    let sum = |of: fn(&senesce_sim::storage::PointTrace) -> u64| points.iter().map(of).sum::<u64>();
    // Each released block was read before; the blocks with its chunks were written.
    assert!(sum(|point| point.scanned.iter().map(|chain| u64::from(chain.blocks)).sum()) >= step.read);
    assert_eq!(sum(|point| point.scan_events.relocation), step.chunks);
    let written = counts.compacted_blocks_written - before.compacted_blocks_written;
    assert!(written > 0 && sum(|point| point.writes.iter().map(|chain| u64::from(chain.blocks)).sum()) > written);
    assert!(sum(|point| point.events.block_clean) > step.chunks);
    // Pages in memory needed no drive, others at least one chunk; some of both exist.
    let operations: Vec<_> = points.iter().flat_map(|point| &point.operations).collect();
    assert!(operations.len() >= 800 && operations.iter().all(|one| (one.cache_hits == 0) != one.reads.is_empty()));
    assert!(operations.iter().all(|one| one.decompressed == 2 - one.cache_hits));
    let hits = operations.iter().filter(|one| one.cache_hits > 0).count();
    assert!(hits > 0 && 2 * hits < operations.len(), "{hits} of {}", operations.len());

    // The same reads without the work of recompaction show its cost.
    let mut free = window.trace.clone();
    for point in &mut free.points {
        (point.scanned, point.reads, point.writes) = Default::default();
        (point.scan_events, point.events) = (CpuEvents::default(), CpuEvents::default());
    }
    let system = published_machines::flash(trial.rig().setup(), CpuProfile::paper20()).unwrap();
    let load = published_machines::open(9765, 4000);
    let play = |trace| compute_storage(&system, trace, &load).unwrap();
    let (with, without) = (play(&window.trace), play(&free));
    assert!(with.points.count > 4 && without.points.count == 0, "points follow each other by themselves");
    assert!(with.kept_up && without.kept_up);
    assert!(with.latency.mean > without.latency.mean, "{:?} and {:?}", with.latency, without.latency);
    assert!(with.processors.utilisation > without.processors.utilisation);
    assert!(with.group_busy[0] > without.group_busy[0]);
    trial.verify().unwrap();
}

#[test]
fn the_scan_corrects_pointers_and_delays_clients() {
    let mut trial = PackedTrial::new(Kind::Worn, TINY).unwrap();
    let (_, step) = trial.collect_recompaction(4, 400).unwrap();
    let (window, fixed) = trial.collect_fix_up(400).unwrap();
    // Each moved chunk has one pointer. Some are already correct, because a read corrected them or
    // their block was dirty.
    assert!(fixed > 0 && fixed <= step.chunks + step.rewritten, "{fixed} of {step:?}");
    let parts: Vec<_> = window.trace.points.iter().flat_map(|point| &point.exclusive).collect();
    assert_eq!(parts.iter().map(|part| part.events.fix_up).sum::<u64>(), fixed);
    assert!(parts.iter().all(|part| part.events.map_lookup <= 256), "a step is one block of pointers");
    // The same work costs clients less without exclusion.
    let mut beside = window.trace.clone();
    for point in &mut beside.points {
        for part in std::mem::take(&mut point.exclusive) {
            point.scanned.extend(part.reads);
            point.scan_events = point.scan_events.plus(&part.events);
        }
    }
    let system = published_machines::flash(trial.rig().setup(), CpuProfile::paper20()).unwrap();
    let load = published_machines::open(9765, 4000);
    let play = |trace| compute_storage(&system, trace, &load).unwrap();
    let (out, within) = (play(&window.trace), play(&beside));
    assert!(out.latency.mean > 1.5 * within.latency.mean, "{:?} and {:?}", out.latency, within.latency);
    trial.verify().unwrap();
}

#[test]
fn e10_has_the_published_numbers() {
    let outcome = Experiment::E10.run(TINY, &CpuProfile::paper20()).unwrap();
    let of = |name: &str| outcome.figures.iter().find(|figure| figure.name == name).unwrap();
    for (name, published) in [
        ("ms of reads without recompaction", 0.63),
        ("ms of reads with recompaction and the scan after it", 2.07),
        ("cores more with recompaction and the scan", 1.25),
        ("GiB a minute reclaimed during recompaction", 3.78),
    ] {
        let quote = of(name).quote.as_ref().unwrap();
        assert_eq!((quote.claim.number(), quote.section.as_str()), (Some(published), "7.3"));
        assert!(of(name).ours > 0.0 && of(name).ours.is_finite(), "{:?}", of(name));
    }
    let ms = |name: &str| of(name).ours;
    assert!(
        ms("ms of reads with recompaction and the scan after it") > ms("ms of reads with recompaction alone"),
        "{:?}",
        outcome.figures
    );
}
