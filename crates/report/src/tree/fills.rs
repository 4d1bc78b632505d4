//! How full leaves are, as a histogram.

use std::fmt::Write as _;

use super::outline::Outline;
use crate::{
    chart::{Axis, PANEL_HEIGHT, PANEL_WIDTH, draw_heights},
    format::{count, escape},
};

const LEFT: f64 = 48.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 38.0;
/// Tenths of a node, and one bin for overfull nodes.
const BINS: usize = 11;

/// The panel's elements, for an area of [`PANEL_WIDTH`] by [`PANEL_HEIGHT`].
pub(super) fn draw(outline: &Outline) -> String {
    let mut bins = [0_u64; BINS];
    for leaf in outline.leaves() {
        bins[((outline.fill(leaf) * 10.0) as usize).min(BINS - 1)] += 1;
    }
    let all: u64 = bins.iter().sum();
    let y = Axis::from_zero(bins.iter().copied().max().unwrap_or(0).max(4) as f64);
    let (right, base) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
    let slot = (right - LEFT) / BINS as f64;
    let mut svg = r#"<text class="panel-title" x="0" y="14">How full leaves are</text><text class="axis-label" x="0" y="32">leaves</text>"#.to_owned();
    draw_heights(&mut svg, &y, (LEFT, right), Some(0.0), |tick| base - y.position(tick) * (base - TOP));
    for (bin, leaves) in bins.iter().enumerate() {
        let x = LEFT + bin as f64 * slot;
        let tall = y.position(*leaves as f64) * (base - TOP);
        let _ = write!(
            svg,
            r#"<rect class="tree-contents" x="{:.1}" y="{:.1}" width="{:.1}" height="{tall:.1}"/>"#,
            x + 1.5,
            base - tall,
            slot - 3.0
        );
        if bin % 2 == 0 {
            let _ = write!(
                svg,
                r#"<text class="tick" x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
                base + 17.0,
                bin * 10
            );
        }
        let heading = match bin {
            0 => "less than 10% full".to_owned(),
            10 => "100% full and more".to_owned(),
            bin => format!("{}% to {}% full", bin * 10, bin * 10 + 10),
        };
        let share = if all > 0 { *leaves as f64 / all as f64 * 100.0 } else { 0.0 };
        let tip = escape(&format!("{heading}\nempty\tleaves\t{} ({share:.0}%)", count(*leaves)));
        let _ = write!(
            svg,
            r#"<rect class="column" x="{x:.1}" y="{TOP}" width="{slot:.1}" height="{:.1}" data-tip="{tip}"/>"#,
            base - TOP
        );
    }
    let middle = (LEFT + right) / 2.0;
    let _ = write!(
        svg,
        r#"<text class="axis-label" x="{middle}" y="{}" text-anchor="middle">% of a node</text>"#,
        base + 34.0
    );
    svg
}
