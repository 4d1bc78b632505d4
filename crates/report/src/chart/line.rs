//! A panel of lines over checkpoints: one line per volume, each with its own dash and marker; its
//! colour is the volume's, or its file system's where a panel holds several.

mod beside;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use senesce_store::Role;

use self::beside::beside;
use super::{Axis, Draw, Frame, draw_named_heights};
use crate::format::{count, escape, number, round_seconds, seconds};
use crate::spread::Spread;

const LEFT: f64 = 48.0;
const RIGHT: f64 = 80.0;
/// The same without names at the ends of lines.
const RIGHT_BARE: f64 = 12.0;
/// Pixels that a label of the x axis needs.
const TICK_WIDTH: f64 = 36.0;
/// The most repetitions that are drawn one by one.
const SAMPLES: usize = 30;
/// The least distance between labels at the ends of lines, px.
const LABEL_STEP: f64 = 14.0;
/// The width of the word `invalid`, px.
const WORD: f64 = 36.0;
/// From the cross of an invalid cell to this word, px.
const BESIDE: f64 = 7.0;
/// Between the crosses of two volumes, px.
const CROSS_STEP: f64 = 8.0;
/// Between two such marks, px.
const MARK_STEP: f64 = 5.0;
/// The largest distance of a label from its point without a line between them, px.
const NEAR: f64 = 5.0;
/// From the end of the x axis to the last mark, at most, px.
const BEYOND: f64 = 5.0;
/// Longer names have small letters.
const LETTERS: usize = 11;

/// One figure on a line.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub pulls: u64,
    pub spread: Spread,
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub role: Role,
    /// Its name in tooltips.
    pub name: String,
    /// Its name at the end of the line.
    pub label: String,
    /// The class that has its colour.
    pub colour: String,
    pub points: Vec<Point>,
    /// Checkpoints whose cell is invalid, and why.
    pub invalid: Vec<(u64, String)>,
}

impl Series {
    /// Whether lines join neighbouring points. A line between the only two checkpoints would
    /// suggest a course that is not known.
    pub(crate) fn is_joined(&self) -> bool {
        self.points.len() + self.invalid.len() > 2
    }

    /// The point of a checkpoint.
    fn at(&self, pulls: u64) -> Option<&Point> {
        self.points.binary_search_by_key(&pulls, |point| point.pulls).ok().map(|at| &self.points[at])
    }

    /// The last checkpoint, valid or not.
    fn last_checkpoint(&self) -> Option<u64> {
        let points = self.points.iter().map(|point| point.pulls);
        points.chain(self.invalid.iter().map(|(pulls, _)| *pulls)).max()
    }
}

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct LinePanel {
    pub title: String,
    /// The unit of checkpoints, in tooltips.
    pub x_unit: String,
    /// The title of the x axis.
    pub x_label: String,
    pub y_label: &'static str,
    /// The unit after values in tooltips.
    pub unit: &'static str,
    pub series: Vec<Series>,
    pub x: Axis,
    pub y: Axis,
    /// Whether other panels of the figure can have other x axes.
    pub has_own_x: bool,
    /// A reference value for the lines, with its name.
    pub reference: Option<(f64, &'static str)>,
    /// The range of values that noise alone can cause.
    pub noise: Option<(f64, f64)>,
}

impl Draw for LinePanel {
    fn draw(&self, frame: &Frame) -> String {
        Place::of(self, frame).draw()
    }

    fn shares_titles(&self) -> (bool, bool) {
        (!self.has_own_x, true)
    }

    fn reference(&self) -> Option<&'static str> {
        self.reference.map(|(_, name)| name)
    }
}

/// A panel in its area.
struct Place<'p> {
    panel: &'p LinePanel,
    frame: &'p Frame,
    /// The smallest distance between two checkpoints, px.
    least_gap: f64,
}

impl std::ops::Deref for Place<'_> {
    type Target = LinePanel;

    fn deref(&self) -> &LinePanel {
        self.panel
    }
}

impl<'p> Place<'p> {
    fn of(panel: &'p LinePanel, frame: &'p Frame) -> Self {
        let points = panel.series.iter().flat_map(|series| &series.points);
        let mut checkpoints: Vec<u64> = points.map(|point| point.pulls).collect();
        checkpoints.sort_unstable();
        checkpoints.dedup();
        let mut place = Self { panel, frame, least_gap: f64::INFINITY };
        let gap = |pair: &[u64]| place.x(pair[1]) - place.x(pair[0]);
        place.least_gap = checkpoints.windows(2).map(gap).fold(f64::INFINITY, f64::min);
        place
    }

    fn draw(&self) -> String {
        let mut svg = String::new();
        self.frame.draw_title(&mut svg, &self.title);
        self.frame.draw_y_label(&mut svg, self.y_label);
        self.draw_noise(&mut svg);
        self.draw_axes(&mut svg);
        if self.series.iter().all(|series| series.points.is_empty()) {
            let (x, y) = ((LEFT + self.right()) / 2.0, (self.frame.top() + self.frame.base()) / 2.0);
            let _ =
                write!(svg, r#"<text class="no-data" x="{x:.1}" y="{y:.1}" text-anchor="middle">no valid data</text>"#);
        }
        for series in &self.series {
            self.draw_series(&mut svg, series);
        }
        self.draw_invalid(&mut svg);
        // Names that would cover each other help no reader; the legend has them.
        let names = self.series.len() + usize::from(self.reference.is_some());
        if self.frame.has_end_labels && (names as f64 - 1.0) * LABEL_STEP <= self.frame.plot {
            self.draw_end_labels(&mut svg);
        }
        self.draw_columns(&mut svg);
        svg
    }

    /// The right end of the x axis.
    fn right(&self) -> f64 {
        self.frame.width - if self.frame.has_end_labels { RIGHT } else { RIGHT_BARE }
    }

    fn x(&self, pulls: u64) -> f64 {
        LEFT + self.panel.x.position(pulls as f64) * (self.right() - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        self.frame.base() - self.panel.y.position(value) * self.frame.plot
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, base) = (self.right(), self.frame.base());
        // A duration has its unit in its text, because it may be milliseconds.
        let name = if self.unit == " s" { round_seconds } else { number };
        draw_named_heights(svg, &self.panel.y, (LEFT, right), None, |tick| self.y(tick), name);
        let _ = write!(svg, r#"<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>"#);
        let ticks = self.panel.x.ticks();
        let every = Frame::every(right - LEFT, ticks.len(), TICK_WIDTH);
        for (at, tick) in ticks.into_iter().enumerate() {
            let x = LEFT + self.panel.x.position(tick) * (right - LEFT);
            let _ = write!(svg, r#"<line class="axis" x1="{x:.1}" x2="{x:.1}" y1="{base}" y2="{}"/>"#, base + 4.0);
            if self.frame.has_x_axis && at % every == 0 {
                let (label, y) = (number(tick), base + 17.0);
                let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
            }
        }
        self.frame.draw_x_label(svg, (LEFT, right), &self.x_label);
        if let Some((value, _)) = self.reference {
            let y = self.y(value);
            let _ = write!(svg, r#"<line class="reference" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#);
        }
    }

    /// Draws the part of the noise band that is within the axis, below everything else.
    fn draw_noise(&self, svg: &mut String) {
        let Some((low, high)) = self.noise else { return };
        let (top, base) = (self.y(high).max(self.frame.top()), self.y(low).min(self.frame.base()));
        let (width, height) = (self.right() - LEFT, base - top);
        if height > 0.0 {
            let _ =
                write!(svg, r#"<rect class="noise" x="{LEFT}" y="{top:.1}" width="{width:.1}" height="{height:.1}"/>"#);
        }
    }

    fn draw_series(&self, svg: &mut String, series: &Series) {
        let (role, colour) = (series.role.name(), series.colour.as_str());
        let classes = if role == colour { role.to_owned() } else { format!("{role} {colour}") };
        let _ = write!(svg, r#"<g class="series {classes}" data-role="{role}">"#);
        // A line breaks at an invalid cell: its value is unknown.
        let mut stretches: Vec<Vec<&Point>> = vec![Vec::new()];
        for point in &series.points {
            let before = stretches.last().and_then(|stretch| stretch.last()).map(|point| point.pulls);
            let gap = |at: &u64| before.is_some_and(|before| before < *at) && *at < point.pulls;
            if series.invalid.iter().any(|(at, _)| gap(at)) {
                stretches.push(Vec::new());
            }
            stretches.last_mut().expect("there is always one stretch").push(point);
        }
        for stretch in stretches.iter().filter(|stretch| series.is_joined() && stretch.len() > 1) {
            let place = |point: &&Point| format!("{:.1},{:.1}", self.x_of(series, point), self.y(point.spread.median));
            let path: Vec<_> = stretch.iter().map(place).collect();
            let _ = write!(svg, r#"<polyline class="line" points="{}"/>"#, path.join(" "));
        }
        for point in &series.points {
            let (x, y) = (self.x_of(series, point), self.y(point.spread.median));
            if point.spread.count > 1 {
                let (low, high) = (self.y(point.spread.low), self.y(point.spread.high));
                let _ = write!(svg, r#"<line class="whisker" x1="{x:.1}" x2="{x:.1}" y1="{low:.1}" y2="{high:.1}"/>"#);
            }
            // Each repetition is a dot. Each volume has a column of them. Outliers have rings.
            if has_samples(&point.spread) {
                let x = x + match series.role {
                    Role::Full | Role::CuredFull => -4.5,
                    Role::Empty | Role::CuredEmpty => 0.0,
                    Role::Unaged => 4.5,
                };
                for value in point.spread.values.iter().filter(|value| !point.spread.outliers.contains(value)) {
                    let _ = write!(svg, r#"<circle class="sample" cx="{x:.1}" cy="{:.1}" r="1.3"/>"#, self.y(*value));
                }
            }
            for outlier in &point.spread.outliers {
                let _ = write!(svg, r#"<circle class="outlier" cx="{x:.1}" cy="{:.1}" r="2"/>"#, self.y(*outlier));
            }
            svg.push_str(&arm_marker(&series.colour, x, y).unwrap_or_else(|| marker(series.role, x, y)));
        }
        for (pulls, _) in &series.invalid {
            let (x, y) = (self.cross_x(series.role, *pulls), self.frame.base());
            let (left, right, top, bottom) = (x - 3.0, x + 3.0, y - 3.0, y + 3.0);
            let _ = write!(
                svg,
                r#"<path class="cross" d="M{left:.1},{top:.1}L{right:.1},{bottom:.1}M{left:.1},{bottom:.1}L{right:.1},{top:.1}"/>"#
            );
        }
        svg.push_str("</g>");
    }

    /// Draws `invalid` beside the crosses of a checkpoint, on the side that has space.
    fn draw_invalid(&self, svg: &mut String) {
        let mut ends: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for (pulls, x) in self
            .series
            .iter()
            .flat_map(|series| series.invalid.iter().map(|(pulls, _)| (*pulls, self.cross_x(series.role, *pulls))))
        {
            let ends = ends.entry(pulls).or_insert((x, x));
            *ends = (ends.0.min(x), ends.1.max(x));
        }
        for (left, right) in ends.into_values() {
            let (x, anchor) = match right + BESIDE + WORD > self.right() {
                true => (left - BESIDE, "end"),
                false => (right + BESIDE, "start"),
            };
            let y = self.frame.base() - 4.0 - self.low_curves((left - WORD - BESIDE, right + WORD + BESIDE));
            let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">invalid</text>"#);
        }
    }

    /// Top and bottom of the marks of a point: median, interval and outliers.
    fn ends(&self, spread: &Spread) -> (f64, f64) {
        let drawn = || [spread.low, spread.high, spread.median].into_iter().chain(spread.outliers.iter().copied());
        let heights = || drawn().map(|value| self.y(value));
        (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The height of the curves just above the x axis between two places, px. A word is drawn above
    /// them.
    fn low_curves(&self, (left, right): (f64, f64)) -> f64 {
        const WORD_HEIGHT: f64 = 14.0;
        let (mut height, base): (f64, f64) = (0.0, self.frame.base());
        for pair in self.series.iter().flat_map(|series| series.points.windows(2)) {
            let ((from, to), [a, b]) = ((self.x(pair[0].pulls), self.x(pair[1].pulls)), [&pair[0], &pair[1]]);
            let heights = [a, b].map(|point| base - self.y(point.spread.median));
            if from <= right && to >= left && heights.iter().any(|height| *height < WORD_HEIGHT) {
                height = heights.into_iter().filter(|height| *height < WORD_HEIGHT).fold(height, f64::max);
            }
        }
        height
    }

    /// The x place of the cross of an invalid cell. Its y place is the x axis, because it has no
    /// value. Crosses of several volumes are beside each other.
    fn cross_x(&self, role: Role, pulls: u64) -> f64 {
        let is_invalid = |series: &&Series| series.invalid.iter().any(|(at, _)| *at == pulls);
        let roles: Vec<Role> = self.series.iter().filter(is_invalid).map(|series| series.role).collect();
        let at = roles.iter().position(|other| *other == role).unwrap_or(0);
        self.x(pulls) + (at as f64 - (roles.len() as f64 - 1.0) / 2.0) * CROSS_STEP
    }

    /// The x place of a point. Points of several series that would cover each other are beside each
    /// other.
    fn x_of(&self, series: &Series, point: &Point) -> f64 {
        let with_point = self.series.iter().filter_map(|other| Some((other, other.at(point.pulls)?)));
        let (all, ends): (Vec<&Series>, Vec<(f64, f64)>) =
            with_point.map(|(other, point)| (other, self.ends(&point.spread))).unzip();
        let own = all.iter().position(|other| std::ptr::eq(*other, series)).unwrap_or(0);
        let (at, count) = beside(&ends, own);
        let step = MARK_STEP.min(self.least_gap / (count as f64 + 1.0));
        let (x, width) = (self.x(point.pulls), (count as f64 - 1.0) * step);
        // Left of the axis are the numbers of its ticks, right of it are the names of the lines.
        (x - width / 2.0).min(self.right() + BEYOND - width).max(LEFT) + at as f64 * step
    }

    fn draw_end_labels(&self, svg: &mut String) {
        let mut labels: Vec<(f64, String, String)> = Vec::new();
        let end = self.series.iter().filter_map(Series::last_checkpoint).max();
        for series in &self.series {
            // A curve that does not reach the end of the others has no name there.
            if let Some(last) = series.points.last().filter(|last| Some(last.pulls) == end) {
                let small = if series.label.chars().count() > LETTERS { "small-label " } else { "" };
                let class = format!(r#"class="end-label {small}{}" data-role="{}""#, series.colour, series.role.name());
                labels.push((self.y(last.spread.median), shortened(&series.label), class));
            }
        }
        if let Some((value, name)) = self.reference {
            labels.push((self.y(value), name.to_owned(), r#"class="end-label reference-label""#.to_owned()));
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Two lines of an arm that are near each other share its name, so that names stay near.
        labels.dedup_by(|later, kept| {
            let is_one = later.1 == kept.1 && later.0 - kept.0 < LABEL_STEP;
            if is_one {
                kept.2 = kept.2.split(" data-role").next().unwrap_or_default().to_owned();
            }
            is_one
        });
        let places =
            spread_out(&labels.iter().map(|label| label.0).collect::<Vec<_>>(), self.frame.top(), self.frame.base());
        for ((wanted, text, class), y) in labels.iter().zip(places) {
            let x = self.right() + 9.0;
            if (y - wanted).abs() > NEAR {
                let (from, to) = (self.right() + 3.0, x - 1.5);
                let _ = write!(svg, r#"<line class="axis" x1="{from}" x2="{to}" y1="{wanted:.1}" y2="{y:.1}"/>"#);
            }
            let _ = write!(svg, r#"<text {class} x="{x}" y="{:.1}">{}</text>"#, y + 4.0, escape(text));
        }
    }

    /// One invisible column per checkpoint, which carries the text of a tooltip.
    fn draw_columns(&self, svg: &mut String) {
        let mut checkpoints: Vec<u64> = Vec::new();
        for series in &self.series {
            checkpoints.extend(series.points.iter().map(|point| point.pulls));
            checkpoints.extend(series.invalid.iter().map(|(pulls, _)| *pulls));
        }
        checkpoints.sort_unstable();
        checkpoints.dedup();
        for (at, pulls) in checkpoints.iter().enumerate() {
            let middle = |other: &u64| (self.x(*pulls) + self.x(*other)) / 2.0;
            let left = if at == 0 { LEFT - 8.0 } else { middle(&checkpoints[at - 1]) };
            let right = checkpoints.get(at + 1).map_or(self.right() + 8.0, middle);
            let lines: Vec<_> = self.series.iter().filter_map(|series| self.tooltip_line(series, *pulls)).collect();
            let tip = format!("{} {}\n{}", count(*pulls), self.x_unit, lines.join("\n"));
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{}" width="{:.1}" height="{:.1}" data-x="{:.1}" data-tip="{}"/>"#,
                self.frame.top(),
                right - left,
                self.frame.plot,
                self.x(*pulls),
                escape(&tip)
            );
        }
    }

    /// Class, name and value, separated by tabs.
    fn tooltip_line(&self, series: &Series, pulls: u64) -> Option<String> {
        let (colour, name) = (&series.colour, &series.name);
        if let Some((_, reason)) = series.invalid.iter().find(|(at, _)| *at == pulls) {
            return Some(format!("{colour}\t{name}\tinvalid: {}", reason.replace(['\t', '\n'], " ")));
        }
        let point = series.points.iter().find(|point| point.pulls == pulls)?;
        // A duration has its unit in its text, for it may be milliseconds.
        let (unit, text): (_, fn(f64) -> String) = if self.unit == " s" { ("", seconds) } else { (self.unit, number) };
        let spread = &point.spread;
        let outliers: Vec<_> = spread.outliers.iter().map(|outlier| text(*outlier)).collect();
        let outliers = if outliers.is_empty() { String::new() } else { format!("; outliers {}", outliers.join(", ")) };
        let interval = match spread.count {
            0 | 1 => String::new(),
            n => format!(" (95% {} to {}, n = {n}{outliers})", text(spread.low), text(spread.high)),
        };
        Some(format!("{colour}\t{name}\t{}{unit}{interval}", text(spread.median)))
    }
}

/// Whether the repetitions of a point are drawn one by one.
pub(crate) fn has_samples(spread: &Spread) -> bool {
    (2..=SAMPLES).contains(&spread.values.len())
}

/// A name that fits after the end of its line, in small letters if it is long.
fn shortened(name: &str) -> String {
    const FITS: usize = 14;
    match name.chars().count() {
        0..=FITS => name.to_owned(),
        _ => name.chars().take(FITS - 1).chain(['…']).collect(),
    }
}

/// The mark of a volume at a place.
pub(crate) fn marker(role: Role, x: f64, y: f64) -> String {
    let circle = |radius: f64| format!(r#"<circle class="marker" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#);
    let square = |side: f64| {
        let (left, top) = (x - side / 2.0, y - side / 2.0);
        format!(r#"<rect class="marker" x="{left:.1}" y="{top:.1}" width="{side}" height="{side}"/>"#)
    };
    match role {
        Role::Full => circle(3.0),
        Role::CuredFull => circle(3.4),
        Role::Empty => square(5.6),
        Role::CuredEmpty => square(6.4),
        Role::Unaged => {
            let (left, right, top, bottom) = (x - 3.6, x + 3.6, y - 3.6, y + 3.6);
            format!(
                r#"<path class="marker" d="M{x:.1},{top:.1}L{right:.1},{y:.1}L{x:.1},{bottom:.1}L{left:.1},{y:.1}Z"/>"#
            )
        }
    }
}

/// The mark of an arm's points by the class of its colour, so that arms differ in grey, too; `None`
/// for other classes.
pub(crate) fn arm_marker(class: &str, x: f64, y: f64) -> Option<String> {
    const SHAPES: [&[(f64, f64)]; 6] = [
        &[(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)],
        &[(0.0, -3.6), (3.6, 2.8), (-3.6, 2.8)],
        &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)],
        &[(0.0, 3.6), (3.6, -2.8), (-3.6, -2.8)],
        &[(-1.2, -4.0), (1.2, -4.0), (1.2, 4.0), (-1.2, 4.0)],
        &[(-4.0, -1.2), (4.0, -1.2), (4.0, 1.2), (-4.0, 1.2)],
    ];
    let at: usize = class.strip_prefix("arm-")?.parse().ok()?;
    let corner = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx, y + dy);
    let corners: Vec<String> = SHAPES.get(at)?.iter().map(corner).collect();
    Some(format!(r#"<path class="marker" d="M{}Z"/>"#, corners.join("L")))
}

/// Moves sorted positions apart so that they are [`LABEL_STEP`] from each other, between `top` and
/// `bottom`.
pub(super) fn spread_out(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LABEL_STEP);
    }
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(limit).max(top);
        limit = *place - LABEL_STEP;
    }
    places
}

#[cfg(test)]
mod tests;
