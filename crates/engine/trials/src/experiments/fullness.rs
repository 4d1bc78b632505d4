//! E12: how long write chains are on aggregates of different fullness.

use super::{Experiment, Outcome, run_stage};
use crate::{Band, Figure, LoadKind, Result, Scale, Setup};

/// Percent of what is not the reserve; the reserve is a tenth of all blocks.
const FULL: [u64; 8] = [50, 60, 70, 75, 80, 85, 90, 95];
/// A chain has 64 blocks at most. Two that are both this long are at that end, and differ by what their last areas happen to be,
/// which is no rise.
const SATURATED: f64 = 63.0;
/// Of systems as full as this many were published to have shorter chains than that.
const PUBLISHED_FULL: u64 = 75;
const PUBLISHED_CHAIN: f64 = 11.0;
/// One turnover ages it; the second is measured.
const TURNOVERS: u64 = 2;

pub fn run(scale: Scale) -> Result<Outcome> {
    let (mut stages, mut figures) = (Vec::new(), Vec::new());
    let [mut short, mut all] = [0; 2];
    for (load, name) in [(LoadKind::Random, "random"), (LoadKind::Oltp { units: 1 }, "OLTP")] {
        let mut chains = Vec::new();
        for full in FULL {
            let setup = Setup { fill: full * 9, ..Setup::published(scale) };
            let stage = run_stage(&format!("{name}, {full} % full"), &setup, load, TURNOVERS, scale)?;
            chains.push(stage.series.last_turnover().write_chain());
            stages.push(stage);
        }
        for (&chain, full) in chains.iter().zip(FULL) {
            figures.push(Figure::new(&format!("write chain, {name}, {full} % full"), "", chain, Band::any()));
            if full >= PUBLISHED_FULL {
                (all, short) = (all + 1, short + u32::from(chain < PUBLISHED_CHAIN));
            }
        }
        let rises = chains.windows(2).filter(|pair| pair[1] > pair[0] && pair[0] < SATURATED).count();
        figures.push(Figure::new(
            &format!("{name}: steps of fullness at which the write chain rises"),
            "fuller systems have shorter chains",
            rises as f64,
            Band::at_most(0.0),
        ));
    }
    figures.push(Figure::new(
        "percent of ours 75 % full or more with chains below 11",
        "about 40",
        100.0 * f64::from(short) / f64::from(all),
        Band::any(),
    ));
    let notes = vec![
        "Published are customers' systems, of which about 40 % of those 75 % full or more had chains below 11: a population \
         that is not here; ours are two loads, each at all of these fullnesses. What is held is that chains fall with fullness, under each load."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E12, scale, stages, figures, notes })
}
