//! E1 and E4: a load as data bases make it.

use super::{Experiment, Outcome, Stage, go_on, run_stage};
use crate::{Band, CleaningPolicy, Figure, LoadKind, Result, Scale, Setup, Trial};

const LOAD: LoadKind = LoadKind::Oltp { units: 1 };
/// Turnovers of E1: 62 days at 3,000 operations a second.
const LONG: u64 = 39;
/// Turnovers of E4 until it is measured, and again with cleaning.
const PLATEAU: u64 = 7;
/// To see what redirects cost.
const ALL_RIGHT: u64 = 1;

/// E1: with cleaning from the beginning, and without, each on its own fresh aggregate.
pub fn run_long(scale: Scale) -> Result<[Stage; 2]> {
    let setup = Setup::published(scale);
    let without = run_stage("without cleaning", &setup, LOAD, LONG, scale)?;
    let with = go_on("with cleaning", &mut Trial::new(setup, LOAD)?, CleaningPolicy::Default, LONG, scale)?;
    Ok([without, with])
}

/// Its figures.
pub fn judge_long(scale: Scale, [without, with]: [Stage; 2]) -> Outcome {
    let (one, other) = (without.series.last_turnover(), with.series.last_turnover());
    let longer = other.write_chain() / one.write_chain();
    let parity = one.parity_reads_per_client_block() / other.parity_reads_per_client_block();
    let figures = vec![
        Figure::new("write chain without cleaning at the end", "-> 1", one.write_chain(), Band::at_most(2.5)),
        Figure::new("write chain with cleaning, times that without", "", longer, Band::at_least(5.0)),
        Figure::new("parity reads without, over those with cleaning", "", parity, Band::at_least(3.0)),
        Figure::new("blocks moved for each of clients", "", other.relocations_per_client_block(), Band::any()),
    ];
    let notes = vec![
        "One parity drive and 20 of data; the published system has 22 drives with two of parity.".to_owned(),
        "The crossover of latencies is a figure of time and is not here.".to_owned(),
    ];
    Outcome { experiment: Experiment::E1, scale, stages: vec![without, with], figures, notes }
}

/// E4: aged without cleaning, then with it on the same aggregate.
pub fn run_plateau(scale: Scale) -> Result<[Stage; 3]> {
    let mut trial = Trial::new(Setup::published(scale), LOAD)?;
    let without = go_on("without cleaning", &mut trial, CleaningPolicy::Off, PLATEAU, scale)?;
    let with = go_on("then with cleaning", &mut trial, CleaningPolicy::Default, PLATEAU, scale)?;
    let all_right = go_on("then with all pointers right", &mut trial, CleaningPolicy::AllRight, ALL_RIGHT, scale)?;
    Ok([without, with, all_right])
}

/// Its figures.
pub fn judge_plateau(scale: Scale, [without, with, all_right]: [Stage; 3]) -> Outcome {
    let (before, after) = (without.series.last_turnover(), with.series.last_turnover());
    let right = all_right.series.last_turnover().read_chain() / before.read_chain();
    let reads = after.read_chain() / before.read_chain();
    let all_reads = after.all_read_chain() / before.all_read_chain();
    let figures = vec![
        Figure::new("write chain without cleaning", "10.9", before.write_chain(), Band::between(7.0, 16.0)),
        Figure::new("write chain with cleaning", "60.6", after.write_chain(), Band::at_least(50.0)),
        Figure::new("read chain without cleaning", "2.2", before.read_chain(), Band::any()),
        Figure::new("read chain with cleaning, times that without", "1.7", reads, Band::at_least(1.4)),
        Figure::new("the same with all pointers right", "", right, Band::any()),
        Figure::new("the same with what cleaning reads", "perhaps the 1.7", all_reads, Band::any()),
        Figure::new("blocks moved for each of clients", "", after.relocations_per_client_block(), Band::any()),
    ];
    let notes = vec![
        "One parity drive; the published groups have two.".to_owned(),
        "The runner reads ahead for clients that read in order; what the garden reads ahead itself comes from there too.".to_owned(),
    ];
    Outcome { experiment: Experiment::E4, scale, stages: vec![without, with, all_right], figures, notes }
}
