//! Maps of volumes as SVG.

use std::fmt::Write as _;

use super::{Draw, Frame};

/// From the first file of the tree to the last: even steps of lightness, also for readers who see
/// no red or green. Source: the colours of viridis (S. van der Walt and N. Smith, 2015), six of
/// them.
pub(crate) const PLACE_COLOURS: [[u8; 3]; 6] =
    [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
/// Colours that a drawing distinguishes.
const STEPS: usize = 24;
/// The drawn cells without files, after the colours: metadata, and cells outside the volume.
const METADATA: usize = STEPS;
const BEYOND: usize = STEPS + 1;
/// Height of the title above the square, px.
const HEAD: f64 = 22.0;

/// A map.
pub(crate) struct MapPanel {
    pub title: String,
    /// Cells on each side; even.
    pub side: u32,
    /// Used cells in the order of the volume, and the place in the tree of their file; `None` for
    /// metadata.
    pub places: Vec<(u64, Option<f64>)>,
    /// The first cell beyond the end of the volume.
    pub end: u64,
}

impl Draw for MapPanel {
    fn is_upright(&self) -> bool {
        true
    }

    fn height(&self, frame: &Frame) -> f64 {
        frame.height().min(frame.width + HEAD)
    }

    fn has_y_label(&self) -> bool {
        false
    }

    fn draw(&self, frame: &Frame) -> String {
        let side = self.side as usize;
        let scale = (self.height(frame) - HEAD) / self.side.max(1) as f64;
        let mut square: Vec<Option<usize>> = vec![None; side * side];
        let curve = curve(self.side);
        for point in curve.iter().skip(usize::try_from(self.end).unwrap_or(usize::MAX)) {
            square[*point] = Some(BEYOND);
        }
        for (cell, place) in &self.places {
            let point = usize::try_from(*cell).ok().and_then(|cell| curve.get(cell));
            if let Some(point) = point.and_then(|point| square.get_mut(*point)) {
                let step = |place: f64| (place.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize;
                *point = Some(place.map_or(METADATA, step));
            }
        }
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        let _ = write!(
            svg,
            r#"<g transform="translate(0,{HEAD}) scale({scale:.4})" shape-rendering="crispEdges"><rect class="blank" width="{side}" height="{side}"/>"#
        );
        // One path for each colour, a run of equal cells of a row as one piece.
        let mut paths = vec![String::new(); BEYOND + 1];
        for (y, row) in square.chunks(side.max(1)).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if let Some(step) = run[0] {
                    let _ = write!(paths[step], "M{x} {y}h{}v1h-{}z", run.len(), run.len());
                }
                x += run.len();
            }
        }
        for (step, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            let [red, green, blue] = colour(step as f64 / (STEPS - 1) as f64);
            let _ = match step {
                METADATA => write!(svg, r#"<path class="metadata" d="{path}"/>"#),
                BEYOND => write!(svg, r#"<path class="paper" d="{path}"/>"#),
                _ => write!(svg, r##"<path fill="#{red:02x}{green:02x}{blue:02x}" d="{path}"/>"##),
            };
        }
        svg.push_str("</g>");
        svg
    }
}

/// The colour of a place, 0..=1.
pub(crate) fn colour(place: f64) -> [u8; 3] {
    let at = place.clamp(0.0, 1.0) * (PLACE_COLOURS.len() - 1) as f64;
    let low = (at.floor() as usize).min(PLACE_COLOURS.len() - 2);
    let part = at - low as f64;
    let mix = |channel: usize| {
        let (from, to) = (f64::from(PLACE_COLOURS[low][channel]), f64::from(PLACE_COLOURS[low + 1][channel]));
        (from + (to - from) * part).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

/// The points of a square along a generalised Hilbert curve (J. Cerveny, 2018), row by row from 0.
/// It fills squares of any even side.
fn curve(side: u32) -> Vec<usize> {
    let mut points = Vec::with_capacity(side as usize * side as usize);
    let side = i64::from(side);
    if side > 0 {
        fill(&mut points, side, [0, 0], [side, 0], [0, side]);
    }
    points
}

/// The part of the curve that fills the rectangle from a corner along two sides.
fn fill(points: &mut Vec<usize>, side: i64, [x, y]: [i64; 2], [ax, ay]: [i64; 2], [bx, by]: [i64; 2]) {
    let (width, height) = ((ax + ay).abs(), (bx + by).abs());
    let ([dax, day], [dbx, dby]) = ([ax.signum(), ay.signum()], [bx.signum(), by.signum()]);
    let mut line = |[dx, dy]: [i64; 2], length: i64| {
        points.extend((0..length).map(|step| ((y + step * dy) * side + x + step * dx) as usize));
    };
    if height == 1 {
        return line([dax, day], width);
    }
    if width == 1 {
        return line([dbx, dby], height);
    }
    let [mut ax2, mut ay2, mut bx2, mut by2] = [ax, ay, bx, by].map(|length| length.div_euclid(2));
    if 2 * width > 3 * height {
        if (ax2 + ay2).abs() % 2 == 1 && width > 2 {
            (ax2, ay2) = (ax2 + dax, ay2 + day);
        }
        fill(points, side, [x, y], [ax2, ay2], [bx, by]);
        return fill(points, side, [x + ax2, y + ay2], [ax - ax2, ay - ay2], [bx, by]);
    }
    if (bx2 + by2).abs() % 2 == 1 && height > 2 {
        (bx2, by2) = (bx2 + dbx, by2 + dby);
    }
    fill(points, side, [x, y], [bx2, by2], [ax2, ay2]);
    fill(points, side, [x + bx2, y + by2], [ax, ay], [bx - bx2, by - by2]);
    let last = [x + ax - dax + bx2 - dbx, y + ay - day + by2 - dby];
    fill(points, side, last, [-bx2, -by2], [ax2 - ax, ay2 - ay]);
}

/// The place of a cell along a Hilbert curve that fills a square: column and row.
pub(crate) fn hilbert_place(side: u32, index: u64) -> (u32, u32) {
    let (mut x, mut y) = (0u32, 0u32);
    let (mut rest, mut step) = (index, 1u32);
    while step < side {
        let right = (rest / 2) as u32 & 1;
        let up = (rest as u32 ^ right) & 1;
        if up == 0 {
            if right == 1 {
                (x, y) = (step - 1 - x, step - 1 - y);
            }
            (x, y) = (y, x);
        }
        x += step * right;
        y += step * up;
        rest /= 4;
        step *= 2;
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_moves_by_single_steps_and_visits_once() {
        for index in 0..63 {
            let (a, b) = (hilbert_place(8, index), hilbert_place(8, index + 1));
            assert_eq!(a.0.abs_diff(b.0) + a.1.abs_diff(b.1), 1);
        }
        for side in [2, 4, 6, 10, 34] {
            let points = curve(side);
            let near = |pair: &[usize]| {
                let [a, b] = [pair[0], pair[1]].map(|point| (point as u32 % side, point as u32 / side));
                a.0.abs_diff(b.0) + a.1.abs_diff(b.1) == 1
            };
            assert!(points.windows(2).all(near), "{side}");
            let all: std::collections::BTreeSet<_> = points.iter().collect();
            assert_eq!((all.len(), points.len()), ((side * side) as usize, (side * side) as usize));
        }
        let all = (0..16).map(|cell| (cell, Some(0.5))).collect();
        let panel = MapPanel { title: "t <".into(), side: 4, places: all, end: 16 };
        let svg = panel.draw(&Frame::PAGE);
        assert_eq!(svg.matches("<path").count(), 1);
        assert_eq!(svg.matches("h4v1").count(), 4, "a row of one colour is one piece");
        assert!(svg.contains("t &lt;"));
        let some = vec![(0, Some(0.5)), (1, None)];
        let svg = MapPanel { title: String::new(), side: 4, places: some, end: 12 }.draw(&Frame::PAGE);
        // The last quarter of the curve is one quarter of the square.
        assert!(svg.contains(r#"<path class="paper" d="M2 0h2v1h-2zM2 1h2v1h-2z"/>"#), "{svg}");
        assert_eq!(svg.matches(r#"class="metadata""#).count(), 1, "{svg}");
    }

    #[test]
    fn colours_begin_and_end_as_they_should() {
        assert_eq!((colour(0.0), colour(1.0)), (PLACE_COLOURS[0], PLACE_COLOURS[5]));
        assert_eq!(colour(f64::NAN.max(0.2)), PLACE_COLOURS[1]);
    }
}
