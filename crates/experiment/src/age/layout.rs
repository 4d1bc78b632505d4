//! How the files of a place lie.

use std::path::Path;

use senesce_core::{Extent, Space};
use senesce_exec::{EngineTarget, collect_engine_extents};
use senesce_probe::{
    collect::{collect_space, collect_tree_extents},
    map::{ExtentFlags, RawExtent},
    score::LayoutScorer,
};
use serde::Serialize;

use crate::{Error, Onto};

/// The layout of the files below a directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// Files with blocks.
    pub files: u64,
    /// Aggregate layout score; none if no file has two blocks.
    pub layout_score: Option<f64>,
    /// Mean extents per file with blocks.
    pub extents_per_file: Option<f64>,
}

impl Layout {
    fn of(scorer: &LayoutScorer) -> Self {
        let figures = scorer.finish();
        let (layout_score, extents_per_file) = (figures.layout_score, figures.extents_per_file);
        Self { files: figures.files, layout_score, extents_per_file }
    }
}

impl Onto<'_> {
    /// The layout of what is there now.
    pub(crate) fn collect_layout(&self, threads: usize) -> Result<Option<Layout>, Error> {
        match self {
            Self::Directory(root) => collect_layout(root, threads),
            Self::Engine(target) => collect_engine_layout(target),
        }
    }
}

/// Layout score and extents per file of the tree below `root`; none where the file system does not tell where files lie.
///
/// Errors: the tree cannot be walked. Cost: one FIEMAP a file.
pub fn collect_layout(root: &Path, threads: usize) -> Result<Option<Layout>, Error> {
    let mut scorer = LayoutScorer::new(collect_space(root)?, 4096);
    match collect_tree_extents(root, threads, &mut |file| scorer.add_file(file.size_bytes, &file.extents)) {
        Ok(_) => {}
        Err(senesce_probe::Error::NotSupported { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    Ok(Some(Layout::of(&scorer)))
}

/// The same of an engine, whose addresses are as a device's.
fn collect_engine_layout(target: &EngineTarget) -> Result<Option<Layout>, Error> {
    let mut scorer = LayoutScorer::new(Space::Device, 4096);
    let mut raw = Vec::new();
    let told = collect_engine_extents(target.file_system().as_ref(), &mut |size_bytes, extents: &[Extent]| {
        raw.clear();
        raw.extend(extents.iter().map(|&extent| RawExtent { extent, flags: ExtentFlags::default() }));
        scorer.add_file(size_bytes, &raw);
    });
    let failed = |problem: String| Error::Unverified { what: "the engine's layout".into(), problem };
    if !told.map_err(|error| failed(error.to_string()))? {
        return Ok(None);
    }
    Ok(Some(Layout::of(&scorer)))
}
