//! Figures as single drawings: their panels in rows, with a legend.

use std::fmt::Write as _;

use crate::chart::{CLASS_NAMES, Frame, LINE, PANEL_WIDTH, PLACE_COLOURS, arm_marker, marker};
use crate::figures::light_css;
use crate::format::escape;
use crate::model::words;
use crate::panels::{Figure, Legend, Panel, Variant, part_class};

const GAP: f64 = 28.0;
const MARGIN: f64 = 20.0;
const HEAD: f64 = 62.0;
/// Space that a figure without title saves.
const TITLE: f64 = 34.0;
/// The width of an entry of a legend, px.
const ENTRY: f64 = 124.0;
/// The gaps between panels of a figure for a paper: beside each other, and below each other.
const PAPER_GAPS: (f64, f64) = (16.0, 10.0);

/// The size of a figure for a paper.
pub(crate) struct Paper {
    /// Its width on paper.
    pub mm: u32,
    /// Its width in px. The smallest text is then at least 6 points high.
    width: f64,
    /// The height in px that its panels share.
    height: f64,
    /// The most panels beside each other.
    columns: usize,
}

/// One column of text, and two. A figure of one column is at most about as high as wide.
pub(crate) const PAPERS: [Paper; 2] = [
    Paper { mm: 84, width: 400.0, height: 400.0, columns: 1 },
    Paper { mm: 178, width: 788.0, height: 480.0, columns: 3 },
];

/// A figure as one SVG document, light, with its title and legend: panels in rows of up to three.
pub(crate) fn standalone_svg(figure: &Figure, variant: Variant, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 3);
    let columns = if figure.legend == Legend::Sizes && panels.len() == 4 { 2 } else { columns };
    Sheet::of_page(columns, panels).draw(figure, variant, panels)
}

/// The layout of a figure's panels.
pub(crate) struct Sheet {
    width: f64,
    columns: usize,
    has_title: bool,
    gaps: (f64, f64),
    /// The area of each panel.
    frames: Vec<Frame>,
}

impl Sheet {
    /// Panels as they are on a page.
    fn of_page(columns: usize, panels: &[Panel]) -> Self {
        let frame = |panel: &Panel| Frame { plot: panel.drawing.page_plot(), ..Frame::PAGE };
        Self {
            width: MARGIN * 2.0 + columns as f64 * (PANEL_WIDTH + GAP) - GAP,
            columns,
            has_title: true,
            gaps: (GAP, GAP),
            frames: panels.iter().map(frame).collect(),
        }
    }

    /// Panels as small as the paper needs. Panels with equal axes have the titles of the axes once.
    pub(crate) fn of_paper(paper: &Paper, panels: &[Panel]) -> Self {
        let count = panels.len().max(1);
        let is_upright = panels.iter().any(|panel| panel.drawing.is_upright());
        let most = panels.iter().map(|panel| panel.drawing.columns()).min().unwrap_or(1);
        let columns = match (paper.columns, count) {
            (_, count) if is_upright => count.min(3),
            (1, ..=3) | (_, 1) => 1,
            (1, _) => most,
            (_, 2 | 4) => 2,
            (columns, _) => columns,
        };
        let width = (paper.width - MARGIN * 2.0 - (columns - 1) as f64 * PAPER_GAPS.0) / columns as f64;
        let frame = |(at, panel): (usize, &Panel)| {
            let (shares_x, shares_y) = panel.drawing.shares_titles();
            Frame {
                width,
                plot: 0.0,
                has_end_labels: columns == 1,
                has_y_label: panel.drawing.has_y_label() && (!shares_y || at < columns),
                has_x_axis: !shares_x || at + columns >= count,
            }
        };
        let mut frames: Vec<Frame> = panels.iter().enumerate().map(frame).collect();
        let heights = |frames: &[Frame]| -> f64 {
            let height = |(panel, frame): (&Panel, &Frame)| panel.drawing.height(frame);
            let all: Vec<f64> = panels.iter().zip(frames).map(height).collect();
            all.chunks(columns).map(|row| row.iter().copied().fold(0.0, f64::max)).sum()
        };
        let rows = count.div_ceil(columns) as f64;
        let left = paper.height - HEAD + TITLE - MARGIN - (rows - 1.0) * PAPER_GAPS.1 - heights(&frames);
        for (frame, panel) in frames.iter_mut().zip(panels) {
            frame.plot = (left / rows).clamp(32.0, panel.drawing.page_plot());
        }
        Self { width: paper.width, columns, has_title: false, gaps: PAPER_GAPS, frames }
    }

    /// The figure as an SVG document.
    pub(crate) fn draw(&self, figure: &Figure, variant: Variant, panels: &[Panel]) -> String {
        let has_end_labels = self.frames.iter().all(|frame| frame.has_end_labels);
        let reference = panels.iter().find_map(|panel| panel.drawing.reference()).filter(|_| !has_end_labels);
        let drawn: Vec<String> =
            panels.iter().zip(&self.frames).map(|(panel, frame)| panel.drawing.draw(frame)).collect();
        let has_lines = drawn.iter().any(|svg| svg.contains(LINE));
        let legend = legend(&figure.legend, self.width, reference, has_lines);
        let rise = if self.has_title { 0.0 } else { TITLE };
        let head = HEAD + (legend.1 - 1.0) * 20.0 - rise;
        let (mut body, mut top) = (String::new(), head + 8.0);
        let rows = panels.chunks(self.columns).zip(self.frames.chunks(self.columns));
        for ((panels, frames), drawn) in rows.zip(drawn.chunks(self.columns)) {
            let mut x = MARGIN;
            let mut height: f64 = 0.0;
            for ((panel, frame), svg) in panels.iter().zip(frames).zip(drawn) {
                let _ = write!(body, r#"<g transform="translate({x:.1},{top:.1})">{svg}</g>"#);
                x += frame.width + self.gaps.0;
                height = height.max(panel.drawing.height(frame));
            }
            top += height + self.gaps.1;
        }
        let (width, height) = (self.width, (top - self.gaps.1 + MARGIN - 8.0).ceil());
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
        );
        // Panels with scales of their own must not be compared by their slopes.
        let scales = if variant == Variant::Own { " (own scales)" } else { "" };
        let title = format!("{}{scales}", escape(&figure.title));
        let _ = write!(svg, "<title>{title} ({})</title><style>{}</style>", variant.label(), light_css(""));
        let _ = write!(svg, r#"<rect class="paper" width="{width}" height="{height}"/>"#);
        if self.has_title {
            let _ = write!(svg, r#"<text class="figure-title" x="{MARGIN}" y="30">{title}</text>{}"#, legend.0);
        } else {
            let _ = write!(svg, r#"<g transform="translate(0,-{rise})">{}</g>"#, legend.0);
        }
        svg + &body + "</svg>\n"
    }
}

/// The legend's elements, and its number of lines. `reference` names the dotted line of the panels;
/// `has_lines` is whether lines join their points.
fn legend(legend: &Legend, width: f64, reference: Option<&str>, has_lines: bool) -> (String, f64) {
    let (mut svg, mut marks) = (String::new(), String::new());
    let per_line = (width / ENTRY).floor().max(1.0) as usize;
    let place = |at: usize| (MARGIN + (at % per_line) as f64 * ENTRY, 50.0 + (at / per_line) as f64 * 20.0);
    let lines = |entries: usize| entries.div_ceil(per_line).max(1);
    let mut entries: Vec<(String, &str)> = Vec::new();
    match legend {
        Legend::Roles(roles) => {
            entries.extend(roles.iter().map(|role| (role.name().to_owned(), words(*role))));
            for (at, role) in roles.iter().enumerate() {
                let (x, y) = place(at);
                let _ = write!(marks, r#"<g class="series {}">{}</g>"#, role.name(), marker(*role, x + 13.0, y));
            }
        }
        Legend::Arms(arms, roles) => {
            for (at, (arm, class)) in arms.iter().enumerate() {
                let (x, y) = place(at);
                let mark = arm_marker(class, x + 13.0, y).unwrap_or_default();
                let _ = write!(marks, r#"<g class="series full {class}">{mark}</g>"#);
                entries.push((class.clone(), arm.as_str()));
            }
            // Volumes start on a line of their own.
            entries.resize(lines(entries.len()) * per_line, (String::new(), ""));
            entries.extend(roles.iter().map(|role| (format!("{} arm-none", role.name()), words(*role))));
        }
        Legend::Parts(names) => {
            entries.extend(names.iter().enumerate().map(|(at, name)| (part_class(at), name.as_str())));
        }
        Legend::Sizes => {
            for (at, name) in CLASS_NAMES.iter().enumerate() {
                let (x, y) = place(at);
                svg.push_str(&square(&format!("size-{at}"), x, y - 6.0, name));
            }
            return (svg, lines(CLASS_NAMES.len()) as f64);
        }
        Legend::Places => return places(width),
    }
    entries.extend(reference.map(|name| ("reference".to_owned(), name)));
    // Without lines, a volume of a figure of arms would have no mark.
    let is_volumes = matches!(legend, Legend::Roles(_));
    for (at, (classes, name)) in entries.iter().enumerate().filter(|(_, (_, name))| !name.is_empty()) {
        let (x, y) = place(at);
        let has_line = has_lines || !is_volumes || classes == "reference";
        svg.push_str(&legend_line(x, y, if has_line { classes } else { "" }, name));
    }
    (svg + &marks, lines(entries.len()) as f64)
}

/// The legend of maps.
fn places(width: f64) -> (String, f64) {
    let mut svg = format!(r#"<text class="tick" x="{MARGIN}" y="54">first file of the tree</text>"#);
    for (at, [red, green, blue]) in PLACE_COLOURS.iter().enumerate() {
        let x = MARGIN + ENTRY + at as f64 * 20.0;
        let _ =
            write!(svg, r##"<rect fill="#{red:02x}{green:02x}{blue:02x}" x="{x}" y="44" width="20" height="11"/>"##);
    }
    let _ = write!(svg, r#"<text class="tick" x="{}" y="54">last file</text>"#, MARGIN + 252.0);
    // A narrow figure has no place for them in the same line.
    let is_wide = width > 440.0;
    let (left, top) = if is_wide { (330.0, 44.0) } else { (0.0, 64.0) };
    for (at, (class, name)) in [("blank", "free"), ("metadata", "metadata")].into_iter().enumerate() {
        svg.push_str(&square(class, MARGIN + left + at as f64 * 80.0, top, name));
    }
    (svg, if is_wide { 1.0 } else { 2.0 })
}

/// A square in the style of this class, and its name.
fn square(class: &str, x: f64, y: f64, name: &str) -> String {
    let (text, base) = (x + 16.0, y + 10.0);
    format!(
        r#"<rect class="{class}" x="{x}" y="{y}" width="11" height="11"/><text class="tick" x="{text}" y="{base}">{name}</text>"#
    )
}

/// A line in the style of these classes, none without a class, and its name.
fn legend_line(x: f64, y: f64, classes: &str, name: &str) -> String {
    let (end, text, base, name) = (x + 26.0, x + 32.0, y + 4.0, escape(name));
    let line = match classes {
        "" => String::new(),
        classes => {
            let line = if classes == "reference" { "reference" } else { "line" };
            format!(r#"<g class="series {classes}"><line class="{line}" x1="{x}" x2="{end}" y1="{y}" y2="{y}"/></g>"#)
        }
    };
    format!(r#"{line}<text class="tick" x="{text}" y="{base}">{name}</text>"#)
}

#[cfg(test)]
mod tests {
    use senesce_store::Role;

    use super::*;
    use crate::chart::{Axis, LinePanel};

    #[test]
    fn legend_entries_stay_inside_the_drawing() {
        let arms = ["mail", "churn", "depth", "fullness", "five", "six", "seven"];
        let arms = arms.map(|arm| (arm.to_owned(), "arm-0".to_owned())).to_vec();
        let roles = vec![Role::Full, Role::Empty, Role::Unaged];
        for kind in [Legend::Arms(arms, roles.clone()), Legend::Roles(roles), Legend::Sizes, Legend::Places] {
            for width in [400.0, 788.0, 1176.0] {
                let (svg, lines) = legend(&kind, width, Some("asked"), true);
                let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
                let right = svg.split(" x=\"").skip(1).map(number).fold(0.0, f64::max);
                assert!(right + 70.0 < width, "{right} of {width}");
                let bottom = svg.split(" y=\"").skip(1).map(number).fold(0.0, f64::max);
                assert!(bottom <= HEAD + (lines - 1.0) * 20.0, "{bottom} below {lines} lines");
            }
        }
    }

    #[test]
    fn figures_of_a_column_are_about_as_high_as_wide() {
        let panel = |arm: usize| {
            let panel = LinePanel {
                title: format!("arm {arm}"),
                x_unit: "pulls".into(),
                x_label: "git pulls".into(),
                y_label: "seconds per GiB",
                unit: " s/GiB",
                series: Vec::new(),
                x: Axis { min: 0.0, max: 1000.0, logarithmic: false },
                y: Axis::from_zero(9.0),
                has_own_x: false,
                reference: Some((1.0, "fresh copy")),
                noise: None,
            };
            Panel::new(String::new(), panel)
        };
        for paper in &PAPERS {
            for count in 1..=8 {
                let panels: Vec<Panel> = (0..count).map(panel).collect();
                let figure = Figure {
                    name: "f".into(),
                    title: "f".into(),
                    caption: String::new(),
                    legend: Legend::Roles(vec![Role::Full]),
                    csv: String::new(),
                    variants: Vec::new(),
                };
                let svg = Sheet::of_paper(paper, &panels).draw(&figure, Variant::Shared, &panels);
                let size = |name: &str| {
                    svg.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse::<f64>().unwrap()
                };
                let ratio = size("height") / size("width");
                let most = if paper.mm == 84 { 1.05 } else { 0.7 };
                assert!(ratio <= most, "{count} panels on {} mm: {ratio}", paper.mm);
                // Panels with equal axes have one title of each for a column.
                assert!(svg.matches(">seconds per GiB<").count() <= 3);
            }
        }
    }

    #[test]
    fn smallest_text_of_a_paper_has_six_points() {
        let style = include_str!("../assets/chart.css");
        let sizes = style.split("font-size: ").skip(1).filter_map(|rule| rule.split("px").next()?.parse::<f64>().ok());
        let smallest = sizes.fold(f64::INFINITY, f64::min);
        for paper in &PAPERS {
            let points = smallest * f64::from(paper.mm) * 72.0 / 25.4 / paper.width;
            assert!(points >= 6.0, "{} mm: {points} pt", paper.mm);
        }
    }
}
