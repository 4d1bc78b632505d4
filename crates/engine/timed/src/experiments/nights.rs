//! E13: a load of days and nights on flash, and gardening that goes by what is left.
//!
//! A stretch of some hours is a window of consistency points, simulated at the rate of those hours until it is steady. The
//! [`Scheduler`] sees what came out and says how much the next stretch is gardened: areas by the background scan, then pointers.

use senesce_core::Nanos;
use senesce_garden::{Caution, FixUp, Gardening, Observed, Scheduler, Task};
use senesce_sim::{
    CpuProfile, Histogram,
    storage::{Happening, StorageFigures, StorageSetup, compute_storage_observed},
};
use senesce_trials::{Band, CleaningPolicy, Figure, LoadKind, Rig, Scale, Setup, Trial};

use super::{Experiment, Outcome, Run, Stage};
use crate::{Result, TimedTrial, Window, machine};

/// Turnovers before: fragmented, as the published systems are.
const TURNOVERS: u64 = 4;
/// Days that are simulated.
const DAYS: u64 = 3;
/// Stretches of a day, half of them by day: three hours each.
const STRETCHES: usize = 8;
const STRETCH: Nanos = Nanos(3 * 3600 * 1_000_000_000);
/// Operations a second by day and by night.
const DAY: u64 = 125_000;
const NIGHT: u64 = 25_000;
/// Consistency points of a stretch.
const DAY_POINTS: usize = 3;
const NIGHT_POINTS: usize = 1;
/// Operations that are simulated of a stretch.
const OPERATIONS: u64 = 24_000;
/// Pieces in which the buckets of a point are filled.
const PIECES: u64 = 16;
/// Pointers that are looked at for one that is paid for.
const POINTERS: u64 = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Nothing,
    ByRoom,
    Always,
}

/// What came of an arm.
struct Days {
    stages: Vec<Stage>,
    /// Latencies by day, and by night.
    latencies: [Histogram; 2],
    /// Blocks moved by day, and by night.
    moved: [u64; 2],
}

/// E13.
pub fn run(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let nothing = days("no gardening", Arm::Nothing, scale, profile)?;
    let by_room = days("gardening by what is left", Arm::ByRoom, scale, profile)?;
    let always = days("cleaning always", Arm::Always, scale, profile)?;
    let p99 = |days: &Days, hours: &[usize]| {
        let mut all = Histogram::default();
        hours.iter().for_each(|&at| all.merge(&days.latencies[at]));
        all.spans().p99 as f64
    };
    let over = |days: &Days, hours: &[usize]| p99(days, hours) / p99(&nothing, hours);
    let chain = |days: &Days| {
        last_day(days)
            .map(|stage| stage.counted.writes)
            .fold((0, 0), |(blocks, requests), chain| (blocks + chain.blocks, requests + chain.requests))
    };
    let mean = |days: &Days| chain(days).0 as f64 / chain(days).1.max(1) as f64;
    let moved: u64 = by_room.moved.iter().sum();
    let by_night = by_room.moved[1] as f64 / moved as f64;
    let few = Band::at_most(1.05);
    let figures = vec![
        Figure::new("p99 with gardening by what is left, over that without", "", over(&by_room, &[0, 1]), few),
        Figure::new("the same by day", "", over(&by_room, &[0]), few),
        Figure::new("the same by night", "", over(&by_room, &[1]), few),
        Figure::new("part of the moved blocks that moved by night", "idle periods", by_night, Band::at_least(0.9)),
        Figure::new("write chain of the last day without gardening", "", mean(&nothing), Band::any()),
        Figure::new("write chain of the last day, gardening by what is left", "", mean(&by_room), Band::any()),
        Figure::new("write chain of the last day, cleaning always", "", mean(&always), Band::any()),
        Figure::new("p99 by day with cleaning always, over that without", "", over(&always, &[0]), Band::any()),
    ];
    let notes = vec![
        format!("{DAY} operations a second by day, {NIGHT} by night; twelve hours each, of which a stretch of three is simulated until it is steady."),
        "Between stretches queues are empty. At the beginning of each the scheduler sees the new rate; what it still does in that second is not simulated.".to_owned(),
        "Published are customers' systems that had idle processors; that gardening fits there is what is tried.".to_owned(),
    ];
    let stages = [nothing, by_room, always].into_iter().flat_map(|days| days.stages).collect();
    Ok(Outcome {
        experiment: Experiment::E13,
        scale,
        profile: profile.clone(),
        stages,
        figures,
        notes,
        structure: None,
    })
}

fn last_day(days: &Days) -> impl Iterator<Item = &Stage> {
    days.stages.iter().rev().take(STRETCHES)
}

fn days(name: &str, arm: Arm, scale: Scale, profile: &CpuProfile) -> Result<Days> {
    let setup = Setup::published(scale);
    let system = machine::flash(&setup, profile.clone())?;
    let mut trial = TimedTrial::new(setup, LoadKind::Oltp { units: 1 }, true)?;
    trial.age(TURNOVERS * 10 * scale.turnover_percent)?;
    match arm {
        Arm::Nothing => {}
        Arm::Always => trial.set_cleaning(CleaningPolicy::Default),
        // What the scan of pointers does not come to is put right when it is read, as it is while cleaning always.
        Arm::ByRoom => {
            let garden = trial.trial().rig().garden();
            garden.set_gardening(Gardening { fix_up: FixUp::OnRead, ..garden.gardening() });
        }
    }
    // What is done at once goes into one consistency point, and is not to make it more than twice as long.
    let burst = trial.trial().setup().blocks_per_point() as f64;
    let mut scheduler = (arm == Arm::ByRoom).then(|| Scheduler::new(Caution { burst, ..Caution::default() }));
    let mut days = Days { stages: Vec::new(), latencies: Default::default(), moved: [0; 2] };
    let mut before: Option<Window> = None;
    let all = (DAYS * scale.turnover_percent).div_ceil(100).max(1) as usize * STRETCHES;
    for stretch in 0..all {
        let at = usize::from(stretch % STRETCHES >= STRETCHES / 2);
        let (rate, points) = [(DAY, DAY_POINTS), (NIGHT, NIGHT_POINTS)][at];
        if let Some((scheduler, window)) = scheduler.as_mut().zip(before.as_ref()) {
            let (figures, _) = play(&system, window, rate, scale)?;
            // Only what is used: its p99 is of what was gardened under another load.
            scheduler.observe(&Observed { p99: None, ..observe(&figures, true) });
        }
        // As long as it takes clients to fill a point: by their operations of the stretch before, for not every one of them writes.
        let span = before.as_ref().map_or(Nanos(0), |window| {
            Nanos(window.operations() * 1_000_000_000 / (window.trace.points.len().max(1) as u64 * rate))
        });
        let window = trial.collect_gardened(points, &mut |trial| match &mut scheduler {
            Some(scheduler) => garden(trial, scheduler, span),
            None => Ok(()),
        })?;
        let (figures, latencies) = play(&system, &window, rate, scale)?;
        let moved = window.counted.relocations + window.counted.metadata_relocations;
        if let Some(scheduler) = &mut scheduler {
            scheduler.observe(&observe(&figures, moved + window.counted.fix_ups > 0));
        }
        days.latencies[at].merge(&latencies);
        days.moved[at] += moved;
        let each = system.cpu.cost(&window.cleaning_events()) as f64 / window.operations().max(1) as f64;
        let cleaning_cores = each * figures.per_second / 1e9;
        let series = trial.trial().series();
        days.stages.push(Stage {
            name: name.to_owned(),
            turnovers: series.sum().client_blocks as f64 / series.turnover as f64,
            counted: window.counted,
            collection_is_meant: machine::is_collection_meant(&system),
            runs: vec![Run { load: rate, cleaning_cores, figures }],
        });
        before = Some(window);
    }
    Ok(days)
}

/// What the scheduler allows for a point: as long as it takes clients to fill it.
fn garden(trial: &mut Trial, scheduler: &mut Scheduler, span: Nanos) -> Result<()> {
    let garden = trial.rig().garden();
    let (mut scanned, mut ended) = (false, false);
    for _ in 0..PIECES {
        scheduler.refill(Nanos(span.0 / PIECES));
        while scheduler.may(Task::FixUp) && !ended {
            let step = garden.fix_up_step(Rig::VOLUME, POINTERS)?;
            scheduler.spend(Task::FixUp, step.fixed);
            ended = step.ended || step.no_space;
        }
        while scheduler.may(Task::Cleaning) && !scanned {
            let step = garden.scan_step(1, garden.gardening().cleaning.unwrap_or_default())?;
            let blocks = step.moves.blocks + step.moves.metadata;
            scheduler.spend(Task::Cleaning, blocks);
            scheduler.hand_over(Task::Cleaning, Task::FixUp, step.moves.blocks);
            // One pass over all areas for a point, and none where there is no space for what would move.
            scanned = step.done == step.of || step.no_space > 0;
        }
    }
    Ok(())
}

/// Plays a window around until it is steady; also gives the latencies.
fn play(system: &StorageSetup, window: &Window, rate: u64, scale: Scale) -> Result<(StorageFigures, Histogram)> {
    let operations = (OPERATIONS * scale.turnover_percent.min(100) / 100).max(window.operations());
    let load = machine::open(rate, operations);
    let (mut latencies, mut arrived, mut answered) = (Histogram::default(), Vec::new(), 0);
    let figures = compute_storage_observed(system, &window.trace, &load, &mut |now, happening| match happening {
        Happening::Arrived(_) => arrived.push(now),
        Happening::Answered(number) => {
            answered += 1;
            if answered > load.warm_up {
                latencies.add(now.since(arrived[number as usize]));
            }
        }
        _ => {}
    })?;
    Ok((figures, latencies))
}

fn observe(figures: &StorageFigures, gardened: bool) -> Observed {
    let points_a_second = figures.points.count as f64 * 1e9 / figures.time as f64;
    let point = (points_a_second * figures.points.mean / 1e9).min(1.0);
    Observed {
        span: STRETCH,
        per_second: figures.offered_per_second.unwrap_or(figures.per_second),
        processors: figures.processors.utilisation,
        drives: figures.group_busy.iter().copied().fold(0.0, f64::max),
        // A half is full when its point begins, so the next one is as full as the point before took of the time.
        log: point,
        point,
        p99: Some(Nanos(figures.latency.p99)),
        gardened,
    }
}
