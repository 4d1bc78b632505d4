//! E3, E4 and E5: aged flash at several loads, without and with cleaning.

use senesce_sim::{CpuProfile, storage::StorageSetup};
use senesce_trials::{
    Claim, CleaningPolicy, Experiment as Structure, Figure, LoadKind, Plateau, Scale, Setup, Stage as Counted,
};

use super::{Experiment, Outcome, Run, Stage, ablation, operations, ratio, run_at};
use crate::{MAXIMUM_PER_SECOND, Result, TimedTrial, Window, published_machines};

const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// Turnovers of E5.
const RANDOM: u64 = 3;
/// Arms that are only counted, for a turnover after the others.
const ALL_RIGHT: (&str, CleaningPolicy) = ("then with all pointers right", CleaningPolicy::AllRight);
const UNLIMITED: (&str, CleaningPolicy) = ("then without a quota", CleaningPolicy::Unlimited);
const ARMS: [(&str, CleaningPolicy); 2] =
    [("without cleaning", CleaningPolicy::Off), ("with cleaning", CleaningPolicy::Default)];
/// Drives of E3 that hold data: 12 with parity.
const TIER_DRIVES: u16 = 11;
/// The load that reaches the SSDs of E3's aggregate.
const TIER: LoadKind = LoadKind::OltpAtRandom { units: 1 };
/// The age after the paper's first two hours, in thousandths of a turnover. The paper has 100,000
/// operations a second for 2 h and then 50,000 for 2 h. Of these 32.5 % write one block at random.
/// So the first two hours write 234 million blocks, and 11 drives of 200 GiB at the calibrated fill
/// hold 375 million. The window after it is about as long as the other two hours.
const TIER_HOURS: u64 = 624;
/// At that age some free areas were never written, and there is no fragmentation to clean. So the
/// tier is aged to this part of a turnover, as one that has been in use.
const TIER_AGE: u64 = 3000;
/// Operations a second of E3 that go at random, 61.4 % of all: in the second two hours, and in the
/// first.
const TIER_RATES: [u64; 2] = [30_700, 61_400];
/// Consistency points that are collected.
const POINTS: usize = 12;
/// Operations a second.
const OLTP_RATES: [u64; 7] = [25_000, 50_000, 75_000, 100_000, 125_000, 150_000, MAXIMUM_PER_SECOND];
const RANDOM_RATES: [u64; 9] = [20_000, 40_000, 60_000, 80_000, 100_000, 125_000, 150_000, 175_000, 200_000];

/// E4 without cleaning, at the age of its measurement.
pub fn collect_plateau(scale: Scale) -> Result<(Setup, Window)> {
    let setup = Setup::published(scale);
    let mut trial = TimedTrial::new(setup.clone(), OLTP, true)?;
    Plateau::find(trial.trial(), scale)?;
    trial.age(Plateau::AFTER * 10 * scale.turnover_percent)?;
    Ok((setup, trial.collect(POINTS)?))
}

/// E3: the SSDs of an aggregate of SSDs and disks.
pub fn tier(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup { data_drives: TIER_DRIVES, ..Setup::published(scale) };
    let system = published_machines::flash(&setup, profile.clone())?;
    let (mut stages, mut hours) = (Vec::new(), Vec::new());
    for (name, cleaning) in ARMS {
        let mut trial = TimedTrial::new(setup.clone(), TIER, true)?;
        trial.set_cleaning(cleaning);
        trial.age(TIER_HOURS * scale.turnover_percent / 100)?;
        hours.push(trial.trial().series().points.last().map_or(f64::NAN, |point| point.write_chain()));
        trial.age((TIER_AGE - TIER_HOURS) * scale.turnover_percent / 100)?;
        let window = trial.collect(POINTS)?;
        stages.push(sweep(name, &mut trial, &system, &window, &TIER_RATES, scale)?);
    }
    let (without, with) = (&stages[0], &stages[1]);
    let [moderate, heavy] = TIER_RATES;
    let over = |rate| without.at(rate).zip(with.at(rate)).map_or(f64::NAN, |(one, other)| ratio(one, other));
    let latency = |stage: &Stage| stage.at(moderate).map_or(f64::NAN, |run| run.figures.latency.mean / 1e6);
    let [one, other] = [without, with].map(|stage| stage.counted.write_chain());
    let mut figures = vec![
        Figure::new("latency with cleaning over without, second load", over(moderate))
            .quoted(Claim::Number(0.82 / 0.79), "0.79 to 0.82 ms", "7.1")
            .ratio(),
        Figure::new("the same at the first load", over(heavy)),
        Figure::new("write chain without cleaning, in the trace", one),
        Figure::new("write chain with cleaning, in the trace", other),
        Figure::new("write chain without cleaning after the paper's first two hours alone", hours[0]),
        Figure::new("ms without cleaning, SSDs alone", latency(without)),
        Figure::new("ms with cleaning, SSDs alone", latency(with)),
    ];
    let amplification = amplification(without, with, heavy);
    if let [before, after] = &amplification[..] {
        let falls = after.ours / before.ours;
        figures.push(
            Figure::new("write amplification of flash, with over without", falls)
                .quoted(Claim::Falls, "less with longer chains", "7.1")
                .ratio(),
        );
    }
    figures.extend(amplification);
    let notes = vec![
        "The paper has 12 SSDs and a large number of disks in one aggregate, and clients of both. Here are the SSDs alone, with the streams that a flash pool keeps there. So only the ratio of latencies is comparable. Chains are judged on \
         SSDs and disks together, in the part that is structure."
            .to_owned(),
        "By the paper's rates its first two hours write 0.62 turnovers of SSDs that are new at the calibrated fill, which leaves areas that were never written. So its SSDs were fuller, or in use before; ours \
         are aged for three turnovers."
            .to_owned(),
        "20 cores, as in E4. SSDs of less than a quarter of the scale are too small for a figure of flash.".to_owned(),
    ];
    let profile = profile.clone();
    Ok(Outcome { experiment: Experiment::E3, scale, profile, stages, figures, notes, structure: None })
}

/// E4.
pub fn oltp(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup::published(scale);
    let system = published_machines::flash(&setup, profile.clone())?;
    let mut stages = Vec::new();
    let mut age = |trial: &mut TimedTrial, (name, cleaning): (&str, CleaningPolicy)| -> Result<Counted> {
        let before = trial.trial().series().points.len();
        trial.set_cleaning(cleaning);
        trial.age(Plateau::AFTER * 10 * scale.turnover_percent)?;
        let window = trial.collect(POINTS)?;
        stages.push(sweep(name, trial, &system, &window, &OLTP_RATES, scale)?);
        Ok(Counted::since(before, trial.trial(), name, cleaning))
    };
    let [off, on] = ARMS;
    let mut twin = TimedTrial::new(setup.clone(), OLTP, true)?;
    let plateau = Plateau::find(twin.trial(), scale)?;
    let level = Counted::since(0, twin.trial(), off.0, off.1);
    let as_old = age(&mut twin, ("without cleaning, as old", off.1))?;
    drop(twin);
    let mut trial = TimedTrial::new(setup, OLTP, true)?;
    plateau.reach(trial.trial(), scale)?;
    let cleaned = age(&mut trial, on)?;
    let counted = Aged { trial, counted: vec![level, as_old, cleaned] }.then(ALL_RIGHT, scale)?.counted;
    let structure = Structure::E4.judge(scale, counted);
    let (without, with) = (&stages[0], &stages[1]);
    let [before, after] = [without, with].map(|stage| stage.at(MAXIMUM_PER_SECOND));
    let is_kept_up = before.is_some_and(|run| run.figures.kept_up);
    let obstacle = (!is_kept_up).then_some(
        "Ours does not keep up with the highest load without cleaning, so its latency says only how long the run was.",
    );
    let over = |rate| without.at(rate).zip(with.at(rate)).map_or(f64::NAN, |(one, other)| ratio(one, other));
    let cores = after.map_or(f64::NAN, |run| run.cleaning_cores);
    let half = MAXIMUM_PER_SECOND / 7 * 4;
    let mut figures = vec![
        Figure::new("ms at the highest load without cleaning", bounded(before))
            .number(3.0, "7.1")
            .fitted("the table of processors was fitted to it")
            .not_comparable(obstacle),
        Figure::new("ms at the highest load with cleaning", bounded(after))
            .number(2.6, "7.1")
            .after(3.0, bounded(before))
            .not_comparable(obstacle),
        Figure::new("cores for cleaning, highest load", cores).quoted(
            Claim::AtMost(1.0),
            "a fraction of a core",
            "7.1",
        ),
        Figure::new("with cleaning over without, highest load", over(MAXIMUM_PER_SECOND)),
        Figure::new("with cleaning over without, 4/7 of that load", over(half)),
    ];
    figures.extend(chains(without, with));
    figures.extend(amplification(without, with, MAXIMUM_PER_SECOND));
    let notes = vec![format!(
        "The highest load is set to {MAXIMUM_PER_SECOND} operations a second. The paper does not state it. Cores scale with it."
    )];
    Ok(Outcome { experiment: Experiment::E4, scale, profile: profile.clone(), stages, figures, notes, structure })
}

/// The mean latency of a run, ms; infinite if it did not keep up.
fn bounded(run: Option<&Run>) -> f64 {
    match run {
        Some(run) if run.figures.kept_up => run.figures.latency.mean / 1e6,
        Some(_) => f64::INFINITY,
        None => f64::NAN,
    }
}

/// E5.
pub fn random(scale: Scale, profile: &CpuProfile) -> Result<Outcome> {
    let setup = Setup::published(scale);
    let (stages, aged) = overwrite(setup, scale, profile)?;
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
        Figure::new("operations a second that both keep up with", rate as f64),
        Figure::new("cores for cleaning at that load", cores).quoted(Claim::Number(3.0), "almost 3 of 20", "7.1"),
        Figure::new("latency with cleaning over without, at that load", high)
            .quoted(Claim::Rises, "higher latencies", "7.1")
            .ratio(),
        Figure::new("the same at the lowest load", low),
        Figure::new("parity reads without, over those with cleaning, in the trace", parity),
    ];
    figures.extend(chains(without, with));
    figures.extend(amplification(without, with, rate));
    let notes = vec![
        "The paper does not state the load of its cores. Here it is the highest that both keep up with, where cleaning takes most.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E5, scale, profile: profile.clone(), stages, figures, notes, structure })
}

fn chains(without: &Stage, with: &Stage) -> [Figure; 2] {
    [
        Figure::new("write chain without cleaning, in the trace", without.counted.write_chain()),
        Figure::new("write chain with cleaning, in the trace", with.counted.write_chain()),
    ]
}

/// The write amplification of flash, if it is meaningful.
fn amplification(without: &Stage, with: &Stage, rate: u64) -> Vec<Figure> {
    let of = |stage: &Stage| stage.at(rate)?.figures.flash?.write_amplification;
    match (of(without), of(with)) {
        (Some(before), Some(after)) if without.collection_is_meant => vec![
            Figure::new("write amplification of flash without cleaning", before),
            Figure::new("write amplification of flash with cleaning", after),
        ],
        _ => Vec::new(),
    }
}

/// The aggregate of E4 at its plateau, overwritten at random without and then with cleaning.
fn overwrite(setup: Setup, scale: Scale, profile: &CpuProfile) -> Result<(Vec<Stage>, Aged)> {
    let system = published_machines::flash(&setup, profile.clone())?;
    let mut trial = TimedTrial::new(setup, OLTP, true)?;
    Plateau::find(trial.trial(), scale)?;
    trial.trial().set_load(LoadKind::Random);
    let (mut stages, mut counted) = (Vec::new(), Vec::new());
    for (name, cleaning) in ARMS {
        let before = trial.trial().series().points.len();
        trial.set_cleaning(cleaning);
        trial.age(RANDOM * 10 * scale.turnover_percent)?;
        let window = trial.collect(POINTS)?;
        counted.push(Counted::since(before, trial.trial(), name, cleaning));
        stages.push(sweep(name, &mut trial, &system, &window, &RANDOM_RATES, scale)?);
    }
    Ok((stages, Aged { trial, counted }))
}

/// An aggregate after its stages, with all counters.
struct Aged {
    trial: TimedTrial,
    counted: Vec<Counted>,
}

impl Aged {
    /// Ages it by another turnover, without simulation.
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
    let run = |&rate: &u64| run_at(rate, system, window, &published_machines::open(rate, operations(window, scale)));
    let runs = rates.iter().map(run).collect::<Result<_>>()?;
    Ok(Stage::new(name, trial, system, window, runs))
}
