//! The page and the picture of a device's transfer curve beside the curves of models.
//!
//! The input is the output of `senesce device calibrate --json` (`senesce-transfer/1`), so that
//! this crate does not import the measuring code. It has the natural transfer sizes; this module
//! computes no figure.

use std::fmt::Write as _;

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::{
    Error,
    chart::{Curve, CurvePanel, natural_size_mark},
    figures::light_css,
    format::{bytes, count, escape, figure, number, page_json},
    html::style,
    page::render_page,
};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct TransferOptions {
    /// Version of the program, for the footer.
    pub senesce_version: String,
    /// Time of making, as text; `None` shows nothing.
    pub made_at: Option<String>,
}

/// Colours of models. Further models reuse them from the start.
const MODEL_COLOURS: usize = 5;
/// Width and height of the drawing on wide screens and in files, px.
const WIDE: (f64, f64) = (760.0, 420.0);
/// The same on narrow ones.
const NARROW: (f64, f64) = (358.0, 330.0);
/// The number of characters of a path that fit above the picture.
const LONGEST_PATH: usize = 36;
const CURVE_CSS: &str = include_str!("../assets/curve.css");

/// Renders a measured curve beside those of models as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-transfer/1`. Out: the page; the same for the same input. Values that
/// are missing in the input are shown as dashes.
pub fn render_transfer(transfer: &Json, options: &TransferOptions) -> Result<String, Error> {
    let curves = curves(transfer);
    let panels = [("wide", WIDE), ("narrow", NARROW)].map(|(class, size)| page_svg(class, size, &curves));
    let values = context! {
        path => text(&transfer["path"]),
        length => transfer["length_bytes"].as_f64().map_or("–".to_owned(), bytes),
        reads => transfer["reads"].as_u64().map_or("–".to_owned(), count),
        base => text(&transfer["base"]),
        verdict => verdict(&curves),
        made_at => options.made_at.as_deref(),
        version => options.senesce_version.as_str(),
        schema => text(&transfer["schema"]),
        style => style() + CURVE_CSS + include_str!("../assets/transfer.css"),
        script => include_str!("../assets/report.js"),
        panels => panels,
        rows => curves.iter().zip(kinds(transfer)).map(curve_row).collect::<Vec<_>>(),
        fit => fit_rows(transfer),
        scales => scales(transfer),
        names => curves.iter().map(|curve| curve.name.clone()).collect::<Vec<_>>(),
        points => point_rows(&curves),
        data => page_json(&transfer.to_string()),
    };
    render_page("transfer.html", include_str!("../assets/transfer.html"), values)
}

/// The picture alone, as one SVG document in light colours.
///
/// In: the input of [`render_transfer`]. Out: the same for the same input.
pub fn render_transfer_svg(transfer: &Json) -> String {
    let curves = curves(transfer);
    let (margin, head) = (20.0, 46.0);
    let legend = curves.len().div_ceil(4) as f64 * 20.0 + 24.0;
    let (width, height) = (WIDE.0 + 2.0 * margin, WIDE.1 + head + legend + margin);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
    );
    let path: Vec<char> = text(&transfer["path"]).chars().collect();
    let cut = path.len().saturating_sub(LONGEST_PATH);
    let path: String = (cut > 0).then_some('…').into_iter().chain(path[cut..].iter().copied()).collect();
    let title = format!("Effective bandwidth of random reads from {path}");
    let title = escape(&title);
    let _ = write!(svg, "<title>{title}</title><style>{}</style>", light_css(CURVE_CSS));
    let _ = write!(svg, r#"<rect class="paper" width="{width}" height="{height}"/>"#);
    let _ = write!(svg, r#"<text class="figure-title" x="{margin}" y="30">{title}</text>"#);
    for (at, (curve, kind)) in curves.iter().zip(kinds(transfer)).enumerate() {
        let (x, y) = (margin + (at % 4) as f64 * 190.0, head + 8.0 + (at / 4) as f64 * 20.0);
        let name = if curve.name == kind { kind.to_owned() } else { format!("{} ({kind})", curve.name) };
        let name = escape(&name);
        let _ = write!(
            svg,
            r#"<g class="series {}"><line class="line" x1="{x}" x2="{}" y1="{y}" y2="{y}"/></g><text class="tick" x="{}" y="{}">{name}</text>"#,
            curve.class,
            x + 30.0,
            x + 37.0,
            y + 4.0
        );
    }
    let y = head + legend - 16.0;
    for (at, fraction) in [0.5, 0.9].into_iter().enumerate() {
        let x = margin + 8.0 + at as f64 * 260.0;
        let _ = write!(
            svg,
            r#"<g class="series curve-measured">{}</g><text class="tick" x="{}" y="{}">natural transfer size at {:.0}% of the best</text>"#,
            natural_size_mark(fraction, x, y),
            x + 12.0,
            y + 4.0,
            fraction * 100.0
        );
    }
    let panel = CurvePanel { curves, width: WIDE.0, height: WIDE.1 };
    let _ = write!(svg, r#"<g transform="translate({margin},{})">{}</g></svg>"#, head + legend, panel.draw());
    svg.push('\n');
    svg
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

/// The curves that can be drawn.
fn curves(transfer: &Json) -> Vec<Curve> {
    let mut models = 0;
    let above_zero = |value: &Json| value.as_f64().filter(|value| *value > 0.0 && value.is_finite());
    list(&transfer["curves"])
        .map(|curve| {
            let kind = curve["kind"].as_str().unwrap_or("model");
            let class = match kind {
                "measured" | "fitted" => format!("curve-{kind}"),
                _ => {
                    models += 1;
                    format!("curve-{}", (models - 1) % MODEL_COLOURS + 1)
                }
            };
            let pair = |entry: &Json, a: &str, b: &str| Some((above_zero(&entry[a])?, above_zero(&entry[b])?));
            let mut points: Vec<_> =
                list(&curve["points"]).filter_map(|point| pair(point, "size_bytes", "mib_per_second")).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let natural = list(&curve["natural_transfer_sizes"]);
            Curve {
                class,
                name: text(&curve["name"]),
                is_measured: kind == "measured",
                points,
                natural_sizes: natural.filter_map(|entry| pair(entry, "fraction", "size_bytes")).collect(),
            }
        })
        .collect()
}

fn kinds(transfer: &Json) -> Vec<&str> {
    list(&transfer["curves"]).map(|curve| curve["kind"].as_str().unwrap_or("model")).collect()
}

fn natural_size(curve: &Curve, fraction: f64) -> String {
    let found = curve.natural_sizes.iter().find(|(of, _)| (of - fraction).abs() < 1e-9);
    found.map_or("–".to_owned(), |(_, size)| match curve.points.first() {
        // The true size may be smaller than the smallest that was read.
        Some((least, _)) if size <= least => format!("≤ {}", bytes(*size)),
        _ => bytes(*size),
    })
}

fn verdict(curves: &[Curve]) -> String {
    let Some(curve) = curves.iter().find(|curve| curve.is_measured && !curve.points.is_empty()) else {
        return "Nothing was measured.".to_owned();
    };
    format!(
        "Random reads of {} get half of the best bandwidth, {} MiB/s; reads of {} get nine tenths of it.",
        natural_size(curve, 0.5),
        number(curve.peak()),
        natural_size(curve, 0.9)
    )
}

fn page_svg(class: &str, (width, height): (f64, f64), curves: &[Curve]) -> String {
    let panel = CurvePanel { curves: curves.to_vec(), width, height };
    format!(
        r#"<svg class="panel {class}" viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-label="Effective bandwidth by size of reads">{}</svg>"#,
        panel.draw()
    )
}

/// The rows of the table, which is the legend too.
fn curve_row((curve, kind): (&Curve, &str)) -> Value {
    let peak = if curve.points.is_empty() { "–".to_owned() } else { figure(curve.peak()) };
    context! {
        class => curve.class.as_str(),
        name => curve.name.as_str(),
        kind => kind,
        cells => [peak, natural_size(curve, 0.5), natural_size(curve, 0.9)],
    }
}

fn fit_rows(transfer: &Json) -> Vec<[String; 4]> {
    let shown = |value: &Json| value.as_f64().map_or("–".to_owned(), figure);
    let row = |entry: &Json| {
        let error = entry["error_percent"].as_f64().map_or("–".to_owned(), |error| format!("{error:+.1}%"));
        let size = entry["size_bytes"].as_f64().map_or("–".to_owned(), bytes);
        [size, shown(&entry["measured_mib_per_second"]), shown(&entry["modelled_mib_per_second"]), error]
    };
    list(&transfer["residuals"]).map(row).collect()
}

fn scales(transfer: &Json) -> Vec<String> {
    let row = |entry: &Json| {
        let keys: Vec<_> = list(&entry["keys"]).map(text).collect();
        Some(format!("{} times {}", keys.join(", "), figure(entry["factor"].as_f64()?)))
    };
    list(&transfer["scales"]).filter_map(row).collect()
}

/// Every size with the bandwidth of each curve.
fn point_rows(curves: &[Curve]) -> Vec<Vec<String>> {
    let mut sizes: Vec<f64> = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let cell = |curve: &Curve, size: f64| {
        curve.points.iter().find(|point| point.0 == size).map_or("–".to_owned(), |point| figure(point.1))
    };
    let row = |size: f64| [bytes(size)].into_iter().chain(curves.iter().map(|curve| cell(curve, size))).collect();
    sizes.into_iter().map(row).collect()
}
