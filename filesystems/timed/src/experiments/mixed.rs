//! E8: sequential reads and writes on aged flash, with and without write-after-read (WAR): blocks
//! that were read are rewritten contiguously.

use senesce_garden::{FixUp, Gardening, WriteAfterRead};
use senesce_sim::{
    CpuProfile,
    storage::{StorageFigures, StorageSetup},
};
use senesce_trials::{CleaningPolicy, Figure, LoadKind, Scale, Setup};

use super::{Experiment, Outcome, Stage, run_at};
use crate::{Result, TimedTrial, published_machines};

/// Turnovers at random, and then with cleaning, so that there are empty areas for sequential
/// writes.
const TURNOVERS: u64 = 2;
const CLEANED: u64 = 1;
/// Clients that read and clients that write, without think time. 2 GiB/s at 1.7 ms, as published,
/// are 56 concurrent operations.
const READERS: u64 = 28;
const WRITERS: u64 = 28;
/// Blocks of an operation: 64 KiB.
const BLOCKS: u64 = 16;
/// The largest read-ahead of the garden, blocks: its default.
const READ_AHEAD: u64 = 256;
/// Consistency points that are collected.
const POINTS: usize = 8;

/// E8.
pub fn run(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let without = stage("without WAR", false, scale, profile)?;
    let with = stage("with WAR", true, scale, profile)?;
    let figures_of = |stage: &Stage| stage.runs[0].figures.clone();
    let (one, other) = (figures_of(&without), figures_of(&with));
    let rate = |per_second: f64| per_second * (BLOCKS * 4096) as f64 / f64::from(1 << 30);
    // Utilised cores, not charged ones: near saturation some charged work is not done yet.
    let cores = |figures: &StorageFigures| figures.processors.utilisation * f64::from(published_machines::FLASH_CORES);
    let work = |figures: &StorageFigures| cores(figures) / rate(figures.per_second);
    let share = with.counted.rewritten as f64 / with.counted.client_blocks_read.max(1) as f64;
    // The additional processor time of a GiB, times the throughput. Both systems saturate their
    // processors, so the difference of busy cores says nothing.
    let own = (work(&other) - work(&one)) * rate(other.per_second);
    let figures = vec![
        Figure::new("ms without WAR", one.latency.mean / 1e6).number(1.7, "7.2"),
        Figure::new("ms with WAR", other.latency.mean / 1e6).number(2.5, "7.2").after(1.7, one.latency.mean / 1e6),
        Figure::new("latency with WAR over without", other.latency.mean / one.latency.mean),
        Figure::new("GiB/s without WAR", rate(one.per_second)).number(2.0, "7.2"),
        Figure::new("GiB/s with WAR", rate(other.per_second)).number(1.7, "7.2").after(2.0, rate(one.per_second)),
        Figure::new("throughput with WAR over without", other.per_second / one.per_second),
        Figure::new("cores for WAR", own).number(1.6, "7.2").difference(),
        Figure::new("busy cores more with WAR", cores(&other) - cores(&one)),
        Figure::new("processor time a GiB, with WAR over without", work(&other) / work(&one)),
        Figure::new("blocks rewritten for each that was read", share),
    ];
    let notes = vec![
        format!("{READERS} clients that read and {WRITERS} that write 64 KiB in order, each from a place of its own, and do not think."),
        "The number of clients is the paper's throughput times its latency, so one of these two figures without WAR is set.".to_owned(),
        "Cores for WAR: the processor time of a GiB with WAR less that without, times the GiB/s with WAR. The paper has 1.6 cores more in a system whose processors are full.".to_owned(),
        "Both begin on an aggregate that was written at random twice and cleaned for a turnover; nothing is cleaned any more, as published defaults have it for SSDs. The garden reads 256 blocks ahead.".to_owned(),
    ];
    Ok(Outcome {
        experiment: Experiment::E8,
        scale,
        profile: profile.clone(),
        stages: vec![without, with],
        figures,
        notes,
        structure: None,
    })
}

fn stage(name: &str, writes_after_read: bool, scale: Scale, profile: &CpuProfile) -> Result<Stage> {
    // The garden itself reads ahead: its read-ahead signals sequential readers to WAR.
    let setup = Setup { read_ahead: 1, ..Setup::published(scale) };
    let system: StorageSetup = published_machines::flash(&setup, profile.clone())?;
    let mut trial = TimedTrial::new(setup, LoadKind::Random, true)?;
    trial.age(TURNOVERS * 10 * scale.turnover_percent)?;
    trial.set_cleaning(CleaningPolicy::Default);
    trial.age(CLEANED * 10 * scale.turnover_percent)?;
    trial.set_read_ahead(READ_AHEAD);
    trial.trial().set_load(LoadKind::Streams { readers: READERS, writers: WRITERS, blocks: BLOCKS });
    // The published default for aggregates of SSDs is no continuous cleaning. Writes use the areas
    // that earlier cleaning emptied.
    let write_after_read = writes_after_read.then(WriteAfterRead::default);
    let gardening = Gardening { write_after_read, fix_up: FixUp::OnRead, ..Gardening::default() };
    trial.trial().rig().garden().set_gardening(gardening);
    let window = trial.collect(POINTS)?;
    let clients = READERS + WRITERS;
    let run = run_at(clients, &system, &window, &published_machines::closed(clients as u32, window.operations()))?;
    Ok(Stage::new(name, &mut trial, &system, &window, vec![run]))
}
