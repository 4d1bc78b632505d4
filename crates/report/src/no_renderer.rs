//! Replaces the module `renderer` in programs without the feature `png-pdf`. It draws nothing.

pub(crate) struct Renderer;

impl Renderer {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn warning(&self) -> Option<String> {
        Some("the figures are SVG and CSV only: this program was built without PNG and PDF, to build faster".to_owned())
    }

    pub(crate) fn png(&self, _svg: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }

    /// Does not make the drawing, because no file would have it.
    pub(crate) fn paper_files(
        &self,
        _svg: impl FnOnce() -> String,
        _width_mm: f64,
    ) -> Result<Option<(Vec<u8>, String)>, String> {
        Ok(None)
    }
}
