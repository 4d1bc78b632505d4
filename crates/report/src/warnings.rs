//! Warnings that a reader needs before trusting the figures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use senesce_core::names::with_more;
use senesce_store::{MISSED_CURE, Role};

use crate::campaign::warn_of_missing_tasks;
use crate::format::{count, list};
use crate::model::{Model, words};

/// The warnings of a run, each with the number of cells that it concerns. They lack the reasons of
/// invalid cells: the text around them lists the reasons.
pub(crate) fn warnings(model: &Model) -> Vec<String> {
    invalid_cells(model, |_| String::new()).into_iter().chain(of_valid_cells(model)).collect()
}

/// The warnings for a page. They have the reasons of invalid cells: the list is far below them.
pub(crate) fn warnings_with_reasons(model: &Model) -> Vec<String> {
    let reason = |reason: &str| format!(": {}", shortened_reason(reason));
    invalid_cells(model, reason).into_iter().chain(of_valid_cells(model)).collect()
}

fn of_valid_cells(model: &Model) -> Vec<String> {
    let results = model.results;
    let mut warnings = Vec::from_iter(warn_of_missing_tasks(results));
    let valid: BTreeSet<_> = results.cells.iter().filter(|cell| cell.valid).map(|cell| &cell.key).collect();
    let rows = || results.grep.iter().filter(|row| valid.contains(&row.key));
    let cells = |count: usize| format!("{count} of {} cells", results.cells.len());
    let is_guest = |key: &str| key == "guest_kind" || key.ends_with(".guest_kind");
    if results.circumstances.iter().any(|row| is_guest(&row.key)) {
        warnings.push(
            "The run was in a guest kernel, whose system calls are slow: do not quote its wall times.".to_owned(),
        );
    }
    let missed = results.circumstances.iter().filter(|row| row.key == MISSED_CURE);
    warnings.extend(missed.map(|row| format!("{}: {}.", row.arm, row.value)));
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
        warnings.push(format!("In {} the trace lost events: its figures do not include them.", cells(lossy.len())));
    }
    warnings.extend(disturbed(model));
    let single = model.grep_cost().values().flat_map(|line| line.values()).filter(|spread| spread.count == 1).count();
    // Wall times of memory are not shown, so their spread does not matter.
    if single > 0 && !model.is_wall_of_memory() {
        let exact = if results.modelled.is_empty() { "" } else { " Modelled times follow from the layout alone." };
        warnings.push(format!(
            "{} have a single repetition of the grep test: the spread of its wall time is not known.{exact}",
            cells(single)
        ));
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

/// The number of invalid cells, and those of the last few checkpoints by arm, each with the text of
/// its first reason. The last checkpoint comes first. `None` if all are valid.
fn invalid_cells(model: &Model, reason_text: impl Fn(&str) -> String) -> Option<String> {
    const MOST: usize = 3;
    if model.invalid.is_empty() {
        return None;
    }
    #[derive(Default)]
    struct Group<'m> {
        volumes: Vec<String>,
        reason: Option<&'m str>,
    }
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    for ((arm, role, pulls), reason) in &model.invalid {
        let group = groups.entry((Reverse(*pulls), arm)).or_default();
        group.volumes.push(words(*role).to_owned());
        group.reason.get_or_insert(reason);
    }
    let text = |((Reverse(pulls), arm), Group { volumes, reason }): (&(Reverse<u64>, _), &Group<'_>)| {
        let reason = reason_text(reason.unwrap_or_default());
        format!("{arm} at {} {} ({}){reason}", count(*pulls), model.unit, list(volumes))
    };
    let text = with_more(groups.iter().take(MOST).map(text), groups.len()).join("; ");
    let dot = if text.ends_with('…') { "" } else { "." };
    let (invalid, all) = (model.invalid.len(), model.results.cells.len());
    Some(format!("{invalid} of {all} cells are invalid; their measurements are left out. {text}{dot}"))
}

/// The start of a reason, for a warning: a list elsewhere has all of it.
pub(crate) fn shortened_reason(reason: &str) -> String {
    const LONGEST: usize = 90;
    let line = reason.lines().next().unwrap_or_default();
    match line.chars().count() > LONGEST {
        true => line.chars().take(LONGEST).chain([' ', '…']).collect(),
        false => line.to_owned(),
    }
}

/// Cells that other work disturbed, in every repetition or in some of them.
fn disturbed(model: &Model) -> Vec<String> {
    let (whole, some): (Vec<_>, Vec<_>) = model.disturbed.values().partition(|cell| cell.disturbed == cell.repetitions);
    let of_all = |count: usize| format!("{count} of {} cells", model.results.cells.len());
    let mut warnings = Vec::new();
    if let Some(first) = whole.first() {
        warnings.push(format!(
            "In {} other work disturbed every repetition of the grep test (the first: {}). Their measured times are \
             marked, and may be wrong by more than their intervals.",
            of_all(whole.len()),
            first.reason
        ));
    }
    if !some.is_empty() {
        let repetitions: usize = some.iter().map(|cell| cell.disturbed).sum();
        warnings.push(format!(
            "In {} other work disturbed some repetitions of the grep test, {repetitions} in all. They are left out of \
             medians and intervals, and listed below.",
            of_all(some.len())
        ));
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
