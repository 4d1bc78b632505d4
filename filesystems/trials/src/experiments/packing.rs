//! E9 and E10: the savings of compression and compaction, what remains of them after random
//! overwrites, and the gain of recompaction.

use senesce_garden::RECOMPACTED_BELOW_PERCENT;

use super::{Experiment, Outcome};
use crate::{
    Claim, Fact, Figure, Result, Scale,
    packed::{Kind, PackedRig},
};

/// Contents with a chunk of 0.8 KiB for each one or two whole blocks, fitted so that both published
/// figures hold.
const FITTED: (Kind, &str) = (Kind::Groups, "groups of 32 KiB with small tails");
/// Other contents, chosen before any measurement.
const OTHERS: [(Kind, &str); 3] =
    [(Kind::Zeros(80), "four fifths zeros"), (Kind::Mixed, "three to five fifths zeros"), (Kind::Rows, "rows of text")];
/// Contents that are overwritten: by pages that compress equally well, and by pages that do not
/// compress.
const OVERWRITTEN: [(Kind, &str); 2] = [(Kind::Mixed, "by what compresses"), (Kind::Worn, "by what does not compress")];
/// Passes of recompaction.
const PASSES: u32 = 2;

/// Runs E9.
pub fn save(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    for (kind, name) in [FITTED].into_iter().chain(OTHERS) {
        let rig = PackedRig::new(kind, PackedRig::pages_of(kind, scale))?;
        let found = rig.survey()?;
        rig.verify()?;
        let percent = found.saved_percent().unwrap_or(f64::NAN);
        let each = found.chunks_a_block().unwrap_or(f64::NAN);
        let mut both = [
            Figure::new(&format!("percent saved, {name}"), percent),
            Figure::new(&format!("chunks a block, {name}"), each),
        ];
        if kind == FITTED.0 {
            let fitted = |figure: Figure, number| {
                figure.number(number, "7.3").fitted("the contents were chosen so that both figures come out")
            };
            let [saved, chunks] = both;
            both = [fitted(saved, 77.0), fitted(chunks, 4.8)];
        }
        figures.extend(both);
    }
    let notes = vec![
        "The paper does not describe its contents: 2.2 TiB, highly compressible, large files. All pages here are read and compared at the end.".to_owned(),
        "A group of g blocks that keeps w whole blocks and a tail, with c tails in a block, saves 1 - (w + 1/c) / g. With c = 4.8, 77 % are w = 0.25 for groups of 8 KiB and \
         w = 1.6 for groups of 32 KiB."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E9, scale, stages: Vec::new(), figures, notes })
}

/// Runs the structural part of E10.
pub fn recompact(scale: Scale) -> Result<Outcome> {
    let mut figures = Vec::new();
    for (kind, name) in OVERWRITTEN {
        let mut rig = PackedRig::new(kind, PackedRig::pages_of(kind, scale))?;
        rig.overwrite(scale)?;
        let before = saved(&rig)?;
        for _ in 0..PASSES {
            rig.recompact(RECOMPACTED_BELOW_PERCENT)?;
        }
        let after = saved(&rig)?;
        rig.verify()?;
        figures.extend([
            Figure::new(&format!("percent saved after overwriting {name}"), before),
            Figure::new(&format!("percent saved after recompaction, overwritten {name}"), after),
            Figure::new(&format!("points brought back, overwritten {name}"), after - before)
                .quoted(Claim::Rises, "space is reclaimed", "7.3")
                .difference(),
        ]);
    }
    let notes = vec![
        format!(
            "Overwritten at random until {} % are saved, which is the paper's condition, or a turnover changes it by less than {} points, or {} turnovers were written.",
            PackedRig::PUBLISHED_REST,
            PackedRig::REST_POINTS,
            PackedRig::MOST_TURNOVERS
        ),
        "The paper does not say what overwrote its contents. Pages that compress are packed with other new pages, and an old block stays until its last chunk is gone: at random \
         that leaves more than 60 % saved. So 27 % want contents that compress less."
            .to_owned(),
    ];
    Ok(Outcome { experiment: Experiment::E10, scale, stages: Vec::new(), figures, notes })
}

/// The settings of E9.
pub fn facts_of_saving(scale: Scale) -> Vec<Fact> {
    facts(FITTED.0, scale)
}

/// The settings of E10.
pub fn facts_of_overwriting(scale: Scale) -> Vec<Fact> {
    let mut facts = facts(Kind::Worn, scale);
    let recompaction =
        format!("{PASSES} passes over blocks of which less than {RECOMPACTED_BELOW_PERCENT} % of the chunks are left");
    facts.extend([Fact::new("load", "pages overwritten at random"), Fact::new("recompaction", recompaction)]);
    facts
}

fn facts(kind: Kind, scale: Scale) -> Vec<Fact> {
    PackedRig::facts(kind, PackedRig::pages_of(kind, scale))
}

fn saved(rig: &PackedRig) -> Result<f64> {
    Ok(rig.survey()?.saved_percent().unwrap_or(f64::NAN))
}
