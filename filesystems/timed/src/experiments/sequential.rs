//! E6 and E7: sequential reads of a file that was written at random, and again after one client's
//! reads made it contiguous by write-after-read (WAR).

use senesce_sim::{
    Class, CpuProfile,
    storage::{StorageFigures, StorageSetup},
};
use senesce_trials::{Claim, CleaningPolicy, Figure, LoadKind, Scale, Setup};

use super::{Experiment, Outcome, Stage, run_at};
use crate::{Result, TimedTrial, Window, published_machines};

/// Turnovers written at random before.
const TURNOVERS: u64 = 2;
/// Turnovers at random with cleaning, so that there are empty areas for sequential writes.
const CLEANED: u64 = 1;
/// Blocks of a read: 64 KiB.
const BLOCKS: u64 = 16;
const READS: u64 = 8_000;
/// The largest read-ahead of the garden on flash, blocks: its default.
const READ_AHEAD: u64 = 256;
/// The same on disks. The paper's 639 reads a second of 3.9 ms each are 2.5 concurrent requests of
/// each drive. With the default there would be more than a hundred.
const DISK_READ_AHEAD: u64 = 32;
/// The largest number of passes of write-after-read; it stops earlier when a pass moves nothing.
const PASSES: u32 = 4;
/// Clients that read, each from another position: points of a curve, of which the last is judged.
const FLASH_CLIENTS: [u64; 6] = [2, 4, 8, 16, 32, 64];
/// The published system of disks is larger. Its 1 GiB/s in chains of 1.8 blocks at 639 reads a
/// second of each drive are those of 228 drives, and its 8 ms at that rate are 131 clients. Here
/// are 20 drives, so 12 clients and 2 cores stand for 131 and 20.
const DISK_CLIENTS: [u64; 4] = [3, 6, 9, 12];
const DISK_CORES: u32 = 2;

/// E6.
pub fn on_disks(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { read_ahead: 1, ..Setup::published(scale) };
    let system = published_machines::disks(&setup, DISK_CORES, profile.clone())?;
    let stages = before_and_after(setup, &system, &DISK_CLIENTS, DISK_READ_AHEAD, scale)?;
    let (one, other) = (&stages[0], &stages[1]);
    let [slow, fast] = [one, other].map(|stage| at_drives(last(stage)));
    let figures = vec![
        Figure::new("ms a read of a file written at random", ms(one)).quoted(Claim::Number(8.0), "around 8", "7.2"),
        Figure::new("read chain of a file written at random", one.counted.read_chain()).number(1.8, "7.2"),
        Figure::new("GiB/s after WAR, times that before", rate(other) / rate(one))
            .quoted(Claim::Number(2.6), "1 to 2.6 GiB/s", "7.2")
            .ratio(),
        Figure::new("requests to drives a GiB, before over after", requests(one) / requests(other))
            .quoted(Claim::Number((639.0 / 1.0) / (345.0 / 2.6)), "639/s at 1 GiB/s to 345/s at 2.6", "7.2")
            .ratio(),
        Figure::new("ms of a request at a drive, before", slow).number(3.9, "7.2"),
        Figure::new("ms of a request at a drive, after WAR", fast).number(1.2, "7.2").after(3.9, slow),
        Figure::new("read chain after WAR", other.counted.read_chain()),
    ];
    let notes = vec![
        format!(
            "{} clients and {DISK_CORES} cores for 20 data drives. By the paper's rates its system has about 228 drives, 131 clients and 20 cores, and 2.5 requests at a time \
             at each drive; so the garden reads {DISK_READ_AHEAD} blocks ahead and not {READ_AHEAD}.",
            DISK_CLIENTS[DISK_CLIENTS.len() - 1]
        ),
        "The paper measures while WAR works, at loads that rise after fixed intervals of unknown length. Its chain at the end is 8.7 by its rates. Ours is measured when WAR has \
         nothing left to move."
            .to_owned(),
    ];
    Ok(outcome(Experiment::E6, scale, profile, stages, figures, notes))
}

/// E7.
pub fn on_flash(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { read_ahead: 1, ..Setup::published(scale) };
    let system = published_machines::flash(&setup, profile.clone())?;
    let stages = before_and_after(setup, &system, &FLASH_CLIENTS, READ_AHEAD, scale)?;
    let (one, other) = (&stages[0], &stages[1]);
    let before = one.counted.read_chain();
    let figures = vec![
        Figure::new("read chain of a file written at random", before).number(1.7, "7.2"),
        Figure::new("read chain after WAR", other.counted.read_chain()).number(32.0, "7.2").after(1.7, before),
        Figure::new("GiB/s after WAR, times that before", rate(other) / rate(one))
            .quoted(Claim::Rises, "much higher throughput", "7.2")
            .ratio(),
        Figure::new("ms a read of a file written at random", ms(one)),
        Figure::new("ms a read after WAR", ms(other)),
    ];
    let clients = FLASH_CLIENTS[FLASH_CLIENTS.len() - 1];
    let notes = vec![format!("Figures are those at {clients} clients.")];
    Ok(outcome(Experiment::E7, scale, profile, stages, figures, notes))
}

fn outcome(
    experiment: Experiment,
    scale: Scale,
    profile: &CpuProfile,
    stages: Vec<Stage>,
    figures: Vec<Figure>,
    mut notes: Vec<String>,
) -> Outcome {
    notes.extend([
        "The file was read by one client with WAR on until nothing moved any more, on an aggregate that was cleaned for a turnover; then WAR was off.".to_owned(),
        "Clients do not think.".to_owned(),
    ]);
    Outcome { experiment, scale, profile: profile.clone(), stages, figures, notes, structure: None }
}

/// The figures at the largest number of clients.
fn last(stage: &Stage) -> &StorageFigures {
    &stage.runs[stage.runs.len() - 1].figures
}

/// Mean latency, ms.
fn ms(stage: &Stage) -> f64 {
    last(stage).latency.mean / 1e6
}

/// The time of a request at a drive from arrival to completion, ms: the mean over all drives.
fn at_drives(figures: &StorageFigures) -> f64 {
    let (sum, count) = figures.drives.iter().fold((0.0, 0.0), |(sum, count), drive| {
        let spans = &drive.responses[Class::Client as usize];
        (sum + spans.mean * spans.count as f64, count + spans.count as f64)
    });
    sum / count / 1e6
}

/// GiB a second that clients read.
fn rate(stage: &Stage) -> f64 {
    last(stage).per_second * (BLOCKS * 4096) as f64 / f64::from(1 << 30)
}

/// Requests to drives for each GiB that clients read.
fn requests(stage: &Stage) -> f64 {
    stage.counted.reads.requests as f64 * f64::from(1 << 18) / stage.counted.client_blocks_read as f64
}

fn before_and_after(
    setup: Setup,
    system: &StorageSetup,
    clients: &[u64],
    read_ahead: u64,
    scale: Scale,
) -> Result<Vec<Stage>> {
    let most = clients.iter().copied().max().unwrap_or(1);
    let mut trial = TimedTrial::new(setup, LoadKind::Random, true)?;
    trial.age(TURNOVERS * 10 * scale.turnover_percent)?;
    trial.set_read_ahead(read_ahead);
    let window = trial.collect_reads(most, BLOCKS, READS)?;
    let one = stage("written at random", &mut trial, system, &window, clients)?;
    trial.set_cleaning(CleaningPolicy::Default);
    trial.age(CLEANED * 10 * scale.turnover_percent)?;
    for _ in 0..PASSES {
        if trial.write_after_read()? == 0 {
            break;
        }
    }
    trial.set_read_ahead(read_ahead);
    let window = trial.collect_reads(most, BLOCKS, READS)?;
    Ok(vec![one, stage("after WAR", &mut trial, system, &window, clients)?])
}

fn stage(name: &str, trial: &mut TimedTrial, system: &StorageSetup, window: &Window, clients: &[u64]) -> Result<Stage> {
    let run = |&clients: &u64| {
        run_at(clients, system, window, &published_machines::closed(clients as u32, window.operations()))
    };
    let runs = clients.iter().map(run).collect::<Result<_>>()?;
    Ok(Stage::new(name, trial, system, window, runs))
}
