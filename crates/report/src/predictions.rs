//! Draws the scatter plot of the predicted gains of cures against the gains after the moves.

use std::fmt::Write as _;

use crate::{
    chart::{Axis, draw_heights, label_width, labelled_along},
    figures::light_css,
    format::{escape, number},
};

/// The gain of a cure.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedGain {
    /// The file system. Each one has a colour.
    pub file_system: String,
    /// The predicted gain of a cold read, seconds.
    pub predicted_seconds: f64,
    /// The gain of a cold read after the moves, seconds.
    pub reached_seconds: f64,
}

impl PredictedGain {
    /// Whether the predicted gain differs from the reached gain by at most this share of it.
    pub fn is_within(&self, share: f64) -> bool {
        (self.predicted_seconds - self.reached_seconds).abs() <= share * self.reached_seconds
    }
}

/// The largest share by which a predicted gain may differ from the reached one.
const BAND: f64 = 0.1;
const SIDE: f64 = 460.0;
const LEFT: f64 = 66.0;
const TOP: f64 = 92.0;
const WIDTH: f64 = LEFT + SIDE + 24.0;
const HEIGHT: f64 = TOP + SIDE + 56.0;
const DOTS_CSS: &str = include_str!("../assets/reproduction.css");

/// Draws a dot for each cure, the line of equal gains, and the band of 10% around it.
///
/// Omits gains of zero and below, because the axes are logarithmic, and states their number.
/// Returns the same bytes for the same input.
pub fn render_predictions_svg(gains: &[PredictedGain]) -> String {
    let drawn = || gains.iter().filter(|gain| gain.predicted_seconds > 0.0 && gain.reached_seconds > 0.0);
    let values = || drawn().flat_map(|gain| [gain.predicted_seconds, gain.reached_seconds]);
    let (low, high) = values().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let title = "Predicted gain of cures, and gain after the moves";
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{title}</title><style>{}</style><rect class="paper" width="{WIDTH}" height="{HEIGHT}"/><text class="figure-title" x="20" y="30">{title}</text>"#,
        light_css(DOTS_CSS)
    );
    if drawn().next().is_none() {
        svg.push_str("</svg>\n");
        return svg;
    }
    let axis = Axis::logarithmic(low, high);
    let (right, base) = (LEFT + SIDE, TOP + SIDE);
    let x = |value: f64| LEFT + axis.position(value).clamp(0.0, 1.0) * SIDE;
    let y = |value: f64| base - axis.position(value).clamp(0.0, 1.0) * SIDE;
    draw_heights(&mut svg, &axis, (LEFT, right), None, y);
    for tick in labelled_along(&axis, label_width(&axis), x) {
        let (at, label) = (x(tick), number(tick));
        let _ = write!(svg, r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{base}"/>"#);
        let _ =
            write!(svg, r#"<text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#, base + 17.0);
    }
    draw_band(&mut svg, &axis, x, y);
    let _ = write!(
        svg,
        r#"<text x="20" y="{}">Predicted gain of a cold read, s (both are modelled)</text><text x="{}" y="{}" text-anchor="middle">Gain after the moves, s</text>"#,
        TOP - 12.0,
        LEFT + SIDE / 2.0,
        base + 40.0
    );
    let left_out = gains.len() - drawn().count();
    if left_out > 0 {
        let _ = write!(
            svg,
            r#"<text class="tick" x="{}" y="{}" text-anchor="end">{left_out} without a gain are not drawn</text>"#,
            right - 8.0,
            base - 10.0
        );
    }
    let mut names: Vec<&str> = gains.iter().map(|gain| gain.file_system.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut at = 20.0;
    for (number, name) in names.into_iter().enumerate() {
        let class = format!("curve-{}", number % 5 + 1);
        let of = || gains.iter().filter(|gain| gain.file_system == name);
        let kept = of().filter(|gain| gain.is_within(BAND)).count();
        let text = format!("{name}: {kept} of {} within 10%", of().count());
        let _ = write!(svg, r#"<g class="series {class}"><circle class="dot" cx="{}" cy="52" r="4"/>"#, at + 4.0);
        for gain in drawn().filter(|gain| gain.file_system == name) {
            let (x, y) = (x(gain.reached_seconds), y(gain.predicted_seconds));
            let _ = write!(svg, r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="4" opacity="0.75"/>"#);
        }
        let _ = write!(svg, r#"</g><text class="tick" x="{}" y="56">{}</text>"#, at + 14.0, escape(&text));
        at += 175.0;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the band of 10% and the line of equal gains in it.
fn draw_band(svg: &mut String, axis: &Axis, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    // The band would leave the drawing beyond the ends of the axes, so its corners are cut.
    let (low, high) = (axis.min, axis.max);
    let corners = [
        (low, low),
        (low, low * (1.0 + BAND)),
        (high / (1.0 + BAND), high),
        (high, high),
        (high, high * (1.0 - BAND)),
        (low / (1.0 - BAND), low),
    ];
    let points: Vec<String> = corners.iter().map(|&(a, b)| format!("{:.1},{:.1}", x(a), y(b))).collect();
    let _ = write!(svg, r#"<polygon class="noise" points="{}"/>"#, points.join(" "));
    let _ = write!(
        svg,
        r#"<line class="axis" x1="{:.1}" x2="{:.1}" y1="{:.1}" y2="{:.1}"/>"#,
        x(low),
        x(high),
        y(low),
        y(high)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(file_system: &str, predicted_seconds: f64, reached_seconds: f64) -> PredictedGain {
        PredictedGain { file_system: file_system.to_owned(), predicted_seconds, reached_seconds }
    }

    #[test]
    fn gains_above_zero_have_dots_and_legend_counts_all() {
        let gains =
            [gain("xfs", 10.5, 10.0), gain("xfs", 12.0, 10.0), gain("ext4", -1.0, 2.0), gain("ext4", 1.0, 1.05)];
        let svg = render_predictions_svg(&gains);
        assert_eq!(svg.matches("r=\"4\" opacity").count(), 3);
        assert!(svg.contains("ext4: 1 of 2 within 10%") && svg.contains("xfs: 1 of 2 within 10%"), "{svg}");
    }

    #[test]
    fn gains_that_are_not_drawn_are_counted() {
        let gains = [gain("xfs", 10.5, 10.0), gain("btrfs", 0.0, 0.0), gain("btrfs", 0.0, 0.1)];
        assert!(render_predictions_svg(&gains).contains(">2 without a gain are not drawn<"));
        assert!(!render_predictions_svg(&gains[..1]).contains("not drawn"));
    }

    #[test]
    fn labels_of_many_decades_do_not_overlap() {
        let svg = render_predictions_svg(&[gain("xfs", 1e-6, 1e-6), gain("xfs", 150.0, 150.0)]);
        let labels = svg.split("<text class=\"tick\"").filter(|text| text.contains("text-anchor=\"middle\""));
        let place = |text: &str| {
            let x: f64 = text.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            let letters = text.split('>').nth(1).unwrap().split('<').next().unwrap().chars().count();
            (x, letters as f64 * 6.4 / 2.0)
        };
        let labels: Vec<_> = labels.map(place).collect();
        assert!(labels.len() > 2 && svg.contains(">200</text>"), "{labels:?}");
        assert!(labels.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0 - pair[1].1), "{labels:?}");
    }

    #[test]
    fn a_drawing_without_gains_has_its_title() {
        assert!(render_predictions_svg(&[gain("xfs", 0.0, 1.0)]).ends_with("moves</text></svg>\n"));
    }
}
