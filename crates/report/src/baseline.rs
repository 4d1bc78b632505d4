//! The change since an earlier run: the costs and the layout of both, as ratios.

mod age;
mod change;
mod sentence;
mod unlike;

use std::fmt::Write as _;

use minijinja::{Value, context};
use senesce_store::{Results, Role};

use self::age::{Basis, measured_slowdowns};
use self::change::{Change, JudgedAt, Kind, Outcome, judged_at};
use self::sentence::sentence;
pub use self::unlike::Unlike;
use self::unlike::input_words;
use crate::devices::short;
use crate::format::{count, figure, percent};
use crate::model::{Lines, Model, ROLES, Spread, words};
use crate::noise::Alike;

/// An earlier run that a report is compared with.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// Its name, as the page shows it.
    pub name: String,
    /// Its results.
    pub results: Results,
    /// The circumstances that differ.
    pub unlike: Vec<Unlike>,
}

/// The section of the page; undefined if there is no baseline.
pub(crate) fn section(model: &Model, baseline: Option<&Baseline>) -> Value {
    let Some(baseline) = baseline else { return Value::UNDEFINED };
    let old = Model::compute(&baseline.results);
    let input = input_words(&baseline.unlike);
    let basis = Basis::find(model, &old);
    let judged = judged_at(model, &old);
    let mut changes = changes((model, &judged), &old, &basis);
    for change in changes.iter_mut().filter(|change| change.outcome.is_change()) {
        if input.is_some() || change.role == Role::Unaged || is_before_aging(change, model) {
            change.outcome = Outcome::Differs;
        }
    }
    let rows: Vec<Value> = changes.iter().map(|change| row(change, &model.unit)).collect();
    context! {
        name => baseline.name.as_str(),
        sentence => sentence((model, &judged), &changes, input.as_deref(), &basis),
        limits => limits(settle(model, &old), &basis),
        unlike => baseline.unlike.iter().map(Unlike::to_string).collect::<Vec<_>>(),
        rows => rows,
    }
}

fn row(change: &Change, unit: &str) -> Value {
    let is_share = change.kind.is_share();
    let text = |value| if is_share { percent(value) } else { figure(value) };
    let ratio = &change.ratio;
    let interval = match ratio.count {
        0 | 1 => "– (1)".to_owned(),
        n => format!("{} to {} ({n})", figure(ratio.low), figure(ratio.high)),
    };
    context! {
        arm => change.arm.as_str(),
        volume => words(change.role),
        figure => change.kind.title(),
        at => format!("{} {unit}", count(change.at)),
        old => text(change.old),
        new => text(change.new),
        ratio => format!("{}×", figure(ratio.median)),
        interval => interval,
        outcome => change.outcome.words(),
        is_changed => change.outcome.is_change(),
        mark => Value::from_safe_string(mark(ratio, is_share)),
    }
}

/// The ratio and its interval on an axis from a half to twice, as SVG. The right side is always
/// worse: a higher cost, or a lower share.
fn mark(ratio: &Spread, more_is_better: bool) -> String {
    const MIDDLE: f64 = 60.0;
    let side = if more_is_better { -1.0 } else { 1.0 };
    let x = |value: f64| MIDDLE + (MIDDLE - 6.0) * side * value.max(1e-9).log2().clamp(-1.0, 1.0);
    let mut svg =
        String::from(r#"<svg class="change" viewBox="0 0 120 16" width="120" height="16" aria-hidden="true">"#);
    let _ = write!(svg, r#"<line class="reference" x1="{MIDDLE}" x2="{MIDDLE}" y1="0" y2="16"/>"#);
    if ratio.count > 1 {
        let (low, high) = (x(ratio.low), x(ratio.high));
        let _ = write!(svg, r#"<line class="interval" x1="{low:.1}" x2="{high:.1}" y1="8" y2="8"/>"#);
    }
    let _ = write!(svg, r#"<circle cx="{:.1}" cy="8" r="3.5"/></svg>"#, x(ratio.median));
    svg
}

/// The figures of both runs, each at the last checkpoint that both have. A figure is judged only if
/// this is the last checkpoint of its arm.
fn changes((model, judged): (&Model, &JudgedAt), old: &Model, basis: &Basis<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let settles = settle(model, old);
    let device = basis.device().or_else(|| model.main_device().map(|(device, ..)| device));
    let costs = device.and_then(|device| Some((device, model.modelled.get(device)?, old.modelled.get(device)?)));
    if let Some((device, new, old)) = costs {
        let (kind, limits) = (Kind::Cost(Some(short(device).to_owned())), Limits::Modelled { settles });
        changes.extend(of_lines(model, &Figure { kind, new, old, limits }));
    }
    match basis {
        Basis::Modelled { device, new, old, .. } => {
            let (kind, limits) = (Kind::Slowdown(Some(short(device).to_owned())), Limits::Slowdown { settles });
            changes.extend(of_lines(model, &Figure { kind, new, old, limits }));
        }
        Basis::Measured => changes.extend(measured_slowdowns(model, old)),
        Basis::Unknown { .. } => {}
    }
    if !model.is_wall_of_memory() && !old.is_wall_of_memory() && model.method == old.method {
        let (new, old) = (&model.grep_cost(), &old.grep_cost());
        changes.extend(of_lines(model, &Figure { kind: Kind::Cost(None), new, old, limits: Limits::Other }));
    }
    let (new, before) = (&model.adjacent_files_share, &old.adjacent_files_share);
    let limits = Limits::Share { settles };
    changes.extend(of_lines(model, &Figure { kind: Kind::AdjacentFiles, new, old: before, limits }));
    for change in &mut changes {
        if change.kind == Kind::Cost(None) && is_noisy(model, old, change) {
            change.outcome = Outcome::Noisy;
        }
        // A few files more or less are a large ratio of a tiny share.
        if change.kind.is_share() && change.outcome.is_change() && (change.new - change.old).abs() < LEAST_SHARE {
            change.outcome = Outcome::Small;
        }
        if judged.get(change.arm.as_str()) != Some(&change.at) {
            change.outcome = Outcome::Earlier;
        }
    }
    changes
}

/// The least change of a share of adjacent files that counts: one percentage point.
const LEAST_SHARE: f64 = 0.01;

/// Whether a measured cost of either run allows no verdict.
fn is_noisy(model: &Model, old: &Model, change: &Change) -> bool {
    let is_disturbed = |run: &Model| {
        let cell = run.disturbed.get(&(change.arm.clone(), change.role, change.at));
        cell.is_some_and(|cell| cell.disturbed == cell.repetitions)
    };
    let is_too_wide = |run: &Model| run.noise.get(&change.arm).is_some_and(|noise| noise.is_too_wide());
    [model, old].into_iter().any(|run| is_disturbed(run) || is_too_wide(run))
}

/// A figure of all volumes in both runs.
struct Figure<'m> {
    kind: Kind,
    new: &'m Lines,
    old: &'m Lines,
    limits: Limits,
}

/// The limits of a change.
#[derive(Clone, Copy)]
enum Limits {
    /// Those of modelled costs. `settles`: the volumes of both runs settle.
    Modelled { settles: bool },
    /// Those of slowdowns: each is a ratio of two modelled costs.
    Slowdown { settles: bool },
    /// Those of shares of adjacent files, which follow from the layout, as modelled costs do.
    Share { settles: bool },
    /// Those of measured costs, by the number of repetitions.
    Other,
}

impl Limits {
    /// One measurement has no interval. Two volumes of one plan differed by up to 7%.
    const ONCE: Alike = Alike { low: 0.9, high: 1.1 };

    fn of(self, role: Role, count: usize) -> Alike {
        match self {
            Self::Modelled { settles } if role == Role::Unaged => Alike::fresh(settles),
            Self::Modelled { settles } => Alike::aged(settles),
            Self::Slowdown { settles } => Alike::slowdowns(settles),
            Self::Share { settles: false } => Alike::fresh(false),
            Self::Share { settles: true } => Self::Other.of(role, count),
            Self::Other if count > 1 => Alike::near_one(),
            Self::Other => Self::ONCE,
        }
    }

    /// Whether chance explains a ratio within the limits. Volumes that settle have nearly equal
    /// costs in two runs, and the spread of repetitions shows their chance. The limit is then only
    /// the least change that counts.
    fn are_of_chance(self, count: usize) -> bool {
        match self {
            Self::Modelled { settles } | Self::Slowdown { settles } | Self::Share { settles } => !settles,
            Self::Other => count < 2,
        }
    }
}

/// The changes of a figure at the last checkpoint that both runs have.
fn of_lines(model: &Model, figure: &Figure<'_>) -> Vec<Change> {
    let of = |arm: &str, role: Role| {
        let key = (arm.to_owned(), role);
        let (new, old) = (figure.new.get(&key)?, figure.old.get(&key)?);
        let at = *new.keys().rev().find(|at| old.contains_key(at))?;
        let ratio = new[&at].over(&old[&at]).or_else(|| over_ratio(&new[&at], &old[&at]))?;
        Some(Change {
            arm: arm.to_owned(),
            role,
            kind: figure.kind.clone(),
            at,
            old: old[&at].median,
            new: new[&at].median,
            outcome: outcome(&ratio, figure.kind.is_share(), figure.limits, role),
            ratio,
        })
    };
    model.arms.iter().flat_map(|(arm, _)| ROLES.iter().filter_map(|role| of(arm, *role))).collect()
}

/// One ratio divided by another. Ratios have no values to draw from, so the interval spans both.
fn over_ratio(new: &Spread, old: &Spread) -> Option<Spread> {
    (old.median > 0.0 && old.low > 0.0).then(|| Spread {
        count: new.count.min(old.count),
        median: new.median / old.median,
        low: new.low / old.high,
        high: new.high / old.low,
        ..Spread::default()
    })
}

/// Whether the volumes of both runs settle.
fn settle(model: &Model, old: &Model) -> bool {
    model.settles && old.settles
}

/// The limits of changes as sentences.
fn limits(settles: bool, basis: &Basis<'_>) -> String {
    let (aged, fresh) = (Alike::aged(settles).percent(), Alike::fresh(settles).percent());
    let (repeated, once) = (Limits::Other.of(Role::Full, 2).percent(), Limits::ONCE.percent());
    let least = LEAST_SHARE * 100.0;
    let of_model = match settles {
        true => format!("of a modelled cost, over {aged}"),
        false => {
            format!("of the modelled cost of an aged volume, over {aged}, and of a fresh copy, over {fresh}")
        }
    };
    let of_slowdown = match basis {
        Basis::Measured => {
            Some("of a measured slowdown, more than chance and more than the noise of both runs".to_owned())
        }
        Basis::Modelled { .. } => Some(format!("of a slowdown, over {}", Alike::slowdowns(settles).percent())),
        // The table has no slowdown.
        Basis::Unknown { .. } => None,
    };
    let of_others = match settles {
        true => format!(
            "of other figures, over {repeated}, or {once} with one repetition, and of a share of adjacent files also at least \
             {least} percentage point"
        ),
        false => format!(
            "of a measured cost, over {repeated}, or {once} with one repetition; of a share of adjacent files, over {fresh}, \
             and at least {least} percentage point"
        ),
    };
    let parts: Vec<String> = [Some(of_model), of_slowdown, Some(of_others)].into_iter().flatten().collect();
    let why = if settles { "" } else { " The volumes do not settle, so two runs of one plan can differ by as much." };
    format!("What counts as a change: {}.{why}", parts.join("; "))
}

/// One repetition has no interval. A cost of settled volumes within this part of the older one is
/// the same.
const SAME: f64 = 0.001;

/// A ratio near 1, or with 1 in its interval, is no change.
fn outcome(ratio: &Spread, more_is_better: bool, limits: Limits, role: Role) -> Outcome {
    let alike = limits.of(role, ratio.count);
    match alike.is_difference(ratio) {
        false if limits.are_of_chance(ratio.count) || ratio.includes_one() || (ratio.median - 1.0).abs() <= SAME => {
            Outcome::Unchanged
        }
        false => Outcome::Small,
        true if (ratio.median > 1.0) == more_is_better => Outcome::Better,
        true => Outcome::Worse,
    }
}

/// Whether a figure is of the state before any step, in a run that has steps.
fn is_before_aging(change: &Change, model: &Model) -> bool {
    change.at == 0 && model.checkpoints.last().is_some_and(|last| *last > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DisturbedCell;
    use crate::noise::Noise;

    fn ratio(median: f64, low: f64, high: f64, count: usize) -> Spread {
        Spread { count, median, low, high, ..Spread::default() }
    }

    #[test]
    fn change_exceeds_chance_and_excludes_one() {
        let outcome = |ratio: &Spread, more_is_better| {
            outcome(ratio, more_is_better, Limits::Modelled { settles: true }, Role::Full)
        };
        assert_eq!(outcome(&ratio(1.2, 1.2, 1.2, 1), false), Outcome::Worse);
        assert_eq!(outcome(&ratio(1.2, 1.2, 1.2, 1), true), Outcome::Better);
        assert_eq!(outcome(&ratio(1.2, 0.9, 1.5, 5), false), Outcome::Unchanged);
        assert_eq!(outcome(&ratio(0.8, 0.7, 0.9, 5), false), Outcome::Better);
        assert_eq!(outcome(&ratio(1.02, 1.01, 1.03, 5), false), Outcome::Small);
        for same in [1.0, 1.0005, 0.9995] {
            assert_eq!(outcome(&ratio(same, same, same, 1), false), Outcome::Unchanged);
        }
        assert_eq!(outcome(&ratio(1.002, 1.002, 1.002, 1), false), Outcome::Small);
    }

    #[test]
    fn difference_beyond_its_spread_is_small_not_unmeasurable() {
        let outcome = |ratio: &Spread| outcome(ratio, false, Limits::Other, Role::Full);
        assert_eq!(outcome(&ratio(1.02, 1.01, 1.03, 5)), Outcome::Small);
        assert_eq!(outcome(&ratio(1.02, 0.99, 1.03, 5)), Outcome::Unchanged);
        assert_eq!(outcome(&ratio(1.24, 0.9, 1.5, 5)), Outcome::Unchanged);
        assert_eq!(outcome(&ratio(1.24, 1.2, 1.3, 5)), Outcome::Worse);
        let outcome_of = |limits, median| super::outcome(&ratio(median, median, median, 1), false, limits, Role::Full);
        for (settles, expected) in [(true, Outcome::Small), (false, Outcome::Unchanged)] {
            assert_eq!(outcome_of(Limits::Modelled { settles }, 1.02), expected);
            assert_eq!(outcome_of(Limits::Slowdown { settles }, 1.02), expected);
        }
        // One repetition has no spread, so the limit is that of two runs.
        assert_eq!(outcome(&ratio(1.07, 1.07, 1.07, 1)), Outcome::Unchanged);
    }

    #[test]
    fn worse_is_at_the_right_for_costs_and_shares() {
        let place = |more_is_better| {
            let svg = mark(&ratio(1.5, 1.5, 1.5, 1), more_is_better);
            svg.split("cx=\"").nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
        };
        assert!(place(false) > 60.0 && place(true) < 60.0);
    }

    #[test]
    fn ratio_of_slowdowns_spans_both_intervals() {
        let found = over_ratio(&ratio(3.0, 2.0, 4.0, 5), &ratio(1.5, 1.0, 2.0, 3)).unwrap();
        assert_eq!((found.median, found.low, found.high, found.count), (2.0, 1.0, 4.0, 3));
        assert!(over_ratio(&ratio(3.0, 2.0, 4.0, 5), &ratio(0.0, 0.0, 0.0, 1)).is_none());
    }

    #[test]
    fn limits_of_models_are_for_modelled_costs_only() {
        let outcome = |limits: Limits, role, median: f64, count| {
            let ratio = ratio(median, median - 0.01, median + 0.01, count);
            outcome(&ratio, false, limits, role) == Outcome::Worse
        };
        let unsettled = Limits::Modelled { settles: false };
        for (limits, role, median, count, is_worse) in [
            (unsettled, Role::Full, 1.2, 5, false),
            (unsettled, Role::Full, 1.3, 5, true),
            (unsettled, Role::Unaged, 1.3, 5, false),
            (unsettled, Role::Unaged, 1.4, 1, true),
            (Limits::Modelled { settles: true }, Role::Unaged, 1.07, 1, true),
            (Limits::Slowdown { settles: false }, Role::Full, 1.6, 1, false),
            (Limits::Slowdown { settles: false }, Role::Full, 1.7, 1, true),
            (Limits::Other, Role::Full, 1.07, 1, false),
            (Limits::Other, Role::Full, 1.12, 1, true),
            (Limits::Other, Role::Full, 1.07, 2, true),
            (Limits::Other, Role::Unaged, 1.02, 5, false),
        ] {
            assert_eq!(outcome(limits, role, median, count), is_worse, "{role:?} {median} {count}");
        }
        let unknown = Basis::Unknown { why: String::new() };
        let of_others = "of other figures, over 5%, or 10% with one repetition, and of a share of adjacent files also at \
                         least 1 percentage point.";
        let start = "What counts as a change: of a modelled cost, over 5%;";
        assert_eq!(limits(true, &unknown), format!("{start} {of_others}"));
        let (none, device) = (Lines::new(), "model: HDD 7.2K");
        let modelled = |settles| Basis::Modelled { device, new: &none, old: &none, is_main: true, settles };
        assert_eq!(limits(true, &modelled(true)), format!("{start} of a slowdown, over 10%; {of_others}"));
        assert_eq!(
            limits(false, &modelled(false)),
            "What counts as a change: of the modelled cost of an aged volume, over 22%, and of a fresh copy, over 33%; of \
                 a slowdown, over 62%; of a measured cost, over 5%, or 10% with one repetition; of a share of adjacent \
                 files, over 33%, and at least 1 percentage point. The volumes do not settle, so two runs of one plan can differ by as much."
        );
    }

    #[test]
    fn disturbed_and_noisy_costs_have_no_verdict() {
        let (results, old) = (Results::default(), Results::default());
        let (mut model, old) = (Model::compute(&results), Model::compute(&old));
        let ratio = ratio(0.7, 0.7, 0.7, 1);
        let (arm, role, kind) = ("xfs".to_owned(), Role::Full, Kind::Cost(None));
        let change = Change { arm, role, kind, at: 400, old: 1.0, new: 0.7, ratio, outcome: Outcome::Better };
        assert!(!is_noisy(&model, &old, &change));
        let key = ("xfs".to_owned(), Role::Full, 400);
        for (disturbed, expected) in [(2, false), (3, true)] {
            let cell = DisturbedCell { disturbed, repetitions: 3, reason: "other work".to_owned() };
            model.disturbed.insert(key.clone(), cell);
            assert_eq!(is_noisy(&model, &old, &change), expected, "{disturbed} of 3");
        }
        model.disturbed.clear();
        for (high, expected) in [(2.9, false), (3.3, true)] {
            model.noise.insert("xfs".to_owned(), Noise { low: 1.0, high, figures: 12 });
            assert_eq!(is_noisy(&model, &old, &change), expected, "fresh copies vary {high}×");
            assert_eq!(is_noisy(&old, &model, &change), expected, "in the earlier run");
        }
    }

    #[test]
    fn few_files_are_no_change_of_the_share() {
        let line = |share: f64| {
            let at_end = [(400, ratio(share, share, share, 1))].into();
            Lines::from([(("xfs".to_owned(), Role::Full), at_end)])
        };
        for (before, now, expected) in [
            (0.001_62, 0.000_646, Outcome::Small),
            (0.30, 0.15, Outcome::Worse),
            (0.30, 0.25, Outcome::Unchanged),
            (0.03, 0.06, Outcome::Better),
        ] {
            let (results, old) = (Results::default(), Results::default());
            let (mut model, mut old) = (Model::compute(&results), Model::compute(&old));
            for (model, share) in [(&mut model, now), (&mut old, before)] {
                model.arms = vec![("xfs".to_owned(), "xfs".to_owned())];
                model.checkpoints = vec![0, 400];
                model.adjacent_files_share = line(share);
            }
            let basis = Basis::Unknown { why: String::new() };
            let judged = JudgedAt::from([("xfs", 400)]);
            let changes = changes((&model, &judged), &old, &basis);
            assert_eq!(changes[0].outcome, expected, "{before} -> {now}");
        }
    }
}
