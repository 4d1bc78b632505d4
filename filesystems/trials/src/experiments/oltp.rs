//! E1 and E4: a load like that of databases.

use super::{Experiment, Outcome, Plateau, Stage, go_on, run_stage};
use crate::{Claim, CleaningPolicy, Figure, LoadKind, Point, Result, Scale, Setup, Trial};

const LOAD: LoadKind = LoadKind::Oltp { units: 1 };
/// Days of E1.
pub const LONG_DAYS: f64 = 62.0;
/// Turnovers of E1. An operation of the load writes 1.34 blocks on average, so 3,000 operations a
/// second write 88 TB in 62 days. The 20 data drives of 136 GiB hold 1.9 TB at the calibrated fill.
pub const LONG_TURNOVERS: u64 = 46;
/// Turnovers with all pointers correct, to measure the cost of redirects.
const ALL_RIGHT: u64 = 1;
/// Turnovers of E4's aggregate in a day at the highest simulated load. The load is 175,000
/// operations a second of 1.34 blocks each, on the 20 data drives of 1 TiB at the calibrated fill.
/// The paper ages "for approximately 1 day".
const DAY: usize = 6;

/// Runs E1 twice on fresh aggregates: without cleaning, and with cleaning from the start.
pub fn run_long(scale: Scale) -> Result<[Stage; 2]> {
    let setup = Setup::published(scale);
    let without = run_stage("without cleaning", &setup, LOAD, LONG_TURNOVERS, scale)?;
    let with = go_on("with cleaning", &mut Trial::new(setup, LOAD)?, CleaningPolicy::Default, LONG_TURNOVERS, scale)?;
    Ok([without, with])
}

/// The figures of E1.
pub fn judge_long(scale: Scale, [without, with]: [Stage; 2]) -> Outcome {
    let (one, other) = (without.series.last_turnover(), with.series.last_turnover());
    let fresh = without.series.turnovers().first().map_or(f64::NAN, |turnover| turnover.write_chain());
    let longer = other.write_chain() / one.write_chain();
    let parity = one.parity_reads_per_client_block() / other.parity_reads_per_client_block();
    let figures = vec![
        // The paper's figure starts at the longest possible chain.
        Figure::new("write chain without cleaning at the end", one.write_chain())
            .quoted(Claim::Number(1.0), "converges to 1", "7.1")
            .after(64.0, fresh),
        Figure::new("write chain with cleaning, times that without", longer)
            .quoted(Claim::Rises, "greatly improved", "7.1")
            .ratio(),
        Figure::new("parity reads without, over those with cleaning", parity)
            .quoted(Claim::Rises, "greatly improved", "7.1")
            .ratio(),
        Figure::new("blocks moved for each block of clients", other.relocations_per_client_block()),
    ];
    let notes = vec![
        "One parity drive and 20 data drives. The paper has 22 drives.".to_owned(),
        "The crossover of latencies is a figure of time and is not here.".to_owned(),
    ];
    Outcome { experiment: Experiment::E1, scale, stages: vec![without, with], figures, notes }
}

/// Runs E4: ages without cleaning to the plateau, then continues with cleaning. A twin without
/// cleaning runs for the same number of turnovers, so that both have the same age.
pub fn run_plateau(scale: Scale) -> Result<[Stage; 4]> {
    let mut twin = Trial::new(Setup::published(scale), LOAD)?;
    let plateau = Plateau::find(&mut twin, scale)?;
    let without = Stage::since(0, &twin, "without cleaning", CleaningPolicy::Off);
    let as_old = go_on("without cleaning, as old", &mut twin, CleaningPolicy::Off, Plateau::AFTER, scale)?;
    drop(twin);
    let mut trial = Trial::new(Setup::published(scale), LOAD)?;
    plateau.reach(&mut trial, scale)?;
    let with = go_on("then with cleaning", &mut trial, CleaningPolicy::Default, Plateau::AFTER, scale)?;
    let all_right = go_on("then with all pointers right", &mut trial, CleaningPolicy::AllRight, ALL_RIGHT, scale)?;
    Ok([without, as_old, with, all_right])
}

/// The figures of E4.
pub fn judge_plateau(scale: Scale, [without, as_old, with, all_right]: [Stage; 4]) -> Outcome {
    let (plateau, before) = (without.series.last_turnover(), as_old.series.last_turnover());
    let after = with.series.last_turnover();
    let chains = Plateau::chains(&without.series);
    let day = without.series.turnovers().get(DAY - 1).copied();
    let after_a_day = |of: fn(&Point) -> f64| day.as_ref().map_or(f64::NAN, of);
    let right = all_right.series.last_turnover().read_chain() / before.read_chain();
    let figures = vec![
        Figure::new("write chain without cleaning", plateau.write_chain()).number(10.9, "7.1"),
        Figure::new("turnovers until it is at its plateau", chains.len() as f64),
        Figure::new("the last turnover's chain over that of the one before", Plateau::last_step(&chains)),
        Figure::new("write chain after a day at the highest load instead", after_a_day(Point::write_chain)),
        Figure::new("read chain of all requests then", after_a_day(Point::all_read_chain)),
        Figure::new("write chain with cleaning", after.write_chain())
            .number(60.6, "7.1")
            .after(10.9, before.write_chain()),
        Figure::new("read chain of all requests without cleaning", before.all_read_chain()).number(2.2, "7.1"),
        Figure::new("read chain of all requests with cleaning", after.all_read_chain())
            .number(3.7, "7.1")
            .after(2.2, before.all_read_chain()),
        Figure::new("read chain of clients without cleaning, at the same age", before.read_chain()),
        Figure::new("read chain of clients with cleaning, times that", after.read_chain() / before.read_chain()),
        Figure::new("the same with all pointers right", right),
        Figure::new("blocks moved for each block of clients", after.relocations_per_client_block()),
    ];
    let notes = vec![
        Plateau::RULE.to_owned(),
        "A read chain is the blocks of a request to a drive, as the paper defines it (7.2): requests for clients, for cleaning and for parity.".to_owned(),
        "The paper ages for about a day, until the metrics are level. A day at the highest load is 6 turnovers here, and then ours are not level. The verdicts are those of the level chain.".to_owned(),
        "Chains with cleaning are compared with a twin of the same age that was never cleaned.".to_owned(),
        "The runner reads ahead for clients that read in order. What the garden reads ahead itself comes from there too.".to_owned(),
    ];
    Outcome { experiment: Experiment::E4, scale, stages: vec![without, as_old, with, all_right], figures, notes }
}
