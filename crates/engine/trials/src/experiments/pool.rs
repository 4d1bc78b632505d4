//! E2: a flash pool, SSDs before disks in one aggregate.

use super::{Experiment, Outcome, Stage, go_on};
use crate::{Band, CleaningPolicy, Figure, FlashTier, LoadKind, Result, Scale, Setup, Trial};

/// Drives of flash that hold data: 12 with parity.
const FLASH_DRIVES: u16 = 11;
/// Disks are as much deeper than SSDs, which have 200 GiB: those of E1 had about a terabyte.
const DISKS_OVER_FLASH: u64 = 5;
/// Turnovers until the chains of the disks are level, as of E4.
const PLATEAU: u64 = 7;
/// To see what another load does, which has no part that is written often.
const RANDOM: u64 = 2;

/// The aggregate of most experiments, its drives disks, and the SSDs of E3 before them; gardening as an aggregate of both does it
/// by itself.
pub fn run(scale: Scale) -> Result<Outcome> {
    let areas = (scale.areas / DISKS_OVER_FLASH).max(2);
    let flash = Some(FlashTier { data_drives: FLASH_DRIVES, areas });
    let setup = Setup { flash, ..Setup::published(scale) };
    let stage = |name, load, turnovers| -> Result<Stage> {
        let mut trial = Trial::new(setup.clone(), load)?;
        go_on(name, &mut trial, CleaningPolicy::Default, turnovers, scale)
    };
    let oltp = stage("OLTP", LoadKind::Oltp { units: 1 }, PLATEAU)?;
    let random = stage("random overwrites, for comparison", LoadKind::Random, RANDOM)?;
    let (last, before) = (oltp.series.last_turnover(), turnover_before_last(&oltp));
    let written = last.demotions as f64 / last.client_blocks as f64;
    let figures = vec![
        Figure::new(
            "write chain of the disks, last turnover",
            "~48, level",
            last.disk_write_chain(),
            Band::between(35.0, 60.0),
        ),
        Figure::new(
            "the same over that of the turnover before",
            "level",
            last.disk_write_chain() / before,
            Band::any(),
        ),
        Figure::new("blocks that went to the disks for each of clients", "", written, Band::any()),
        Figure::new("write chain of all drives", "", last.write_chain(), Band::any()),
        Figure::new(
            "write chain of the disks, random overwrites",
            "",
            random.series.last_turnover().disk_write_chain(),
            Band::any(),
        ),
    ];
    let notes = vec![
        "The design's table tells neither the load nor how large the disks were: OLTP as in E1, 21 disks as of most experiments here, a \
         fifth as deep SSDs. 85 % full, as all of them."
            .to_owned(),
        "One parity drive in each group.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E2, scale, stages: vec![oltp, random], figures, notes })
}

/// The disks' write chain in the last but one of whole turnovers; no number if there is none.
fn turnover_before_last(stage: &Stage) -> f64 {
    let turnovers = stage.series.turnovers();
    turnovers.iter().rev().nth(1).map_or(f64::NAN, |turnover| turnover.disk_write_chain())
}
