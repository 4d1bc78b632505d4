//! E9 and E10: what compression and compaction save, what overwriting at random leaves of it, and what recompaction brings back.

use senesce_core::{Rng, Seed};
use senesce_garden::RECOMPACTED_BELOW_PERCENT;

use super::{Experiment, Outcome};
use crate::{
    Band, Figure, Result, Scale,
    packed::{Kind, PackedRig},
};

/// Pages of the file for each area of the scale: 128 MiB at an eighth.
const PAGES_AN_AREA: u64 = 64;
/// What is held against the published contents, of which no more is known than that they compress well.
const JUDGED: [(Kind, &str); 2] = [(Kind::Zeros(80), "four fifths zeros"), (Kind::Mixed, "three to five fifths zeros")];
/// Others, told only: they are for finding out what the published chunks are.
const TOLD: [(Kind, &str); 2] = [(Kind::Rows, "rows of text"), (Kind::Ends, "ends of blocks zeros, not compressed")];
/// Quarters of a turnover that are written over at most.
const QUARTERS: u64 = 32;
/// A turnover that changes what is saved by fewer points is the last one.
const REST: f64 = 0.2;
/// What was published as saved before recompaction, in percent: overwriting ends there.
const PUBLISHED_REST: f64 = 27.0;
/// Passes of recompaction.
const PASSES: u32 = 2;

/// E9.
pub fn save(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    for (kinds, [saved, chunks]) in
        [(JUDGED, [Band::between(72.0, 82.0), Band::between(4.3, 5.3)]), (TOLD, [Band::any(), Band::any()])]
    {
        for (kind, name) in kinds {
            let rig = PackedRig::new(kind, scale.areas * PAGES_AN_AREA)?;
            let found = rig.survey()?;
            rig.verify()?;
            let (percent, each) = (found.saved_percent(), found.chunks_a_block());
            figures.extend([
                Figure::new(&format!("percent saved, {name}"), "77", percent.unwrap_or(f64::NAN), saved),
                Figure::new(&format!("chunks a block, {name}"), "4.8", each.unwrap_or(f64::NAN), chunks),
            ]);
        }
    }
    let notes = vec![
        "Published are 2.2 TiB of contents that are not told; these are pages of 8 KiB in groups of as much. All are read and compared in the end.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E9, scale, stages: Vec::new(), figures, notes })
}

/// E10, as far as it is structure.
pub fn recompact(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    for (kind, name) in JUDGED {
        let mut rig = PackedRig::new(kind, scale.areas * PAGES_AN_AREA)?;
        overwrite(&mut rig, scale)?;
        let before = saved(&rig)?;
        for _ in 0..PASSES {
            rig.recompact(RECOMPACTED_BELOW_PERCENT)?;
        }
        let after = saved(&rig)?;
        rig.verify()?;
        figures.extend([
            Figure::new(&format!("percent saved after overwriting, {name}"), "27", before, Band::any()),
            Figure::new(&format!("percent saved after recompaction, {name}"), "", after, Band::any()),
            Figure::new(&format!("points brought back, {name}"), "> 0", after - before, Band::at_least(1.0)),
        ]);
    }
    figures.push(Figure::new("ms of reads while it runs, over those without", "3.3", f64::NAN, Band::at_least(1.0)));
    let notes = vec![
        format!(
            "Overwritten at random until {PUBLISHED_REST} % are saved, or a turnover changes it by less than {REST} points, or {} turnovers were written.",
            QUARTERS / 4
        ),
        "How long recompaction takes, and what clients and processors feel of it, is not simulated: that figure is missing, and counts as outside.".to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E10, scale, stages: Vec::new(), figures, notes })
}

fn saved(rig: &PackedRig) -> Result<f64> {
    Ok(rig.survey()?.saved_percent().unwrap_or(f64::NAN))
}

/// Writes pages over at random until what is saved is at rest.
fn overwrite(rig: &mut PackedRig, scale: Scale) -> Result<()> {
    let mut rng = Rng::for_purpose(Seed(1), "packing");
    let mut before = saved(rig)?;
    for quarter in 1..=(QUARTERS * scale.turnover_percent / 100).max(1) {
        for _ in 0..rig.pages() / 4 {
            rig.write(rng.below(rig.pages()))?;
        }
        let now = saved(rig)?;
        if now <= PUBLISHED_REST || quarter % 4 == 0 && before - now < REST {
            break;
        }
        if quarter % 4 == 0 {
            before = now;
        }
    }
    Ok(())
}
