//! E5: random overwrites of a volume on flash.

use super::{Experiment, Outcome, Plateau, Stage, go_on};
use crate::{Claim, CleaningPolicy, Figure, LoadKind, Point, Result, Scale, Setup, Trial};

/// Two turnovers age the volume; the third is measured. The same holds with cleaning.
const TURNOVERS: u64 = 3;
/// Turnovers without a quota, to measure the effect of the quota of cleaning.
const UNLIMITED_TURNOVERS: u64 = 1;

/// Runs E5 on the aggregate of E4 at its plateau: random overwrites without cleaning, then with it.
pub fn run(scale: Scale) -> Result<[Stage; 3]> {
    let mut trial = Trial::new(Setup::published(scale), LoadKind::Oltp { units: 1 })?;
    Plateau::find(&mut trial, scale)?;
    trial.set_load(LoadKind::Random);
    let without = go_on("without cleaning", &mut trial, CleaningPolicy::Off, TURNOVERS, scale)?;
    let with = go_on("then with cleaning", &mut trial, CleaningPolicy::Default, TURNOVERS, scale)?;
    let unlimited = go_on("then without a quota", &mut trial, CleaningPolicy::Unlimited, UNLIMITED_TURNOVERS, scale)?;
    Ok([without, with, unlimited])
}

/// The figures of E5.
pub fn judge(scale: Scale, [without, with, unlimited]: [Stage; 3]) -> Outcome {
    let most = unlimited.series.last_turnover();
    let (before, after) = (without.series.last_turnover(), with.series.last_turnover());
    let lowest = with.series.last_points().iter().map(Point::write_chain).fold(f64::INFINITY, f64::min);
    let parity = before.parity_reads_per_client_block() / after.parity_reads_per_client_block();
    let figures = vec![
        Figure::new("write chain without cleaning", before.write_chain())
            .number(3.0, "7.1")
            .fitted("the fill of the aggregate was calibrated to it"),
        Figure::new("write chain with cleaning", after.write_chain()),
        Figure::new("its lowest of a consistency point", lowest)
            .quoted(Claim::Number(12.0), "never below 12", "7.1")
            .after(3.0, before.write_chain()),
        Figure::new("parity reads without, over those with cleaning", parity)
            .quoted(Claim::Number(10.0), "around 10", "7.1")
            .ratio(),
        Figure::new("blocks moved for each block of clients", after.relocations_per_client_block()),
        Figure::new("write chain without a quota", most.write_chain()),
        Figure::new("blocks moved for each block of clients then", most.relocations_per_client_block()),
    ];
    let notes = vec![
        "Overwritten is the aggregate of E4 at its plateau, as in the paper, before anything is cleaned there."
            .to_owned(),
    ];
    Outcome { experiment: Experiment::E5, scale, stages: vec![without, with, unlimited], figures, notes }
}
