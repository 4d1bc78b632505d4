//! Figures as files: SVG, PNG and PDF.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use resvg::{tiny_skia, usvg};
use senesce_store::Results;

use crate::Error;
use crate::chart::{CLASS_NAMES, PANEL_HEIGHT, PANEL_WIDTH, PLACE_COLOURS};
use crate::format::escape;
use crate::methods::methods;
use crate::model::{Model, words};
use crate::panels::{Figure, Legend, Panel, Variant, arm_class, figures, part_class};
use crate::pdf::pdf;

const GAP: f64 = 28.0;
const MARGIN: f64 = 20.0;
const HEAD: f64 = 62.0;
/// Pixels of a PNG per unit of its SVG.
const PNG_SCALE: f32 = 2.0;
/// Widths of figures in papers, mm, with their columns of panels: one column of text, and two. The
/// smallest text is then 6.5 points high, that of long names 5.8 points.
const PAPER: [(u32, usize); 2] = [(84, 1), (178, 2)];

/// The result of [`render_figures`].
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Files written, in the order of the report.
    pub files: Vec<PathBuf>,
    /// Warnings: without fonts on this machine, the PNG files have no text.
    pub warnings: Vec<String>,
}

/// Writes every figure into `out_dir` (made if missing): `<figure>-<variant>.svg` and `.png`; its
/// data as `<figure>.csv`; for papers its first drawing as `<figure>-84mm` and `-178mm`, each as
/// PDF with its fonts and as SVG with its letters as shapes; and `methods.txt`.
///
/// The first SVG files and the texts are the same for the same results; the other files also depend
/// on the fonts of the machine.
pub fn render_figures(results: &Results, out_dir: &Path) -> Result<Figures, Error> {
    let io = |operation, path: &Path, source| Error::Io { operation, path: path.to_path_buf(), source };
    std::fs::create_dir_all(out_dir).map_err(|error| io("make directory", out_dir, error))?;
    let model = Model::compute(results);
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    let mut written = Figures::default();
    match sans_serif(options.fontdb_mut()) {
        Some(family) => {
            options.fontdb_mut().set_sans_serif_family(&family);
            options.font_family = family;
        }
        None => {
            written.warnings.push("no fonts are installed, so the PNG files have no text; the SVG files do".to_owned())
        }
    }
    for figure in figures(&model) {
        for (variant, panels) in figure.variants.iter().filter(|(_, panels)| !panels.is_empty()) {
            let name = format!("{}-{}", figure.name, variant.name());
            let svg = standalone_svg(&figure, *variant, panels);
            let png = png(&svg, &options).map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            written.write(out_dir, &format!("{name}.svg"), svg.as_bytes())?;
            written.write(out_dir, &format!("{name}.png"), &png)?;
        }
        if !figure.csv.is_empty() {
            written.write(out_dir, &format!("{}.csv", figure.name), figure.csv.as_bytes())?;
        }
        let Some((variant, panels)) = figure.variants.iter().find(|(_, panels)| !panels.is_empty()) else { continue };
        for (width, columns) in PAPER {
            let name = format!("{}-{width}mm", figure.name);
            let sheet = Sheet { columns: columns.min(panels.len()), has_title: false };
            let (pdf, svg) = paper(&sheet.draw(&figure, *variant, panels), f64::from(width), &options)
                .map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            written.write(out_dir, &format!("{name}.pdf"), &pdf)?;
            written.write(out_dir, &format!("{name}.svg"), svg.as_bytes())?;
        }
    }
    written.write(out_dir, "methods.txt", methods(&model).join("\n\n").as_bytes())?;
    Ok(written)
}

impl Figures {
    fn write(&mut self, out_dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = out_dir.join(name);
        std::fs::write(&path, bytes).map_err(|source| Error::Io { operation: "write", path: path.clone(), source })?;
        self.files.push(path);
        Ok(())
    }
}

/// A drawing for a paper: as PDF, and as SVG whose letters are shapes.
fn paper(svg: &str, width_mm: f64, options: &usvg::Options) -> Result<(Vec<u8>, String), String> {
    let tree = usvg::Tree::from_str(svg, options).map_err(|error| error.to_string())?;
    let shapes = tree.to_string(&usvg::WriteOptions { preserve_text: false, ..usvg::WriteOptions::default() });
    let (width, height) = (f64::from(tree.size().width()), f64::from(tree.size().height()));
    // The root element has the size in pixels; a paper needs it in millimetres.
    let (_, rest) = shapes.split_once('>').ok_or("the drawing has no root")?;
    let root = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width_mm}mm" height="{:.2}mm" viewBox="0 0 {width} {height}">"#,
        height * width_mm / width
    );
    Ok((pdf(&tree, width_mm), root + rest))
}

/// A figure as one SVG document, light, with its title and legend: panels in rows of up to three.
pub(crate) fn standalone_svg(figure: &Figure, variant: Variant, panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 3);
    let columns = if figure.legend == Legend::Sizes && panels.len() == 4 { 2 } else { columns };
    Sheet { columns, has_title: true }.draw(figure, variant, panels)
}

/// The layout of a figure's panels.
struct Sheet {
    columns: usize,
    has_title: bool,
}

impl Sheet {
    fn draw(&self, figure: &Figure, variant: Variant, panels: &[Panel]) -> String {
        let columns = self.columns;
        let rows = panels.len().div_ceil(columns);
        let legend = legend(&figure.legend, columns);
        let rise = if self.has_title { 0.0 } else { 34.0 };
        let head = HEAD + (legend.1 - 1.0) * 20.0 - rise;
        let width = MARGIN * 2.0 + columns as f64 * (PANEL_WIDTH + GAP) - GAP;
        let height = head + MARGIN + rows as f64 * (PANEL_HEIGHT + GAP) - GAP;
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
        );
        let title = escape(&figure.title);
        let _ = write!(svg, "<title>{title} ({})</title><style>{}</style>", variant.label(), light_css(""));
        let _ = write!(svg, r#"<rect class="paper" width="{width}" height="{height}"/>"#);
        if self.has_title {
            let _ = write!(svg, r#"<text class="figure-title" x="{MARGIN}" y="30">{title}</text>{}"#, legend.0);
        } else {
            let _ = write!(svg, r#"<g transform="translate(0,-{rise})">{}</g>"#, legend.0);
        }
        for (at, panel) in panels.iter().enumerate() {
            let x = MARGIN + (at % columns) as f64 * (PANEL_WIDTH + GAP);
            let y = head + 8.0 + (at / columns) as f64 * (PANEL_HEIGHT + GAP);
            let _ = write!(svg, r#"<g transform="translate({x},{y})">{}</g>"#, panel.svg);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The legend's elements, and its number of lines.
fn legend(legend: &Legend, columns: usize) -> (String, f64) {
    let mut svg = String::new();
    match legend {
        Legend::Roles(roles) => {
            for (at, role) in roles.iter().enumerate() {
                svg.push_str(&legend_line(MARGIN + at as f64 * 124.0, 50.0, role.name(), words(*role)));
            }
            (svg, 1.0)
        }
        Legend::Arms(arms, roles) => {
            let per_line = (columns * 3).min(6);
            for (at, arm) in arms.iter().enumerate() {
                let (x, y) = (MARGIN + (at % per_line) as f64 * 124.0, 50.0 + (at / per_line) as f64 * 20.0);
                svg.push_str(&legend_line(x, y, &arm_class(at), arm));
            }
            let lines = arms.len().div_ceil(per_line);
            for (at, role) in roles.iter().enumerate() {
                let x = MARGIN + at as f64 * 124.0;
                let classes = format!("{} arm-none", role.name());
                svg.push_str(&legend_line(x, 50.0 + lines as f64 * 20.0, &classes, words(*role)));
            }
            (svg, lines as f64 + 1.0)
        }
        Legend::Parts(names) => {
            for (at, name) in names.iter().enumerate() {
                let (x, y) = (MARGIN + (at % 2) as f64 * 124.0, 50.0 + (at / 2) as f64 * 20.0);
                svg.push_str(&legend_line(x, y, &part_class(at), name));
            }
            (svg, names.len().div_ceil(2) as f64)
        }
        Legend::Sizes => {
            let per_line = columns * 3;
            for (at, name) in CLASS_NAMES.iter().enumerate() {
                let x = MARGIN + (at % per_line) as f64 * 124.0;
                let y = 44.0 + (at / per_line) as f64 * 20.0;
                let _ = write!(
                    svg,
                    r#"<rect class="size-{at}" x="{x}" y="{y}" width="11" height="11"/><text class="tick" x="{}" y="{}">{name}</text>"#,
                    x + 16.0,
                    y + 10.0
                );
            }
            (svg, CLASS_NAMES.len().div_ceil(per_line) as f64)
        }
        Legend::Places => {
            let _ = write!(svg, r#"<text class="tick" x="{MARGIN}" y="54">first file of the tree</text>"#);
            for (at, [red, green, blue]) in PLACE_COLOURS.iter().enumerate() {
                let x = MARGIN + 124.0 + at as f64 * 20.0;
                let _ = write!(
                    svg,
                    r##"<rect fill="#{red:02x}{green:02x}{blue:02x}" x="{x}" y="44" width="20" height="11"/>"##
                );
            }
            let _ = write!(svg, r#"<text class="tick" x="{}" y="54">last file</text>"#, MARGIN + 252.0);
            // One panel is too narrow for them.
            let (left, top) = if columns > 1 { (330.0, 44.0) } else { (0.0, 64.0) };
            for (at, (class, name)) in [("blank", "free"), ("metadata", "metadata")].into_iter().enumerate() {
                let x = MARGIN + left + at as f64 * 80.0;
                let _ = write!(
                    svg,
                    r#"<rect class="{class}" x="{x}" y="{top}" width="11" height="11"/><text class="tick" x="{}" y="{}">{name}</text>"#,
                    x + 16.0,
                    top + 10.0
                );
            }
            (svg, if columns > 1 { 1.0 } else { 2.0 })
        }
    }
}

/// A line in the style of these classes, and its name.
fn legend_line(x: f64, y: f64, classes: &str, name: &str) -> String {
    let (end, text, base, name) = (x + 26.0, x + 32.0, y + 4.0, escape(name));
    format!(
        r#"<g class="series {classes}"><line class="line" x1="{x}" x2="{end}" y1="{y}" y2="{y}"/></g><text class="tick" x="{text}" y="{base}">{name}</text>"#
    )
}

/// The charts' style, and `more`, with the light colours put in: programs that draw SVG seldom know
/// custom properties.
pub(crate) fn light_css(more: &str) -> String {
    let mut css = include_str!("../assets/chart.css").to_owned() + more;
    for line in include_str!("../assets/light.css").lines() {
        if let Some((name, value)) = line.trim().trim_end_matches(';').split_once(": ") {
            css = css.replace(&format!("var({name})"), value);
        }
    }
    css
}

fn sans_serif(fonts: &usvg::fontdb::Database) -> Option<String> {
    let wanted = ["Inter", "Helvetica Neue", "Arial", "Liberation Sans", "Noto Sans", "DejaVu Sans"];
    let families: Vec<&str> =
        fonts.faces().flat_map(|face| face.families.first()).map(|(name, _)| name.as_str()).collect();
    let found = wanted.iter().find(|name| families.contains(*name)).copied();
    found.or(families.first().copied()).map(str::to_owned)
}

fn png(svg: &str, options: &usvg::Options) -> Result<Vec<u8>, String> {
    let tree = usvg::Tree::from_str(svg, options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(PNG_SCALE).ok_or("it is too large")?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(PNG_SCALE, PNG_SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use senesce_store::Role;

    use super::*;

    #[test]
    fn legend_entries_stay_inside_the_drawing() {
        let arms = ["mail", "churn", "depth", "fullness", "five", "six", "seven"].map(str::to_owned).to_vec();
        let roles = vec![Role::Full, Role::Empty, Role::Unaged];
        for kind in [Legend::Arms(arms, roles.clone()), Legend::Roles(roles), Legend::Sizes, Legend::Places] {
            for columns in 1..=3 {
                let width = MARGIN * 2.0 + columns as f64 * (PANEL_WIDTH + GAP) - GAP;
                let (svg, lines) = legend(&kind, columns);
                let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
                let right = svg.split(" x=\"").skip(1).map(number).fold(0.0, f64::max);
                assert!(right + 70.0 < width, "{right} of {width} with {columns} columns");
                let bottom = svg.split(" y=\"").skip(1).map(number).fold(0.0, f64::max);
                assert!(bottom <= HEAD + (lines - 1.0) * 20.0, "{bottom} below {lines} lines");
            }
        }
    }
}
