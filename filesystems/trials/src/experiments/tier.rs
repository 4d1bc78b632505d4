//! E3: the SSDs of an aggregate with SSDs and disks, under a load like that of databases.

use super::{Experiment, Outcome, Stage, pool};
use crate::{Claim, CleaningPolicy, Figure, LoadKind, Result, Scale, Setup, Trial};

const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// Operations for each 1,000 blocks of the paper's SSDs, which are 11 data drives of 200 GiB.
/// `HEAVY` stands for the first two hours at 100,000 operations a second, `MODERATE` for the next
/// two at 50,000.
const HEAVY: u64 = 1248;
const MODERATE: u64 = 624;
/// The most turnovers for the fill of the SSDs.
const MOST_TURNOVERS: u64 = 10;

/// Runs E3 on the aggregate of E2. First the same load fills the SSDs until blocks leave them for
/// the disks, as in a pool in use. Then the paper's four hours follow; the last two are measured.
pub fn run(scale: Scale) -> Result<Outcome> {
    let setup = pool::setup(scale);
    let mut filled = 0.0;
    let mut stage = |name, cleaning| -> Result<Stage> {
        let mut trial = Trial::new(setup.clone(), OLTP)?;
        trial.set_cleaning(cleaning);
        let most = MOST_TURNOVERS * trial.series().turnover * scale.turnover_percent / 100;
        while trial.series().sum().demotions == 0 && trial.series().sum().client_blocks < most {
            trial.run_point()?;
        }
        filled = trial.series().sum().client_blocks as f64 / trial.series().turnover as f64;
        run_operations(&mut trial, HEAVY, scale)?;
        let before = trial.series().points.len();
        run_operations(&mut trial, MODERATE, scale)?;
        Ok(Stage::since(before, &trial, name, cleaning))
    };
    let without = stage("without cleaning", CleaningPolicy::Off)?;
    let with = stage("with cleaning", CleaningPolicy::Default)?;
    let [one, other] = [&without, &with].map(|stage| stage.series.sum());
    let chain = one.flash_write_chain();
    let parity = one.flash_parity_reads_per_client_block() / other.flash_parity_reads_per_client_block();
    let figures = vec![
        Figure::new("write chain of the SSDs without cleaning", chain).number(2.0, "7.1"),
        Figure::new("write chain of the SSDs with cleaning", other.flash_write_chain())
            .quoted(Claim::Number(40.0), "about 40", "7.1")
            .after(2.0, chain),
        Figure::new("parity reads of the SSDs without, over those with cleaning", parity)
            .quoted(Claim::Rises, "a marked improvement", "7.1")
            .ratio(),
        Figure::new("turnovers until blocks leave the SSDs", filled),
        Figure::new(
            "blocks that left the SSDs for each block of clients, with cleaning",
            other.demotions_per_client_block(),
        ),
    ];
    let notes = vec![
        "12 SSDs before 21 disks, with 9.9 % of all blocks; gardening as an aggregate of both does it by itself. The paper does not state how full its SSDs are.".to_owned(),
        "By the paper's rates its four hours write to the SSDs 0.6 of what they hold. So they were in use before, and ours are: the same load fills them to the pool's default of 75 %."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E3, scale, stages: vec![without, with], figures, notes })
}

/// Runs `per_thousand` operations for each 1,000 blocks of the SSDs, to the end of a point.
fn run_operations(trial: &mut Trial, per_thousand: u64, scale: Scale) -> Result<()> {
    let Setup { flash, area_stripes, .. } = trial.setup();
    let blocks = flash.map_or(0, |flash| flash.areas * u64::from(flash.data_drives) * u64::from(*area_stripes));
    let wanted = blocks * per_thousand / 1000 * scale.turnover_percent / 100;
    let operations = |trial: &Trial| {
        let sum = trial.series().sum();
        sum.client_reads + sum.client_writes
    };
    let before = operations(trial);
    while operations(trial) - before < wanted {
        trial.run_point()?;
    }
    Ok(())
}
