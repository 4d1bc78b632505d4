//! A panel of histograms by powers of two: one curve per volume, each with its own colour, dash and
//! marker.

use std::fmt::Write as _;

use senesce_store::Role;

use super::{
    Axis, Draw, Frame, draw_heights,
    line::{marker, spread_out},
};
use crate::format::{bytes, escape, number};
use crate::model::words;

const LEFT: f64 = 48.0;
const RIGHT: f64 = 80.0;
/// The same without names at the ends of curves.
const RIGHT_BARE: f64 = 10.0;
/// Pixels that a tick's label needs.
const TICK_WIDTH: f64 = 46.0;

/// One volume's histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    pub role: Role,
    /// Smallest value of the bucket in bytes (0, or a power of two), and its share, 0..=1.
    pub shares: Vec<(u64, f64)>,
}

/// One panel.
#[derive(Clone, Debug)]
pub(crate) struct HistogramPanel {
    pub title: String,
    /// The quantity of the buckets: `request size`.
    pub x_label: &'static str,
    /// The unit of the shares: `% of requests`.
    pub y_label: &'static str,
    pub curves: Vec<Distribution>,
    /// The buckets of the axis, smallest first, the same in all panels of a figure.
    pub buckets: Vec<u64>,
    /// The greatest share of all panels.
    pub most: f64,
}

impl HistogramPanel {
    /// All buckets from the smallest to the largest among these: no power of two is missing, and 0
    /// comes first.
    pub(crate) fn buckets_of(found: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let (mut has_zero, mut first, mut last) = (false, u64::MAX, 0);
        for bucket in found {
            has_zero |= bucket == 0;
            if bucket > 0 {
                (first, last) = (first.min(bucket), last.max(bucket));
            }
        }
        let zero = has_zero.then_some(0);
        let powers = std::iter::successors((first <= last).then_some(first), |bucket| bucket.checked_mul(2));
        zero.into_iter().chain(powers.take_while(|bucket| *bucket <= last)).collect()
    }
}

impl Draw for HistogramPanel {
    fn shares_titles(&self) -> (bool, bool) {
        (true, true)
    }

    fn draw(&self, frame: &Frame) -> String {
        let y_axis = Axis::from_zero(self.most * 100.0);
        let margin = if frame.has_end_labels { RIGHT } else { RIGHT_BARE };
        let (top, right, base) = (frame.top(), frame.width - margin, frame.base());
        let y = |share: f64| base - y_axis.position(share * 100.0) * (base - top);
        let slot = (right - LEFT) / self.buckets.len().max(1) as f64;
        let x = |at: usize| LEFT + (at as f64 + 0.5) * slot;
        let mut svg = String::new();
        frame.draw_title(&mut svg, &self.title);
        frame.draw_y_label(&mut svg, self.y_label);
        draw_heights(&mut svg, &y_axis, (LEFT, right), Some(0.0), |tick| y(tick / 100.0));
        let every = (TICK_WIDTH / slot).ceil().max(1.0) as usize;
        for (at, bucket) in self.buckets.iter().enumerate().filter(|(at, _)| at % every == 0) {
            let (x, label) = (x(at), tick_label(*bucket));
            let _ = write!(svg, r#"<line class="axis" x1="{x:.1}" x2="{x:.1}" y1="{base}" y2="{}"/>"#, base + 4.0);
            let y = base + 17.0;
            if frame.has_x_axis {
                let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#);
            }
        }
        frame.draw_x_label(&mut svg, (LEFT, right), self.x_label);
        for curve in &self.curves {
            let role = curve.role.name();
            let points: Vec<_> = self.buckets.iter().enumerate().map(|(at, b)| (x(at), y(share(curve, *b)))).collect();
            let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(
                svg,
                r#"<g class="series {role}" data-role="{role}"><polyline class="line" points="{}"/>"#,
                path.join(" ")
            );
            // Markers only above 0: a row of them along the axis would show nothing.
            for ((x, y), bucket) in points.iter().zip(&self.buckets) {
                if share(curve, *bucket) > 0.0 {
                    svg.push_str(&marker(curve.role, *x, *y));
                }
            }
            svg.push_str("</g>");
        }
        if frame.has_end_labels {
            self.draw_labels(&mut svg, frame, right, y);
        }
        for (at, bucket) in self.buckets.iter().enumerate() {
            let mut tip = match bucket {
                0 => "none: it follows the one before".to_owned(),
                from => format!("{} to below {}", bytes(*from as f64), bytes(*from as f64 * 2.0)),
            };
            for curve in &self.curves {
                let (role, share) = (curve.role.name(), share(curve, *bucket) * 100.0);
                let _ = write!(tip, "\n{role}\t{}\t{}%", words(curve.role), number(share));
            }
            let (left, height, tip) = (LEFT + at as f64 * slot, base - top, escape(&tip));
            let _ = write!(
                svg,
                r#"<rect class="column" x="{left:.1}" y="{top}" width="{slot:.1}" height="{height:.1}" data-tip="{tip}"/>"#
            );
        }
        svg
    }
}

impl HistogramPanel {
    /// The name of every curve right of the axes, at the height of its end.
    fn draw_labels(&self, svg: &mut String, frame: &Frame, right: f64, y: impl Fn(f64) -> f64) {
        let end = |curve: &Distribution| self.buckets.last().map_or(0.0, |last| share(curve, *last));
        let mut labels: Vec<_> = self.curves.iter().map(|curve| (y(end(curve)), curve.role)).collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = labels.iter().map(|label| label.0).collect();
        for ((_, role), y) in labels.iter().zip(spread_out(&wanted, frame.top(), frame.base())) {
            let (x, y, class) = (right + 8.0, y + 4.0, role.name());
            let _ = write!(
                svg,
                r#"<text class="end-label {class}" data-role="{class}" x="{x}" y="{y:.1}">{}</text>"#,
                words(*role)
            );
        }
    }
}

fn share(curve: &Distribution, bucket: u64) -> f64 {
    curve.shares.iter().find(|(of, _)| *of == bucket).map_or(0.0, |(_, share)| *share)
}

/// A power of two as short as can be: `64K`.
fn tick_label(bytes: u64) -> String {
    match bytes {
        0 => "none".to_owned(),
        bytes => {
            let unit = (bytes.ilog2() / 10).min(5) as usize;
            format!("{}{}", bytes >> (10 * unit), ["", "K", "M", "G", "T", "P"][unit])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_power_of_two_is_left_out() {
        assert_eq!(HistogramPanel::buckets_of([0, 4096, 32_768]), [0, 4096, 8192, 16_384, 32_768]);
        assert_eq!(HistogramPanel::buckets_of([512]), [512]);
        assert_eq!(HistogramPanel::buckets_of([0]), [0]);
        assert!(HistogramPanel::buckets_of([]).is_empty());
        assert_eq!(HistogramPanel::buckets_of([1 << 63]).len(), 1);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!([0, 512, 4096, 1 << 20, 512 << 30].map(tick_label), ["none", "512", "4K", "1M", "512G"]);
    }

    #[test]
    fn bucket_tooltips_show_all_volumes() {
        let curve = |role, shares: &[(u64, f64)]| Distribution { role, shares: shares.to_vec() };
        let panel = HistogramPanel {
            title: "ext4 <".into(),
            x_label: "request size",
            y_label: "% of requests",
            curves: vec![curve(Role::Empty, &[(4096, 0.75), (8192, 0.25)]), curve(Role::Unaged, &[(8192, 1.0)])],
            buckets: vec![4096, 8192],
            most: 1.0,
        };
        let svg = panel.draw(&Frame::PAGE);
        assert!(svg.contains("ext4 &lt;") && !svg.contains("NaN"), "{svg}");
        assert!(svg.contains("data-tip=\"4 KiB to below 8 KiB\nempty\troomy\t75%\nunaged\tfresh copy\t0%\""), "{svg}");
        assert_eq!(svg.matches("class=\"marker\"").count(), 3);
        assert_eq!(svg.matches("class=\"end-label").count(), 2, "every curve has its name at its end");
    }
}
