//! The verdict on each figure, and on the whole run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use senesce_core::{
    Seed,
    names::{list, with_more},
    statistics::{FAIL_BELOW, Judgement, Limit, Outcome, compute_median, judge_counted, judge_measured_below},
};
use serde::Serialize;

use super::tolerance::{Tolerance, find_tolerance};
use crate::verb::compare::{
    Row,
    figures::{Kind, Missing},
    gate::{Scope, count, tell_least_effect},
};

/// A wall time regresses only if the probability of its difference by chance is below this. It is a
/// tenth of the level of `compare`, because this gate runs for every change.
const REGRESSED_BELOW: f64 = FAIL_BELOW / 10.0;
/// A message names at most this number of figures.
const NAMED: usize = 5;

/// The verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::verb) enum Verdict {
    /// All values are equal.
    Equal,
    /// The difference is within the tolerance.
    Within,
    /// Better by more than the tolerance.
    Improved,
    /// The values do not decide.
    Undecided,
    /// Worse by more than the tolerance.
    Regressed,
}

impl Verdict {
    /// The word for the verdict in tables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Within => "within",
            Self::Improved => "improved",
            Self::Undecided => "undecided",
            Self::Regressed => "REGRESSED",
        }
    }
}

/// A figure with its verdict.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct Judged {
    /// The values of both sides.
    #[serde(flatten)]
    pub(in crate::verb) row: Row,
    /// The tolerance, percent.
    pub(in crate::verb) tolerance_percent: f64,
    /// The verdict. `None` if the gate does not judge the figure.
    pub(in crate::verb) verdict: Option<Verdict>,
}

impl Judged {
    /// The medians of baseline and run.
    pub(in crate::verb) fn medians(&self) -> (f64, f64) {
        let median = |values: &[f64]| compute_median(values).unwrap_or(f64::NAN);
        (median(&self.row.figures_a), median(&self.row.figures_b))
    }

    /// The change from the baseline: `+2.1%`.
    pub(in crate::verb) fn change(&self) -> String {
        match self.medians() {
            (a, b) if a == b => "0%".to_owned(),
            (0.0, _) => "from 0".to_owned(),
            (a, b) => format!("{:+.2}%", (b / a - 1.0) * 100.0),
        }
    }
}

/// The limits of a gate.
pub(super) struct Limits<'a> {
    /// The tolerance of all exact figures, percent. `None`: the rules apply.
    pub(super) tolerance: Option<f64>,
    /// The rules of the baseline.
    pub(super) rules: &'a [Tolerance],
    /// The file system of each arm.
    pub(super) file_systems: &'a BTreeMap<String, String>,
    /// The tolerance of wall times, percent.
    pub(super) measured_tolerance: f64,
}

impl Limits<'_> {
    fn of(&self, row: &Row) -> f64 {
        let file_system = row.of.first().and_then(|arm| self.file_systems.get(arm)).map_or("", String::as_str);
        match row.kind {
            Kind::Measured => self.measured_tolerance,
            _ => self.tolerance.unwrap_or_else(|| find_tolerance(self.rules, file_system, &row.figure)),
        }
    }
}

/// The limits of the ratio for "worse" and "better". A tolerance of 0 still allows one rounding
/// error of a ratio.
fn limits_of(percent: f64, is_more_better: bool) -> (Limit, Limit) {
    let factor = (1.0 + percent / 100.0).max(1.0 + f64::EPSILON);
    (Limit { factor, is_more_better }, Limit { factor: 1.0 / factor, is_more_better })
}

/// Judges all rows of the scope.
pub(super) fn judge_rows(rows: Vec<Row>, scope: Scope<'_>, limits: &Limits<'_>) -> Vec<Judged> {
    let tolerate = |row: Row| Judged { tolerance_percent: limits.of(&row), row, verdict: None };
    let mut judged: Vec<Judged> = rows.into_iter().map(tolerate).collect();
    for figure in judged.iter_mut().filter(|figure| figure.row.kind != Kind::Measured && scope.has_row(&figure.row)) {
        figure.verdict = Some(judge_exact(figure));
    }
    let is_timed = |figure: &Judged| figure.row.kind == Kind::Measured && scope.has_row(&figure.row);
    let pairs = |is_worse: bool| -> Vec<Judgement> {
        let pair = |figure: &'_ Judged| {
            let (worse, better) = limits_of(figure.tolerance_percent, figure.row.more_is_better);
            (figure.row.figures_a.clone(), figure.row.figures_b.clone(), if is_worse { worse } else { better })
        };
        let pairs: Vec<_> = judged.iter().filter(|figure| is_timed(figure)).map(pair).collect();
        let borrowed: Vec<_> = pairs.iter().map(|(a, b, limit)| (a.as_slice(), b.as_slice(), *limit)).collect();
        judge_measured_below(&borrowed, REGRESSED_BELOW, Seed(1))
    };
    let (worse, better) = (pairs(true), pairs(false));
    let timed = judged.iter_mut().filter(|figure| is_timed(figure));
    for (figure, (worse, better)) in timed.zip(worse.into_iter().zip(better)) {
        figure.verdict = Some(match (worse.outcome, better.outcome) {
            (Outcome::Fail, _) => Verdict::Regressed,
            (_, Outcome::Fail) => Verdict::Improved,
            (Outcome::Pass, _) => Verdict::Within,
            (Outcome::Undecided, _) => Verdict::Undecided,
        });
        figure.row.judgement = Some(worse);
    }
    judged
}

fn judge_exact(figure: &Judged) -> Verdict {
    let (a, b) = (&figure.row.figures_a, &figure.row.figures_b);
    let first = a.first();
    if a.iter().chain(b).all(|value| Some(value) == first) {
        return Verdict::Equal;
    }
    let is_more_better = figure.row.more_is_better;
    let (worse, better) = limits_of(figure.tolerance_percent, is_more_better);
    // A baseline of several runs accepts their whole range, so the tolerance counts from its ends.
    let (low, high) = a.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &value| (low.min(value), high.max(value)));
    let (best, worst) = if is_more_better { (high, low) } else { (low, high) };
    match (judge_counted(&[worst], b, worse), judge_counted(&[best], b, better)) {
        (Outcome::Fail, _) => Verdict::Regressed,
        (_, Outcome::Fail) => Verdict::Improved,
        (Outcome::Undecided, _) => Verdict::Undecided,
        (Outcome::Pass, _) => Verdict::Within,
    }
}

/// The outcome of a gate.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct Summary {
    /// The worst outcome of any figure or missing cell.
    pub(super) outcome: Outcome,
    /// The number of judged figures.
    pub(super) figures: usize,
    /// The number of figures with equal values.
    pub(super) equal: usize,
    /// The number of figures within the tolerance.
    pub(super) within: usize,
    /// The number of figures that are better by more than the tolerance.
    pub(super) improved: usize,
    /// The number of figures whose values do not decide.
    pub(super) undecided: usize,
    /// The number of figures that are worse by more than the tolerance.
    pub(super) regressed: usize,
    /// The outcome in sentences.
    pub(super) text: String,
    /// The smallest change of wall times that the gate could have detected, in words. `None` if
    /// there is none.
    pub(super) least_effect: Option<String>,
}

/// The outcome over all figures. `missing`: cells and figures of the baseline or plan that the run
/// lacks.
pub(super) fn summarize(judged: &[Judged], missing: &[&Missing]) -> Summary {
    let with = |verdict: Verdict| judged.iter().filter(|figure| figure.verdict == Some(verdict)).collect::<Vec<_>>();
    let (regressed, undecided, improved) =
        (with(Verdict::Regressed), with(Verdict::Undecided), with(Verdict::Improved));
    let figures = judged.iter().filter(|figure| figure.verdict.is_some()).count();
    let judgements: Vec<_> = judged
        .iter()
        .filter(|figure| figure.verdict.is_some() && figure.row.kind == Kind::Measured)
        .map(|figure| figure.row.judgement)
        .collect();
    let outcome = match () {
        () if !regressed.is_empty() => Outcome::Fail,
        () if !undecided.is_empty() || !missing.is_empty() => Outcome::Undecided,
        () => Outcome::Pass,
    };
    let mut text = match outcome {
        Outcome::Fail => {
            let more =
                if undecided.is_empty() { String::new() } else { format!("; {} more undecided", undecided.len()) };
            format!("regression: {} of {} worse: {}{more}", regressed.len(), count(figures), name(&regressed))
        }
        Outcome::Undecided if undecided.is_empty() => {
            format!("undecided: {} not compared. The first is {}", cells_or_figures(missing.len()), missing[0])
        }
        Outcome::Undecided => {
            format!(
                "undecided: the values do not decide for {} of {}: {}",
                undecided.len(),
                count(figures),
                name(&undecided)
            )
        }
        Outcome::Pass => format!("no regression in {}", count(figures)),
    };
    if !improved.is_empty() {
        text.push_str(&format!("; {} improved: {}", improved.len(), name(&improved)));
    }
    Summary {
        outcome,
        figures,
        equal: with(Verdict::Equal).len(),
        within: with(Verdict::Within).len(),
        improved: improved.len(),
        undecided: undecided.len(),
        regressed: regressed.len(),
        text,
        least_effect: tell_least_effect(&judgements, true, REGRESSED_BELOW),
    }
}

/// `1 cell or figure is`, `3 cells or figures are`.
fn cells_or_figures(number: usize) -> String {
    match number {
        1 => "1 cell or figure is".to_owned(),
        _ => format!("{number} cells or figures are"),
    }
}

/// Names the first figures with their changes.
fn name(figures: &[&Judged]) -> String {
    let names = figures.iter().take(NAMED).map(|figure| format!("{} {}", figure.row.name(), figure.change()));
    list(&with_more(names, figures.len()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use senesce_core::statistics::compute_comparison;

    use super::*;
    use crate::args::{Cli, GateArgs, Verb};

    fn row(figure: &str, kind: Kind, a: &[f64], b: &[f64]) -> Row {
        Row {
            of: ["ext4", "full", "40"].map(str::to_owned).to_vec(),
            figure: figure.to_owned(),
            kind,
            more_is_better: figure == "layout score",
            figures_a: a.to_vec(),
            figures_b: b.to_vec(),
            comparison: compute_comparison(a, b, Seed(1)),
            outcome: None,
            judgement: None,
        }
    }

    fn args() -> GateArgs {
        let Verb::Gate(args) = Cli::try_parse_from(["senesce", "gate", "r", "-b", "b"]).unwrap().verb else {
            unreachable!()
        };
        args
    }

    fn judge(rows: Vec<Row>, tolerance: f64) -> Vec<Judged> {
        let args = args();
        let scope = Scope { select: &args.select, measured: true, free_extents: false };
        let limits =
            Limits { tolerance: Some(tolerance), rules: &[], file_systems: &BTreeMap::new(), measured_tolerance: 10.0 };
        judge_rows(rows, scope, &limits)
    }

    fn verdict(figure: &str, a: &[f64], b: &[f64], tolerance: f64) -> Verdict {
        judge(vec![row(figure, Kind::Counted, a, b)], tolerance)[0].verdict.unwrap()
    }

    #[test]
    fn exact_figures_regress_and_improve_beyond_tolerance() {
        assert_eq!(verdict("requests", &[1000.0], &[1000.0], 0.0), Verdict::Equal);
        assert_eq!(verdict("requests", &[1000.0], &[1001.0], 0.0), Verdict::Regressed);
        assert_eq!(verdict("requests", &[1000.0], &[999.0], 0.0), Verdict::Improved);
        assert_eq!(verdict("requests", &[1000.0], &[1019.0], 2.0), Verdict::Within);
        assert_eq!(verdict("requests", &[1000.0], &[1021.0], 2.0), Verdict::Regressed);
        // More is better.
        assert_eq!(verdict("layout score", &[0.98], &[0.95], 2.0), Verdict::Regressed);
        assert_eq!(verdict("layout score", &[0.95], &[0.98], 2.0), Verdict::Improved);
        assert_eq!(verdict("requests", &[0.0], &[1.0], 2.0), Verdict::Regressed);
        assert_eq!(verdict("requests", &[0.0], &[0.0], 2.0), Verdict::Equal);
    }

    #[test]
    fn the_range_of_several_runs_is_accepted() {
        let base = [688.0, 695.0, 690.0];
        for value in [688.0, 691.0, 695.0, 701.0] {
            assert_eq!(verdict("requests", &base, &[value], 1.0), Verdict::Within, "{value}");
        }
        assert_eq!(verdict("requests", &base, &[703.0], 1.0), Verdict::Regressed);
        assert_eq!(verdict("requests", &base, &[680.0], 1.0), Verdict::Improved);
        assert_eq!(verdict("requests", &base, &[700.0, 703.0], 1.0), Verdict::Undecided);
    }

    #[test]
    fn summary_has_worst_outcome_and_names_improvements() {
        let rows = || {
            vec![
                row("a requests", Kind::Counted, &[100.0], &[90.0]),
                row("b requests", Kind::Counted, &[100.0], &[100.0]),
            ]
        };
        let judged = judge(rows(), 2.0);
        let summary = summarize(&judged, &[]);
        assert_eq!((summary.outcome, summary.improved, summary.equal), (Outcome::Pass, 1, 1));
        assert!(summary.text.contains("1 improved: ext4 full 40 a requests -10.00%"), "{}", summary.text);
        let missing = Missing::new(&["xfs", "full", "40"], "the run did not measure it");
        assert_eq!(summarize(&judged, &[&missing]).outcome, Outcome::Undecided);
        let mut worse = rows();
        worse.push(row("c requests", Kind::Counted, &[100.0], &[103.0]));
        let summary = summarize(&judge(worse, 2.0), &[&missing]);
        assert_eq!((summary.outcome, summary.regressed), (Outcome::Fail, 1));
        assert!(summary.text.starts_with("regression: 1 of 3 figures worse: ext4 full 40 c requests +3.00%"));
    }

    #[test]
    fn wall_times_need_repetitions_and_report_the_least_effect() {
        let calm: Vec<f64> = (0..8).map(|n| 1.0 + f64::from(n) * 0.002).collect();
        let scaled = |factor: f64| calm.iter().map(|value| value * factor).collect::<Vec<f64>>();
        let timed = |b: &[f64]| judge(vec![row("grep s/GiB", Kind::Measured, &calm, b)], 0.0);
        assert_eq!(timed(&calm)[0].verdict, Some(Verdict::Within));
        assert_eq!(timed(&scaled(1.5))[0].verdict, Some(Verdict::Regressed));
        assert_eq!(timed(&scaled(0.5))[0].verdict, Some(Verdict::Improved));
        assert_eq!(timed(&calm[..3])[0].verdict, Some(Verdict::Undecided));
        let summary = summarize(&timed(&calm), &[]);
        assert!(summary.least_effect.unwrap().contains("show a change of +1"));
    }
}
