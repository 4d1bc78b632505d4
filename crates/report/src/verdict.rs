//! What the results say, in plain words, and what to be careful about.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::Role;

use crate::devices::short;
use crate::format::{count, number};
use crate::model::{Lines, Model, Spread};

/// Repetitions so few that a verdict says how many.
const FEW: usize = 3;

/// One or two sentences per arm: how much slower its aged trees are read at the last checkpoint that can tell. Of a disk in
/// virtual time that is what the disk took; of all others the wall time, and what a model says of another device.
pub(crate) fn verdicts(model: &Model) -> Vec<String> {
    model.arms.iter().map(|(arm, _)| verdict(model, arm) + &floor(model, arm)).collect()
}

/// How much of the wall time FUSE itself takes, as a sentence; empty for file systems of the kernel.
fn floor(model: &Model, arm: &str) -> String {
    let Some(floor) = model.floor_of(arm) else { return String::new() };
    format!(
        " FUSE alone takes {} s/GiB: so long takes the same tree from memory through the same adapter (the FUSE floor).",
        number(floor)
    )
}

fn verdict(model: &Model, arm: &str) -> String {
    let nothing = || format!("{arm}: no valid pair of an aged and an unaged volume, so nothing can be said.");
    let of_disk = model.virtual_disk().and_then(|(disk, _, slowdown)| Some((disk, Comparison::last(slowdown, arm)?)));
    let wall = Comparison::last(&model.slowdown, arm);
    let sentence = |comparison: &Comparison| {
        format!(
            "after {}, reading the {arm} tree, compared with a fresh copy of it, {}",
            comparison.when(&model.unit),
            comparison.text()
        )
    };
    let Some((disk, of_disk)) = of_disk else {
        return wall.map_or_else(nothing, |wall| {
            format!("{}.{}", sentence(&wall).replacen("after", "After", 1), modelled(model, arm, wall.pulls))
        });
    };
    let aside = match (model.is_wall_of_memory(), wall) {
        (true, _) => "Wall time of this run is of memory and says nothing about the disk.".to_owned(),
        (_, None) => String::new(),
        (_, Some(wall)) => format!("By the wall clock, in which the disk took its time, it {}.", wall.text()),
    };
    format!("On the modelled disk ({}), {}. {aside}", short(disk), sentence(&of_disk)).trim_end().to_owned()
}

/// What the model says of another device, as a sentence; empty if nothing was modelled.
fn modelled(model: &Model, arm: &str, pulls: u64) -> String {
    let Some((device, _, slowdown)) = model.main_device() else { return String::new() };
    match Comparison::at(slowdown, arm, pulls) {
        None => String::new(),
        Some(comparison) => format!(" On another device ({device}) it would {}.", comparison.text_of("take", "show")),
    }
}

/// Slowdowns of the full and the empty volume at one checkpoint.
struct Comparison<'m> {
    pulls: u64,
    volumes: Vec<(Role, &'m Spread)>,
}

impl<'m> Comparison<'m> {
    /// At the last checkpoint that has any.
    fn last(slowdown: &'m Lines, arm: &str) -> Option<Self> {
        let of_arm = slowdown.iter().filter(|((name, _), _)| name == arm);
        let pulls = of_arm.filter_map(|(_, line)| line.last_key_value()).map(|(pulls, _)| *pulls).max()?;
        Self::at(slowdown, arm, pulls)
    }

    fn at(slowdown: &'m Lines, arm: &str, pulls: u64) -> Option<Self> {
        let of = |role| Some((role, slowdown.get(&(arm.to_owned(), role))?.get(&pulls)?));
        let volumes: Vec<_> = [Role::Full, Role::Empty].into_iter().filter_map(of).collect();
        (!volumes.is_empty()).then_some(Self { pulls, volumes })
    }

    /// `200 pulls`, with the repetitions if they are few.
    fn when(&self, unit: &str) -> String {
        let counts = || self.volumes.iter().map(|(_, ratio)| ratio.count);
        let pulls = count(self.pulls);
        match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
            (least, most) if least > FEW || most == 0 => format!("{pulls} {unit}"),
            (least, most) if least == most => format!("{pulls} {unit} (n = {least})"),
            (least, most) => format!("{pulls} {unit} (n = {least} to {most})"),
        }
    }

    fn text(&self) -> String {
        self.text_of("takes", "shows")
    }

    /// `takes 2× as long on the full volume and shows no clear difference on the empty one (1.1×)`, with these verbs.
    fn text_of(&self, takes: &str, shows: &str) -> String {
        // Intervals that hold 1 say nothing for certain, whatever the medians are.
        let is_unclear = |ratio: &Spread| ratio.count > 1 && ratio.low <= 1.0 && ratio.high >= 1.0;
        let (unclear, clear): (Vec<_>, Vec<_>) = self.volumes.iter().partition(|(_, ratio)| is_unclear(ratio));
        let mut noun = ["volume", "one"].into_iter();
        let mut on = |role: Role| format!("on the {} {}", role.name(), noun.next().unwrap_or("volume"));
        let clear: Vec<_> = clear
            .into_iter()
            .map(|(role, ratio)| match ratio.median {
                median if (0.95..1.05).contains(&median) => {
                    format!("about as long {} ({}×)", on(role), number(median))
                }
                median => format!("{}× as long {}", number(median), on(role)),
            })
            .collect();
        let unclear: Vec<_> =
            unclear.into_iter().map(|(role, ratio)| format!("{} ({}×)", on(role), number(ratio.median))).collect();
        let clear = (!clear.is_empty()).then(|| format!("{takes} {}", clear.join(" and ")));
        let unclear = (!unclear.is_empty()).then(|| format!("{shows} no clear difference {}", unclear.join(" or ")));
        clear.into_iter().chain(unclear).collect::<Vec<_>>().join(" and ")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slowdown(full: &[f64], empty: &[f64], fresh: &[f64]) -> Lines {
        let of = |values: &[f64]| Spread::compute(values.iter().copied()).unwrap();
        let line = |values: &[f64]| [(20, of(values).over(&of(fresh)).unwrap())].into_iter().collect();
        [(("ext4".to_owned(), Role::Full), line(full)), (("ext4".to_owned(), Role::Empty), line(empty))].into()
    }

    #[test]
    fn a_verdict_is_a_sentence_whatever_is_clear() {
        let text = |full: &[f64], empty: &[f64]| {
            let lines = slowdown(full, empty, &[1.0, 1.01, 1.02]);
            let comparison = Comparison::last(&lines, "ext4").unwrap();
            assert_eq!(comparison.when("pulls"), "20 pulls (n = 3)");
            comparison.text()
        };
        let (twice, alike, wide) = ([2.02; 3], [1.04, 1.05, 1.05], [0.5, 1.111, 3.0]);
        assert_eq!(text(&twice, &twice), "takes 2× as long on the full volume and 2× as long on the empty one");
        assert_eq!(
            text(&alike, &wide),
            "takes about as long on the full volume (1.04×) and shows no clear difference on the empty one (1.1×)"
        );
        assert_eq!(
            text(&wide, &twice),
            "takes 2× as long on the empty volume and shows no clear difference on the full one (1.1×)"
        );
        assert_eq!(
            text(&wide, &wide),
            "shows no clear difference on the full volume (1.1×) or on the empty one (1.1×)"
        );
    }
}
