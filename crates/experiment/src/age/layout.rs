//! The layout of the files of a place.

use std::path::Path;

use schemars::JsonSchema;
use senesce_core::{Extent, Space};
use senesce_exec::{EngineTarget, collect_engine_extents};
use senesce_probe::{
    collect::{collect_space, collect_tree_extents},
    map::{ExtentFlags, RawExtent},
    score::LayoutScorer,
};
use senesce_volume::is_interrupted;
use serde::Serialize;

use crate::{Error, Onto, arm::check_signal};

/// The layout of the files below a directory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Layout {
    /// All regular files.
    pub files: u64,
    /// Files with extents. Empty files and those with inline content have none. The other figures
    /// are of files with extents.
    pub files_with_extents: u64,
    /// Aggregate layout score. `None` if no file has two blocks.
    pub layout_score: Option<f64>,
    /// Mean extents per file with extents.
    pub extents_per_file: Option<f64>,
}

impl Layout {
    /// Computes the layout of the `files` files that `scorer` read.
    fn of(files: u64, scorer: &LayoutScorer) -> Self {
        let figures = scorer.finish();
        let (layout_score, extents_per_file) = (figures.layout_score, figures.extents_per_file);
        Self { files, files_with_extents: figures.files, layout_score, extents_per_file }
    }
}

impl Onto<'_> {
    /// Collects the current layout.
    pub(crate) fn collect_layout(&self, threads: usize) -> Result<Option<Layout>, Error> {
        match self {
            Self::Directory(root) => collect_layout(root, threads),
            Self::Engine(target) => collect_engine_layout(target),
        }
    }
}

/// Computes layout score and extents per file of the tree below `root`. `None` if the file system
/// does not report extents.
///
/// Errors: the tree cannot be walked; a signal. Cost: one FIEMAP call for each file.
pub fn collect_layout(root: &Path, threads: usize) -> Result<Option<Layout>, Error> {
    let mut scorer = LayoutScorer::new(collect_space(root)?, 4096);
    let mapped = collect_tree_extents(root, threads, &is_interrupted, &mut |file| {
        scorer.add_file(file.size_bytes, &file.extents);
    });
    check_signal()?;
    match mapped {
        Ok(mapped) => Ok(Some(Layout::of(mapped.files, &scorer))),
        Err(senesce_probe::Error::NotSupported { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// As [`collect_layout`], for an engine. Its addresses are those of a device.
fn collect_engine_layout(target: &EngineTarget) -> Result<Option<Layout>, Error> {
    let mut scorer = LayoutScorer::new(Space::Device, 4096);
    let (mut raw, mut files) = (Vec::new(), 0);
    let reported = collect_engine_extents(target.file_system().as_ref(), &mut |size_bytes, extents: &[Extent]| {
        files += 1;
        raw.clear();
        raw.extend(extents.iter().map(|&extent| RawExtent { extent, flags: ExtentFlags::default() }));
        scorer.add_file(size_bytes, &raw);
    });
    let failed = |problem: String| Error::Unverified { what: "the engine's layout".into(), problem };
    if !reported.map_err(|error| failed(error.to_string()))? {
        return Ok(None);
    }
    Ok(Some(Layout::of(files, &scorer)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use senesce_testkit::found_or_skip;

    use super::*;

    #[test]
    fn files_without_extents_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("empty"), "").unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        for name in ["a", "below/b"] {
            fs::write(directory.path().join(name), vec![7; 100_000]).unwrap();
        }
        let layout = collect_layout(directory.path(), 2).unwrap();
        let Some(layout) = found_or_skip(layout, "a file system that reports extents") else { return };
        assert_eq!((layout.files, layout.files_with_extents), (3, 2));
    }
}
