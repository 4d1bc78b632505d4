//! E2: a flash pool, SSDs before disks in one aggregate.

use super::{Experiment, Outcome, Stage, go_on};
use crate::{Band, CleaningPolicy, Figure, FlashTier, LoadKind, Point, Result, Scale, Setup, Trial};

/// Drives of flash that hold data: 12 with parity.
const FLASH_DRIVES: u16 = 11;
/// Disks are as much deeper than SSDs, which have 200 GiB: those of E1 had about a terabyte.
const DISKS_OVER_FLASH: u64 = 5;
const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// Turnovers until the chains of the disks are level.
const PLATEAU: u64 = 20;
/// Those after which E4 is measured.
const EARLY: usize = 7;
/// To see what another load does, which has no part that is written often.
const RANDOM: u64 = 2;

/// The aggregate of most experiments, its drives disks, and the SSDs of E3 before them; gardening as an aggregate of both does it
/// by itself. Then the same with the disks cleaned, too.
pub fn run(scale: Scale) -> Result<Outcome> {
    let areas = (scale.areas / DISKS_OVER_FLASH).max(2);
    let flash = Some(FlashTier { data_drives: FLASH_DRIVES, areas });
    let setup = Setup { flash, ..Setup::published(scale) };
    let stage = |name, load, cleaning, turnovers| -> Result<Stage> {
        go_on(name, &mut Trial::new(setup.clone(), load)?, cleaning, turnovers, scale)
    };
    let oltp = stage("OLTP", OLTP, CleaningPolicy::Default, PLATEAU)?;
    let cleaned = stage("OLTP, disks are cleaned, too", OLTP, CleaningPolicy::DisksToo, PLATEAU)?;
    let random = stage("random overwrites", LoadKind::Random, CleaningPolicy::Default, RANDOM)?;
    let disks = |stage: &Stage| stage.series.last_turnover().disk_write_chain();
    let turnovers = oltp.series.turnovers();
    let early = turnovers.get(EARLY - 1).map_or(f64::NAN, Point::disk_write_chain);
    let before = turnovers.iter().rev().nth(1).map_or(f64::NAN, Point::disk_write_chain);
    let last = oltp.series.last_turnover();
    let figures = vec![
        Figure::new("write chain of the disks, last turnover", "~48, level", disks(&oltp), Band::between(35.0, 60.0)),
        Figure::new("the same over that of the turnover before", "level", disks(&oltp) / before, Band::any()),
        Figure::new("the same in the seventh turnover", "", early, Band::any()),
        Figure::new(
            "blocks that left the SSDs for each of clients",
            "",
            last.demotions_per_client_block(),
            Band::any(),
        ),
        Figure::new("write chain of the disks that are cleaned, too", "", disks(&cleaned), Band::any()),
        Figure::new("write chain of the disks, random overwrites", "", disks(&random), Band::any()),
    ];
    let notes = vec![
        "The design's table tells neither the load nor the size of the disks, nor for how long: OLTP as in E1, 21 disks as of most \
         experiments here, SSDs a fifth as deep, until it is level. 85 % full, as all of them."
            .to_owned(),
        "One parity drive in each group.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E2, scale, stages: vec![oltp, cleaned, random], figures, notes })
}
