//! A panel of dots: a line for each arm, a dot for each of its volumes. The x axis is the value.

use std::fmt::Write as _;

use senesce_store::Role;

use super::line::marker;
use super::{Axis, Draw, Frame};
use crate::format::{escape, number};
use crate::model::words;

const LEFT: f64 = 92.0;
const RIGHT: f64 = 16.0;
/// Pixels between the marks of two volumes, if there is space.
const MARK_STEP: f64 = 9.0;
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
        let ticks = self.x.ticks();
        let every = Frame::every(right - LEFT, ticks.len(), TICK_WIDTH);
        for tick in ticks.into_iter().step_by(every) {
            let (at, label) = (x(tick), number(tick));
            let _ = write!(svg, r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{above}" y2="{base}"/>"#);
            let y = base + 17.0;
            let _ = write!(svg, r#"<text class="tick" x="{at:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
        }
        frame.draw_x_label(&mut svg, (LEFT, right), self.x_label);
        for (at, (arm, values)) in self.rows.iter().enumerate() {
            let top = above + at as f64 * slot;
            let y = top + slot / 2.0;
            let _ = write!(svg, r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#);
            let (name, under) = (escape(&shortened(arm)), y + 4.0);
            let class = if arm.chars().count() > FULL_SIZE { "tick small-label" } else { "tick" };
            let _ = write!(
                svg,
                r#"<text class="{class}" x="{}" y="{under:.1}" text-anchor="end">{name}</text>"#,
                LEFT - 9.0
            );
            let mut tip = arm.replace('\n', " ");
            for (role, value) in values {
                let _ = write!(tip, "\n{}\t{}\t{}{}", role.name(), words(*role), number(*value), self.unit);
            }
            // Each volume has its own height, so that equal values do not hide each other.
            let step = (slot / 4.0).min(MARK_STEP);
            let middle = (values.len().max(1) - 1) as f64 / 2.0;
            for (at, (role, value)) in values.iter().enumerate() {
                let y = y + (at as f64 - middle) * step;
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
    fn each_volume_has_a_dot_and_a_value() {
        let rows = vec![("a <long name of arm>".to_owned(), vec![(Role::Full, 0.83449), (Role::Unaged, 1.0)])];
        let x = Axis::between(0.5, 1.0);
        let svg = DotPanel { title: "t".into(), x_label: "score", unit: "", x, rows }.draw(&Frame::PAGE);
        assert_eq!(svg.matches("class=\"marker\"").count(), 2);
        assert!(svg.contains("full\tnearly full\t0.834\nunaged\tfresh copy\t1"), "{svg}");
        assert!(svg.contains(">a &lt;long name of…<"), "{svg}");
    }
}
