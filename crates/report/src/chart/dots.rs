//! A panel of dots: a line for each arm, a dot for each of its volumes. The x axis is the value.

use std::fmt::Write as _;

use senesce_store::Role;

use super::line::marker;
use super::{Axis, Draw, Frame, labelled_along};
use crate::format::{SecondsColumn, escape, figure, number};
use crate::model::words;

const LEFT: f64 = 92.0;
const RIGHT: f64 = 16.0;
/// Pixels between the marks of two volumes, if there is space.
const MARK_STEP: f64 = 9.0;
/// The same distance if arrows with values are drawn between the marks.
const CURE_STEP: f64 = 20.0;
/// The length of the head of an arrow, px.
const HEAD: f64 = 5.0;
/// Pixels that a tick's label needs.
const TICK_WIDTH: f64 = 32.0;
/// The longest name of an arm that fits before its line, and the longest in full size.
const LETTERS: usize = 16;
const FULL_SIZE: usize = 12;

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct DotPanel {
    pub title: String,
    pub x_label: &'static str,
    pub unit: &'static str,
    pub x: Axis,
    /// Arms with the values of their volumes.
    pub rows: Vec<(String, Vec<(Role, f64)>)>,
}

impl Draw for DotPanel {
    fn columns(&self) -> usize {
        1
    }

    fn has_y_label(&self) -> bool {
        false
    }

    fn draw(&self, frame: &Frame) -> String {
        let (above, right, base) = (frame.top(), frame.width - RIGHT, frame.base());
        let x = |value: f64| LEFT + self.x.position(value) * (right - LEFT);
        let slot = (base - above) / self.rows.len().max(1) as f64;
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        for tick in labelled_along(&self.x, TICK_WIDTH, x) {
            let (at, label) = (x(tick), number(tick));
            let _ = write!(svg, r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{above}" y2="{base}"/>"#);
            let y = base + 17.0;
            let _ = write!(svg, r#"<text class="tick" x="{at:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
        }
        frame.draw_x_label(&mut svg, (LEFT, right), self.x_label);
        let is_long = self.rows.iter().any(|(arm, _)| arm.chars().count() > FULL_SIZE);
        let class = if is_long { "tick small-label" } else { "tick" };
        for (at, (arm, values)) in self.rows.iter().enumerate() {
            let top = above + at as f64 * slot;
            let y = top + slot / 2.0;
            let (name, under) = (escape(&shortened(arm)), y + 4.0);
            let _ = write!(
                svg,
                r#"<text class="{class}" x="{}" y="{under:.1}" text-anchor="end">{name}</text>"#,
                LEFT - 9.0
            );
            let mut tip = arm.replace('\n', " ");
            for (role, value) in values {
                let _ = write!(tip, "\n{}\t{}\t{}{}", role.name(), words(*role), number(*value), self.unit);
            }
            // Each volume has its own height, so that equal values do not hide each other. A cured
            // volume has the height of the aged one.
            let heights: Vec<Role> = values.iter().map(|(role, _)| *role).filter(|role| !role.is_cured()).collect();
            let lines = heights.len().max(if heights.is_empty() { values.len() } else { 1 });
            let has_move = values.iter().any(|(role, _)| role.is_cured());
            let step = if has_move { (slot / 4.0).min(CURE_STEP) } else { (slot / 4.0).min(MARK_STEP) };
            let middle = (lines.max(1) - 1) as f64 / 2.0;
            let height = |at: usize, role: Role| {
                let at = if role.is_cured() {
                    heights.iter().position(|known| *known == role.uncured()).unwrap_or(at.min(lines - 1))
                } else {
                    at
                };
                y + (at as f64 - middle) * step
            };
            for at in 0..lines {
                let y = y + (at as f64 - middle) * step;
                let _ = write!(svg, r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#);
            }
            for (at, (role, value)) in values.iter().enumerate().filter(|(_, (role, _))| role.is_cured()) {
                let before = values.iter().find(|(known, _)| *known == role.uncured());
                if let Some((_, before)) = before {
                    svg.push_str(&self.arrow((*before, *value), (x(*before), x(*value)), height(at, *role), right));
                }
            }
            // Two marks without space for an arrow between them are side by side, so that both are
            // visible.
            let is_hidden = |role: Role, value: f64| {
                let is_other = |other: &Role| *other != role && other.uncured() == role.uncured();
                values.iter().any(|(other, of_it)| is_other(other) && (x(*of_it) - x(value)).abs() < 2.0 * HEAD)
            };
            for (at, (role, value)) in values.iter().enumerate() {
                let aside = match (is_hidden(*role, *value), role.is_cured()) {
                    (true, true) => HEAD,
                    (true, false) => -HEAD,
                    (false, _) => 0.0,
                };
                let y = height(at, *role) + aside;
                let _ = write!(
                    svg,
                    r#"<g class="series {0}" data-role="{0}">{1}</g>"#,
                    role.name(),
                    marker(*role, x(*value), y)
                );
            }
            let _ = write!(
                svg,
                r#"<rect class="column" x="{LEFT}" y="{top:.1}" width="{:.1}" height="{slot:.1}" data-tip="{}"/>"#,
                right - LEFT,
                escape(&tip)
            );
        }
        svg
    }
}

impl DotPanel {
    /// An arrow from the value of a volume to that after its cure, with both values above it.
    fn arrow(&self, (before, after): (f64, f64), (from, to): (f64, f64), y: f64, right: f64) -> String {
        /// Half of the width of the label, px.
        const HALF: f64 = 48.0;
        let side = if to < from { 1.0 } else { -1.0 };
        let tip = to + side * HEAD;
        let middle = ((from + to) / 2.0).clamp(LEFT + HALF, right - HALF);
        let values = if self.unit == " s" {
            let unit = SecondsColumn::of([before, after]);
            format!("{} → {}", unit.text(before), unit.text(after))
        } else {
            format!("{} → {}{}", figure(before), figure(after), self.unit)
        };
        if (to - from).abs() < 2.0 * HEAD {
            // No arrow fits between equal values.
            return format!(
                r#"<text class="tick" x="{middle:.1}" y="{:.1}" text-anchor="middle">{values}</text>"#,
                y - 7.0 - HEAD
            );
        }
        let head =
            format!("M{:.1},{:.1}L{tip:.1},{y:.1}L{:.1},{:.1}", tip + side * HEAD, y - 3.5, tip + side * HEAD, y + 3.5);
        format!(
            r#"<path class="axis move" fill="none" d="M{from:.1},{y:.1}L{tip:.1},{y:.1}{head}"/><text class="tick" x="{middle:.1}" y="{:.1}" text-anchor="middle">{values}</text>"#,
            y - 7.0
        )
    }
}

/// A name that fits before its line.
fn shortened(name: &str) -> String {
    match name.chars().count() {
        0..=LETTERS => name.to_owned(),
        _ => name.chars().take(LETTERS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_do_not_hide_each_other() {
        let x = Axis::between(0.5, 1.0);
        let draw = |rows: &Vec<(String, Vec<(Role, f64)>)>| {
            let panel = DotPanel { title: "t".into(), x_label: "score", unit: "", x, rows: rows.clone() };
            panel.draw(&Frame::PAGE)
        };
        let heights = |svg: &str| -> Vec<f64> {
            let circle = svg.split("cy=\"").skip(1);
            circle.map(|text| text.split('"').next().unwrap().parse().unwrap()).collect()
        };
        let alike = vec![("a".to_owned(), vec![(Role::Full, 1.0), (Role::Full, 1.0), (Role::Full, 1.0)])];
        let mut found = heights(&draw(&alike));
        found.dedup();
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn cure_has_an_arrow_with_both_values() {
        let values = vec![(Role::Unaged, 1.5), (Role::Empty, 1.4), (Role::CuredEmpty, 0.285)];
        let rows = vec![("a".to_owned(), values)];
        let panel = DotPanel { title: "t".into(), x_label: "cold read, s", unit: " s", x: Axis::from_zero(2.0), rows };
        let svg = panel.draw(&Frame::PAGE);
        assert!(svg.contains(">1.40 s → 0.285 s<"), "{svg}");
        let height = |class: &str| {
            let mark = svg.split(&format!("class=\"series {class}\"")).nth(1).unwrap();
            let number = |key: &str| {
                mark.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
            };
            number("y") + number("height") / 2.0
        };
        assert!((height("empty") - height("cured-empty")).abs() < 0.2, "both are on one line: {svg}");
    }

    #[test]
    fn equal_costs_before_and_after_a_cure_are_both_visible() {
        let row = |arm: &str, cured: f64| (arm.to_owned(), vec![(Role::Empty, 1.33), (Role::CuredEmpty, cured)]);
        let rows = vec![row("ext4-e4defrag", 1.33), row("ext4", 0.3)];
        let panel = DotPanel { title: "t".into(), x_label: "cold read, s", unit: " s", x: Axis::from_zero(2.0), rows };
        let svg = panel.draw(&Frame::PAGE);
        let middles = |class: &str| -> Vec<f64> {
            let series = format!("class=\"series {class}\"");
            let marks = svg.split(&series).skip(1);
            let number = |mark: &str, key: &str| -> f64 {
                mark.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            marks.map(|mark| number(mark, "y") + number(mark, "height") / 2.0).collect()
        };
        let (before, cured) = (middles("empty"), middles("cured-empty"));
        assert!((cured[0] - before[0] - 2.0 * HEAD).abs() < 0.3, "beside each other: {svg}");
        assert!((cured[1] - before[1]).abs() < 0.3, "on one line: {svg}");
        // All names have one size.
        assert_eq!(svg.matches("tick small-label").count(), 2, "{svg}");
    }

    #[test]
    fn each_volume_has_a_dot_and_a_value() {
        let rows = vec![("a <long name of arm>".to_owned(), vec![(Role::Full, 0.83449), (Role::Unaged, 1.0)])];
        let x = Axis::between(0.5, 1.0);
        let svg = DotPanel { title: "t".into(), x_label: "score", unit: "", x, rows }.draw(&Frame::PAGE);
        assert_eq!(svg.matches("class=\"marker\"").count(), 2);
        assert!(svg.contains("full\tnearly full\t0.834\nunaged\tfresh copy\t1"), "{svg}");
        assert!(svg.contains(">a &lt;long name of…<"), "{svg}");
    }
}
