//! A panel of numbers over numbers: one line for each name, explained by a legend outside.

use std::fmt::Write as _;

use super::{Axis, Frame, PANEL_HEIGHT, PANEL_WIDTH, draw_heights, label_width, labelled_along};
use crate::format::{escape, number};

const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 40.0;
/// Values that differ by less than this factor have a linear axis.
const NARROW: f64 = 3.5;
/// Points that are closer than this part of the x axis share a tooltip.
const SAME: f64 = 0.012;

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct PlotLine {
    /// The class of its colour and dash: `curve-1`.
    pub class: String,
    pub name: String,
    /// Whether another line covers it at the same points. It is then drawn wider.
    pub is_under: bool,
    /// x, y, and whether the value is less certain than the others; from left to right.
    pub points: Vec<(f64, f64, bool)>,
}

/// The panel.
#[derive(Clone, Debug)]
pub(crate) struct PlotPanel {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// The least and the largest x value of all panels that share the x axis; none of its own axis.
    pub x_ends: Option<(f64, f64)>,
    pub is_logarithmic: bool,
    /// The text that a tooltip adds to a less certain value.
    pub mark: &'static str,
    pub lines: Vec<PlotLine>,
}

impl PlotPanel {
    /// The panel's elements, for an area of [`PANEL_WIDTH`] by [`PANEL_HEIGHT`].
    pub(crate) fn draw(&self) -> String {
        let mut svg = String::new();
        Frame::PAGE.draw_title(&mut svg, &self.title);
        let place = Place::of(self);
        let is_logarithmic = place.as_ref().map_or(self.is_logarithmic, |place| place.y.logarithmic);
        let scale = if is_logarithmic { ", logarithmic" } else { "" };
        Frame::PAGE.draw_y_label(&mut svg, &format!("{}{scale}", self.y_label));
        let Some(place) = place else {
            let (x, y) = (PANEL_WIDTH / 2.0, PANEL_HEIGHT / 2.0);
            let _ = write!(svg, r#"<text class="no-data" x="{x}" y="{y}" text-anchor="middle">no data</text>"#);
            return svg;
        };
        place.draw_axes(&mut svg);
        for line in &self.lines {
            place.draw_line(&mut svg, line);
        }
        place.draw_columns(&mut svg);
        svg
    }
}

/// The panel with its axes.
struct Place<'p> {
    panel: &'p PlotPanel,
    x: Axis,
    y: Axis,
}

impl<'p> Place<'p> {
    /// None without values.
    fn of(panel: &'p PlotPanel) -> Option<Self> {
        let points = || panel.lines.iter().flat_map(|line| &line.points);
        points().next()?;
        let span = |of: fn(&(f64, f64, bool)) -> f64| {
            points().map(of).fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
        };
        let (own, (low, high)) = (span(|point| point.0), span(|point| point.1));
        let (left, right) = panel.x_ends.unwrap_or(own);
        // A logarithmic axis of a narrow range would have only two ticks.
        let is_wide = low > 0.0 && high >= NARROW * low;
        let y = if panel.is_logarithmic && is_wide { Axis::logarithmic(low, high) } else { Axis::from_zero(high) };
        // An axis whose least value is near 0 starts at 0.
        let x = if left < 0.3 * right { Axis::from_zero(right) } else { Axis::between(left, right) };
        Some(Self { panel, x, y })
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.position(value) * (PANEL_WIDTH - RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        PANEL_HEIGHT - BOTTOM - self.y.position(value) * (PANEL_HEIGHT - BOTTOM - TOP)
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, base) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
        draw_heights(svg, &self.y, (LEFT, right), None, |tick| self.y(tick));
        let _ = write!(svg, r#"<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>"#);
        for tick in self.x.ticks() {
            let x = self.x(tick);
            let _ = write!(svg, r#"<line class="axis" x1="{x:.1}" x2="{x:.1}" y1="{base}" y2="{}"/>"#, base + 4.0);
        }
        for tick in labelled_along(&self.x, label_width(&self.x), |value| self.x(value)) {
            let (x, y, label) = (self.x(tick), base + 17.0, number(tick));
            let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
        }
        Frame::PAGE.draw_x_label(svg, (LEFT, right), &self.panel.x_label);
    }

    fn draw_line(&self, svg: &mut String, line: &PlotLine) {
        let under = if line.is_under { " under" } else { "" };
        let _ = write!(svg, r#"<g class="series {}{under}">"#, line.class);
        if line.points.len() > 1 {
            let place = |(x, y, _): &(f64, f64, bool)| format!("{:.1},{:.1}", self.x(*x), self.y(*y));
            let path: Vec<String> = line.points.iter().map(place).collect();
            let _ = write!(svg, r#"<polyline class="line" points="{}"/>"#, path.join(" "));
        }
        for (x, y, is_less) in &line.points {
            let class = if *is_less { "dot less" } else { "dot" };
            let (x, y) = (self.x(*x), self.y(*y));
            let _ = write!(svg, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="2.4"/>"#);
        }
        svg.push_str("</g>");
    }

    /// An invisible column for each x value, which carries the text of a tooltip.
    fn draw_columns(&self, svg: &mut String) {
        let mut places: Vec<f64> =
            self.panel.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        places.sort_by(f64::total_cmp);
        let near = |one: f64, other: f64| (self.x.position(one) - self.x.position(other)).abs() < SAME;
        places.dedup_by(|later, earlier| near(*later, *earlier));
        for (at, &place) in places.iter().enumerate() {
            let middle = |other: &f64| (self.x(place) + self.x(*other)) / 2.0;
            let left = if at == 0 { LEFT - 6.0 } else { middle(&places[at - 1]) };
            let right = places.get(at + 1).map_or(PANEL_WIDTH - RIGHT + 6.0, middle);
            let text: Vec<String> = self.panel.lines.iter().filter_map(|line| self.tell(line, place, near)).collect();
            let tip = format!("{} {}\n{}", number(place), self.panel.x_label, text.join("\n"));
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{TOP}" width="{:.1}" height="{:.1}" data-x="{:.1}" data-tip="{}"/>"#,
                right - left,
                PANEL_HEIGHT - TOP - BOTTOM,
                self.x(place),
                escape(&tip)
            );
        }
    }

    /// Class, name and value, separated by tabs.
    fn tell(&self, line: &PlotLine, place: f64, near: impl Fn(f64, f64) -> bool) -> Option<String> {
        let (_, value, is_less) = line.points.iter().find(|point| near(point.0, place))?;
        let mark = if *is_less { self.panel.mark } else { "" };
        Some(format!("{}\t{}\t{}{mark}", line.class, line.name, number(*value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_range_has_a_linear_axis_from_zero() {
        let draw = |high: f64| {
            let points = vec![(1.0, 56.0, false), (2.0, high, false)];
            let line = PlotLine { class: "curve-1".into(), name: "a".into(), is_under: false, points };
            let panel = PlotPanel {
                title: String::new(),
                x_label: String::new(),
                y_label: "ms".into(),
                x_ends: None,
                is_logarithmic: true,
                mark: "",
                lines: vec![line],
            };
            panel.draw()
        };
        assert!(draw(63.0).contains(">ms<") && draw(63.0).contains(">20<"), "{}", draw(63.0));
        assert!(draw(630.0).contains(">ms, logarithmic<"), "{}", draw(630.0));
    }

    #[test]
    fn labels_of_long_numbers_do_not_overlap() {
        const LETTER: f64 = 6.4;
        for step in [1.0, 700_000.0] {
            let points = (1..=9).map(|at| (f64::from(at) * step, 5.0, false)).collect();
            let line = PlotLine { class: "curve-1".into(), name: "a".into(), is_under: false, points };
            let text = String::new();
            let panel = PlotPanel {
                title: text.clone(),
                x_label: text.clone(),
                y_label: text,
                x_ends: None,
                is_logarithmic: false,
                mark: "",
                lines: vec![line],
            };
            let svg = panel.draw();
            let labels = svg.split("<text class=\"tick\"").filter(|text| text.contains("text-anchor=\"middle\""));
            let labels = labels.map(|text| {
                let x: f64 = text.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
                let name = text.split('>').nth(1).unwrap().split('<').next().unwrap();
                (x, name.chars().count() as f64 * LETTER / 2.0)
            });
            let labels: Vec<_> = labels.collect();
            assert!(labels.len() > 1, "{svg}");
            assert!(labels.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0 - pair[1].1), "{labels:?}");
        }
    }
}
