//! The headline of a page with a baseline: how the age and the other figures changed.

use senesce_core::names::with_more;
use senesce_store::Role;

use super::age::Basis;
use super::change::{Change, JudgedAt, Outcome};
use crate::format::{count, figure, list};
use crate::model::{Model, words};

/// States the change of the age, then the volumes that cannot be compared. If the age did not
/// change, the other figures that changed follow.
///
/// Counts only figures of the last checkpoint of each arm.
pub(super) fn sentence(
    (model, judged_at): (&Model, &JudgedAt),
    changes: &[Change],
    input: Option<&str>,
    basis: &Basis<'_>,
) -> String {
    if changes.is_empty() {
        return "The two runs have no figure in common.".to_owned();
    }
    let judged: Vec<&Change> = changes.iter().filter(|change| change.outcome != Outcome::Earlier).collect();
    let last = last_of_arms(judged_at);
    let when = |common: &str, each: &str| match last {
        Some(at) => format!("{common} {} {}", count(at), model.unit),
        None => each.to_owned(),
    };
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(input.map(|input| format!("The runs had different input ({input}).")));
    let ages: Vec<&Change> = judged.iter().filter(|change| change.kind.is_age()).copied().collect();
    let parts = age_parts(model, &ages, basis);
    if !parts.is_empty() {
        let when = when("Age after", "Age at the last checkpoint of each arm");
        sentences.push(format!("{when}{}: {}.", basis.words(), parts.join("; ")));
    }
    if let Basis::Unknown { why } = basis {
        sentences.push(format!("Age cannot be compared: {why}."));
    }
    let missing: Vec<String> = model.arms.iter().filter_map(|(arm, _)| missing_words(model, arm, &ages)).collect();
    if changes.iter().any(|change| change.kind.is_age()) && !missing.is_empty() {
        let when = when("Not comparable at", "Not comparable at the last checkpoint");
        sentences.push(format!("{when}: {}.", list(&missing)));
    }
    if !ages.iter().any(|change| change.outcome.is_change()) {
        sentences.extend(other_changes(&judged));
    }
    sentences.extend(counted(&judged, changes.len()));
    sentences.join(" ")
}

/// The last checkpoint of all arms. `None` if arms have different ones.
fn last_of_arms(judged_at: &JudgedAt) -> Option<u64> {
    let mut all = judged_at.values();
    let first = all.next()?;
    all.all(|at| at == first).then_some(*first)
}

/// The age by outcome, the largest change first.
fn age_parts(model: &Model, ages: &[&Change], basis: &Basis<'_>) -> Vec<String> {
    let of_outcome = |outcome: Outcome, verb: &str| {
        let mut found: Vec<&&Change> = ages.iter().filter(|change| change.outcome == outcome).collect();
        found.sort_by(|a, b| b.size().total_cmp(&a.size()));
        let name =
            |change: &&&Change| format!("{} ({}) {}×", change.arm, words(change.role), figure(change.ratio.median));
        (!found.is_empty()).then(|| format!("{verb} for {}", list(&found.iter().map(name).collect::<Vec<_>>())))
    };
    let is_same = |arm: &str| {
        let mut of_arm = ages.iter().filter(|change| change.arm == arm).peekable();
        of_arm.peek().is_some() && of_arm.all(|change| !change.outcome.is_change())
    };
    let same: Vec<String> = model.arms.iter().map(|(arm, _)| arm.clone()).filter(|arm| is_same(arm)).collect();
    let parts = [
        of_outcome(Outcome::Worse, "worse"),
        of_outcome(Outcome::Better, "better"),
        of_outcome(Outcome::Differs, "differs"),
        (!same.is_empty()).then(|| basis.unchanged(&same)),
    ];
    parts.into_iter().flatten().collect()
}

/// `These figures changed: the modelled cost of ext4 (fresh copy) to 1.40×, … and 2 more.` The
/// largest change comes first. `None` without one.
fn other_changes(judged: &[&Change]) -> Option<String> {
    const MOST: usize = 3;
    let mut changed: Vec<&&Change> = judged.iter().filter(|change| change.outcome.is_change()).collect();
    changed.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let name = |change: &&&Change| {
        let (kind, volume) = (change.kind.words(), words(change.role));
        format!("{kind} of {} ({volume}) to {}×", change.arm, figure(change.ratio.median))
    };
    let start = if changed.len() == 1 { "This figure" } else { "These figures" };
    let names = with_more(changed.iter().take(MOST).map(name), changed.len());
    (!names.is_empty()).then(|| format!("{start} changed: {}.", list(&names)))
}

/// How many figures did not change, and how many are of an earlier checkpoint.
fn counted(judged: &[&Change], all: usize) -> Vec<String> {
    let unchanged = judged.iter().filter(|change| !change.outcome.is_change()).count();
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    let figures = |count: usize| if count == 1 { "figure" } else { "figures" };
    let earlier = all - judged.len();
    let of_last = match judged.len() {
        0 => "The two runs have no common figure at the last checkpoint.".to_owned(),
        all if all == unchanged => format!("No figure changed beyond the limits ({all} judged)."),
        all => format!("{unchanged} of {all} figures {} within the limits.", are(unchanged)),
    };
    let of_earlier = (earlier > 0).then(|| {
        let (figures, are) = (figures(earlier), are(earlier));
        format!("{earlier} more {figures} {are} of an earlier checkpoint, and {are} not judged.")
    });
    [of_last].into_iter().chain(of_earlier).collect()
}

/// `ext4`, or `ext4 (nearly full)` if its other volume has an age; `None` if all have one.
fn missing_words(model: &Model, arm: &str, ages: &[&Change]) -> Option<String> {
    let has_age = |role: Role| ages.iter().any(|change| change.arm == arm && change.role == role);
    let has_cell = |role: Role| model.results.cells.iter().any(|cell| cell.key.arm == arm && cell.key.role == role);
    let aged = [Role::Full, Role::Empty];
    if !aged.into_iter().any(has_age) {
        return Some(arm.to_owned());
    }
    let missing: Vec<String> =
        aged.into_iter().filter(|role| has_cell(*role) && !has_age(*role)).map(|role| words(role).to_owned()).collect();
    (!missing.is_empty()).then(|| format!("{arm} ({})", list(&missing)))
}

#[cfg(test)]
mod tests {
    use senesce_store::Results;

    use super::super::change::{Kind, judged_at};
    use super::*;
    use crate::model::{Lines, Spread};

    fn change(arm: &str, kind: Kind, at: u64, median: f64, outcome: Outcome) -> Change {
        let ratio = Spread { count: 1, median, low: median, high: median, ..Spread::default() };
        Change { arm: arm.to_owned(), role: Role::Full, kind, at, old: 1.0, new: median, ratio, outcome }
    }

    fn hdd() -> Option<String> {
        Some("HDD 7.2K".to_owned())
    }

    /// The sentence of a run of xfs, btrfs and ext4 with these changes.
    fn said(changes: &[Change], input: Option<&str>, is_main: bool) -> String {
        let results = Results::default();
        let mut model = Model::compute(&results);
        model.arms = ["xfs", "btrfs", "ext4"].map(|arm| (arm.to_owned(), arm.to_owned())).to_vec();
        model.checkpoints = vec![0, 400];
        let none = Lines::new();
        let basis = Basis::Modelled { device: "model: HDD 7.2K", new: &none, old: &none, is_main, settles: true };
        sentence((&model, &judged_at(&model, &model)), changes, input, &basis)
    }

    #[test]
    fn figures_of_earlier_checkpoints_are_not_judged() {
        let changes = [
            change("ext4", Kind::Cost(hdd()), 0, 1.16, Outcome::Earlier),
            change("ext4", Kind::Slowdown(hdd()), 0, 1.16, Outcome::Earlier),
            change("xfs", Kind::Slowdown(hdd()), 400, 0.99, Outcome::Unchanged),
            change("btrfs", Kind::Slowdown(hdd()), 400, 1.7, Outcome::Worse),
        ];
        assert_eq!(
            said(&changes, None, true),
            "Age after 400 pulls: worse for btrfs (nearly full) 1.70×; unchanged within 10% for xfs. Not comparable at 400 \
             pulls: ext4. 1 of 2 figures is within the limits. 2 more figures are of an earlier checkpoint, and are not \
             judged."
        );
        let other = said(&changes, Some("seed 1 → 7"), false);
        let start = "The runs had different input (seed 1 → 7). Age after 400 pulls on HDD 7.2K: worse for btrfs";
        assert!(other.starts_with(start), "{other}");
    }

    #[test]
    fn other_changes_follow_if_the_age_did_not_change() {
        let mut changes = vec![
            change("xfs", Kind::Slowdown(hdd()), 400, 1.02, Outcome::Unchanged),
            change("xfs", Kind::Cost(hdd()), 400, 1.3, Outcome::Worse),
            change("btrfs", Kind::AdjacentFiles, 400, 0.5, Outcome::Worse),
            change("xfs", Kind::Cost(None), 400, 1.04, Outcome::Small),
        ];
        let all = said(&changes, None, true);
        assert!(all.starts_with("Age after 400 pulls: unchanged within 10% for xfs. "), "{all}");
        let others = "These figures changed: the share of adjacent files of btrfs (nearly full) to 0.500× and the modelled \
                      cost of xfs (nearly full) to 1.30×. ";
        assert!(all.contains(others), "{all}");
        // A changed age is enough.
        changes[0].outcome = Outcome::Worse;
        assert!(said(&changes, None, true).starts_with("Age after 400 pulls: worse for xfs"));
        changes.retain(|change| !change.outcome.is_change());
        assert!(said(&changes, None, true).ends_with("No figure changed beyond the limits (1 judged)."));
    }
}
