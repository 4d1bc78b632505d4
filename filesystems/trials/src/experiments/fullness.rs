//! E12: the length of write chains on aggregates of different fullness.

use super::{Experiment, Outcome, run_stage};
use crate::{Claim, Figure, LoadKind, Result, Scale, Setup};

/// Percent of the capacity.
const FULL: [u64; 8] = [50, 60, 70, 75, 80, 85, 90, 95];
/// A chain has at most 64 blocks. Two chains of nearly this length differ only by the state of
/// their last areas; that difference is not a rise.
const SATURATED: f64 = 63.0;
/// The paper states the share of systems that are at least this full and have shorter chains than
/// `PUBLISHED_CHAIN`.
const PUBLISHED_FULL: u64 = 75;
const PUBLISHED_CHAIN: f64 = 11.0;
/// The first turnover ages the aggregate; the second is measured.
const TURNOVERS: u64 = 2;

pub fn run(scale: Scale) -> Result<Outcome> {
    let (mut stages, mut figures) = (Vec::new(), Vec::new());
    let [mut short, mut all] = [0; 2];
    for (load, name) in [(LoadKind::Random, "random"), (LoadKind::Oltp { units: 1 }, "OLTP")] {
        let mut chains = Vec::new();
        for full in FULL {
            let setup = Setup { fill: Setup::fill_for(full), ..Setup::published(scale) };
            let stage = run_stage(&format!("{name}, {full} % full"), &setup, load, TURNOVERS, scale)?;
            chains.push(stage.series.last_turnover().write_chain());
            stages.push(stage);
        }
        for (&chain, full) in chains.iter().zip(FULL) {
            figures.push(Figure::new(&format!("write chain, {name}, {full} % full"), chain));
            if full >= PUBLISHED_FULL {
                (all, short) = (all + 1, short + u32::from(chain < PUBLISHED_CHAIN));
            }
        }
        let rises = chains.windows(2).filter(|pair| pair[1] > pair[0] && pair[0] < SATURATED).count();
        let ends = chains[FULL.len() - 1] / chains[0];
        figures.push(
            Figure::new(&format!("{name}: write chain at 95 % over that at 50 %"), ends)
                .quoted(Claim::Falls, "shorter chains on fuller systems", "7.4")
                .ratio(),
        );
        figures.push(Figure::new(&format!("{name}: steps of fullness at which the write chain rises"), rises as f64));
    }
    let share = 100.0 * f64::from(short) / f64::from(all);
    figures.push(
        Figure::new("percent of ours 75 % full or more with chains below 11", share)
            .quoted(Claim::Number(40.0), "about 40", "7.4")
            .not_comparable(Some(
                "The paper counts customers' systems, each with its own load and age. Ours are two loads, each at five fills.",
            )),
    );
    let notes = vec![format!(
        "Fullness is the share of the capacity. The calibrated fill makes 85 % of it {} thousandths of all blocks.",
        Setup::PUBLISHED_FILL
    )];
    Ok(Outcome { experiment: Experiment::E12, scale, stages, figures, notes })
}
