//! E5: random overwrites of a volume on flash.

use super::{Experiment, Outcome, Stage, go_on};
use crate::{Band, CleaningPolicy, Figure, LoadKind, Point, Result, Scale, Setup, Trial};

/// Two turnovers age it; the third is measured. The same with cleaning.
const TURNOVERS: u64 = 3;
/// To see what the quota of cleaning does.
const UNLIMITED_TURNOVERS: u64 = 1;

/// E5: aged without cleaning, then with it on the same aggregate.
pub fn run(scale: Scale) -> Result<[Stage; 3]> {
    let mut trial = Trial::new(Setup::published(scale), LoadKind::Random)?;
    let without = go_on("without cleaning", &mut trial, CleaningPolicy::Off, TURNOVERS, scale)?;
    let with = go_on("then with cleaning", &mut trial, CleaningPolicy::Default, TURNOVERS, scale)?;
    let unlimited = go_on("then without a quota", &mut trial, CleaningPolicy::Unlimited, UNLIMITED_TURNOVERS, scale)?;
    Ok([without, with, unlimited])
}

/// Its figures.
pub fn judge(scale: Scale, [without, with, unlimited]: [Stage; 3]) -> Outcome {
    let most = unlimited.series.last_turnover();
    let (before, after) = (without.series.last_turnover(), with.series.last_turnover());
    let lowest = with.series.last_points().iter().map(Point::write_chain).fold(f64::INFINITY, f64::min);
    let parity = before.parity_reads_per_client_block() / after.parity_reads_per_client_block();
    let figures = vec![
        Figure::new("write chain without cleaning", "3", before.write_chain(), Band::at_most(4.0)),
        Figure::new("write chain with cleaning", ">= 12", after.write_chain(), Band::at_least(8.0)),
        Figure::new("its lowest of a consistency point", "never < 12", lowest, Band::at_least(8.0)),
        Figure::new("parity reads without, over those with cleaning", "~10", parity, Band::between(5.0, 20.0)),
        Figure::new("blocks moved for each of clients", "", after.relocations_per_client_block(), Band::any()),
        Figure::new("write chain without a quota", "", most.write_chain(), Band::any()),
        Figure::new("blocks moved for each of clients then", "", most.relocations_per_client_block(), Band::any()),
    ];
    let notes = vec!["One parity drive; the published groups have two.".to_owned()];
    Outcome { experiment: Experiment::E5, scale, stages: vec![without, with, unlimited], figures, notes }
}
