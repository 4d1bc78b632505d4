//! The strip chart of published experiments: a line for each figure. The x axis is its ratio to the
//! published number.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::{
    csv::{Csv, exact},
    format::{escape, figure},
    reproduction::{is_smoke, signs},
};

/// The ratios that count as met.
const MET: (f64, f64) = (0.6, 1.4);
/// The ends of the logarithmic axis. A ratio beyond one is drawn at it, with its value.
const ENDS: (f64, f64) = (0.1, 10.0);
const TICKS: [f64; 7] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
const TOP: f64 = 26.0;

/// Width of the drawing, the start of its axis, the letters of a name that fit, and the height of a
/// row. On narrow screens the name is above its dot.
struct Size {
    width: f64,
    left: f64,
    letters: usize,
    row: f64,
    class: &'static str,
}

const WIDE: Size = Size { width: 1116.0, left: 470.0, letters: 76, row: 17.0, class: "wide" };
const NARROW: Size = Size { width: 358.0, left: 34.0, letters: 74, row: 34.0, class: "narrow" };
/// On paper the wide drawing is in parts, each with its axis.
const PRINTED: Size = Size { class: "on-paper", ..WIDE };
/// The lines of such a part, so that it fits on the long side of A4 with its heading.
const PRINTED_LINES: usize = 32;
/// On narrow screens, names above the first length have smaller letters; names above the second are
/// also compressed.
const SMALL_LETTERS: (usize, usize) = (52, 62);

/// A figure with a published number.
struct Line<'j> {
    experiment: &'j str,
    name: &'j str,
    /// Ours over the published number; `None` if ours is no number, as of a run that did not keep
    /// up.
    ratio: Option<f64>,
    /// The verdict; "void" in a run whose verdicts mean nothing.
    verdict: &'j str,
    published: &'j str,
    ours: &'j str,
}

/// One drawing for wide screens, one for narrow screens, and one or more for paper. Empty if no
/// figure has a published number.
pub(crate) fn strips(reproduction: &Json) -> Vec<String> {
    let lines = lines(reproduction);
    match lines.is_empty() {
        true => Vec::new(),
        false => {
            let screens = [WIDE, NARROW].map(|size| draw(&lines, &size));
            let printed = lines.chunks(PRINTED_LINES).map(|part| draw(part, &PRINTED));
            screens.into_iter().chain(printed).collect()
        }
    }
}

fn lines(reproduction: &Json) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for experiment in reproduction["experiments"].as_array().into_iter().flatten() {
        for part in experiment["parts"].as_array().into_iter().flatten() {
            for figure in part["figures"].as_array().into_iter().flatten() {
                let ratio = figure["ratio"].as_f64();
                // The tally counts these figures, so each has a line.
                if ratio.is_none() && figure["published"].as_f64().is_none() {
                    continue;
                }
                let text = |key: &str| figure[key].as_str().unwrap_or("–");
                lines.push(Line {
                    experiment: experiment["name"].as_str().unwrap_or("–"),
                    name: text("name"),
                    ratio,
                    verdict: if is_smoke(reproduction) { "void" } else { text("verdict") },
                    published: text("paper"),
                    ours: text("ours"),
                });
            }
        }
    }
    lines
}

/// The figures of the drawing as CSV.
pub(crate) fn strip_csv(reproduction: &Json) -> String {
    let mut csv = Csv::new(&["experiment", "figure", "published", "ours", "ratio", "verdict"]);
    for line in lines(reproduction) {
        let texts = [line.experiment, line.name, line.published, line.ours].map(str::to_owned);
        csv.row(&[&texts[..], &[line.ratio.map(exact).unwrap_or_default(), line.verdict.to_owned()]].concat());
    }
    csv.finish()
}

fn draw(lines: &[Line<'_>], size: &Size) -> String {
    let right = size.width - 40.0;
    let place = |ratio: f64| (ratio.clamp(ENDS.0, ENDS.1) / ENDS.0).ln() / (ENDS.1 / ENDS.0).ln();
    let x = |ratio: f64| size.left + place(ratio) * (right - size.left);
    let base = TOP + lines.len() as f64 * size.row;
    let height = base + 34.0;
    let mut svg = format!(
        r#"<svg class="panel strip {}" viewBox="0 0 {} {height}" role="img" tabindex="0" aria-label="Ours over published, one line for each figure">"#,
        size.class, size.width
    );
    let (low, high) = (x(MET.0), x(MET.1));
    let _ = write!(
        svg,
        r#"<rect class="noise" x="{low:.1}" y="{TOP}" width="{:.1}" height="{:.1}"/>"#,
        high - low,
        base - TOP
    );
    for tick in TICKS {
        let (at, label) = (x(tick), tick.to_string());
        let class = if tick == 1.0 { "axis" } else { "grid" };
        let _ = write!(svg, r#"<line class="{class}" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{base}"/>"#);
        let shown = size.class != "narrow" || [0.1, 0.5, 1.0, 2.0, 10.0].contains(&tick);
        for y in [TOP - 8.0, base + 15.0].into_iter().filter(|_| shown) {
            let _ = write!(svg, r#"<text class="tick" x="{at:.1}" y="{y:.1}" text-anchor="middle">{label}</text>"#);
        }
    }
    let mut before = "";
    for (at, line) in lines.iter().enumerate() {
        let top = TOP + at as f64 * size.row;
        let (y, text) = (top + size.row - 8.5, top + 12.5);
        if line.experiment != before {
            let _ = write!(svg, r#"<line class="grid" x1="0" x2="{right:.1}" y1="{top:.1}" y2="{top:.1}"/>"#);
            let _ = write!(svg, r#"<text class="end-label" x="0" y="{text:.1}">{}</text>"#, escape(line.experiment));
            before = line.experiment;
        }
        let words = signs(line.name);
        let name = escape(&shortened(&words, size.letters));
        let small = match (size.class, words.chars().count()) {
            ("narrow", count) if count > SMALL_LETTERS.1 => {
                r#" small-label" textLength="320" lengthAdjust="spacingAndGlyphs"#
            }
            ("narrow", count) if count > SMALL_LETTERS.0 => " small-label",
            _ => "",
        };
        let _ = write!(svg, r#"<text class="tick{small}" x="34" y="{text:.1}">{name}</text>"#);
        draw_mark(&mut svg, line, size, x, y);
        let tip = format!(
            "{} {}\nink\tours over published\t{}\nink\tpublished\t{}\nink\tours\t{}",
            line.experiment,
            line.name,
            line.ratio.map_or("–".to_owned(), figure),
            line.published,
            line.ours
        );
        let _ = write!(
            svg,
            r#"<rect class="column" x="0" y="{top:.1}" width="{right:.1}" height="{}" data-tip="{}"/>"#,
            size.row,
            escape(&tip.replace('\r', " "))
        );
    }
    let middle = (size.left + right) / 2.0;
    let _ = write!(
        svg,
        r#"<text class="axis-label" x="{middle:.1}" y="{:.1}" text-anchor="middle">ours over published{}</text></svg>"#,
        base + 31.0,
        if size.class != "narrow" { " (logarithmic; grey: met within 40%)" } else { "" }
    );
    svg
}

/// The mark of a figure, with its ratio if that is beyond an end of the axis. A figure without a
/// ratio has ours as text.
///
/// If a figure is met outside the band, the paper states a limit: the mark is a triangle.
fn draw_mark(svg: &mut String, line: &Line<'_>, size: &Size, x: impl Fn(f64) -> f64, y: f64) {
    let Some(ratio) = line.ratio.filter(|ratio| ratio.is_finite()) else {
        // At the edge, where no ratio is near.
        let (x, y, ours) = (size.width, y + 4.0, escape(line.ours));
        let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="end">no ratio: {ours}</text>"#);
        return;
    };
    let (at, class) = (x(ratio), escape(line.verdict));
    if line.verdict == "met" && !(MET.0..=MET.1).contains(&ratio) {
        let (left, right, top, bottom) = (at - 5.0, at + 4.0, y - 4.5, y + 4.5);
        let _ =
            write!(svg, r#"<path class="mark {class} limit" d="M{left:.1} {y:.1}L{right:.1} {top:.1}V{bottom:.1}Z"/>"#);
    } else {
        let _ = write!(svg, r#"<circle class="mark {class}" cx="{at:.1}" cy="{y:.1}" r="4"/>"#);
    }
    if !(ENDS.0..=ENDS.1).contains(&ratio) {
        let (x, y, text) = (at + 8.0, y + 4.0, figure(ratio));
        let _ = write!(svg, r#"<text class="tick" x="{x:.1}" y="{y:.1}">{text}×</text>"#);
    }
}

/// The name in at most this number of letters. Its middle is left out, because similar names often
/// differ at an end.
pub(crate) fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_owned();
    }
    let kept = letters.saturating_sub(1);
    let (start, end) = (kept.div_ceil(2), kept / 2);
    name.chars().take(start).chain(['…']).chain(name.chars().skip(count - end)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limit_has_a_mark_of_its_own() {
        let of = |ratio: f64, percent: u64| {
            let figures = [json!({ "name": "cores", "ratio": ratio, "verdict": "met" })];
            let input = json!({
                "scale": { "turnover_percent": percent },
                "experiments": [{ "name": "E4", "parts": [{ "figures": figures }] }],
            });
            strips(&input).swap_remove(0)
        };
        assert!(of(0.39, 100).contains(r#"<path class="mark met limit""#), "{}", of(0.39, 100));
        assert!(of(0.9, 100).contains(r#"<circle class="mark met""#), "{}", of(0.9, 100));
        // The verdicts of a smoke test mean nothing.
        assert!(of(0.39, 3).contains(r#"<circle class="mark void""#), "{}", of(0.39, 3));
    }

    #[test]
    fn printed_strip_is_in_parts_with_an_axis_each() {
        let figures: Vec<Json> =
            (0..70).map(|at| json!({ "name": format!("f{at}"), "ratio": 1.0, "verdict": "met" })).collect();
        let drawn = strips(&json!({ "experiments": [{ "name": "E1", "parts": [{ "figures": figures }] }] }));
        let printed: Vec<_> = drawn.iter().filter(|svg| svg.contains("strip on-paper")).collect();
        assert_eq!(printed.len(), 3);
        assert!(printed.iter().all(|svg| svg.contains("ours over published (log")), "{printed:?}");
    }

    #[test]
    fn each_ratio_has_a_mark_by_its_verdict() {
        let figure =
            |name: &str, ratio: f64, verdict: &str| json!({ "name": name, "ratio": ratio, "verdict": verdict });
        let figures =
            [figure("a <long>", 1.1, "met"), figure("b", 40.0, "not-met"), json!({ "name": "c", "verdict": null })];
        let drawn = strips(&json!({ "experiments": [{ "name": "E1", "parts": [{ "figures": figures }] }] }));
        assert_eq!(drawn.len(), 3, "wide, narrow, paper");
        for svg in drawn {
            assert_eq!(svg.matches("class=\"mark met\"").count() + svg.matches("class=\"mark not-met\"").count(), 2);
            assert!(svg.contains("a &lt;long&gt;") && svg.contains(">40.0×<"), "{svg}");
        }
        assert!(strips(&json!({})).is_empty());
    }
}
