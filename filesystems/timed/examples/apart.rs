//! The components of the latency of E1: the same traces without stale pointers, without the reads
//! of cleaning, and with more concurrent steps of a consistency point.
//!
//! `cargo run --release -p senesce-timed --example apart -- [turnovers]`; docs/results/timed.md has
//! the figures.

use senesce_sim::{
    CpuProfile,
    storage::{StorageSetup, Trace, compute_storage},
};
use senesce_timed::{TimedTrial, Window, published_machines};
use senesce_trials::{CleaningPolicy, LoadKind, Scale, Setup};

/// Operations a second.
const RATE: u64 = 3_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let turnovers: u64 = std::env::args().nth(1).map_or(Ok(8), |word| word.parse())?;
    let setup = Setup::published(Scale { areas: 64, areas_per_point: 2, turnover_percent: 100 });
    let system = published_machines::disks(&setup, published_machines::DISK_CORES, CpuProfile::paper20())?;
    for (name, cleaning) in [("without cleaning", CleaningPolicy::Off), ("with cleaning", CleaningPolicy::Default)] {
        let mut trial = TimedTrial::new(setup.clone(), LoadKind::Oltp { units: 1 }, false)?;
        trial.set_cleaning(cleaning);
        trial.age(turnovers * 1000)?;
        let window = trial.collect(8)?;
        println!("{name}, {turnovers} turnovers: write chain {:.1}", window.counted.write_chain());
        tell("as it is", &system, &window, |_| {})?;
        tell("no stale pointers", &system, &window, |trace| {
            for operation in trace.points.iter_mut().flat_map(|point| &mut point.operations) {
                operation.lookups.clear();
                operation.redirected.clear();
            }
        })?;
        tell("no reads of consistency points", &system, &window, |trace| {
            trace.points.iter_mut().for_each(|point| point.reads.clear());
        })?;
        tell("no writes of consistency points", &system, &window, |trace| {
            trace.points.iter_mut().for_each(|point| point.writes.clear());
        })?;
        tell("neither", &system, &window, |trace| {
            trace.points.iter_mut().for_each(|point| {
                point.reads.clear();
                point.writes.clear();
            });
        })?;
        for steps in [8, 16, 64] {
            let system = StorageSetup { window: steps, ..system.clone() };
            tell(&format!("{steps} steps on their way"), &system, &window, |_| {})?;
        }
    }
    Ok(())
}

fn tell(
    name: &str,
    system: &StorageSetup,
    window: &Window,
    change: impl Fn(&mut Trace),
) -> Result<(), Box<dyn std::error::Error>> {
    let mut trace = window.trace.clone();
    change(&mut trace);
    let figures = compute_storage(system, &trace, &published_machines::open(RATE, window.operations()))?;
    println!(
        "  {name:<34} kept up {:>3}  mean {:>8.2} ms  reads {:>6.2} ms  p99 {:>8.1} ms  drives busy {:>4.1} %  point {:>7.1} ms",
        if figures.kept_up { "yes" } else { "NO" },
        figures.latency.mean / 1e6,
        figures.reads.mean / 1e6,
        figures.latency.p99 as f64 / 1e6,
        100.0 * figures.group_busy[0],
        figures.points.mean / 1e6,
    );
    Ok(())
}
