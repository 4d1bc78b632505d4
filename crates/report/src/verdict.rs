//! What the results say, in plain words, and what to be careful about.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::Role;

use crate::format::{count, number};
use crate::model::Model;

/// One sentence per arm: how much slower its aged trees are read at the last checkpoint that can tell.
pub(crate) fn verdicts(model: &Model) -> Vec<String> {
    model.arms.iter().map(|(arm, _)| verdict(model, arm)).collect()
}

fn verdict(model: &Model, arm: &str) -> String {
    let line = |role| model.slowdown.get(&(arm.to_owned(), role)).and_then(|line| line.last_key_value());
    let (full, empty) = (line(Role::Full), line(Role::Empty));
    let Some(pulls) = full.iter().chain(&empty).map(|(pulls, _)| **pulls).max() else {
        return format!("{arm}: no valid pair of an aged and an unaged volume, so nothing can be said.");
    };
    let phrase = |figure: Option<(&u64, &crate::model::Spread)>, volume: &str| {
        let (_, ratio) = figure.filter(|(at, _)| **at == pulls)?;
        // Intervals that hold 1 say nothing for certain, whatever the medians are.
        let unclear = ratio.count > 1 && ratio.low <= 1.0 && ratio.high >= 1.0;
        Some(match ratio.median {
            _ if unclear => format!("no clear difference {volume} ({}×)", number(ratio.median)),
            median if (0.95..1.05).contains(&median) => format!("about as long {volume} ({}×)", number(median)),
            median => format!("{}× as long {volume}", number(median)),
        })
    };
    let phrases: Vec<_> =
        [phrase(full, "on the full volume"), phrase(empty, "on the empty one")].into_iter().flatten().collect();
    let phrases = phrases.join(", ");
    let measured = format!(
        "After {} {}, reading the {arm} tree, compared with a fresh copy of it, takes {phrases}",
        count(pulls),
        model.unit
    )
    .replace("takes no clear", "shows no clear");
    format!("{measured}.{}", modelled(model, arm, pulls))
}

/// What the model says of it, as a sentence; empty if nothing was modelled.
fn modelled(model: &Model, arm: &str, pulls: u64) -> String {
    let Some((device, _, slowdown)) = model.main_device() else { return String::new() };
    let at = |role: Role, volume: &str| {
        let ratio = slowdown.get(&(arm.to_owned(), role))?.get(&pulls)?;
        Some(format!("{}× as long {volume}", number(ratio.median)))
    };
    let phrases: Vec<_> =
        [at(Role::Full, "on the full volume"), at(Role::Empty, "on the empty one")].into_iter().flatten().collect();
    match phrases.is_empty() {
        true => String::new(),
        false => format!(" On another device ({device}) it would take {}.", phrases.join(", ")),
    }
}

/// What a reader must know before trusting the figures; each with how many cells it touches.
pub(crate) fn warnings(model: &Model) -> Vec<String> {
    let results = model.results;
    let mut warnings = Vec::new();
    let valid: BTreeSet<_> = results.cells.iter().filter(|cell| cell.valid).map(|cell| &cell.key).collect();
    let rows = || results.grep.iter().filter(|row| valid.contains(&row.key));
    let cells = |count: usize| format!("{count} of {} cells", results.cells.len());
    if !model.invalid.is_empty() {
        let invalid = cells(model.invalid.len());
        warnings.push(format!("{invalid} are invalid; their measurements are left out. The reasons are listed below."));
    }
    for (arm, pulls) in differing_trees(model) {
        warnings.push(format!(
            "{arm}, {} {}: the volumes do not hold the same tree, so their costs cannot be compared.",
            count(pulls),
            model.unit
        ));
    }
    let bound: BTreeSet<_> = rows().filter(|row| row.cpu_bound).map(|row| &row.key).collect();
    if !bound.is_empty() {
        let arms: BTreeSet<_> = bound.iter().map(|key| key.arm.as_str()).collect();
        let arms = arms.into_iter().collect::<Vec<_>>().join(", ");
        warnings.push(format!(
            "In {} ({arms}) the CPU set the pace of the grep test, not the device: the cost of the layout is hidden.",
            cells(bound.len())
        ));
    }
    let warm: BTreeSet<_> = rows().filter(|row| row.cache == "warm").map(|row| &row.key).collect();
    if !warm.is_empty() {
        warnings.push(format!("In {} the cache was warm during the grep test.", cells(warm.len())));
    }
    let lossy: BTreeSet<_> = results
        .trace
        .iter()
        .filter(|row| row.lost_events > 0 && valid.contains(&row.key))
        .map(|row| &row.key)
        .collect();
    if !lossy.is_empty() {
        warnings.push(format!("In {} the trace lost events: its figures are of the rest.", cells(lossy.len())));
    }
    let single = model.grep_cost().values().flat_map(|line| line.values()).filter(|spread| spread.count == 1).count();
    if single > 0 {
        warnings.push(format!("{} have a single repetition of the grep test: no spread is known.", cells(single)));
    }
    if results.layout.iter().any(|row| row.space == "btrfs-logical") {
        warnings.push(
            "Btrfs reports extents in its own logical address space: its layout score and extents per file do not \
             describe places on the device."
                .to_owned(),
        );
    }
    let without = |role: Role| {
        let has = |arm: &str| results.cells.iter().any(|cell| cell.key.arm == arm && cell.key.role == role);
        model.arms.iter().filter(|(arm, _)| !has(arm)).map(|(arm, _)| arm.as_str()).collect::<Vec<_>>()
    };
    if !without(Role::Unaged).is_empty() {
        let arms = without(Role::Unaged).join(", ");
        warnings.push(format!("No unaged volume was measured for {arm_list}: no slowdown.", arm_list = arms));
    }
    warnings
}

/// Arms and checkpoints whose valid cells hold different trees.
fn differing_trees(model: &Model) -> Vec<(String, u64)> {
    let mut hashes: BTreeMap<(String, u64), BTreeSet<&str>> = BTreeMap::new();
    for cell in model.results.cells.iter().filter(|cell| cell.valid && !cell.tree_hash.is_empty()) {
        hashes.entry((cell.key.arm.clone(), cell.key.pulls)).or_default().insert(&cell.tree_hash);
    }
    hashes.into_iter().filter(|(_, hashes)| hashes.len() > 1).map(|(at, _)| at).collect()
}
