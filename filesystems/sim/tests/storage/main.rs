//! The whole system, with synthetic traces.

mod drives;
mod operations;
mod points;
mod whole;

use senesce_core::{Nanos, Seed};
use senesce_device::find_preset;
use senesce_sim::{
    Arrivals, CpuEvents, CpuOrigin, CpuProfile, Distribution, SsdFill, SsdSpec,
    storage::{
        Chain, Drives, Model, Operation, PointTrace, StorageFigures, StorageLoad, StorageSetup, SyntheticTrace, Trace,
        compute_storage,
    },
};

/// A table of round numbers, so that sums can be checked by hand.
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

/// One client, which thinks for `think` ns after each answer.
fn alone(think: u64, operations: u64) -> StorageLoad {
    let arrivals = Arrivals::Closed { customers: 1, think: Distribution::Exact(Nanos(think)) };
    StorageLoad { arrivals, warm_up: 0, operations, seed: Seed(1) }
}

/// 8,000 operations: with fewer the run would wrap around and hit the buffers of disks.
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

/// Two points of a small system of three disks: reads, one of them redirected; parity reads;
/// writes.
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
