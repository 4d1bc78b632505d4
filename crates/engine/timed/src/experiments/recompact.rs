//! E10 in time: reads at a set rate of contents that were packed and written over, with nothing beside them, and while they are recompacted.

use senesce_sim::{CpuProfile, storage::StorageFigures};
use senesce_trials::{Band, Fact, Figure, Kind, PAGE, PackedRig, Scale};

use super::{Experiment, Outcome, Stage, run_at};
use crate::{PackedTrial, Result, Window, machine};

/// Contents: the more usual of those that E10's structure is judged by.
const KIND: Kind = Kind::Mixed;
/// 80 MB/s, as published, in pages of 8 KiB.
const PER_SECOND: u64 = 80_000_000 / PAGE as u64;
/// Consistency points of the pass.
const POINTS: u64 = 8;
/// Operations that are simulated.
const OPERATIONS: u64 = 40_000;
/// Pages that are read while a pass goes over as many, in hundredths: about what goes by in the time that it takes.
const READS_PERCENT: u64 = 50;

/// E10.
pub fn run(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let mut trial = PackedTrial::new(KIND, scale)?;
    let system = machine::flash(trial.rig().setup(), profile.clone())?;
    let operations = trial.rig().pages() * READS_PERCENT / 100;
    let saved = |trial: &PackedTrial| Ok::<_, crate::Error>(trial.rig().survey()?.saved_percent().unwrap_or(f64::NAN));
    let before = saved(&trial)?;
    let alone = trial.collect_reads(operations)?;
    let (beside, step) = trial.collect_recompaction(POINTS, operations)?;
    let after = saved(&trial)?;
    let points = beside.trace.points.len() as f64;
    let hits = [&alone, &beside].map(hit_percent);
    let simulated = OPERATIONS * scale.turnover_percent.min(100) / 100;
    let mut facts = PackedRig::facts(trial.rig().pages());
    facts.push(Fact::new("load", "pages overwritten at random before, then pages read at random"));
    facts.extend(machine::facts(&system));
    let stage = |name: &str, window: Window| -> Result<Stage> {
        let load = machine::open(PER_SECOND, simulated.max(window.operations()));
        Ok(Stage {
            name: name.to_owned(),
            turnovers: 0.0,
            counted: window.counted,
            collection_is_meant: machine::is_collection_meant(&system),
            facts: facts.clone(),
            runs: vec![run_at(PER_SECOND, &system, &window, &load)?],
        })
    };
    let stages = vec![stage("reads alone", alone)?, stage("reads while it is recompacted", beside)?];
    let figures_of = |stage: &Stage| stage.runs[0].figures.clone();
    let (one, other) = (figures_of(&stages[0]), figures_of(&stages[1]));
    let cores = |figures: &StorageFigures| figures.processors.utilisation * f64::from(machine::FLASH_CORES);
    // Points follow each other without a pause, so what each of them takes says how many there are a minute.
    let minute = |blocks: u64| blocks as f64 / points * 4096.0 / f64::from(1 << 30) * 60e9 / other.points.mean;
    let figures = vec![
        Figure::new("ms of reads without recompaction", "0.63", one.latency.mean / 1e6, Band::any()),
        Figure::new("ms of reads while it runs", "2.07", other.latency.mean / 1e6, Band::any()),
        Figure::new(
            "ms of reads while it runs, over those without",
            "3.3",
            other.latency.mean / one.latency.mean,
            Band::at_least(1.0),
        ),
        Figure::new("cores without recompaction", "", cores(&one), Band::any()),
        Figure::new("cores more while it runs", "1.25", cores(&other) - cores(&one), Band::at_least(0.0)),
        Figure::new("GiB a minute of compacted blocks that are read", "3.78", minute(step.read), Band::any()),
        Figure::new("GiB a minute of those that are given up", "", minute(step.rewritten), Band::any()),
        Figure::new("percent of reads that memory has, without recompaction", "", hits[0], Band::any()),
        Figure::new("the same while it runs", "", hits[1], Band::any()),
        Figure::new("points that this pass brought back", "", after - before, Band::any()),
    ];
    let notes = vec![
        format!(
            "{PER_SECOND} reads a second of a page of 8 KiB each, at random (80 MB/s); 20 cores and 21 SSDs, as in E4: what the published system was is not told in the design's table."
        ),
        format!(
            "One thread goes over the container map, reads compacted blocks one after the other, and makes consistency points; it does not pause, as by command. A pass is {POINTS} points."
        ),
        "Published latencies are of a system that has 0.63 ms at this rate already; ours is far from its end, and what one thread reads beside is little for 21 drives. Clients feel \
         the memory that it takes from them as much as drives."
            .to_owned(),
        "What a GiB is of is not told: here of compacted blocks that are read because enough of their chunks are gone."
            .to_owned(),
    ];
    Ok(Outcome {
        experiment: Experiment::E10,
        scale,
        profile: profile.clone(),
        stages,
        figures,
        notes,
        structure: None,
    })
}

/// Reads that no drive was asked for.
fn hit_percent(window: &Window) -> f64 {
    let operations = window.trace.points.iter().flat_map(|point| &point.operations);
    100.0 * operations.filter(|one| one.cache_hits > 0).count() as f64 / window.operations() as f64
}
