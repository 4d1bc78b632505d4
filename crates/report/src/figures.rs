//! Figures as files: SVG, PNG and PDF.

use std::path::{Path, PathBuf};

use resvg::{tiny_skia, usvg};
use senesce_store::Results;

use crate::Error;
use crate::latex::latex;
use crate::methods::methods;
use crate::model::Model;
use crate::panels::figures;
use crate::pdf::pdf;
use crate::sheet::{PAPERS, Sheet, standalone_svg};

/// Pixels of a PNG per unit of its SVG.
const PNG_SCALE: f32 = 2.0;
/// The result of [`render_figures`].
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Files written, in the order of the report.
    pub files: Vec<PathBuf>,
    /// Warnings: without fonts on this machine, the PNG files have no text.
    pub warnings: Vec<String>,
}

/// All figures of a run as the contents of files, and texts about them.
#[derive(Clone, Debug, Default)]
pub struct DrawnFigures {
    /// Names and contents of the files of [`render_figures`], without `methods.txt`.
    pub files: Vec<(String, Vec<u8>)>,
    /// The methods paragraphs of a paper.
    pub methods: String,
    /// LaTeX environments that include the PDF files, with captions and labels. They expect the
    /// files in the directory `figures`.
    pub latex: String,
    /// As in [`Figures`].
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
    let drawn = draw_figures(results)?;
    std::fs::create_dir_all(out_dir).map_err(|error| io("make directory", out_dir, error))?;
    let mut files = Vec::new();
    for (name, bytes) in drawn.files.into_iter().chain([("methods.txt".to_owned(), drawn.methods.into_bytes())]) {
        let path = out_dir.join(name);
        std::fs::write(&path, bytes).map_err(|error| io("write", &path, error))?;
        files.push(path);
    }
    Ok(Figures { files, warnings: drawn.warnings })
}

/// Draws every figure in memory. Writes nothing.
pub fn draw_figures(results: &Results) -> Result<DrawnFigures, Error> {
    let model = Model::compute(results);
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    let mut drawn = DrawnFigures { methods: methods(&model).join("\n\n"), ..DrawnFigures::default() };
    match sans_serif(options.fontdb_mut()) {
        Some(family) => {
            options.fontdb_mut().set_sans_serif_family(&family);
            options.font_family = family;
        }
        None => {
            drawn.warnings.push("no fonts are installed, so the PNG files have no text; the SVG files do".to_owned())
        }
    }
    let all = figures(&model);
    for figure in &all {
        for (variant, panels) in figure.variants.iter().filter(|(_, panels)| !panels.is_empty()) {
            let name = format!("{}-{}", figure.name, variant.name());
            let svg = standalone_svg(figure, *variant, panels);
            let png = png(&svg, &options).map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            drawn.add(format!("{name}.svg"), svg.into_bytes());
            drawn.add(format!("{name}.png"), png);
        }
        if !figure.csv.is_empty() {
            drawn.add(format!("{}.csv", figure.name), figure.csv.clone().into_bytes());
        }
        let Some((variant, panels)) = figure.variants.iter().find(|(_, panels)| !panels.is_empty()) else { continue };
        for paper in &PAPERS {
            let name = format!("{}-{}mm", figure.name, paper.mm);
            let sheet = Sheet::of_paper(paper, panels).draw(figure, *variant, panels);
            let (pdf, svg) = paper_files(&sheet, f64::from(paper.mm), &options)
                .map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            drawn.add(format!("{name}.pdf"), pdf);
            drawn.add(format!("{name}.svg"), svg.into_bytes());
        }
    }
    drawn.latex = latex(&model, &all);
    Ok(drawn)
}

impl DrawnFigures {
    fn add(&mut self, name: String, bytes: Vec<u8>) {
        self.files.push((name, bytes));
    }
}

/// A drawing for a paper: as PDF, and as SVG whose letters are shapes.
fn paper_files(svg: &str, width_mm: f64, options: &usvg::Options) -> Result<(Vec<u8>, String), String> {
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
