//! E1: disks at a fixed load, turnover by turnover, without and with cleaning.

use senesce_sim::CpuProfile;
use senesce_trials::{
    Claim, CleaningPolicy, Experiment as Structure, Figure, LONG_DAYS, LONG_TURNOVERS, LoadKind, Scale, Setup,
    Stage as Counted,
};

use super::{Experiment, Outcome, Stage, ratio, run_at};
use crate::{Result, TimedTrial, published_machines};

const PER_SECOND: u64 = 3_000;
/// Consistency points that are collected at the end of each turnover.
const POINTS: usize = 8;

/// E1.
pub fn long(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let (without, one) = turnovers("without cleaning", CleaningPolicy::Off, scale, profile)?;
    let (with, other) = turnovers("with cleaning", CleaningPolicy::Default, scale, profile)?;
    let ratios: Vec<f64> = without.iter().zip(&with).map(|(one, other)| ratio(&one.runs[0], &other.runs[0])).collect();
    let crossings = compute_crossings(&ratios);
    let last = ratios.last().copied().unwrap_or(f64::NAN);
    let ends = |stages: &[Stage]| stages.last().map_or(f64::NAN, |stage| stage.counted.write_chain());
    let cores = with.last().map_or(f64::NAN, |stage| stage.runs[0].cleaning_cores);
    let first = crossings.first().map_or(f64::NAN, |&stage| without[stage - 1].turnovers);
    let unkept = without.iter().chain(&with).filter(|stage| !stage.runs[0].figures.kept_up).count();
    let of = without.len() + with.len();
    let why = format!(
        "The published system kept up with its load for 62 days. Of our windows {unkept} of {of} did not, so their latencies only say how long a run was."
    );
    let obstacle = (unkept > 0).then_some(why.as_str());
    let days = first * LONG_DAYS / LONG_TURNOVERS as f64;
    let figures = vec![
        Figure::new("days until cleaning is faster for the first time", days)
            .number(35.0, "7.1")
            .not_comparable(obstacle),
        Figure::new("latency with cleaning over without in the first turnover", ratios[0])
            .quoted(Claim::Rises, "higher for 35 days", "7.1")
            .ratio()
            .not_comparable(obstacle),
        Figure::new("latency with cleaning over without at the end", last)
            .quoted(Claim::Falls, "lower at the end", "7.1")
            .ratio()
            .not_comparable(obstacle),
        Figure::new("turnovers after which the other is slower (crossovers)", crossings.len() as f64),
        Figure::new("write chain without cleaning at the end, in the trace", ends(&without)),
        Figure::new("write chain with cleaning at the end, times that", ends(&with) / ends(&without)),
        Figure::new("cores for cleaning at the end", cores),
    ];
    let notes = vec![
        "One parity drive and 20 data drives. The paper has 22 drives.".to_owned(),
        "The table of processors is that of 20 cores; here there are 8.".to_owned(),
    ];
    let stages = without.into_iter().chain(with).collect();
    let structure = Structure::E1.judge(scale, vec![one, other]);
    Ok(Outcome { experiment: Experiment::E1, scale, profile: profile.clone(), stages, figures, notes, structure })
}

/// The turnovers after which the slower one becomes the faster one. Means of three turnovers are
/// compared with 1, so that the noise of one turnover counts at most once. If neither kept up the
/// order is unknown, and does not change.
fn compute_crossings(ratios: &[f64]) -> Vec<usize> {
    let means = ratios.windows(3).map(|three| three.iter().sum::<f64>()).zip(1..);
    let slower: Vec<(bool, usize)> = means.filter(|(sum, _)| !sum.is_nan()).map(|(sum, at)| (sum > 3.0, at)).collect();
    slower.windows(2).filter(|pair| pair[0].0 != pair[1].0).map(|pair| pair[1].1).collect()
}

/// One simulated stage a turnover, and the sum of all counters.
fn turnovers(
    name: &str,
    cleaning: CleaningPolicy,
    scale: Scale,
    profile: &CpuProfile,
) -> Result<(Vec<Stage>, Counted)> {
    let setup = Setup::published(scale);
    let system = published_machines::disks(&setup, published_machines::DISK_CORES, profile.clone())?;
    let mut trial = TimedTrial::new(setup, LoadKind::Oltp { units: 1 }, false)?;
    trial.set_cleaning(cleaning);
    let (mut stages, each) = (Vec::new(), trial.trial().setup().blocks_per_point() * POINTS as u64 * 1000);
    let collected = each / trial.trial().series().turnover;
    for _ in 0..LONG_TURNOVERS {
        trial.age((10 * scale.turnover_percent).saturating_sub(collected))?;
        let window = trial.collect(POINTS)?;
        // Run once without wrapping: disks would not read again what is in their buffers.
        let run = run_at(PER_SECOND, &system, &window, &published_machines::open(PER_SECOND, window.operations()))?;
        stages.push(Stage::new(name, &mut trial, &system, &window, vec![run]));
    }
    Ok((stages, Counted::since(0, trial.trial(), name, cleaning)))
}

#[cfg(test)]
mod tests {
    use super::compute_crossings;

    #[test]
    fn a_single_outlier_is_no_crossing() {
        for (ratios, crossings) in [
            (&[1.2, 1.2, 1.2, 1.1, 0.9, 0.8, 0.7, 0.7][..], &[4][..]),
            (&[1.2, 1.2, 0.9, 1.2, 1.2, 1.2], &[]),
            (&[0.8, 0.8, 0.8, 0.8], &[]),
            (&[1.3, 1.3, 1.3, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5], &[3, 6]),
            (&[1.0], &[]),
            (&[1.2, 1.2, 1.2, f64::NAN, 1.2, 1.2, 1.2], &[]),
            (&[1.2, 1.2, 1.2, f64::NAN, 0.8, 0.8, 0.8], &[5]),
            (&[f64::INFINITY, f64::INFINITY, 1.2, 0.5, 0.5, 0.5], &[3]),
        ] {
            assert_eq!(compute_crossings(ratios), crossings, "{ratios:?}");
        }
    }
}
