//! E10 in time: reads at a fixed rate from packed and overwritten contents. Three phases: reads
//! alone, reads during recompaction, and reads during the scan after it, which corrects stale
//! pointers and excludes clients.

use senesce_sim::{CpuProfile, storage::StorageFigures};
use senesce_trials::{Fact, Figure, Kind, PAGE, PackedRig, Scale};

use super::{Experiment, Outcome, Stage, run_at};
use crate::{PackedTrial, Result, Window, published_machines};

/// Contents whose overwriting leaves the small savings of the paper.
const KIND: Kind = Kind::Worn;
/// 80 MB/s, as published, in pages of 8 KiB.
const PER_SECOND: u64 = 80_000_000 / PAGE as u64;
/// Consistency points of the pass.
const POINTS: u64 = 8;
/// Operations that are simulated.
const OPERATIONS: u64 = 40_000;
/// Pages read during a pass, in hundredths of the pages it covers: about those of the time that it
/// needs.
const READS_PERCENT: u64 = 50;

/// E10.
pub fn run(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let mut trial = PackedTrial::new(KIND, scale)?;
    let system = published_machines::flash(trial.rig().setup(), profile.clone())?;
    let operations = trial.rig().pages() * READS_PERCENT / 100;
    let saved = |trial: &PackedTrial| Ok::<_, crate::Error>(trial.rig().survey()?.saved_percent().unwrap_or(f64::NAN));
    let before = saved(&trial)?;
    let alone = trial.collect_reads(operations)?;
    let written = |trial: &PackedTrial| trial.rig().report().counts.compacted_blocks_written;
    let earlier = written(&trial);
    let (pass, step) = trial.collect_recompaction(POINTS, operations)?;
    let reclaimed = step.rewritten.saturating_sub(written(&trial) - earlier);
    let after = saved(&trial)?;
    let (scan, fixed) = trial.collect_fix_up(operations)?;
    let (passes, scans) = (pass.trace.points.len() as f64, scan.trace.points.len() as f64);
    let both = pass.clone().then(scan);
    let hits = [&alone, &pass].map(hit_percent);
    let simulated = OPERATIONS * scale.turnover_percent.min(100) / 100;
    let mut facts = PackedRig::facts(KIND, trial.rig().pages());
    facts.push(Fact::new("load", "pages overwritten at random before, then pages read at random"));
    facts.extend(published_machines::facts(&system));
    let stage = |name: &str, window: &Window| -> Result<Stage> {
        let load = published_machines::open(PER_SECOND, simulated.max(window.operations()));
        Ok(Stage {
            name: name.to_owned(),
            turnovers: 0.0,
            counted: window.counted,
            collection_is_meant: published_machines::is_collection_meant(&system),
            facts: facts.clone(),
            runs: vec![run_at(PER_SECOND, &system, window, &load)?],
        })
    };
    let stages = vec![
        stage("reads alone", &alone)?,
        stage("reads while it is recompacted", &pass)?,
        stage("reads with recompaction and then the scan", &both)?,
    ];
    let [one, during, all] = [0, 1, 2].map(|at: usize| stages[at].runs[0].figures.clone());
    let cores = |figures: &StorageFigures| figures.processors.utilisation * f64::from(published_machines::FLASH_CORES);
    let ms = |figures: &StorageFigures| figures.latency.mean / 1e6;
    // Points follow each other without a pause, so their duration determines their number a minute.
    let minute = |blocks: u64| blocks as f64 / passes * 4096.0 / f64::from(1 << 30) * 60e9 / during.points.mean;
    let figures = vec![
        Figure::new("ms of reads without recompaction", ms(&one)).number(0.63, "7.3"),
        Figure::new("ms of reads with recompaction and the scan after it", ms(&all))
            .number(2.07, "7.3")
            .after(0.63, ms(&one)),
        Figure::new("ms of reads with recompaction alone", ms(&during)),
        Figure::new("cores without recompaction", cores(&one)),
        Figure::new("cores more with recompaction and the scan", cores(&all) - cores(&one))
            .number(1.25, "7.3")
            .difference(),
        Figure::new("cores more with recompaction alone", cores(&during) - cores(&one)),
        Figure::new("GiB a minute reclaimed during recompaction", minute(reclaimed)).number(3.78, "7.3").difference(),
        Figure::new("GiB a minute of compacted blocks that are read", minute(step.read)),
        Figure::new("pointers that the scan corrected", fixed as f64),
        Figure::new("consistency points of the scan over those of recompaction", scans / passes),
        Figure::new("percent of reads that memory has, without recompaction", hits[0]),
        Figure::new("the same while it runs", hits[1]),
        // The paper's 27 % are a condition: overwriting stops there.
        Figure::new("percent saved before recompaction", before),
        Figure::new("points that this pass brought back", after - before),
    ];
    let notes = vec![
        format!("{PER_SECOND} reads a second of a page of 8 KiB each, at random (80 MB/s); 20 cores and 21 SSDs, as in E4."),
        format!("One thread goes over the container map, reads compacted blocks one after the other, and makes consistency points; it does not pause, as by command. A pass is {POINTS} points."),
        "After the pass a scan corrects the pointers of all that moved, a block of 256 pointers at a time, and clients of the volume wait meanwhile: the paper names this scan as the primary \
         reason of its latency. The size of its steps is not in the paper."
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

/// Reads that needed no drive, percent.
fn hit_percent(window: &Window) -> f64 {
    let operations = window.trace.points.iter().flat_map(|point| &point.operations);
    100.0 * operations.filter(|one| one.cache_hits > 0).count() as f64 / window.operations() as f64
}
