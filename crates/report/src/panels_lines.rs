//! Figures of lines over checkpoints: a panel for each arm.

use std::collections::BTreeSet;

use senesce_store::Role;

use crate::chart::{Axis, LinePanel, Point, Series};
use crate::csv::lines_csv;
use crate::model::{Line, Lines, Model, ROLES, Spread, words};
use crate::panels::{Figure, Legend, Panel, Variant};

/// The noise band of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownNoise {
    /// None: these figures have no noise.
    None,
    /// The range of costs of fresh copies.
    Costs,
    /// Ratios that noise alone can show.
    Ratios,
}

pub(crate) struct LineFigure<'m> {
    pub lines: &'m Lines,
    pub y_label: &'static str,
    pub unit: &'static str,
    pub reference: Option<(f64, &'static str)>,
    /// Whether a panel whose arm has one shows its FUSE floor as reference.
    pub with_floor: bool,
    /// The noise band that a panel shows.
    pub noise: ShownNoise,
    pub roles: &'static [Role],
    /// Whether the y axis begins at 0.
    pub from_zero: bool,
    /// The largest value that a figure can have; the axis ends there.
    pub limit: Option<f64>,
    /// The minimum range of the axis, so that small differences look small.
    pub least: Option<(f64, f64)>,
    /// The device of the figures: arms on other devices have no panel. `None` for all arms.
    pub device: Option<&'m str>,
    /// Whether the figures are ratios to a fresh copy. An invalid fresh copy makes them invalid.
    pub is_ratio: bool,
}

impl<'m> LineFigure<'m> {
    /// Lines of all volumes on an axis that begins at 0.
    pub(crate) fn of(lines: &'m Lines, y_label: &'static str, unit: &'static str) -> Self {
        Self {
            lines,
            y_label,
            unit,
            reference: None,
            with_floor: false,
            noise: ShownNoise::None,
            roles: &ROLES,
            from_zero: true,
            limit: None,
            least: None,
            device: None,
            is_ratio: false,
        }
    }

    /// The line of a volume.
    fn series(&self, model: &Model, arm: &str, role: Role) -> Series {
        let mut of_volume = series(model, self.lines, arm, role);
        if self.is_ratio && role != Role::Unaged {
            let fresh = series(model, self.lines, arm, Role::Unaged).invalid.into_iter();
            let is_known = |at: u64| of_volume.invalid.iter().any(|(known, _)| *known == at);
            let fresh: Vec<_> = fresh.filter(|(at, _)| !is_known(*at)).collect();
            of_volume.invalid.extend(fresh.into_iter().map(|(at, why)| (at, format!("fresh copy: {why}"))));
            of_volume.invalid.sort();
        }
        of_volume
    }
}

pub(crate) fn line_figure(
    model: &Model,
    name: &str,
    title: &str,
    figure: &LineFigure,
    variants: &[Variant],
    caption: &str,
) -> Figure {
    let variants = if model.arms.len() < 2 { &variants[..1] } else { variants };
    let draw = |variant: &Variant| (*variant, line_panels(model, title, figure, *variant));
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: format!("{caption}{}", ending(model, &[figure])),
        legend: Legend::Roles(figure.roles.to_vec()),
        csv: lines_csv(&[(figure.y_label, figure.lines)]),
        variants: variants.iter().map(draw).collect(),
    }
}

/// The last sentences of the caption of these drawings: about crosses, and about missing lines.
pub(crate) fn ending(model: &Model, drawings: &[&LineFigure]) -> String {
    let first = |sentence: fn(&Model, &LineFigure) -> &'static str| {
        let mut sentences = drawings.iter().map(|figure| sentence(model, figure));
        sentences.find(|sentence| !sentence.is_empty()).unwrap_or_default()
    };
    format!("{}{}", first(crosses), first(two_points))
}

/// The sentence for a caption if no line joins the points of a volume, because it has only two
/// checkpoints; else empty.
fn two_points(model: &Model, figure: &LineFigure) -> &'static str {
    let (joined, loose): (Vec<Series>, Vec<Series>) = drawn_series(model, figure).partition(Series::is_joined);
    match (loose.iter().any(|series| series.points.len() == 2), joined.is_empty()) {
        (false, _) => "",
        (true, true) => {
            " Each volume has two checkpoints with this figure. No line joins them, because the course between them is not \
             known."
        }
        (true, false) => " No line joins the points of a volume that has only two checkpoints with this figure.",
    }
}

/// The sentence for a caption if the figure has a cross; else empty.
fn crosses(model: &Model, figure: &LineFigure) -> &'static str {
    let has_cross = drawn_series(model, figure).any(|series| !series.invalid.is_empty());
    if has_cross { " A cross on the x axis marks an invalid cell, which has no value." } else { "" }
}

/// All series of the panels of a figure.
pub(crate) fn drawn_series<'f>(model: &'f Model, figure: &'f LineFigure) -> impl Iterator<Item = Series> + 'f {
    arms(model, figure).flat_map(move |arm| figure.roles.iter().map(move |role| figure.series(model, arm, *role)))
}

/// The lines of the arms that have a panel.
pub(crate) fn drawn_lines(model: &Model, figure: &LineFigure) -> Lines {
    let drawn: BTreeSet<&str> = arms(model, figure).collect();
    let is_drawn = |((arm, _), _): &(&(String, Role), &Line)| drawn.contains(arm.as_str());
    figure.lines.iter().filter(is_drawn).map(|(volume, line)| (volume.clone(), line.clone())).collect()
}

/// The arms that have a panel.
fn arms<'f>(model: &'f Model, figure: &'f LineFigure) -> impl Iterator<Item = &'f str> + 'f {
    let has_panel = |arm: &&str| figure.device.is_none_or(|device| model.is_on(arm, device));
    model.arms.iter().map(|(arm, _)| arm.as_str()).filter(has_panel)
}

/// The minimum range of an axis of slowdowns.
pub(crate) const LEAST_SLOWDOWNS: (f64, f64) = (0.5, 2.0);

/// The axis of the checkpoints of all arms.
pub(crate) fn x_axis(model: &Model) -> Axis {
    let ends = |checkpoints: &[u64]| Some((*checkpoints.first()?, *checkpoints.last()?));
    axis_between(ends(&model.checkpoints).unwrap_or((0, 0)))
}

/// The axis of the checkpoints of the plan of an arm.
pub(crate) fn x_axis_of(model: &Model, arm: &str) -> Axis {
    model.plans.ends(arm).map_or_else(|| x_axis(model), axis_between)
}

fn axis_between((first, last): (u64, u64)) -> Axis {
    let max = if last > first { last as f64 } else { first as f64 + 1.0 };
    Axis { min: first as f64, max, logarithmic: false }
}

/// A panel for every arm; none without data.
pub(crate) fn line_panels(model: &Model, title: &str, figure: &LineFigure, variant: Variant) -> Vec<Panel> {
    let named = |(arm, panel): (String, LinePanel)| Panel::new(format!("{title}, {arm}"), panel);
    arm_panels(model, figure, variant).into_iter().map(named).collect()
}

/// The drawing of every arm, with its name; none without data.
pub(crate) fn arm_panels(model: &Model, figure: &LineFigure, variant: Variant) -> Vec<(String, LinePanel)> {
    if figure.lines.is_empty() {
        return Vec::new();
    }
    let shared = y_axis(figure, figure.lines.values().flat_map(|line| line.values()), variant);
    let panel = |arm: &str| {
        let of_arm = figure.lines.iter().filter(|((name, _), _)| name == arm).flat_map(|(_, line)| line.values());
        let y = if variant == Variant::Own { y_axis(figure, of_arm, variant) } else { shared };
        let series = figure.roles.iter().map(|role| figure.series(model, arm, *role));
        // A value of 0 has no place on a logarithmic axis, so such an axis is linear.
        let y_label = if y.logarithmic { figure.y_label } else { figure.y_label.trim_end_matches(", logarithmic") };
        let panel = LinePanel {
            title: arm.to_owned(),
            x_unit: model.unit.clone(),
            x_label: model.x_title.clone(),
            y_label,
            unit: figure.unit,
            series: series.filter(|series| !series.points.is_empty() || !series.invalid.is_empty()).collect(),
            x: x_axis_of(model, arm),
            y,
            has_own_x: model.plans.differ(),
            reference: figure.reference.or_else(|| {
                let floor = model.floor_of(arm).filter(|_| figure.with_floor);
                floor.map(|floor| (floor, "FUSE floor"))
            }),
            noise: model.noise.get(arm).and_then(|noise| match figure.noise {
                ShownNoise::None => None,
                ShownNoise::Costs => Some((noise.low, noise.high)),
                ShownNoise::Ratios => Some(noise.ratios()),
            }),
        };
        (arm.to_owned(), panel)
    };
    let panels: Vec<(String, LinePanel)> = arms(model, figure).map(panel).collect();
    // Panels without a point say nothing, so the figure has no title either.
    let has_point = panels.iter().flat_map(|(_, panel)| &panel.series).any(|series| !series.points.is_empty());
    if has_point { panels } else { Vec::new() }
}

pub(crate) fn y_axis<'s>(figure: &LineFigure, spreads: impl Iterator<Item = &'s Spread>, variant: Variant) -> Axis {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut least_median = f64::INFINITY;
    for spread in spreads {
        least_median = least_median.min(spread.median);
        // Outliers are among the extremes only if they are shown.
        let shown = || [spread.low, spread.high].into_iter().chain(spread.outliers.iter().copied());
        min = shown().fold(min, f64::min);
        max = shown().fold(max, f64::max);
    }
    if let Some((value, _)) = figure.reference {
        (min, max) = (min.min(value), max.max(value));
    }
    if !min.is_finite() {
        (min, max) = (0.0, 1.0);
    }
    if let Some((low, high)) = figure.least {
        (min, max) = (min.min(low), max.max(high));
    }
    if variant == Variant::Logarithmic && min > 0.0 {
        return above_the_edge(Axis::logarithmic(min, max), least_median);
    }
    if figure.from_zero {
        return Axis::from_zero(max);
    }
    match figure.limit {
        // Space below, so that noise of a flat line at the limit does not fill the panel.
        Some(limit) => Axis::between(min.min(limit / 2.0), limit.max(max)),
        None => Axis::between(min.min(1.0), max.max(min + 0.05)),
    }
}

/// Starts a logarithmic axis lower if the smallest median is near its lower end, where a reader
/// overlooks it. A long axis starts a decade lower, a short one at the next round number.
fn above_the_edge(axis: Axis, least_median: f64) -> Axis {
    const NEAR: f64 = 0.1;
    const MANY: f64 = 100.0;
    match axis.position(least_median) < NEAR {
        true if axis.max / axis.min >= MANY => Axis::logarithmic(axis.min / 10.0, axis.max),
        true => Axis::logarithmic(axis.min * 0.99, axis.max),
        false => axis,
    }
}

pub(crate) fn series(model: &Model, lines: &Lines, arm: &str, role: Role) -> Series {
    let points = lines.get(&(arm.to_owned(), role)).into_iter().flatten();
    let points = points.map(|(pulls, spread)| Point { pulls: *pulls, spread: spread.clone() });
    let invalid = model.invalid.iter().filter(|((of, volume, _), _)| of == arm && *volume == role);
    Series {
        role,
        name: words(role).to_owned(),
        label: words(role).to_owned(),
        colour: role.name().to_owned(),
        points: points.collect(),
        invalid: invalid.map(|((_, _, at), why)| (*at, why.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_do_not_fill_an_axis() {
        let lines = Lines::new();
        let spread = |low, high| Spread { count: 1, median: low, low, high, ..Spread::default() };
        let axis = |figure: &LineFigure, spread: Spread| {
            let axis = y_axis(figure, [spread].iter(), Variant::Shared);
            (axis.min, axis.max)
        };
        let slowdown = LineFigure { least: Some(LEAST_SLOWDOWNS), ..LineFigure::of(&lines, "times", "×") };
        assert_eq!(axis(&slowdown, spread(0.93, 0.97)), (0.0, 2.0));
        assert_eq!(axis(&slowdown, spread(0.93, 7.6)), (0.0, 8.0));
        let score = LineFigure { from_zero: false, limit: Some(1.0), ..LineFigure::of(&lines, "score", "") };
        assert_eq!(axis(&score, spread(0.96, 1.0)), (0.5, 1.0));
    }

    #[test]
    fn low_medians_are_above_the_edge_of_a_logarithmic_axis() {
        let lines = Lines::new();
        let figure = LineFigure::of(&lines, "time per step, logarithmic", " s");
        let axis = |median, low, high| {
            let spread = Spread { count: 5, median, low, high, ..Spread::default() };
            let axis = y_axis(&figure, [spread].iter(), Variant::Logarithmic);
            (axis.min, axis.max)
        };
        assert_eq!(axis(0.001, 0.001, 2.0), (1e-4, 2.0));
        assert_eq!(axis(0.02, 0.001, 2.0), (1e-3, 2.0), "only an outlier is at the edge");
        assert_eq!(axis(20.0, 20.0, 50.0), (10.0, 50.0), "few decades");
    }
}
