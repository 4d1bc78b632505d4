//! Figures as files: SVG, PNG and PDF.

use std::path::{Path, PathBuf};

use senesce_store::Results;

use crate::Error;
use crate::latex::latex;
use crate::methods::methods;
use crate::model::Model;
use crate::panels::figures;
use crate::renderer::Renderer;
use crate::sheet::{PAPERS, Sheet, standalone_svg};

/// The result of [`render_figures`].
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Files written, in the order of the report.
    pub files: Vec<PathBuf>,
    /// Warnings: without fonts on this machine, the PNG files have no text. Without the feature
    /// `png-pdf`, there are no files for papers and no PNG files.
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
    let renderer = Renderer::new();
    let mut drawn = DrawnFigures {
        methods: methods(&model).join("\n\n"),
        warnings: renderer.warning().into_iter().collect(),
        ..DrawnFigures::default()
    };
    let all = figures(&model);
    for figure in &all {
        for (variant, panels) in figure.variants.iter().filter(|(_, panels)| !panels.is_empty()) {
            let name = format!("{}-{}", figure.name, variant.name());
            let svg = standalone_svg(figure, *variant, panels);
            let png = renderer.png(&svg).map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            drawn.add(format!("{name}.svg"), svg.into_bytes());
            if let Some(png) = png {
                drawn.add(format!("{name}.png"), png);
            }
        }
        if !figure.csv.is_empty() {
            drawn.add(format!("{}.csv", figure.name), figure.csv.clone().into_bytes());
        }
        let Some((variant, panels)) = figure.variants.iter().find(|(_, panels)| !panels.is_empty()) else { continue };
        for paper in &PAPERS {
            let name = format!("{}-{}mm", figure.name, paper.mm);
            let sheet = || Sheet::of_paper(paper, panels).draw(figure, *variant, panels);
            let files = renderer
                .paper_files(sheet, f64::from(paper.mm))
                .map_err(|detail| Error::Draw { figure: name.clone(), detail })?;
            if let Some((pdf, svg)) = files {
                drawn.add(format!("{name}.pdf"), pdf);
                drawn.add(format!("{name}.svg"), svg.into_bytes());
            }
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
