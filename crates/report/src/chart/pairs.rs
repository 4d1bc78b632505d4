//! A panel of two bars for each bin: the requested and the reached share.

use std::fmt::Write as _;

use super::{Axis, Draw, Frame, draw_heights};
use crate::format::{escape, number};

const LEFT: f64 = 48.0;
const RIGHT: f64 = 16.0;
/// Pixels that a tick's label needs.
const TICK_WIDTH: f64 = 34.0;

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct PairsPanel {
    pub title: String,
    pub x_label: &'static str,
    pub y_label: &'static str,
    /// The names of the two bars of a bin.
    pub names: [&'static str; 2],
    /// Label of each bin, and the two shares, 0..=1.
    pub bins: Vec<(String, [f64; 2])>,
}

impl Draw for PairsPanel {
    fn draw(&self, frame: &Frame) -> String {
        let most = self.bins.iter().flat_map(|(_, shares)| shares).copied().fold(0.0, f64::max);
        let axis = Axis::from_zero(most * 100.0);
        let (above, right, base) = (frame.top(), frame.width - RIGHT, frame.base());
        let y = |share: f64| base - axis.position(share * 100.0) * (base - above);
        let slot = (right - LEFT) / self.bins.len().max(1) as f64;
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        frame.draw_y_label(&mut svg, self.y_label);
        draw_heights(&mut svg, &axis, (LEFT, right), Some(0.0), |tick| y(tick / 100.0));
        let every = (TICK_WIDTH / slot).ceil().max(1.0) as usize;
        for (at, (label, shares)) in self.bins.iter().enumerate() {
            let left = LEFT + at as f64 * slot;
            if at % every == 0 {
                let (x, y, label) = (left + slot / 2.0, base + 17.0, escape(label));
                let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
            }
            let width = slot * 0.38;
            for (which, share) in shares.iter().enumerate() {
                let (x, top) = (left + slot * 0.12 + which as f64 * width, y(*share));
                let _ = write!(
                    svg,
                    r#"<rect class="bar part-{which}" x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}"/>"#,
                    base - top
                );
            }
            let line = |which: usize| {
                format!("part-{which}\t{}\t{}%", self.names[which], number((shares[which] * 1e5).round() / 1e3))
            };
            let tip = escape(&format!("{} {label}\n{}\n{}", self.x_label, line(0), line(1)));
            let height = base - above;
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{above}" width="{slot:.1}" height="{height:.1}" data-tip="{tip}"/>"#
            );
        }
        frame.draw_x_label(&mut svg, (LEFT, right), self.x_label);
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_two_bars_with_their_shares() {
        let bins = vec![("4K".to_owned(), [0.25, 0.2]), ("8K".to_owned(), [0.75, 0.8])];
        let panel =
            PairsPanel { title: "x <".into(), x_label: "size", y_label: "%", names: ["asked", "reached"], bins };
        let svg = panel.draw(&Frame::PAGE);
        assert_eq!(svg.matches("class=\"bar").count(), 4);
        assert!(svg.contains("x &lt;") && !svg.contains("NaN"), "{svg}");
        assert!(svg.contains("size 8K\npart-0\tasked\t75%\npart-1\treached\t80%"), "{svg}");
    }
}
