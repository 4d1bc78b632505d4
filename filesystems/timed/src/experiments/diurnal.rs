//! E13: a load of days and nights on flash, and gardening by idle resources.
//!
//! [`MaintenanceController`] controls the gardening, as in a mount with gardening by load, with its
//! own settings. It works before each consistency point. After each second it gets the simulated
//! figures of that second, and nothing of the next one. Seconds follow each other; only some
//! seconds of a day are simulated.
//!
//! No gardening happens before the first night, so the arms are equal until then. All judged
//! figures start with that night.

use std::ops::Range;

use senesce_core::Nanos;
use senesce_garden::{Cleaning, FixUp, Garden, Gardening, LoadMeasurements, MaintenanceController};
use senesce_sim::{
    CpuProfile, Histogram, SsdFill,
    storage::{Model, SimEvent, StorageFigures, StorageLoad, StorageSetup, Trace, compute_storage_observed},
};
use senesce_trials::{Claim, CleaningPolicy, Figure, LoadKind, Scale, Setup, tell_gardening};

use super::{Experiment, Outcome, Run, Stage};
use crate::{Error, Result, TimedTrial, published_machines};

/// Turnovers before the days: fragmented, like the published systems.
const TURNOVERS: u64 = 4;
/// Simulated days.
const DAYS: u64 = 3;
/// Simulated seconds of each day, and of each night.
const SECONDS: [usize; 2] = [2, 10];
/// Operations a second by day and by night.
const RATES: [u64; 2] = [125_000, 25_000];
const SECOND: u64 = 1_000_000_000;
/// The interval between turns of gardening, ns, as in a mount.
const POLL_INTERVAL: u64 = SECOND / 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Nothing,
    ByRoom,
    Always,
}

/// The result of an arm.
#[derive(Default)]
struct Days {
    stages: Vec<Stage>,
    /// Latencies by day and by night, from the first night on.
    latencies: [Histogram; 2],
    /// Latencies of the first second of each of these days, when past seconds do not predict the
    /// load.
    mornings: Histogram,
    /// The seconds of these days simulated again without redirected reads, to find the cause of a
    /// difference.
    without_redirects: Histogram,
    /// The same on flash that was filled in order, which no arm produced.
    on_filled_flash: Histogram,
    /// The same with both changes.
    with_neither: Histogram,
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
    let part = |one: &Histogram, other: &Histogram| one.spans().p99 as f64 / other.spans().p99 as f64;
    let morning = part(&by_room.mornings, &nothing.mornings);
    let without_redirects = part(&by_room.without_redirects, &nothing.without_redirects);
    let on_filled_flash = part(&by_room.on_filled_flash, &nothing.on_filled_flash);
    let with_neither = part(&by_room.with_neither, &nothing.with_neither);
    let [by_day, by_night] = by_room.moved.map(|blocks| blocks as f64);
    // A point of a night may be longer than its simulated part, so the seconds are those of its
    // operations.
    let nights: f64 = by_room.stages.iter().filter(|stage| is_night(stage)).map(Stage::seconds).sum();
    let idle = idle_percent(&nothing);
    let figures = vec![
        Figure::new("percent of the day and night in which half of the processors are idle", idle)
            .quoted(Claim::Number(85.0), "about 85 % of systems", "7.4")
            .not_comparable(Some(
                "The paper counts customers' systems in a busy hour. Ours is one load, whose days and nights are a choice.",
            )),
        Figure::new("part of the moved blocks that moved by night", by_night / (by_day + by_night)),
        Figure::new("p99 with gardening by what is left, over that without", over(&by_room, &[0, 1])),
        Figure::new("the same by day", over(&by_room, &[0])),
        Figure::new("the same by night", over(&by_room, &[1])),
        Figure::new("the same in the first second of a day", morning),
        Figure::new("the same by day if no pointer were stale", without_redirects),
        Figure::new("the same by day on flash filled in order", on_filled_flash),
        Figure::new("the same by day with both taken out", with_neither),
        Figure::new("percent of the reads by day that are redirected", redirected_percent(&by_room)),
        Figure::new("blocks moved a second by night", by_night / nights),
        Figure::new("write chain of the last day without gardening", last_chain(&nothing)),
        Figure::new("write chain of the last day, gardening by what is left", last_chain(&by_room)),
        Figure::new("write chain of the last day, cleaning always", last_chain(&always)),
        Figure::new("p99 by day with cleaning always, over that without", over(&always, &[0])),
    ];
    let notes = vec![
        format!(
            "{} operations a second by day, {} by night; of each day {} seconds and of each night {} are simulated, one by one.",
            RATES[0], RATES[1], SECONDS[0], SECONDS[1]
        ),
        "Gardening is that of a mount by load, with its settings (64 MiB/s at most; p99 may be a quarter above what clients are used to). It is told how busy processors and drives were, for how \
         long points were written, and how long operations took, of the second that has ended; so a day's first second has the pace of the night.".to_owned(),
        "p99 is taken from the first night on: before that nothing is gardened, and both are the same.".to_owned(),
        "Between seconds queues are empty. The paper concludes from idle processors that gardening fits there; this experiment tries that.".to_owned(),
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

fn is_night(stage: &Stage) -> bool {
    stage.runs.iter().all(|run| run.load == RATES[1])
}

impl Stage {
    /// The time in which clients request the collected operations, seconds.
    fn seconds(&self) -> f64 {
        let load = self.runs.first().map_or(f64::NAN, |run| run.load as f64);
        (self.counted.client_reads + self.counted.client_writes) as f64 / load
    }
}

/// Redirected reads of the days from the first night on, percent.
fn redirected_percent(days: &Days) -> f64 {
    let later = days.stages.iter().skip(SECONDS[0]).filter(|stage| !is_night(stage)).map(|stage| stage.counted);
    let (redirects, reads) =
        later.fold((0, 0), |(redirects, reads), of| (redirects + of.redirects, reads + of.client_reads));
    100.0 * redirects as f64 / reads as f64
}

/// Simulated seconds in which less than half of the processors were busy, percent.
fn idle_percent(days: &Days) -> f64 {
    let idle = days.stages.iter().filter(|stage| stage.runs[0].figures.processors.utilisation < 0.5).count();
    100.0 * idle as f64 / days.stages.len() as f64
}

/// Mean write chain of the last day and its night.
fn last_chain(days: &Days) -> f64 {
    let last = days.stages.iter().rev().take(SECONDS[0] + SECONDS[1]).map(|stage| stage.counted.writes);
    let (blocks, requests) =
        last.fold((0, 0), |(blocks, requests), chain| (blocks + chain.blocks, requests + chain.requests));
    blocks as f64 / requests.max(1) as f64
}

fn days(name: &str, arm: Arm, scale: Scale, profile: &CpuProfile) -> Result<Days> {
    let setup = Setup::published(scale);
    let system = published_machines::flash(&setup, profile.clone())?;
    let mut trial = TimedTrial::new(setup, LoadKind::Oltp { units: 1 }, true)?;
    trial.age(TURNOVERS * 10 * scale.turnover_percent)?;
    let mut controller = None;
    let now = trial.trial().rig().garden().gardening();
    let wished = Gardening { cleaning: Some(Cleaning::default()), fix_up: FixUp::OnRead, ..now };
    match arm {
        Arm::Nothing => {}
        Arm::Always => trial.set_cleaning(CleaningPolicy::Default),
        // The same settings are requested.
        Arm::ByRoom => controller = Some(MaintenanceController::new(trial.trial().rig().garden(), wished, Nanos(0))),
    }
    let mut days = Days::default();
    // A shortened trial has shorter seconds too.
    let second = SECOND * scale.turnover_percent.min(100) / 100;
    let (mut now, [by_day, by_night]) = (0, SECONDS);
    for number in 0..(DAYS * scale.turnover_percent).div_ceil(100).max(2) as usize * (by_day + by_night) {
        let of_day = number % (by_day + by_night);
        let at = usize::from(of_day >= by_day);
        // The time in which clients fill a point, by the operations of the previous one.
        let last = trial.trial().series().points.last().copied().unwrap_or_default();
        let span = (last.client_reads + last.client_writes) * SECOND / RATES[at];
        let points = second.checked_div(span).map_or(1, |points| points.max(1));
        let window = trial.collect_gardened(points as usize, &mut |trial| {
            let begun = now;
            now += span;
            controller.as_mut().map_or(Ok(()), |controller| give_turns(controller, trial.rig().garden(), begun..now))
        })?;
        let load = published_machines::open(RATES[at], window.operations());
        let (figures, clients) = play(&system, &window.trace, &load)?;
        if number >= by_day {
            let latencies = histogram(&clients);
            if of_day == 0 {
                days.mornings.merge(&latencies);
            }
            days.latencies[at].merge(&latencies);
            if at == 0 && arm != Arm::Always {
                days.play_again(&system, &window.trace, &load)?;
            }
        }
        if let Some(controller) = &mut controller {
            controller.observe(see(Nanos(now), &figures, clients));
        }
        days.moved[at] += window.counted.relocations + window.counted.metadata_relocations;
        let each = system.cpu.cost(&window.cleaning_events()) as f64 / window.operations().max(1) as f64;
        let cleaning_cores = each * figures.per_second / 1e9;
        let run = Run { load: RATES[at], cleaning_cores, figures };
        let mut stage = Stage::new(name, &mut trial, &system, &window, vec![run]);
        if controller.is_some() {
            // The permitted settings change every second; the requested ones do not.
            let told = format!("by load, as a mount does it; wished: {}", tell_gardening(&wished));
            stage.facts.iter_mut().filter(|fact| fact.what == "gardening").for_each(|fact| fact.told.clone_from(&told));
        }
        days.stages.push(stage);
    }
    Ok(days)
}

/// Runs as many turns of gardening as a mount would in that time.
fn give_turns(controller: &mut MaintenanceController, garden: &Garden, times: Range<u64>) -> Result<()> {
    let turns = ((times.end - times.start) / POLL_INTERVAL).max(1);
    for turn in 1..=turns {
        let now = times.start + (times.end - times.start) * turn / turns;
        if let Some(found) = controller.work(garden, Nanos(now))?.first() {
            return Err(Error::Unknown { what: format!("while gardening by load: {found}") });
        }
    }
    Ok(())
}

impl Days {
    /// Simulates a second of a day again without redirected reads, and on other flash.
    fn play_again(&mut self, system: &StorageSetup, trace: &Trace, load: &StorageLoad) -> Result<()> {
        let mut straight = trace.clone();
        for operation in straight.points.iter_mut().flat_map(|point| &mut point.operations) {
            operation.lookups.clear();
            operation.redirected.clear();
        }
        self.without_redirects.merge(&histogram(&play(system, &straight, load)?.1));
        let mut filled = system.clone();
        for drives in &mut filled.groups {
            if let Model::Ssd { fill, .. } = &mut drives.model {
                *fill = SsdFill::Sequential;
            }
        }
        let other = Trace { points: trace.points.clone(), before: Vec::new() };
        self.on_filled_flash.merge(&histogram(&play(&filled, &other, load)?.1));
        let neither = Trace { points: straight.points, before: Vec::new() };
        self.with_neither.merge(&histogram(&play(&filled, &neither, load)?.1));
        Ok(())
    }
}

fn histogram(latencies: &[Nanos]) -> Histogram {
    let mut all = Histogram::default();
    latencies.iter().for_each(|&latency| all.add(latency));
    all
}

/// Simulates a trace once. Also returns the latencies, without those of the warm-up.
fn play(system: &StorageSetup, trace: &Trace, load: &StorageLoad) -> Result<(StorageFigures, Vec<Nanos>)> {
    let (mut latencies, mut arrived, mut answered) = (Vec::new(), Vec::new(), 0);
    let figures = compute_storage_observed(system, trace, load, &mut |now, happening| match happening {
        SimEvent::Arrived(_) => arrived.push(now),
        SimEvent::Answered(number) => {
            answered += 1;
            if answered > load.warm_up {
                latencies.push(now.since(arrived[number as usize]));
            }
        }
        _ => {}
    })?;
    Ok((figures, latencies))
}

/// The figures that a mount could measure of the last second.
fn see(now: Nanos, figures: &StorageFigures, clients: Vec<Nanos>) -> LoadMeasurements {
    let in_points = figures.points.count as f64 * figures.points.mean;
    LoadMeasurements {
        now,
        processors: figures.processors.utilisation,
        drives: figures.group_busy.iter().copied().fold(0.0, f64::max),
        point: (in_points / figures.time as f64).min(1.0),
        clients,
    }
}
