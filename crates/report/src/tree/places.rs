//! The positions of the leaves of a tree: the x axis is the order of keys, the y axis the device. A
//! tree that was written in order is one rising line.

use std::{collections::HashSet, fmt::Write as _};

use super::{
    levels::{holds_class, holds_colour, place_line},
    outline::{Holds, Node, Outline},
};
use crate::{
    chart::{Axis, draw_heights},
    format::{count, escape, number},
};

const LEFT: f64 = 62.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 42.0;
/// The least height and width of a mark, px.
const MARK: f64 = 2.2;
/// The most tooltips.
const TIPS: usize = 200;

/// The drawing, of a width and height in px.
pub(super) fn draw(outline: &Outline, width: f64, height: f64) -> String {
    let leaves: Vec<&Node> = outline.leaves().filter(|leaf| !leaf.extents.is_empty()).collect();
    let ends = leaves.iter().flat_map(|leaf| leaf.extents.iter().map(|(at, length)| (*at, at + length)));
    let (low, high) = ends.fold((f64::MAX, 0.0_f64), |(low, high), (at, end)| (low.min(at), high.max(end)));
    if leaves.is_empty() {
        return r#"<text class="no-data" x="62" y="60">no leaf that can be read</text>"#.to_owned();
    }
    let (unit, unit_name) = if high >= 4.0 * GIB { (GIB, "GiB") } else { (MIB, "MiB") };
    let plot = Plot { y: Axis::between(low / unit, high / unit), unit, places: outline.places, width, height };
    let mut svg = String::new();
    plot.draw_axes(&mut svg, unit_name);
    for holds in [Holds::Contents, Holds::Metadata, Holds::Both] {
        let path = plot.path(leaves.iter().filter(|leaf| leaf.holds == holds));
        if !path.is_empty() {
            let _ = write!(svg, r#"<path class="{}" d="{path}"/>"#, holds_class(holds));
        }
    }
    plot.draw_columns(&mut svg, &leaves);
    svg
}

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

struct Plot {
    /// In units.
    y: Axis,
    /// Bytes.
    unit: f64,
    places: usize,
    width: f64,
    height: f64,
}

impl Plot {
    fn x(&self, place: usize) -> f64 {
        LEFT + place as f64 / self.places.max(1) as f64 * (self.width - LEFT - RIGHT)
    }

    fn y(&self, at: f64) -> f64 {
        self.height - BOTTOM - self.y.position(at / self.unit) * (self.height - TOP - BOTTOM)
    }

    fn draw_axes(&self, svg: &mut String, unit_name: &str) {
        let (right, base) = (self.width - RIGHT, self.height - BOTTOM);
        let _ = write!(
            svg,
            r#"<text class="panel-title" x="0" y="14">Where leaves are</text><text class="axis-label" x="0" y="32">place on the device, {unit_name}</text>"#
        );
        draw_heights(svg, &self.y, (LEFT, right), None, |tick| self.y(tick * self.unit));
        let _ = write!(svg, r#"<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>"#);
        let last = count(self.places as u64);
        let middle = (LEFT + right) / 2.0;
        let (y, below) = (base + 16.0, base + 34.0);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{LEFT}" y="{y}">1</text><text class="tick" x="{right}" y="{y}" text-anchor="end">{last}</text><text class="axis-label" x="{middle}" y="{below}" text-anchor="middle">leaf, in the order of keys</text>"#
        );
    }

    /// Each piece of each leaf as a mark; marks at the same position are drawn once.
    fn path<'n>(&self, leaves: impl Iterator<Item = &'n &'n Node>) -> String {
        let wide = ((self.x(1) - self.x(0)) * 0.8).clamp(MARK, 12.0);
        let mut drawn = HashSet::new();
        let mut path = String::new();
        for leaf in leaves {
            let x = (self.x(leaf.span.0) + self.x(leaf.span.1) - wide) / 2.0;
            for (at, length) in &leaf.extents {
                let (bottom, top) = (self.y(*at), self.y(at + length));
                let tall = (bottom - top).max(MARK);
                let mark = format!("M{x:.1},{bottom:.1}h{wide:.1}v-{tall:.1}h-{wide:.1}z");
                // The eye cannot separate marks that are half a pixel apart.
                if drawn.insert(((x * 2.0).round() as i64, (bottom * 2.0).round() as i64)) {
                    path.push_str(&mark);
                }
            }
        }
        path
    }

    fn draw_columns(&self, svg: &mut String, leaves: &[&Node]) {
        for some in leaves.chunks(leaves.len().div_ceil(TIPS).max(1)) {
            let (first, last) = (some[0], some[some.len() - 1]);
            let (left, right) = (self.x(first.span.0), self.x(last.span.1));
            let of = count(self.places as u64);
            let place = |leaf: &Node| count(leaf.span.0 as u64 + 1);
            let mut lines = match some.len() {
                1 => vec![format!("leaf {} of {of}, node {}", place(first), first.id)],
                _ => vec![format!("leaves {} to {} of {of}", place(first), place(last))],
            };
            if some.len() == 1 {
                lines.extend(place_line(first));
            } else {
                let ats = || some.iter().map(|leaf| leaf.extents[0].0 / self.unit);
                let (low, high) = (ats().fold(f64::MAX, f64::min), ats().fold(0.0, f64::max));
                let unit = if self.unit == GIB { "GiB" } else { "MiB" };
                let colour = holds_colour(first.holds);
                lines.push(format!("{colour}\tare between\t{} and {} {unit}", number(low), number(high)));
            }
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{TOP}" width="{:.1}" height="{:.1}" data-tip="{}"/>"#,
                right - left,
                self.height - TOP - BOTTOM,
                escape(&lines.join("\n"))
            );
        }
    }
}
