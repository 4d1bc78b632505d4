//! E3, E4 and E5: aged flash at some loads, without cleaning and with it.

use senesce_sim::{CpuProfile, storage::StorageSetup};
use senesce_trials::{Band, CleaningPolicy, Experiment as Structure, Figure, LoadKind, Scale, Setup, Stage as Counted};

use super::{Experiment, Outcome, Stage, ablation, operations, ratio, run_at};
use crate::{MAXIMUM_PER_SECOND, Result, TimedTrial, Window, machine};

const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// Turnovers until E4 is measured, and again with cleaning; for E5.
const PLATEAU: u64 = 7;
const RANDOM: u64 = 3;
/// What is only counted, for a turnover after the others.
const ALL_RIGHT: (&str, CleaningPolicy) = ("then with all pointers right", CleaningPolicy::AllRight);
const UNLIMITED: (&str, CleaningPolicy) = ("then without a quota", CleaningPolicy::Unlimited);
/// Drives of E3 that hold data: 12 with parity.
const TIER_DRIVES: u16 = 11;
/// Operations a second of E3: that of the second two hours first.
const TIER_RATES: [u64; 2] = [50_000, 100_000];
/// Consistency points that are collected.
const POINTS: usize = 12;
/// Operations a second.
const OLTP_RATES: [u64; 7] = [25_000, 50_000, 75_000, 100_000, 125_000, 150_000, MAXIMUM_PER_SECOND];
const RANDOM_RATES: [u64; 8] = [20_000, 40_000, 60_000, 80_000, 100_000, 120_000, 140_000, 160_000];

/// E4 without cleaning, aged to its plateau.
pub fn collect_plateau(scale: Scale) -> Result<(Setup, Window)> {
    let setup = Setup::published(scale);
    let mut trial = TimedTrial::new(setup.clone(), OLTP, true)?;
    trial.age(PLATEAU * 10 * scale.turnover_percent)?;
    Ok((setup, trial.collect(POINTS)?))
}

/// E3: a tier of SSDs that takes overwrites at random.
pub fn tier(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { data_drives: TIER_DRIVES, ..Setup::published(scale) };
    let (stages, _) = without_and_with(setup, LoadKind::Random, RANDOM, &TIER_RATES, scale, profile)?;
    let (without, with) = (&stages[0], &stages[1]);
    let [low, high] = TIER_RATES;
    let over = |rate| without.at(rate).zip(with.at(rate)).map_or(f64::NAN, |(one, other)| ratio(one, other));
    let latency = |stage: &Stage| stage.at(high).map_or(f64::NAN, |run| run.figures.latency.mean / 1e6);
    let mut figures = chains(without, with, [Band::at_most(4.0), Band::at_least(28.0)], ["2", "~40"]).to_vec();
    figures.extend([
        Figure::new("ms at 100,000 a second without cleaning", "0.79", latency(without), Band::any()),
        Figure::new("ms at 100,000 a second with cleaning", "0.82", latency(with), Band::any()),
        Figure::new("with cleaning over without, 100,000 a second", "1.04", over(high), Band::between(1.0, 1.1)),
        Figure::new("the same, 50,000 a second", "", over(low), Band::any()),
    ]);
    let amplification = amplification(without, with, high);
    let falls = match &amplification[..] {
        [before, after] => after.ours / before.ours,
        _ => f64::NAN,
    };
    figures.extend(amplification);
    figures.push(Figure::new("write amplification of flash, with over without", "< 1", falls, Band::at_most(1.0)));
    let notes = vec![
        "What clients did is not told in the design's table; a chain of 2 is that of overwrites at random, so that is the load.".to_owned(),
        "20 cores, as in E4; SSDs of less than a quarter of the scale are too small for a figure of flash: then it has none, and is outside.".to_owned(),
    ];
    let profile = profile.clone();
    Ok(Outcome { experiment: Experiment::E3, scale, profile, stages, figures, notes, structure: None })
}

/// E4.
pub fn oltp(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup::published(scale);
    let (stages, aged) = without_and_with(setup, OLTP, PLATEAU, &OLTP_RATES, scale, profile)?;
    let structure = Structure::E4.judge(scale, aged.then(ALL_RIGHT, scale)?.counted);
    let (without, with) = (&stages[0], &stages[1]);
    let latency = |stage: &Stage, rate| stage.at(rate).map_or(f64::NAN, |run| run.figures.latency.mean / 1e6);
    let (before, after) = (latency(without, MAXIMUM_PER_SECOND), latency(with, MAXIMUM_PER_SECOND));
    let over = |rate| without.at(rate).zip(with.at(rate)).map_or(f64::NAN, |(one, other)| ratio(one, other));
    let cores = with.at(MAXIMUM_PER_SECOND).map_or(f64::NAN, |run| run.cleaning_cores);
    let mut figures = vec![
        Figure::new("ms at the highest load without cleaning (fitted to this)", "3.0", before, Band::any()),
        Figure::new("ms at the highest load with cleaning", "2.6", after, Band::any()),
        Figure::new("with cleaning over without, highest load", "0.87", over(MAXIMUM_PER_SECOND), Band::at_most(1.0)),
        Figure::new("cores for cleaning, highest load", "< 1", cores, Band::at_most(1.0)),
    ];
    let half = MAXIMUM_PER_SECOND / 7 * 4;
    figures.push(Figure::new("with cleaning over without, 4/7 of that load", "", over(half), Band::any()));
    figures.extend(chains(without, with, [Band::between(7.0, 16.0), Band::at_least(50.0)], ["10.9", "60.6"]));
    figures.extend(amplification(without, with, MAXIMUM_PER_SECOND));
    let notes = vec![
        format!("The highest load is set to {MAXIMUM_PER_SECOND} operations a second; what it was is not known here."),
        "One parity drive; the published groups have two.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E4, scale, profile: profile.clone(), stages, figures, notes, structure })
}

/// E5.
pub fn random(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup::published(scale);
    let (stages, aged) = without_and_with(setup, LoadKind::Random, RANDOM, &RANDOM_RATES, scale, profile)?;
    let mut aged = aged.then(UNLIMITED, scale)?;
    let moving = ablation::compare(&mut aged.trial)?;
    let mut structure = Structure::E5.judge(scale, aged.counted);
    structure.iter_mut().for_each(|counted| counted.figures.extend(moving.clone()));
    let (without, with) = (&stages[0], &stages[1]);
    // The highest load that both keep up with.
    let both = RANDOM_RATES
        .into_iter()
        .rev()
        .find(|&rate| [without, with].iter().all(|stage| stage.at(rate).is_some_and(|run| run.figures.kept_up)));
    let rate = both.unwrap_or(RANDOM_RATES[0]);
    let latency = |stage: &Stage, rate| stage.at(rate).map_or(f64::NAN, |run| run.figures.latency.mean / 1e6);
    let cores = with.at(rate).map_or(f64::NAN, |run| run.cleaning_cores);
    let lowest = RANDOM_RATES[0];
    let (high, low) = (latency(with, rate) / latency(without, rate), latency(with, lowest) / latency(without, lowest));
    let parity = without.counted.parity_reads_per_client_block() / with.counted.parity_reads_per_client_block();
    let mut figures = vec![
        Figure::new("operations a second that both keep up with", "", rate as f64, Band::any()),
        Figure::new("cores for cleaning at that load", "~3", cores, Band::between(2.0, 4.0)),
        Figure::new("latency with cleaning over without, at that load", "> 1", high, Band::at_least(1.0)),
        Figure::new("the same at the lowest load", "", low, Band::any()),
        Figure::new("parity reads without, over those with cleaning", "~10", parity, Band::between(5.0, 20.0)),
    ];
    figures.extend(chains(without, with, [Band::at_most(4.0), Band::at_least(8.0)], ["3", ">= 12"]));
    figures.extend(amplification(without, with, rate));
    let notes = vec!["One parity drive; the published groups have two.".to_owned()];
    Ok(Outcome { experiment: Experiment::E5, scale, profile: profile.clone(), stages, figures, notes, structure })
}

fn chains(without: &Stage, with: &Stage, [one, other]: [Band; 2], [paper, cleaned]: [&str; 2]) -> [Figure; 2] {
    [
        Figure::new("write chain without cleaning, in the trace", paper, without.counted.write_chain(), one),
        Figure::new("write chain with cleaning, in the trace", cleaned, with.counted.write_chain(), other),
    ]
}

/// Of flash, if it means something.
fn amplification(without: &Stage, with: &Stage, rate: u64) -> Vec<Figure> {
    let of = |stage: &Stage| stage.at(rate)?.figures.flash?.write_amplification;
    match (of(without), of(with)) {
        (Some(before), Some(after)) if without.collection_is_meant => vec![
            Figure::new("write amplification of flash without cleaning", "", before, Band::any()),
            Figure::new("write amplification of flash with cleaning", "", after, Band::any()),
        ],
        _ => Vec::new(),
    }
}

fn without_and_with(
    setup: Setup,
    load: LoadKind,
    turnovers: u64,
    rates: &[u64],
    scale: Scale,
    profile: &CpuProfile,
) -> Result<(Vec<Stage>, Aged)> {
    let system = machine::flash(&setup, profile.clone())?;
    let mut trial = TimedTrial::new(setup, load, true)?;
    let (mut stages, mut counted) = (Vec::new(), Vec::new());
    for (name, cleaning) in [("without cleaning", CleaningPolicy::Off), ("with cleaning", CleaningPolicy::Default)] {
        let before = trial.trial().series().points.len();
        trial.set_cleaning(cleaning);
        trial.age(turnovers * 10 * scale.turnover_percent)?;
        let window = trial.collect(POINTS)?;
        counted.push(Counted::since(before, trial.trial(), name, cleaning));
        stages.push(sweep(name, &mut trial, &system, &window, rates, scale)?);
    }
    Ok((stages, Aged { trial, counted }))
}

/// An aggregate behind its stages, and all that was counted in them.
struct Aged {
    trial: TimedTrial,
    counted: Vec<Counted>,
}

impl Aged {
    /// A turnover more of which nothing is simulated.
    fn then(mut self, (name, cleaning): (&str, CleaningPolicy), scale: Scale) -> Result<Self> {
        let before = self.trial.trial().series().points.len();
        self.trial.set_cleaning(cleaning);
        self.trial.age(10 * scale.turnover_percent)?;
        self.counted.push(Counted::since(before, self.trial.trial(), name, cleaning));
        Ok(self)
    }
}

fn sweep(
    name: &str,
    trial: &mut TimedTrial,
    system: &StorageSetup,
    window: &Window,
    rates: &[u64],
    scale: Scale,
) -> Result<Stage> {
    let run = |&rate: &u64| run_at(rate, system, window, &machine::open(rate, operations(window, scale)));
    let runs = rates.iter().map(run).collect::<Result<_>>()?;
    Ok(Stage::new(name, trial, system, window, runs))
}
