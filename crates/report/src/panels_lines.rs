//! Figures of lines over checkpoints: a panel for each arm.

use senesce_store::Role;

use crate::chart::{Axis, LinePanel, Point, Series};
use crate::csv::lines_csv;
use crate::model::{Lines, Model, ROLES, Spread, words};
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
        }
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
        caption: format!("{caption}{}", two_points(figure.lines)),
        legend: Legend::Roles(figure.roles.to_vec()),
        csv: lines_csv(&[(figure.y_label, figure.lines)]),
        variants: variants.iter().map(draw).collect(),
    }
}

/// The sentence for a caption if no line joins the points of a figure, because each volume has only
/// two; else empty.
pub(crate) fn two_points(lines: &Lines) -> &'static str {
    let is_short = lines.values().all(|line| line.len() <= 2) && lines.values().any(|line| line.len() == 2);
    match is_short {
        true => {
            " Each volume has two checkpoints with this figure. No line joins them, because the course between them is not \
             known."
        }
        false => "",
    }
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
    let panel = |(arm, _): &(String, String)| {
        let of_arm = figure.lines.iter().filter(|((name, _), _)| name == arm).flat_map(|(_, line)| line.values());
        let y = if variant == Variant::Own { y_axis(figure, of_arm, variant) } else { shared };
        let series = figure.roles.iter().map(|role| series(model, figure.lines, arm, *role));
        // A value of 0 has no place on a logarithmic axis, so such an axis is linear.
        let y_label = if y.logarithmic { figure.y_label } else { figure.y_label.trim_end_matches(", logarithmic") };
        let panel = LinePanel {
            title: arm.clone(),
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
        (arm.clone(), panel)
    };
    let has_panel = |(arm, _): &&(String, String)| figure.device.is_none_or(|device| model.is_on(arm, device));
    model.arms.iter().filter(has_panel).map(panel).collect()
}

pub(crate) fn y_axis<'s>(figure: &LineFigure, spreads: impl Iterator<Item = &'s Spread>, variant: Variant) -> Axis {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for spread in spreads {
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
        return Axis::logarithmic(min, max);
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
}
