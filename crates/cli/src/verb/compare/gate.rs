//! The gate of `--fail-if`: the figures that it judges, and its outcome.
//!
//! By default it judges the figures without noise of the volumes that the plan aged (full, empty).
//! An unaged copy is the baseline of a run: its figures are those of mkfs and a plain copy. It is
//! in the table, and is judged if `--role unaged` selects it. Wall times are judged if `--measured`
//! or `--figure` selects them. Free extents and slowdowns are judged only if `--figure` selects
//! them: two runs of one plan differ by a tenth or more.

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::{
    Seed,
    names::{list, with_more},
    statistics::{FAIL_BELOW, Judgement, Limit, Outcome, compute_least_repetitions, judge_counted, judge_measured},
};
use serde::Serialize;

use super::{
    Row,
    figures::{FREE_EXTENTS, Kind, Missing, SLOWDOWN},
};
use crate::{
    args::{FailIf, SelectArgs},
    exit::usage,
    table::tell_ratio,
};

/// The number of figures that a message names. The table has all.
const NAMED: usize = 5;

/// The outcome of a gate.
#[derive(Serialize, JsonSchema)]
pub(super) struct Gate {
    /// The limit, percent.
    limit_percent: f64,
    /// The worst outcome of any figure.
    pub(super) outcome: Outcome,
    /// The number of judged figures.
    figures: usize,
    /// The number of figures that failed.
    failed: usize,
    /// The number of undecided figures. Cells that one side lacks are not counted, but also make
    /// the gate undecided.
    undecided: usize,
    /// The outcome in a sentence, with the smallest effect that the gate could have detected.
    pub(super) text: String,
}

/// The rows and cells that a gate judges.
#[derive(Clone, Copy)]
pub(in crate::verb) struct Scope<'a> {
    /// The rows that the user named.
    pub(in crate::verb) select: &'a SelectArgs,
    /// Whether wall times are judged.
    pub(in crate::verb) measured: bool,
    /// Whether free extents are judged.
    pub(in crate::verb) free_extents: bool,
}

impl Scope<'_> {
    /// Whether the gate judges the row.
    pub(in crate::verb) fn has_row(&self, row: &Row) -> bool {
        let is_tree = row.of.is_empty();
        let is_named = !self.select.figure.is_empty();
        let is_subject = is_tree || !self.select.role.is_empty() || row.of.get(1).is_none_or(|role| role != "unaged");
        let is_kind = is_tree || row.kind != Kind::Measured || self.measured || is_named;
        let is_free_extents = row.figure == FREE_EXTENTS && !self.free_extents;
        let is_steady = is_named || !(is_free_extents || row.figure.ends_with(SLOWDOWN));
        is_subject && is_kind && is_steady
    }

    /// Whether a missing cell leaves the gate undecided.
    pub(in crate::verb) fn has_missing(&self, missing: &Missing) -> bool {
        // A slowdown needs the fresh copy, too.
        let needs_unaged = self.select.figure.iter().any(|pattern| pattern.is_match(SLOWDOWN));
        needs_unaged || !self.select.role.is_empty() || missing.is_subject()
    }
}

/// Judges the rows that belong to the gate, and writes the outcome into each. A cell that one side
/// lacks is undecided.
///
/// Errors: no row belongs to the gate. A gate without figures must not pass.
pub(super) fn judge(rows: &mut [Row], missing: &[Missing], scope: Scope<'_>, limit: FailIf) -> Result<Gate> {
    let mut gated: Vec<&mut Row> = rows.iter_mut().filter(|row| scope.has_row(row)).collect();
    if gated.is_empty() {
        let hint =
            "add --measured for wall times, or --role unaged for fresh copies; `[measure]` of a plan selects models";
        return Err(usage(
            "--fail-if has no figure to judge: by default it leaves out wall times and fresh copies",
            Some(hint),
        ));
    }
    let factor = 1.0 + limit.percent / 100.0;
    for row in gated.iter_mut().filter(|row| row.kind != Kind::Measured) {
        let limit = Limit { factor, is_more_better: row.more_is_better };
        row.outcome = Some(judge_counted(&row.figures_a, &row.figures_b, limit));
    }
    let measured: Vec<_> = gated
        .iter()
        .filter(|row| row.kind == Kind::Measured)
        .map(|row| {
            let limit = Limit { factor, is_more_better: row.more_is_better };
            (row.figures_a.as_slice(), row.figures_b.as_slice(), limit)
        })
        .collect();
    let judgements = judge_measured(&measured, Seed(1));
    for (row, judgement) in gated.iter_mut().filter(|row| row.kind == Kind::Measured).zip(judgements) {
        row.outcome = Some(judgement.outcome);
        row.judgement = Some(judgement);
    }
    let gated: Vec<&Row> = gated.iter().map(|row| &**row).collect();
    let missing: Vec<&Missing> = missing.iter().filter(|missing| scope.has_missing(missing)).collect();
    Ok(describe(&gated, &missing, limit))
}

fn describe(gated: &[&Row], missing: &[&Missing], limit: FailIf) -> Gate {
    let with = |outcome: Outcome| gated.iter().filter(|row| row.outcome == Some(outcome)).copied().collect::<Vec<_>>();
    let (failed, undecided) = (with(Outcome::Fail), with(Outcome::Undecided));
    let outcome = match (failed.is_empty(), undecided.is_empty() && missing.is_empty()) {
        (false, _) => Outcome::Fail,
        (true, false) => Outcome::Undecided,
        (true, true) => Outcome::Pass,
    };
    let text = match outcome {
        Outcome::Pass => {
            let change = if limit.percent > 0.0 { "worse" } else { "better" };
            format!(
                "gate passed: {}, none more than {}% {change} in B than in A. {}",
                count(gated.len()),
                limit.percent.abs(),
                tell_sight(gated, limit)
            )
        }
        Outcome::Undecided if undecided.is_empty() => {
            let (first, number) = (missing[0], missing.len());
            // Inspections have no cells.
            let cells = match (first.of().len() > 1, number) {
                (true, 1) => "1 cell is",
                (false, 1) => "a part is",
                (true, _) => &format!("{number} cells are"),
                (false, _) => "parts of both are",
            };
            format!("gate undecided: {cells} not compared. The first is {first}.")
        }
        Outcome::Undecided => format!(
            "gate undecided: {} of {} may or may not differ by more than {limit}: {}. {}",
            undecided.len(),
            count(gated.len()),
            tell_rows(&undecided),
            tell_sight(gated, limit)
        ),
        Outcome::Fail => {
            let also = match undecided.len() {
                0 => String::new(),
                number => format!("; {number} more are undecided"),
            };
            format!(
                "gate failed: {} of {} differ by more than {limit}: {}{also}",
                failed.len(),
                count(gated.len()),
                tell_rows(&failed)
            )
        }
    };
    Gate {
        limit_percent: limit.percent,
        outcome,
        figures: gated.len(),
        failed: failed.len(),
        undecided: undecided.len(),
        text,
    }
}

pub(in crate::verb) fn count(figures: usize) -> String {
    format!("{figures} figure{}", if figures == 1 { "" } else { "s" })
}

/// Each row with its ratio. Measured rows have interval and repetitions, too.
fn tell_rows(rows: &[&Row]) -> String {
    let tell = |row: &&Row| {
        let ratio = row.comparison.as_ref().map_or("(A is 0)".to_owned(), |compared| match row.kind {
            Kind::Measured => format!(
                "{} ({}..{}, n={})",
                tell_ratio(compared.ratio),
                tell_ratio(compared.ratio_low),
                tell_ratio(compared.ratio_high),
                row.repetitions()
            ),
            _ => tell_ratio(compared.ratio),
        });
        format!("{} {ratio}", row.name())
    };
    list(&with_more(rows.iter().take(NAMED).map(tell), rows.len()))
}

/// The smallest effect that the gate could have detected.
fn tell_sight(gated: &[&Row], limit: FailIf) -> String {
    let measured: Vec<&&Row> = gated.iter().filter(|row| row.kind == Kind::Measured).collect();
    let mut parts = Vec::new();
    if measured.len() < gated.len() {
        parts.push(format!(
            "Counted and modelled figures show every change beyond {limit} of this pair of runs. Two runs of one \
             plan can differ, too: compare two of them first."
        ));
    }
    parts.extend(tell_least_effect(
        &measured.iter().map(|row| row.judgement).collect::<Vec<_>>(),
        limit.percent > 0.0,
        FAIL_BELOW,
    ));
    parts.join(" ")
}

/// The smallest change of wall times that judgements could have detected. `is_upper`: of a limit
/// above zero. `fail_below`: the level of the judgements. `None` without judgements.
pub(in crate::verb) fn tell_least_effect(
    judgements: &[Option<Judgement>],
    is_upper: bool,
    fail_below: f64,
) -> Option<String> {
    if judgements.is_empty() {
        return None;
    }
    let smallest: Option<Vec<f64>> =
        judgements.iter().map(|judgement| judgement.and_then(|judgement| judgement.smallest_ratio)).collect();
    let least = compute_least_repetitions(judgements.len(), fail_below);
    Some(match smallest {
        Some(ratios) => {
            let worst = ratios.into_iter().fold(1.0, f64::max);
            let worst = if is_upper { worst - 1.0 } else { 1.0 / worst - 1.0 };
            let sure = fail_below * 100.0;
            format!(
                "With this noise, measured figures show a change of {:+.0}% or more (p below {sure}%).",
                worst * 100.0
            )
        }
        None => format!(
            "{} judged together need at least {least} repetitions on each side to show any change.",
            count(judgements.len())
        ),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use senesce_core::statistics::compute_comparison;

    use super::*;
    use crate::args::{Cli, CompareArgs, Verb};

    fn scope_of(args: &CompareArgs) -> Scope<'_> {
        Scope { select: &args.select, measured: args.measured, free_extents: false }
    }

    fn row(role: &str, figure: &str, kind: Kind, a: &[f64], b: &[f64]) -> Row {
        Row {
            of: vec!["ext4".to_owned(), role.to_owned(), "40".to_owned()],
            figure: figure.to_owned(),
            kind,
            more_is_better: false,
            figures_a: a.to_vec(),
            figures_b: b.to_vec(),
            comparison: compute_comparison(a, b, Seed(1)),
            outcome: None,
            judgement: None,
        }
    }

    fn gate(rows: &mut [Row], words: &[&str]) -> Result<Gate> {
        let line = [&["senesce", "compare", "a", "b", "--fail-if", "+5%"], words].concat();
        let Verb::Compare(args) = Cli::try_parse_from(line)?.verb else { unreachable!() };
        let limit = args.fail_if.unwrap();
        judge(rows, &[], scope_of(&args), limit)
    }

    /// Two runs that differ only by the noise of a loaded machine: wall times whose ratios and
    /// intervals an earlier gate printed as failures, and modelled figures.
    fn noisy() -> Vec<Row> {
        vec![
            row("empty", "grep s/GiB", Kind::Measured, &[8.0, 8.4, 12.0], &[7.404, 10.374, 11.8]),
            row("unaged", "grep s/GiB", Kind::Measured, &[5.0, 5.2, 6.0], &[5.892, 8.388, 10.43]),
            row("empty", "model s/GiB", Kind::Modelled, &[10.0], &[9.8]),
            row("unaged", "model s/GiB", Kind::Modelled, &[10.0], &[10.29]),
        ]
    }

    #[test]
    fn noise_of_three_runs_is_undecided() {
        let found = gate(&mut noisy(), &[]).unwrap();
        assert_eq!((found.outcome, found.figures), (Outcome::Pass, 1));
        assert!(found.text.starts_with("gate passed: 1 figure, none more than 5% worse in B than in A. "));
        for words in [vec!["--measured"], vec!["--figure", "grep"], vec!["--figure", "grep", "--role", "unaged"]] {
            let found = gate(&mut noisy(), &words).unwrap();
            assert_eq!((found.outcome, found.failed), (Outcome::Undecided, 0), "{words:?} {}", found.text);
            assert!(found.text.contains("repetitions on each side"), "{}", found.text);
        }
        assert_eq!(gate(&mut noisy(), &["--role", "unaged,empty"]).unwrap().figures, 2);
    }

    #[test]
    fn one_value_of_a_counted_figure_can_fail() {
        for percent in 6..106 {
            let b = 1000.0 * (1.0 + f64::from(percent) / 100.0);
            let found = gate(&mut [row("full", "requests", Kind::Counted, &[1000.0], &[b])], &[]).unwrap();
            assert_eq!(found.outcome, Outcome::Fail);
            assert!(found.text.contains("ext4 full 40 requests"), "{}", found.text);
        }
    }

    #[test]
    fn slowdowns_are_judged_if_they_are_named() {
        let rows = || {
            [
                row("empty", "model: HDD slowdown", Kind::Modelled, &[1.0], &[1.2]),
                row("empty", "requests", Kind::Counted, &[100.0], &[100.0]),
            ]
        };
        assert_eq!(gate(&mut rows(), &[]).unwrap().outcome, Outcome::Pass);
        assert_eq!(gate(&mut rows(), &["--figure", "slowdown"]).unwrap().outcome, Outcome::Fail);
    }

    #[test]
    fn free_extents_are_judged_if_they_are_named() {
        let rows = || {
            [
                row("empty", "free extents", Kind::Counted, &[59.0], &[65.0]),
                row("empty", "requests", Kind::Counted, &[100.0], &[100.0]),
            ]
        };
        assert_eq!(gate(&mut rows(), &[]).unwrap().outcome, Outcome::Pass);
        assert_eq!(gate(&mut rows(), &["--figure", "free"]).unwrap().outcome, Outcome::Fail);
    }

    #[test]
    fn a_cell_that_b_lacks_leaves_the_gate_undecided() {
        let judge_with = |role: &str, words: &[&str], b: f64| {
            let line = [&["senesce", "compare", "a", "b", "--fail-if", "+5%"], words].concat();
            let Verb::Compare(args) = Cli::try_parse_from(line).unwrap().verb else { unreachable!() };
            let missing = Missing::new(&["ext4", role, "40"], "it is not valid in B: no space");
            let mut rows = [row("empty", "requests", Kind::Counted, &[100.0], &[b])];
            judge(&mut rows, &[missing], scope_of(&args), args.fail_if.unwrap()).unwrap()
        };
        let found = judge_with("full", &[], 100.0);
        assert_eq!((found.outcome, found.undecided), (Outcome::Undecided, 0));
        assert!(found.text.ends_with("The first is ext4 full 40: it is not valid in B: no space."), "{}", found.text);
        assert_eq!(judge_with("full", &[], 200.0).outcome, Outcome::Fail);
        // Fresh copies are in the gate only if they are named.
        assert_eq!(judge_with("unaged", &[], 100.0).outcome, Outcome::Pass);
        assert_eq!(judge_with("unaged", &["--role", "empty,unaged"], 100.0).outcome, Outcome::Undecided);
    }

    #[test]
    fn a_gate_without_figures_is_refused() {
        let measured = || row("empty", "grep s/GiB", Kind::Measured, &[1.0], &[1.0]);
        assert!(gate(&mut [measured()], &[]).is_err());
        assert!(gate(&mut [row("unaged", "requests", Kind::Counted, &[1.0], &[1.0])], &[]).is_err());
        assert_eq!(gate(&mut [measured()], &["--measured"]).unwrap().outcome, Outcome::Undecided);
    }

    #[test]
    fn a_passing_gate_prints_its_smallest_effect() {
        let calm = [1.0, 1.002, 1.004, 1.006, 1.008, 1.01];
        let found = gate(&mut [row("empty", "grep s/GiB", Kind::Measured, &calm, &calm)], &["--measured"]).unwrap();
        assert_eq!(found.outcome, Outcome::Pass);
        assert!(found.text.contains("show a change of +6% or more"), "{}", found.text);
    }
}
