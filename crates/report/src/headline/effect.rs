//! The sentence about the slowdowns on one device.

use crate::arm_slowdowns::{OfArm, Slowdowns};
use crate::format::{count, list};
use crate::model::Model;

/// `After 1,000 pulls, xfs takes 11× (nearly full) and 12× (roomy) as long to read as a fresh copy
/// on a modelled HDD 7.2K, btrfs 5.3× and 7.2×; no measurable difference: ext4 (1.0×).`
///
/// The sentence compares states of one checkpoint. An arm of a plan with another last checkpoint
/// has that checkpoint after its name. The sentence does not name the cause: see
/// [`crate::own_cost`].
pub(super) fn effect(model: &Model, slowdowns: &Slowdowns, device: &str) -> String {
    let (slower, others): (Vec<&OfArm>, Vec<&OfArm>) = slowdowns.arms.iter().partition(|arm| arm.is_slower(model));
    let (faster, alike): (Vec<&OfArm>, Vec<&OfArm>) = others.into_iter().partition(|arm| arm.is_faster(model));
    let first = slower.iter().chain(&faster).chain(&alike).next();
    let named_at = first.map_or(0, |arm| arm.pulls);
    let at = match named_at {
        0 => "In the first state of the tree".to_owned(),
        pulls => format!("After {} {}{}", count(pulls), model.unit, before_cure(model, slowdowns)),
    };
    let other = |arm: &OfArm| other_checkpoint(model, arm, Some(named_at));
    let in_words = |arm: &OfArm| {
        let factor = |(factor, volume): (String, &str)| format!("{factor} {volume}").trim_end().to_owned();
        let factors: Vec<String> = arm.named_factors().into_iter().map(factor).collect();
        let other = other(arm).map_or_else(String::new, |at| format!("; {at}"));
        format!("{} ({}{other})", arm.arm, factors.join(", "))
    };
    let named = |arms: &[&OfArm]| list(&arms.iter().map(|arm| in_words(arm)).collect::<Vec<_>>());
    let mut parts = Vec::new();
    if let Some((first, rest)) = slower.split_first() {
        let are_known = |arm: &OfArm| first.has_two_factors() && arm.roles() == first.roles();
        let rest = rest.iter().map(|arm| format!(", {} {}", name(arm, other(arm)), arm.factors(are_known(arm))));
        parts.push(format!(
            "{at}, {} takes {} as long to read as a fresh copy on {device}{}",
            first.arm,
            first.factors(false),
            rest.collect::<String>()
        ));
    }
    for (arms, alone, further) in [
        (faster, "less time to read than a fresh copy", "less time than a fresh copy"),
        (alike, "no measurable difference from a fresh copy", "no measurable difference"),
    ] {
        if arms.is_empty() {
            continue;
        }
        let names = named(&arms);
        parts.push(match parts.is_empty() {
            true => format!("{at}, {alone} on {device}: {names}"),
            false => format!("{further}: {names}"),
        });
    }
    parts.extend(slowdowns.missing_words(model));
    parts.join("; ") + "."
}

/// `after 60 steps`, if that is not the checkpoint that the text before names.
pub(super) fn other_checkpoint(model: &Model, arm: &OfArm, named_at: Option<u64>) -> Option<String> {
    (named_at != Some(arm.pulls)).then(|| format!("after {} {}", count(arm.pulls), model.unit))
}

/// The arm, with the text of [`other_checkpoint`]: `xfs.git (after 60 steps)`.
pub(super) fn name(arm: &OfArm, other: Option<String>) -> String {
    other.map_or_else(|| arm.arm.to_owned(), |at| format!("{} ({at})", arm.arm))
}

/// `, before the cure`, or ` (before the cure of ext4)` if only some arms have a cure at this
/// checkpoint; empty without one.
pub(super) fn before_cure(model: &Model, slowdowns: &Slowdowns) -> String {
    let is_cured_then =
        |arm: &&OfArm| model.results.cures.iter().any(|row| row.key.arm == arm.arm && row.key.pulls == arm.pulls);
    let cured: Vec<String> = slowdowns.arms.iter().filter(is_cured_then).map(|arm| arm.arm.to_owned()).collect();
    match cured.len() {
        0 => String::new(),
        all if all == slowdowns.arms.len() => ", before the cure".to_owned(),
        _ => format!(" (before the cure of {})", list(&cured)),
    }
}
