//! The order of events, invalid input, and properties of any trace.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use senesce_core::{Nanos, Seed};
use senesce_sim::{
    Arrivals, Distribution,
    storage::{
        Operation, PointTrace, SimEvent, StorageLoad, StorageSetup, Trace, compute_storage, compute_storage_observed,
    },
};

use super::{chain, disks, flash, open, small_trace, write};

#[test]
fn the_sequence_of_events_never_changes() {
    let arrivals = Arrivals::Closed { customers: 3, think: Distribution::Exponential(Nanos(2_000_000)) };
    let load = StorageLoad { arrivals, warm_up: 0, operations: 14, seed: Seed(1) };
    let mut lines = Vec::new();
    let mut observer = |now: Nanos, happening: SimEvent| lines.push(format!("{:>9} {happening:?}\n", now.0));
    compute_storage_observed(&disks(3), &small_trace(), &load, &mut observer).unwrap();
    let got: String = lines.concat();
    assert_eq!(got, include_str!("golden-sim-1.txt"), "the events are:\n{got}");
}

#[test]
fn invalid_systems_and_traces_are_refused() {
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
    fn every_operation_is_answered_exactly_once(
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
                SimEvent::Arrived(_) => arrived += 1,
                SimEvent::Answered(number) => answered.push(number),
                SimEvent::PointBegan(number) => { assert_eq!((number, done), (began, began)); began += 1 }
                SimEvent::PointDone(number) => { assert_eq!(number, done); done += 1 }
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
