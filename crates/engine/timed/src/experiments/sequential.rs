//! E6 and E7: a file that was written at random, read in order; and again after it was written together again when one client read it (WAR).

use senesce_sim::{CpuProfile, storage::StorageSetup};
use senesce_trials::{Band, CleaningPolicy, Figure, LoadKind, Scale, Setup};

use super::{Experiment, Outcome, Stage, run_at};
use crate::{Result, TimedTrial, Window, machine};

/// Turnovers that are written at random before.
const TURNOVERS: u64 = 2;
/// Turnovers at random with cleaning, so that there are empty areas to write in order to.
const CLEANED: u64 = 1;
/// Blocks of a read: 64 KiB.
const BLOCKS: u64 = 16;
/// Clients that read, each from a place of its own.
const CLIENTS: u64 = 64;
const READS: u64 = 8_000;
/// Blocks that the garden reads ahead at most: its default.
const READ_AHEAD: u64 = 256;
/// Passes of writing after reads at most: until one moves nothing.
const PASSES: u32 = 4;

/// E6.
pub fn on_disks(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { read_ahead: 1, ..Setup::published(scale) };
    let system = machine::disks(&setup, profile.clone())?;
    let stages = before_and_after(setup, &system, scale)?;
    let (one, other) = (&stages[0], &stages[1]);
    let figures = vec![
        Figure::new("ms a read of a file written at random", "~8", one.runs[0].figures.latency.mean / 1e6, Band::any()),
        Figure::new("GiB/s after writing after reads, times that", "2.6", rate(other) / rate(one), Band::at_least(2.0)),
        Figure::new(
            "requests to drives a GiB, before over after",
            "",
            requests(one) / requests(other),
            Band::at_least(3.0),
        ),
        Figure::new("read chain of a file written at random", "1.8", one.counted.read_chain(), Band::any()),
        Figure::new("read chain after writing after reads", "", other.counted.read_chain(), Band::any()),
    ];
    Ok(outcome(Experiment::E6, scale, profile, stages, figures))
}

/// E7.
pub fn on_flash(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { read_ahead: 1, ..Setup::published(scale) };
    let system = machine::flash(&setup, profile.clone())?;
    let stages = before_and_after(setup, &system, scale)?;
    let (one, other) = (&stages[0], &stages[1]);
    let latency = |stage: &Stage| stage.runs[0].figures.latency.mean / 1e6;
    let figures = vec![
        Figure::new("read chain of a file written at random", "1.7", one.counted.read_chain(), Band::at_most(2.0)),
        Figure::new("read chain after writing after reads", "32", other.counted.read_chain(), Band::at_least(28.0)),
        Figure::new("ms a read of a file written at random", "", latency(one), Band::any()),
        Figure::new("ms a read after writing after reads", "", latency(other), Band::any()),
        Figure::new("GiB/s after writing after reads, times that", "", rate(other) / rate(one), Band::any()),
    ];
    Ok(outcome(Experiment::E7, scale, profile, stages, figures))
}

fn outcome(
    experiment: Experiment,
    scale: Scale,
    profile: &CpuProfile,
    stages: Vec<Stage>,
    figures: Vec<Figure>,
) -> Outcome {
    let notes = vec![
        "The file was read by one client with writing after reads on until nothing moved any more, on an aggregate that was cleaned for a turnover; then it was off."
            .to_owned(),
        format!("{CLIENTS} clients that do not think; the garden reads {READ_AHEAD} blocks ahead at most, as it does by default."),
    ];
    Outcome { experiment, scale, profile: profile.clone(), stages, figures, notes, structure: None }
}

/// GiB a second that clients read.
fn rate(stage: &Stage) -> f64 {
    stage.runs[0].figures.per_second * (BLOCKS * 4096) as f64 / f64::from(1 << 30)
}

/// Requests to drives for each GiB that clients read.
fn requests(stage: &Stage) -> f64 {
    stage.counted.reads.requests as f64 * f64::from(1 << 18) / stage.counted.client_blocks_read as f64
}

fn before_and_after(setup: Setup, system: &StorageSetup, scale: Scale) -> Result<Vec<Stage>> {
    let mut trial = TimedTrial::new(setup, LoadKind::Random, true)?;
    trial.age(TURNOVERS * 10 * scale.turnover_percent)?;
    trial.set_read_ahead(READ_AHEAD);
    let window = trial.collect_reads(CLIENTS, BLOCKS, READS)?;
    let one = stage("written at random", &mut trial, system, &window)?;
    trial.set_cleaning(CleaningPolicy::Default);
    trial.age(CLEANED * 10 * scale.turnover_percent)?;
    for _ in 0..PASSES {
        if trial.write_after_read()? == 0 {
            break;
        }
    }
    trial.set_read_ahead(READ_AHEAD);
    let window = trial.collect_reads(CLIENTS, BLOCKS, READS)?;
    Ok(vec![one, stage("after WAR", &mut trial, system, &window)?])
}

fn stage(name: &str, trial: &mut TimedTrial, system: &StorageSetup, window: &Window) -> Result<Stage> {
    let run = run_at(CLIENTS, system, window, &machine::closed(CLIENTS as u32, window.operations()))?;
    Ok(Stage::new(name, trial, system, window, vec![run]))
}
