//! Maps of volumes as SVG.

use std::fmt::Write as _;

use crate::format::escape;

use super::PANEL_HEIGHT;

/// From the first file of the tree to the last: even steps of lightness, also for readers who see no red or green.
/// Source: the colours of viridis (S. van der Walt and N. Smith, 2015), six of them.
pub(crate) const PLACE_COLOURS: [[u8; 3]; 6] =
    [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
/// Colours that a drawing distinguishes.
const STEPS: usize = 24;
/// What is drawn of cells without files, after the colours: metadata, and what is no part of the volume.
const METADATA: usize = STEPS;
const BEYOND: usize = STEPS + 1;
/// Room above the square for its title.
const HEAD: f64 = 22.0;

/// A map.
pub(crate) struct MapPanel {
    pub title: String,
    /// Cells on each side.
    pub side: u32,
    /// Cells with something in them, along the volume, and the place in the tree of what they hold; none of metadata.
    pub places: Vec<(u64, Option<f64>)>,
    /// The first cell beyond the end of the volume.
    pub end: u64,
}

impl MapPanel {
    pub(crate) fn draw(&self) -> String {
        let side = self.side as usize;
        let scale = (PANEL_HEIGHT - HEAD) / self.side.max(1) as f64;
        let mut square: Vec<Option<usize>> = vec![None; side * side];
        for cell in self.end..(side * side) as u64 {
            let (x, y) = hilbert_place(self.side, cell);
            square[y as usize * side + x as usize] = Some(BEYOND);
        }
        for (cell, place) in &self.places {
            let (x, y) = hilbert_place(self.side, *cell);
            if let Some(point) = square.get_mut(y as usize * side + x as usize) {
                let step = |place: f64| (place.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize;
                *point = Some(place.map_or(METADATA, step));
            }
        }
        let mut svg = format!(
            r#"<text class="panel-title" x="0" y="13">{}</text><g transform="translate(0,{HEAD}) scale({scale:.4})" shape-rendering="crispEdges"><rect class="blank" width="{side}" height="{side}"/>"#,
            escape(&self.title)
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
    fn the_curve_goes_by_single_steps_and_cells_are_drawn_once() {
        for index in 0..63 {
            let (a, b) = (hilbert_place(8, index), hilbert_place(8, index + 1));
            assert_eq!(a.0.abs_diff(b.0) + a.1.abs_diff(b.1), 1);
        }
        let all = (0..16).map(|cell| (cell, Some(0.5))).collect();
        let panel = MapPanel { title: "t <".into(), side: 4, places: all, end: 16 };
        let svg = panel.draw();
        assert_eq!(svg.matches("<path").count(), 1);
        assert_eq!(svg.matches("h4v1").count(), 4, "a row of one colour is one piece");
        assert!(svg.contains("t &lt;"));
        let some = vec![(0, Some(0.5)), (1, None)];
        let svg = MapPanel { title: String::new(), side: 4, places: some, end: 12 }.draw();
        // The last quarter of the curve is the upper right one.
        assert!(svg.contains(r#"<path class="paper" d="M2 0h2v1h-2zM2 1h2v1h-2z"/>"#), "{svg}");
        assert!(svg.contains(r#"<path class="metadata" d="M1 0h1v1h-1z"/>"#), "{svg}");
    }

    #[test]
    fn colours_begin_and_end_as_they_should() {
        assert_eq!((colour(0.0), colour(1.0)), (PLACE_COLOURS[0], PLACE_COLOURS[5]));
        assert_eq!(colour(f64::NAN.max(0.2)), PLACE_COLOURS[1]);
    }
}
