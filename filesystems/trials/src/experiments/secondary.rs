//! E14: secondary volumes fragment slowly. Large sequential overwrites update them, and clients
//! read them from snapshots.

use super::{Experiment, Outcome, Stage, run_stage};
use crate::{Claim, Figure, LoadKind, Result, Rotation, Scale, Setup};

/// Blocks of the longest overwrite, 16 MiB. The shortest is an eighth of it.
const LONGEST: u64 = 4096;
/// A snapshot after each tenth of the file; two are kept.
const SNAPSHOTS: Rotation = Rotation { every_percent: 10, kept: 2 };
/// Turnovers of each stage.
const TURNOVERS: u64 = 7;

pub fn run(scale: Scale) -> Result<Outcome> {
    let setup = Setup::published(scale);
    let with_snapshots = Setup { snapshots: Some(SNAPSHOTS), ..setup.clone() };
    let runs = LoadKind::Runs { longest: LONGEST };
    let rotated = run_stage("large overwrites, snapshots in turn", &with_snapshots, runs, TURNOVERS, scale)?;
    let secondary = run_stage("large overwrites, no snapshots", &setup, runs, TURNOVERS, scale)?;
    let oltp = run_stage("OLTP, for comparison", &setup, LoadKind::Oltp { units: 1 }, TURNOVERS, scale)?;
    let chain = |stage: &Stage| stage.series.last_turnover().write_chain();
    let figure = |name, stage| {
        let slowly = "secondary volumes fragment slowly";
        Figure::new(name, chain(stage) / chain(&oltp)).quoted(Claim::Rises, slowly, "7.4").ratio()
    };
    let figures = vec![
        figure("write chain over that of OLTP after as many turnovers", &rotated),
        figure("the same without snapshots", &secondary),
    ];
    let notes = vec![
        "Overwrites of 2 to 16 MiB. A snapshot is made after each tenth of the file, and the oldest of two is deleted; the file is \
         smaller for what they hold. No cleaning."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E14, scale, stages: vec![rotated, secondary, oltp], figures, notes })
}
