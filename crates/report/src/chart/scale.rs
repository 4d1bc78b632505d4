//! Axes: ranges, ticks, positions, lines across a drawing.

use std::fmt::Write as _;

use super::Frame;
use crate::format::number;

/// The height of a line of labels, px.
const LINE: f64 = 12.0;

/// A range of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub min: f64,
    pub max: f64,
    pub logarithmic: bool,
}

impl Axis {
    /// From 0 to a round number not below `max`.
    pub(crate) fn from_zero(max: f64) -> Self {
        Self::between(0.0, max)
    }

    /// Round numbers around `min` and `max`.
    pub(crate) fn between(min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        let step = nice_step(max - min, 4);
        // A small tolerance: 0.3 / 0.1 must not round up to 4 steps.
        let min = (min / step + 1e-9).floor() * step;
        let max = (max / step - 1e-9).ceil() * step;
        Self { min, max, logarithmic: false }
    }

    /// Decades, halves and fifths of decades around `min` and `max`, both above 0.
    pub(crate) fn logarithmic(min: f64, max: f64) -> Self {
        let decade = |value: f64| 10f64.powf(value.log10().floor());
        let floor = [5.0, 2.0, 1.0].into_iter().map(|mantissa| mantissa * decade(min)).find(|tick| *tick <= min);
        let ceil = [1.0, 2.0, 5.0, 10.0].into_iter().map(|mantissa| mantissa * decade(max)).find(|tick| *tick >= max);
        let (min, max) = (floor.unwrap_or(min), ceil.unwrap_or(max));
        Self { min, max: if max > min { max } else { min * 10.0 }, logarithmic: true }
    }

    /// The position of a value: 0 at `min`, 1 at `max`.
    pub(crate) fn position(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(self.min).log10() - self.min.log10()) / (self.max.log10() - self.min.log10())
        } else {
            (value - self.min) / (self.max - self.min)
        }
    }

    /// Round values on the axis, few enough to be labelled.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let (low, high) = (self.min.log10().floor() as i32, self.max.log10().ceil() as i32);
            let decades = (self.max / self.min).log10();
            let mantissas: &[f64] = if decades > 3.01 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let ticks = (low..=high).flat_map(|power| mantissas.iter().map(move |m| m * 10f64.powi(power)));
            let mut ticks: Vec<f64> =
                ticks.filter(|tick| *tick >= self.min * 0.999 && *tick <= self.max * 1.001).collect();
            // The ends of an axis of many decades are no powers of ten, but must have labels.
            if ticks.first().is_none_or(|first| *first > self.min * 1.001) {
                ticks.insert(0, self.min);
            }
            if ticks.last().is_none_or(|last| *last < self.max * 0.999) {
                ticks.push(self.max);
            }
            return ticks;
        }
        let step = nice_step(self.max - self.min, 4);
        let first = (self.min / step - 1e-9).ceil() as i64;
        let last = (self.max / step + 1e-9).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }
}

/// A line across for each tick of an axis that goes up, from `left` to `right` px, with its label
/// before it; at `zero`, the line of an axis. `y` returns the distance of a value from the top.
pub(crate) fn draw_heights(
    svg: &mut String,
    axis: &Axis,
    (left, right): (f64, f64),
    zero: Option<f64>,
    y: impl Fn(f64) -> f64,
) {
    draw_named_heights(svg, axis, (left, right), zero, y, number);
}

/// The same with labels of `name`.
pub(crate) fn draw_named_heights(
    svg: &mut String,
    axis: &Axis,
    (left, right): (f64, f64),
    zero: Option<f64>,
    y: impl Fn(f64) -> f64,
    name: fn(f64) -> String,
) {
    let ticks = axis.ticks();
    for tick in labelled(axis, ticks, LINE, &y) {
        let (at, label) = (y(tick), name(tick));
        // Ticks are multiples of a step, so they differ from the end of the axis by rounding.
        let is_zero = zero.is_some_and(|zero| (axis.position(tick) - axis.position(zero)).abs() < 1e-6);
        let class = if is_zero { "axis" } else { "grid" };
        let _ = write!(svg, r#"<line class="{class}" x1="{left}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/>"#);
        let (x, at) = (left - 7.0, at + 4.0);
        let _ = write!(svg, r#"<text class="tick" x="{x}" y="{at:.1}" text-anchor="end">{label}</text>"#);
    }
}

/// The ticks with a label on an axis that goes to the right. A label is `label` px wide. `x`
/// returns the distance of a value from the left.
pub(crate) fn labelled_along(axis: &Axis, label: f64, x: impl Fn(f64) -> f64) -> Vec<f64> {
    let ticks = axis.ticks();
    if axis.logarithmic {
        return labelled(axis, ticks, label, x);
    }
    let length = ticks.first().zip(ticks.last()).map_or(0.0, |(first, last)| x(*last) - x(*first));
    let every = Frame::every(length, ticks.len(), label);
    ticks.into_iter().step_by(every).collect()
}

/// The width of the longest label of an axis with the space after it, px.
pub(crate) fn label_width(axis: &Axis) -> f64 {
    let letters = axis.ticks().into_iter().map(|tick| number(tick).chars().count()).max().unwrap_or(0);
    width_of_letters(letters)
}

/// The width of a label of digits with the space after it, px.
pub(crate) fn width_of_letters(letters: usize) -> f64 {
    const LETTER: f64 = 6.4;
    const SPACE: f64 = 8.0;
    letters as f64 * LETTER + SPACE
}

/// The ticks with a label, at least `apart` px from each other. `y` returns the place of a value.
/// Labels the ends of the axis if their distance allows it. On a logarithmic axis, decades come
/// before the ticks between them.
fn labelled(axis: &Axis, ticks: Vec<f64>, apart: f64, y: impl Fn(f64) -> f64) -> Vec<f64> {
    let parts = ticks.len().saturating_sub(1);
    let nearest = ticks.windows(2).map(|pair| (y(pair[0]) - y(pair[1])).abs()).fold(f64::INFINITY, f64::min);
    let least = (apart / nearest).ceil().max(1.0) as usize;
    if least == 1 || parts == 0 {
        return ticks;
    }
    if !axis.logarithmic {
        let every = (least..=parts).find(|every| parts.is_multiple_of(*every)).unwrap_or(least);
        return ticks.into_iter().step_by(every).collect();
    }
    let is_decade = |tick: &f64| (tick.log10() - tick.log10().round()).abs() < 1e-6;
    let (decades, between): (Vec<f64>, Vec<f64>) = ticks.iter().copied().partition(is_decade);
    let ends = [ticks[0], ticks[parts]];
    let mut kept: Vec<f64> = Vec::new();
    for tick in ends.into_iter().chain(decades).chain(between) {
        if kept.iter().all(|other| (y(*other) - y(tick)).abs() >= apart) {
            kept.push(tick);
        }
    }
    kept.sort_by(f64::total_cmp);
    kept
}

/// A step of 1, 2 or 5 times a power of ten that cuts `range` into about `parts`.
fn nice_step(range: f64, parts: u32) -> f64 {
    let rough = range / f64::from(parts);
    let power = 10f64.powf(rough.log10().floor());
    let mantissa = [1.0, 2.0, 5.0].into_iter().find(|mantissa| mantissa * power >= rough * 0.8).unwrap_or(10.0);
    mantissa * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(Axis::from_zero(9.3).ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let axis = Axis::between(0.71, 1.0);
        assert!(axis.min <= 0.71 && axis.max == 1.0, "{axis:?}");
        assert_eq!(Axis::logarithmic(3.0, 70.0).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let axis = Axis::logarithmic(1.0, 100.0);
        assert!((axis.position(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(Axis::from_zero(0.0).max, 1.0);
    }

    #[test]
    fn ends_of_a_crowded_axis_have_labels() {
        let shown = |axis: Axis, height: f64| {
            let y = |value: f64| height * (1.0 - axis.position(value));
            labelled(&axis, axis.ticks(), LINE, y)
        };
        assert_eq!(shown(Axis::logarithmic(0.1, 17.0), 120.0), [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(shown(Axis::logarithmic(0.1, 17.0), 60.0), [0.1, 1.0, 5.0, 20.0]);
        assert_eq!(shown(Axis::logarithmic(0.1, 150.0), 95.0), [0.1, 1.0, 10.0, 200.0]);
        assert_eq!(shown(Axis::logarithmic(0.1, 150.0), 300.0), [0.1, 1.0, 10.0, 100.0, 200.0]);
        assert_eq!(shown(Axis::from_zero(400.0), 30.0), [0.0, 200.0, 400.0]);
        assert_eq!(shown(Axis::from_zero(9.3), 100.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }

    #[test]
    fn labels_along_a_logarithmic_axis_keep_the_end_and_do_not_overlap() {
        let shown = |axis: Axis, width: f64| labelled_along(&axis, 32.0, |value| width * axis.position(value));
        // 100 and 200 are 0.3 decades apart: 14 px of 160, and 136 px of 1,500.
        assert_eq!(shown(Axis::logarithmic(0.1, 150.0), 160.0), [0.1, 1.0, 10.0, 200.0]);
        assert_eq!(shown(Axis::logarithmic(0.1, 150.0), 1500.0), [0.1, 1.0, 10.0, 100.0, 200.0]);
        assert_eq!(shown(Axis::from_zero(400.0), 100.0), [0.0, 200.0, 400.0]);
    }
}
