//! A panel of two costs of each arm, one on each axis: a dot and its name. Low and left is cheap in
//! both.

use std::fmt::Write as _;

use super::{Axis, Draw, Frame, arm_marker, draw_heights, labelled_along};
use crate::format::{escape, number};

const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
/// Of a letter of a name, and of a line of names, px.
const LETTER: f64 = 7.2;
const LINE: f64 = 13.0;
/// Pixels that a tick's label needs.
const TICK_WIDTH: f64 = 30.0;

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct TradePanel {
    pub title: String,
    pub x_label: &'static str,
    pub y_label: String,
    /// Class, name, x value, y value.
    pub dots: Vec<(String, String, f64, f64)>,
    /// The axes, which all panels of a figure share.
    pub x: Axis,
    pub y: Axis,
}

/// Left, top, right, bottom.
type Box = [f64; 4];

impl Draw for TradePanel {
    fn draw(&self, frame: &Frame) -> String {
        let (x_axis, y_axis) = (self.x, self.y);
        let (top, right, base) = (frame.top(), frame.width - RIGHT, frame.base());
        let x = |value: f64| LEFT + x_axis.position(value) * (right - LEFT);
        let y = |value: f64| base - y_axis.position(value) * (base - top);
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        frame.draw_y_label(&mut svg, &self.y_label);
        draw_heights(&mut svg, &y_axis, (LEFT, right), Some(0.0), y);
        for tick in labelled_along(&x_axis, TICK_WIDTH, x) {
            let (at, label) = (x(tick), number(tick));
            let _ = write!(svg, r#"<line class="axis" x1="{at:.1}" x2="{at:.1}" y1="{base}" y2="{}"/>"#, base + 4.0);
            let _ = write!(
                svg,
                r#"<text class="tick" x="{at:.1}" y="{}" text-anchor="middle">{label}</text>"#,
                base + 17.0
            );
        }
        frame.draw_x_label(&mut svg, (LEFT, right), self.x_label);
        let places: Vec<(f64, f64)> = self.dots.iter().map(|dot| (x(dot.2), y(dot.3))).collect();
        let mut taken: Vec<Box> = places.iter().map(|(x, y)| [x - 4.0, y - 4.0, x + 4.0, y + 4.0]).collect();
        for ((class, name, along, up), (x, y)) in self.dots.iter().zip(&places) {
            let (left, line) = beside(*x, *y, name.chars().count() as f64 * LETTER, (frame, &mut taken));
            let name = escape(name);
            let mark = arm_marker(class, *x, *y).unwrap_or_default();
            let _ = write!(
                svg,
                r#"<g class="series full {class}">{mark}</g><text class="end-label {class}" x="{left:.1}" y="{line:.1}">{name}</text>"#
            );
            let tip = format!(
                "{name}\n{class}\t{}\t{}\n{class}\t{}\t{}",
                escape(self.x_label),
                number(*along),
                escape(&self.y_label),
                number(*up)
            );
            let _ = write!(
                svg,
                r#"<rect class="column" x="{:.1}" y="{:.1}" width="16" height="16" data-tip="{tip}"/>"#,
                x - 8.0,
                y - 8.0
            );
        }
        svg
    }
}

/// The position of a name of a width in px beside its dot, clear of occupied areas: left end and
/// line.
fn beside(x: f64, y: f64, width: f64, (frame, taken): (&Frame, &mut Vec<Box>)) -> (f64, f64) {
    let of = |left: f64, line: f64| [left, line - 10.0, left + width, line + 3.0];
    let is_free = |taken: &[Box], name: Box| {
        let is_inside =
            name[0] >= LEFT && name[2] <= frame.width && name[1] >= frame.top() - 10.0 && name[3] <= frame.base();
        let is_over =
            |other: &Box| name[0] < other[2] && other[0] < name[2] && name[1] < other[3] && other[1] < name[3];
        is_inside && !taken.iter().any(is_over)
    };
    // Beside it, then over and under it, then farther away.
    let lines = [0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0, -4.0, 4.0, -5.0, 5.0];
    let tries = lines.iter().flat_map(|line| {
        let line_y = y + 4.0 + line * LINE;
        [(x + 8.0, line_y), (x - 8.0 - width, line_y), (x - width / 2.0, line_y)]
    });
    let mut tries = tries.filter(|(left, line)| is_free(taken, of(*left, *line)));
    let place = tries.next().unwrap_or((x + 8.0, y + 4.0));
    taken.push(of(place.0, place.1));
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_near_dots_do_not_overlap() {
        let dots = (0..6).map(|at| (format!("arm-{at}"), format!("name {at}"), 2.0 + 0.02 * f64::from(at), 50.0));
        let (x, y) = (Axis::from_zero(2.1), Axis::from_zero(50.0));
        let panel = TradePanel { title: "t".into(), x_label: "x", y_label: "y".into(), dots: dots.collect(), x, y };
        let svg = panel.draw(&Frame::PAGE);
        let mut boxes: Vec<Box> = Vec::new();
        for text in svg.split(r#"<text class="end-label"#).skip(1) {
            let number = |key: &str| {
                text.split(&format!(" {key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
            };
            let (x, y) = (number("x"), number("y"));
            boxes.push([x, y - 10.0, x + 6.0 * LETTER, y + 3.0]);
        }
        assert_eq!(boxes.len(), 6);
        for (at, a) in boxes.iter().enumerate() {
            for b in &boxes[at + 1..] {
                assert!(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1], "{a:?} {b:?}");
            }
        }
    }
}
