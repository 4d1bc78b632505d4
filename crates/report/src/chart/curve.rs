//! A panel of effective bandwidth against the size of reads: both axes logarithmic, one line for
//! each device.

use std::fmt::Write as _;

use super::{Axis, draw_heights, line::spread_out};
use crate::format::{bytes, escape, number};

const LEFT: f64 = 50.0;
const RIGHT: f64 = 88.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;
/// Pixels one label of a size needs.
const TICK_WIDTH: f64 = 58.0;
/// Letters of a label at the end of a line.
const LABEL_LETTERS: usize = 12;

/// One device.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// The class of its colour and dash: `curve-1`.
    pub class: String,
    pub name: String,
    /// Whether its points are measured: each is drawn.
    pub is_measured: bool,
    /// Bytes of each read and MiB/s, sizes ascending, both above 0.
    pub points: Vec<(f64, f64)>,
    /// Natural transfer sizes: the fraction of the best bandwidth, and the bytes that reach it.
    pub natural_sizes: Vec<(f64, f64)>,
}

impl Curve {
    /// The best bandwidth, MiB/s.
    pub(crate) fn peak(&self) -> f64 {
        self.points.iter().map(|point| point.1).fold(0.0, f64::max)
    }

    /// The bandwidth of the drawn line at a size: linear between two points in logarithmic axes.
    fn at(&self, size: f64) -> Option<f64> {
        let after = self.points.iter().position(|point| point.0 >= size)?;
        let to = self.points[after];
        let Some(from) = after.checked_sub(1).map(|before| self.points[before]) else { return Some(to.1) };
        let share = (size / from.0).ln() / (to.0 / from.0).ln();
        Some(from.1 * (to.1 / from.1).powf(share))
    }
}

/// The panel.
#[derive(Clone, Debug)]
pub(crate) struct CurvePanel {
    pub curves: Vec<Curve>,
    pub width: f64,
    pub height: f64,
}

impl CurvePanel {
    /// The panel's elements, for an area of its width by its height.
    pub(crate) fn draw(&self) -> String {
        let mut svg = String::new();
        let values = || self.curves.iter().flat_map(|curve| &curve.points);
        let _ = write!(svg, r#"<text class="axis-label" x="0" y="12">effective bandwidth, MiB/s (logarithmic)</text>"#);
        if values().next().is_none() {
            let (x, y) = (self.width / 2.0, self.height / 2.0);
            let _ = write!(svg, r#"<text class="no-data" x="{x}" y="{y}" text-anchor="middle">no data</text>"#);
            return svg;
        }
        let span = |of: fn(&(f64, f64)) -> f64| {
            values().map(of).fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| (low.min(v), high.max(v)))
        };
        let ((least, most), (slow, fast)) = (span(|point| point.0), span(|point| point.1));
        let x_axis = Axis { min: least, max: if most > least { most } else { least * 2.0 }, logarithmic: true };
        let place = Place { panel: self, x: x_axis, y: Axis::logarithmic(slow, fast) };
        place.draw_axes(&mut svg);
        place.draw_drops(&mut svg);
        for curve in &self.curves {
            place.draw_curve(&mut svg, curve);
        }
        place.draw_end_labels(&mut svg);
        place.draw_columns(&mut svg);
        svg
    }
}

/// The panel with its axes.
struct Place<'p> {
    panel: &'p CurvePanel,
    x: Axis,
    y: Axis,
}

impl Place<'_> {
    fn right(&self) -> f64 {
        self.panel.width - RIGHT
    }

    fn base(&self) -> f64 {
        self.panel.height - BOTTOM
    }

    fn x(&self, size: f64) -> f64 {
        LEFT + self.x.position(size) * (self.right() - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        self.base() - self.y.position(value) * (self.base() - TOP)
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, base) = (self.right(), self.base());
        draw_heights(svg, &self.y, (LEFT, right), None, |tick| self.y(tick));
        let _ = write!(svg, r#"<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>"#);
        // Powers of two, up to the number that fits.
        let (low, high) = (self.x.min.log2().ceil() as i32, self.x.max.log2().floor() as i32);
        let room = ((right - LEFT) / TICK_WIDTH).floor().max(1.0);
        let step = (f64::from(high - low) / room).ceil().max(1.0) as usize;
        for power in (low..=high).step_by(step) {
            let (x, label) = (self.x(f64::from(power).exp2()), bytes(f64::from(power).exp2()));
            let _ = write!(svg, r#"<line class="axis" x1="{x:.1}" x2="{x:.1}" y1="{base}" y2="{}"/>"#, base + 4.0);
            let y = base + 17.0;
            let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
        }
        let (x, y) = ((LEFT + right) / 2.0, base + 35.0);
        let label = "size of each read (logarithmic)";
        let _ = write!(svg, r#"<text class="axis-label" x="{x}" y="{y}" text-anchor="middle">{label}</text>"#);
    }

    /// From the measured curve's natural transfer sizes down to the axis of sizes.
    fn draw_drops(&self, svg: &mut String) {
        for curve in self.panel.curves.iter().filter(|curve| curve.is_measured) {
            for (at, (fraction, size)) in curve.natural_sizes.iter().enumerate() {
                let Some(value) = curve.at(*size) else { continue };
                let (x, y, base) = (self.x(*size), self.y(value), self.base());
                let _ = write!(svg, r#"<line class="reference" x1="{x:.1}" x2="{x:.1}" y1="{y:.1}" y2="{base}"/>"#);
                // The first label is left of its line, the others right of theirs; at the margin
                // they are stacked.
                let is_left = at == 0 && x > LEFT + 40.0;
                let (x, anchor) = if is_left { (x - 4.0, "end") } else { (x + 4.0, "start") };
                let (y, percent) = (base - 6.0 - 14.0 * at as f64, fraction * 100.0);
                let _ = write!(
                    svg,
                    r#"<text class="reference-label" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{percent:.0}%</text>"#
                );
            }
        }
    }

    fn draw_curve(&self, svg: &mut String, curve: &Curve) {
        let _ = write!(svg, r#"<g class="series {}">"#, curve.class);
        let place = |(size, value): &(f64, f64)| format!("{:.1},{:.1}", self.x(*size), self.y(*value));
        let line: Vec<_> = curve.points.iter().map(place).collect();
        let _ = write!(svg, r#"<polyline class="line" points="{}"/>"#, line.join(" "));
        if curve.is_measured {
            for (size, value) in &curve.points {
                let (x, y) = (self.x(*size), self.y(*value));
                let _ = write!(svg, r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="2.4"/>"#);
            }
        }
        for (fraction, size) in &curve.natural_sizes {
            if let Some(value) = curve.at(*size) {
                svg.push_str(&natural_size_mark(*fraction, self.x(*size), self.y(value)));
            }
        }
        svg.push_str("</g>");
    }

    fn draw_end_labels(&self, svg: &mut String) {
        let end = |curve: &Curve| curve.points.last().map(|point| self.y(point.1));
        let mut labels: Vec<_> =
            self.panel.curves.iter().filter_map(|curve| Some((end(curve)?, &curve.name, &curve.class))).collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = labels.iter().map(|label| label.0).collect();
        for ((_, name, class), y) in labels.iter().zip(spread_out(&wanted, TOP, self.base())) {
            let (x, y, name) = (self.right() + 9.0, y + 4.0, escape(&shortened(name)));
            let _ = write!(svg, r#"<text class="end-label {class}" x="{x}" y="{y:.1}">{name}</text>"#);
        }
    }

    /// One invisible column for each size, which carries the text of a tooltip.
    fn draw_columns(&self, svg: &mut String) {
        let mut sizes: Vec<f64> =
            self.panel.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for (at, size) in sizes.iter().enumerate() {
            let middle = |other: &f64| (self.x(*size) + self.x(*other)) / 2.0;
            let left = if at == 0 { LEFT - 8.0 } else { middle(&sizes[at - 1]) };
            let right = sizes.get(at + 1).map_or(self.right() + 8.0, middle);
            let mut tip = format!("reads of {}", bytes(*size));
            for curve in &self.panel.curves {
                if let Some((_, value)) = curve.points.iter().find(|point| point.0 == *size) {
                    let (class, name) = (&curve.class, curve.name.replace(['\t', '\n'], " "));
                    let _ = write!(tip, "\n{class}\t{name}\t{} MiB/s", number(*value));
                }
            }
            let (width, height, tip) = (right - left, self.base() - TOP, escape(&tip));
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{TOP}" width="{width:.1}" height="{height:.1}" data-tip="{tip}"/>"#
            );
        }
    }
}

/// A ring for half of the best bandwidth and less, a lozenge above.
pub(crate) fn natural_size_mark(fraction: f64, x: f64, y: f64) -> String {
    if fraction <= 0.5 {
        return format!(r#"<circle class="natural" cx="{x:.1}" cy="{y:.1}" r="4.2"/>"#);
    }
    let (left, right, top, bottom) = (x - 5.2, x + 5.2, y - 5.2, y + 5.2);
    format!(r#"<path class="natural" d="M{x:.1},{top:.1}L{right:.1},{y:.1}L{x:.1},{bottom:.1}L{left:.1},{y:.1}Z"/>"#)
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LABEL_LETTERS {
        return name.to_owned();
    }
    name.chars().take(LABEL_LETTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        Curve {
            class: "curve-1".into(),
            name: "a <disk> of a long name".into(),
            is_measured: true,
            points: vec![(4096.0, 10.0), (16384.0, 40.0), (65536.0, 100.0)],
            natural_sizes: vec![(0.5, 24_000.0), (0.9, 56_000.0)],
        }
    }

    #[test]
    fn marks_lie_on_the_line_that_is_drawn() {
        let curve = curve();
        assert_eq!(curve.peak(), 100.0);
        // Half-way between two points in both logarithms: 8192 and 20.
        assert!((curve.at(8192.0).unwrap() - 20.0).abs() < 1e-9);
        assert_eq!((curve.at(4096.0), curve.at(65536.0)), (Some(10.0), Some(100.0)));
        assert_eq!(curve.at(65537.0), None, "beyond its end nothing is drawn");
    }

    #[test]
    fn panel_has_lines_marks_columns_and_escaped_names() {
        let panel = CurvePanel { curves: vec![curve()], width: 360.0, height: 300.0 };
        let svg = panel.draw();
        assert_eq!(svg.matches(r#"class="natural""#).count(), 2);
        assert_eq!(svg.matches(r#"class="column""#).count(), 3);
        assert_eq!(svg.matches(r#"class="dot""#).count(), 3);
        assert!(svg.contains("50%") && svg.contains("90%") && svg.contains("64 KiB"), "{svg}");
        assert!(svg.contains("a &lt;disk&gt; of…") && !svg.contains("<disk>"), "{svg}");
        let one = Curve { points: vec![(4096.0, 3.0)], natural_sizes: Vec::new(), ..curve() };
        for curves in [vec![], vec![one]] {
            let svg = CurvePanel { curves, width: 360.0, height: 300.0 }.draw();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
