//! Draws SVG as PNG, and as the files of papers.
//!
//! Without the feature `png-pdf`, `no_renderer` replaces this module. It has the same functions.

use resvg::{tiny_skia, usvg};

use crate::pdf::pdf;

/// Pixels of a PNG per unit of its SVG.
const PNG_SCALE: f32 = 2.0;

/// Draws with the fonts of this machine.
pub(crate) struct Renderer {
    options: usvg::Options<'static>,
    has_fonts: bool,
}

impl Renderer {
    /// Reads the fonts of this machine.
    pub(crate) fn new() -> Self {
        let mut options = usvg::Options::default();
        options.fontdb_mut().load_system_fonts();
        let family = sans_serif(options.fontdb_mut());
        let has_fonts = family.is_some();
        if let Some(family) = family {
            options.fontdb_mut().set_sans_serif_family(&family);
            options.font_family = family;
        }
        Self { options, has_fonts }
    }

    /// What the files lack on this machine.
    pub(crate) fn warning(&self) -> Option<String> {
        let warning = "no fonts are installed, so the PNG files have no text; the SVG files do";
        (!self.has_fonts).then(|| warning.to_owned())
    }

    /// The drawing as PNG.
    pub(crate) fn png(&self, svg: &str) -> Result<Option<Vec<u8>>, String> {
        let tree = usvg::Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let size = tree.size().to_int_size().scale_by(PNG_SCALE).ok_or("it is too large")?;
        let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(PNG_SCALE, PNG_SCALE), &mut pixels.as_mut());
        pixels.encode_png().map(Some).map_err(|error| error.to_string())
    }

    /// A drawing for a paper: as PDF, and as SVG whose letters are shapes. `svg` makes the drawing.
    pub(crate) fn paper_files(
        &self,
        svg: impl FnOnce() -> String,
        width_mm: f64,
    ) -> Result<Option<(Vec<u8>, String)>, String> {
        let tree = usvg::Tree::from_str(&svg(), &self.options).map_err(|error| error.to_string())?;
        let shapes = tree.to_string(&usvg::WriteOptions { preserve_text: false, ..usvg::WriteOptions::default() });
        let (width, height) = (f64::from(tree.size().width()), f64::from(tree.size().height()));
        // The root element has the size in pixels; a paper needs it in millimetres.
        let (_, rest) = shapes.split_once('>').ok_or("the drawing has no root")?;
        let root = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width_mm}mm" height="{:.2}mm" viewBox="0 0 {width} {height}">"#,
            height * width_mm / width
        );
        Ok(Some((pdf(&tree, width_mm), root + rest)))
    }
}

fn sans_serif(fonts: &usvg::fontdb::Database) -> Option<String> {
    let wanted = ["Inter", "Helvetica Neue", "Arial", "Liberation Sans", "Noto Sans", "DejaVu Sans"];
    let families: Vec<&str> =
        fonts.faces().flat_map(|face| face.families.first()).map(|(name, _)| name.as_str()).collect();
    let found = wanted.iter().find(|name| families.contains(*name)).copied();
    found.or(families.first().copied()).map(str::to_owned)
}
