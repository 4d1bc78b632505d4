//! E3: the SSDs of an aggregate of SSDs and disks, under a load as data bases make it.

use super::{Experiment, Outcome, Stage, pool};
use crate::{Claim, CleaningPolicy, Figure, LoadKind, Result, Scale, Setup, Trial};

const OLTP: LoadKind = LoadKind::Oltp { units: 1 };
/// Operations of the paper's first two hours (100,000 a second) and of the other two (50,000), for
/// 1,000 blocks of its SSDs: 11 data drives of 200 GiB.
const HEAVY: u64 = 1248;
const MODERATE: u64 = 624;
/// Turnovers until the SSDs are as full as a pool keeps them, at most.
const MOST_TURNOVERS: u64 = 10;

/// The aggregate of E2. Its SSDs are first filled by the same load until blocks leave them for the
/// disks, as those of a pool that is in use; then the paper's hours follow, of which the last two
/// are measured.
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
        Figure::new("blocks that left the SSDs for each of clients, with cleaning", other.demotions_per_client_block()),
    ];
    let notes = vec![
        "12 SSDs before 21 disks, with 9.9 % of all blocks; gardening as an aggregate of both does it by itself. The paper does not state how full its SSDs are.".to_owned(),
        "By the paper's rates its four hours write to the SSDs 0.6 of what they hold. So they were in use before, and ours are: the same load fills them to the pool's default of 75 %."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E3, scale, stages: vec![without, with], figures, notes })
}

/// Runs `per_thousand` operations for 1,000 blocks of the SSDs, to the end of a point.
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
