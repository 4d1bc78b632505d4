//! A panel of stacked bars: free space by size of the free extents, one bar per checkpoint.

use std::fmt::Write as _;

use super::{Axis, Draw, Frame, draw_heights, width_of_letters};
use crate::format::{bytes, count, escape, number, percent};

const LEFT: f64 = 48.0;
const RIGHT: f64 = 12.0;

/// Upper ends of the classes of extent sizes, bytes; the last class has none.
const CLASS_ENDS: [u64; 8] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20];
/// Names of the classes, smallest extents first.
pub(crate) const CLASS_NAMES: [&str; 9] = [
    "under 16 KiB",
    "16 to 64 KiB",
    "64 to 256 KiB",
    "256 KiB to 1 MiB",
    "1 to 4 MiB",
    "4 to 16 MiB",
    "16 to 64 MiB",
    "64 to 256 MiB",
    "256 MiB and more",
];

/// One bar: a checkpoint and its bytes per class.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub pulls: u64,
    pub class_bytes: [u64; 9],
}

impl Bar {
    /// Sums buckets (smallest extent in bytes, bytes) into classes.
    pub(crate) fn compute(pulls: u64, buckets: &[(u64, u64)]) -> Self {
        let mut class_bytes = [0; 9];
        for (bucket, bytes) in buckets {
            class_bytes[CLASS_ENDS.iter().filter(|end| *end <= bucket).count()] += bytes;
        }
        Self { pulls, class_bytes }
    }

    pub(crate) fn total(&self) -> u64 {
        self.class_bytes.iter().sum()
    }
}

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct StackPanel {
    pub title: String,
    pub bars: Vec<Bar>,
    /// The unit of checkpoints, in tooltips.
    pub x_unit: String,
    /// The title of the x axis.
    pub x_label: String,
    /// Whether bars show shares of the free space instead of bytes.
    pub shares: bool,
    /// The unit of bytes of all panels of the figure.
    pub unit: ByteUnit,
}

/// A unit of an axis of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ByteUnit {
    pub name: &'static str,
    pub bytes: f64,
}

impl ByteUnit {
    /// The unit of panels with these largest values. MiB if a panel has less than a tenth of a GiB,
    /// unless another one has more MiB than a label of an axis can show.
    pub(crate) fn of(values: impl Iterator<Item = u64> + Clone) -> Self {
        const LABEL: u64 = 64 << 30;
        let (least, most) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
        match most >= LABEL || (most >= 1 << 30 && least >= (1 << 30) / 10) {
            true => Self { name: "GiB", bytes: (1u64 << 30) as f64 },
            false => Self { name: "MiB", bytes: (1u64 << 20) as f64 },
        }
    }
}

impl Draw for StackPanel {
    fn shares_titles(&self) -> (bool, bool) {
        (true, false)
    }

    fn columns(&self) -> usize {
        3
    }

    fn draw(&self, frame: &Frame) -> String {
        let most = self.bars.iter().map(Bar::total).max().unwrap_or(0) as f64;
        let scale = self.unit.bytes;
        let y_axis = if self.shares { Axis::from_zero(100.0) } else { Axis::from_zero(most / scale) };
        let unit = match self.shares {
            true => "% of free space".to_owned(),
            false => format!("{} free, axis to {}", self.unit.name, number(y_axis.max)),
        };
        let (top, right, base) = (frame.top(), frame.width - RIGHT, frame.base());
        let y = |value: f64| base - y_axis.position(value) * (base - top);
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        frame.draw_y_label(&mut svg, &unit);
        draw_heights(&mut svg, &y_axis, (LEFT, right), Some(0.0), y);
        let slot = (right - LEFT) / self.bars.len().max(1) as f64;
        let width = (slot * 0.82).min(40.0);
        let letters = self.bars.iter().map(|bar| count(bar.pulls).chars().count()).max().unwrap_or(0);
        let between = slot * self.bars.len().saturating_sub(1) as f64;
        let every = Frame::every(between, self.bars.len(), width_of_letters(letters));
        for (at, bar) in self.bars.iter().enumerate() {
            let middle = LEFT + (at as f64 + 0.5) * slot;
            let total = bar.total() as f64;
            // Largest extents at the bottom: their remaining bytes can be read from the axis.
            let mut below = 0.0;
            for (class, bytes) in bar.class_bytes.iter().enumerate().rev().filter(|(_, bytes)| **bytes > 0) {
                let value = if self.shares { *bytes as f64 / total * 100.0 } else { *bytes as f64 / scale };
                let (low, high) = (y(below), y(below + value));
                let (x, height) = (middle - width / 2.0, low - high);
                let _ = write!(
                    svg,
                    r#"<rect class="size-{class}" x="{x:.1}" y="{high:.2}" width="{width:.1}" height="{height:.2}"/>"#
                );
                below += value;
            }
            if frame.has_x_axis && at % every == 0 {
                let (y, label) = (base + 17.0, count(bar.pulls));
                let _ =
                    write!(svg, r#"<text class="tick" x="{middle:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
            }
            if bar.total() == 0 {
                let (left, right, top, bottom) = (middle - 3.0, middle + 3.0, base - 9.0, base - 3.0);
                let _ = write!(
                    svg,
                    r#"<path class="cross" d="M{left:.1},{top:.1}L{right:.1},{bottom:.1}M{left:.1},{bottom:.1}L{right:.1},{top:.1}"/>"#
                );
            }
            let (x, height, tip) = (LEFT + at as f64 * slot, base - top, escape(&tooltip(bar, &self.x_unit)));
            let _ = write!(
                svg,
                r#"<rect class="column" x="{x:.1}" y="{top}" width="{slot:.1}" height="{height:.1}" data-tip="{tip}"/>"#
            );
        }
        frame.draw_x_label(&mut svg, (LEFT, right), &self.x_label);
        svg
    }
}

fn tooltip(bar: &Bar, unit: &str) -> String {
    if bar.total() == 0 {
        return format!("{} {unit}: no valid data", count(bar.pulls));
    }
    let total = bar.total() as f64;
    let mut tip = format!("{} {unit}, {} free", count(bar.pulls), bytes(total));
    for (class, class_bytes) in bar.class_bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
        let share = percent(*class_bytes as f64 / total);
        let _ = write!(tip, "\nsize-{class}\t{}\t{} ({share})", CLASS_NAMES[class], bytes(*class_bytes as f64));
    }
    tip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_sizes_are_distinct_in_grey() {
        let grey = |style: &str, name: &str| {
            let colour = style.split(&format!("--{name}: #")).nth(1).unwrap();
            let channel = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            // The luminance of sRGB, without the linear part near black.
            0.2126 * channel(0).powf(2.2) + 0.7152 * channel(2).powf(2.2) + 0.0722 * channel(4).powf(2.2)
        };
        for style in [include_str!("../../assets/light.css"), include_str!("../../assets/dark.css")] {
            let greys: Vec<f64> = (0..CLASS_NAMES.len()).map(|class| grey(style, &format!("size-{class}"))).collect();
            assert!(greys.windows(2).all(|pair| pair[0] + 0.02 < pair[1]), "small extents are dark: {greys:?}");
            let paper = grey(style, "paper");
            let contrast = |grey: f64| (grey.max(paper) + 0.05) / (grey.min(paper) + 0.05);
            assert!(greys.iter().all(|grey| contrast(*grey) > 1.2), "a size is near the paper: {greys:?}");
        }
    }

    #[test]
    fn buckets_fall_into_their_classes() {
        let bar =
            Bar::compute(7, &[(4096, 1), (8192, 2), (16 << 10, 4), (32 << 10, 8), (128 << 20, 16), (1 << 40, 32)]);
        assert_eq!(bar.class_bytes, [3, 12, 0, 0, 0, 0, 0, 16, 32]);
        assert_eq!(bar.total(), 63);
    }

    #[test]
    fn small_panel_beside_a_large_one_has_its_unit_and_its_own_scale() {
        let panel = |bytes: u64, unit: ByteUnit| StackPanel {
            title: "xfs".to_owned(),
            bars: vec![Bar::compute(0, &[(4096, bytes)])],
            x_unit: "pulls".to_owned(),
            x_label: "git pulls".to_owned(),
            shares: false,
            unit,
        };
        for (values, large, small) in [
            ([3 << 30, 40 << 20], "MiB free, axis to 4,000", "MiB free, axis to 40"),
            ([3 << 30, 512 << 20], "GiB free, axis to 3", "GiB free, axis to 0.5"),
            ([90 << 30, 512 << 10], "GiB free, axis to 100", "GiB free, axis to 0.0005"),
        ] {
            let unit = ByteUnit::of(values.into_iter());
            for (bytes, expected) in values.into_iter().zip([large, small]) {
                let svg = panel(bytes, unit).draw(&Frame::PAGE);
                assert!(svg.contains(&format!(">{expected}<")), "{expected}: {svg}");
            }
        }
    }

    #[test]
    fn narrow_panel_labels_its_first_and_last_bar() {
        let bars = [0, 200, 400].map(|pulls| Bar::compute(pulls, &[(4096, 1)])).to_vec();
        let (title, x_unit, x_label) = ("xfs".to_owned(), "pulls".to_owned(), "git pulls".to_owned());
        let panel = StackPanel { title, bars, x_unit, x_label, shares: false, unit: ByteUnit::of([1].into_iter()) };
        let frame = |width| Frame { width, plot: 90.0, has_end_labels: false, has_y_label: true, has_x_axis: true };
        let labels = |width| {
            ["0", "200", "400"].map(|label| panel.draw(&frame(width)).contains(&format!(r#""middle">{label}<"#)))
        };
        assert_eq!(labels(108.0), [true, false, true]);
        assert_eq!(labels(300.0), [true; 3]);
    }
}
