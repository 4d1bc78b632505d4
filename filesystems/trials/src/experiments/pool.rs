//! E2: a flash pool, with SSDs before disks in one aggregate.

use super::{Experiment, Outcome, Stage, go_on};
use crate::{Claim, CleaningPolicy, Figure, FlashTier, LoadKind, Point, Result, Scale, Setup, Trial};

/// SSDs that hold data; one more holds parity.
const FLASH_DRIVES: u16 = 11;
/// The depth of a disk over that of an SSD. With it the SSDs have 9.9 % of all blocks; the paper
/// states a tenth at most.
const DISKS_OVER_FLASH: u64 = 5;
const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// The number of turnovers.
const TURNOVERS: u64 = 20;
/// The paper's chain is level from day 22 to at least day 60.
const LEVEL_AFTER: [u64; 2] = [22, 60];

/// The aggregate of most experiments with disks as drives, and 12 SSDs before them.
pub fn setup(scale: Scale) -> Setup {
    let areas = (scale.areas / DISKS_OVER_FLASH).max(2);
    let flash = Some(FlashTier { data_drives: FLASH_DRIVES, areas });
    Setup { flash, ..Setup::published(scale) }
}

/// Runs E2 with the default gardening of an aggregate with both media, then again with cleaning of
/// the disks.
pub fn run(scale: Scale) -> Result<Outcome> {
    let setup = setup(scale);
    let stage = |name, load, cleaning, turnovers| -> Result<Stage> {
        go_on(name, &mut Trial::new(setup.clone(), load)?, cleaning, turnovers, scale)
    };
    let oltp = stage("OLTP", OLTP, CleaningPolicy::Default, TURNOVERS)?;
    let cleaned = stage("OLTP, disks are cleaned, too", OLTP, CleaningPolicy::DisksToo, TURNOVERS)?;
    let turnovers = oltp.series.turnovers();
    let last = oltp.series.last_turnover();
    let [first, whole] = LEVEL_AFTER;
    let then =
        turnovers.get((turnovers.len() as u64 * first / whole) as usize).map_or(f64::NAN, Point::disk_write_chain);
    let figures = vec![
        Figure::new("write chain of the disks, last turnover", last.disk_write_chain()).quoted(
            Claim::Number(48.0),
            "levels at around 48",
            "7.1",
        ),
        Figure::new("the same over that after 22 of 60 parts of the time", last.disk_write_chain() / then).quoted(
            Claim::Number(1.0),
            "stable from day 22 to 60",
            "7.1",
        ),
        Figure::new("blocks that left the SSDs for each block of clients", last.demotions_per_client_block()),
        Figure::new(
            "write chain of the disks that are cleaned, too",
            cleaned.series.last_turnover().disk_write_chain(),
        ),
    ];
    let notes = vec![
        "The paper has OLTP at a higher load than E1, 12 SSDs with a tenth of the capacity at most, and several disks. Here: the load of E1 on 12 SSDs with 11 % of \
         the blocks and 21 disks."
            .to_owned(),
        format!("{TURNOVERS} turnovers stand for 60 days. At the load of E1 these are 45, at a higher one more."),
    ];
    Ok(Outcome { experiment: Experiment::E2, scale, stages: vec![oltp, cleaned], figures, notes })
}
