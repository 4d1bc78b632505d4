//! E9 and E10: what compression and compaction save, what overwriting at random leaves of it, and what recompaction brings back.

use senesce_garden::RECOMPACTED_BELOW_PERCENT;

use super::{Experiment, Outcome};
use crate::{
    Band, Fact, Figure, Result, Scale,
    packed::{Kind, PackedRig},
};

/// What is held against the published contents, of which no more is known than that they compress well.
const JUDGED: [(Kind, &str); 2] = [(Kind::Zeros(80), "four fifths zeros"), (Kind::Mixed, "three to five fifths zeros")];
/// Others, told only: they are for finding out what the published chunks are.
const TOLD: [(Kind, &str); 2] = [(Kind::Rows, "rows of text"), (Kind::Ends, "ends of blocks zeros, not compressed")];
/// Passes of recompaction.
const PASSES: u32 = 2;

/// E9.
pub fn save(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    for (kinds, [saved, chunks]) in
        [(JUDGED, [Band::between(72.0, 82.0), Band::between(4.3, 5.3)]), (TOLD, [Band::any(), Band::any()])]
    {
        for (kind, name) in kinds {
            let rig = PackedRig::new(kind, PackedRig::pages_of(scale))?;
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
    let (mut figures, mut lowest) = (Vec::new(), f64::INFINITY);
    for (kind, name) in JUDGED {
        let mut rig = PackedRig::new(kind, PackedRig::pages_of(scale))?;
        rig.overwrite(scale)?;
        let before = saved(&rig)?;
        lowest = lowest.min(before);
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
    let notes = vec![
        format!(
            "Overwritten at random until {} % are saved, or a turnover changes it by less than {} points, or {} turnovers were written.",
            PackedRig::PUBLISHED_REST,
            PackedRig::REST_POINTS,
            PackedRig::MOST_TURNOVERS
        ),
        tell_rest(lowest),
    ];
    Ok(Outcome { experiment: Experiment::E10, scale, stages: Vec::new(), figures, notes })
}

/// What is set in E9.
pub fn facts_of_saving(scale: Scale) -> Vec<Fact> {
    PackedRig::facts(PackedRig::pages_of(scale))
}

/// What is set in E10.
pub fn facts_of_overwriting(scale: Scale) -> Vec<Fact> {
    let mut facts = facts_of_saving(scale);
    let recompaction =
        format!("{PASSES} passes over blocks of which less than {RECOMPACTED_BELOW_PERCENT} % of the chunks are left");
    facts.extend([Fact::new("load", "pages overwritten at random"), Fact::new("recompaction", recompaction)]);
    facts
}

fn saved(rig: &PackedRig) -> Result<f64> {
    Ok(rig.survey()?.saved_percent().unwrap_or(f64::NAN))
}

/// Where overwriting came to an end, of all contents.
fn tell_rest(lowest: f64) -> String {
    if lowest <= PackedRig::PUBLISHED_REST {
        return format!("{} % is reached.", PackedRig::PUBLISHED_REST);
    }
    format!(
        "{} % is not reached: the least is {lowest:.0} %. What is written over is packed with what else is written, and an old block stays until its last chunk is gone, which at \
         random leaves it above a floor.",
        PackedRig::PUBLISHED_REST
    )
}
