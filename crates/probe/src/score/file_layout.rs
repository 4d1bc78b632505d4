//! The layout of one file: its runs of blocks, and its parts without blocks.

use serde::{Deserialize, Serialize};

use crate::map::{ExtentFlags, Placement, RawExtent};

/// The layout of one file.
///
/// A *run* is a maximal sequence of placed blocks, in file order, in which each block directly
/// follows the previous one. Adjacent extents are one run. A hole in the file does not end a run if
/// the device blocks continue after it. So `following = blocks - extents`, and the layout score is
/// `following / (blocks - 1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// Blocks with a position, including unwritten ones.
    pub blocks: u64,
    /// Runs: the file's extents after merging adjacent ones.
    pub extents: u64,
    /// Blocks of allocated but never written extents.
    pub unwritten_blocks: u64,
    /// Blocks shared with other files or snapshots.
    pub shared_blocks: u64,
    /// Bytes of content stored among the metadata, without blocks.
    pub inline_bytes: u64,
    /// Bytes without a position: still in memory, or unknown.
    pub unplaced_bytes: u64,
    /// Compressed, encrypted or packed extents. Their length on the device is unknown, so blocks
    /// and score leave them out.
    pub encoded_extents: u64,
    /// Bytes of content in them.
    pub encoded_bytes: u64,
    /// First byte of the first run, if there is one.
    pub start_bytes: Option<u64>,
    /// First byte after the last run, if there is one.
    pub end_bytes: Option<u64>,
}

impl FileLayout {
    /// Blocks that directly follow their predecessor in the file.
    pub fn following(&self) -> u64 {
        self.blocks - self.extents
    }

    /// Layout score, 0..1: the share of blocks, except the first, that directly follow their
    /// predecessor; none for fewer than two blocks. Source: K. Smith and M. Seltzer, File System
    /// Aging, SIGMETRICS 1997.
    pub fn layout_score(&self) -> Option<f64> {
        (self.blocks >= 2).then(|| self.following() as f64 / (self.blocks - 1) as f64)
    }
}

/// The layout of one file from its extents in file order, as FIEMAP returns them.
///
/// In: `block_bytes`, the size of a block (4096 in every result table). A run that is not a whole
/// number of blocks is rounded up. Cost: one pass.
pub fn compute_file_layout(extents: &[RawExtent], block_bytes: u64) -> FileLayout {
    assert!(block_bytes > 0, "a block of zero bytes has no layout");
    let mut layout = FileLayout::default();
    let mut run_bytes = 0;
    for raw in extents {
        let extent = raw.extent;
        match raw.placement() {
            Placement::Inline => layout.inline_bytes += extent.length,
            Placement::Unplaced => layout.unplaced_bytes += extent.length,
            Placement::Encoded => {
                layout.encoded_extents += 1;
                layout.encoded_bytes += extent.length;
            }
            Placement::Placed => {
                let blocks = extent.length.div_ceil(block_bytes);
                if raw.flags.contains(ExtentFlags::UNWRITTEN) {
                    layout.unwritten_blocks += blocks;
                }
                if raw.flags.contains(ExtentFlags::SHARED) {
                    layout.shared_blocks += blocks;
                }
                layout.start_bytes.get_or_insert(extent.physical);
                if layout.end_bytes == Some(extent.physical) {
                    run_bytes += extent.length;
                } else {
                    layout.blocks += u64::div_ceil(run_bytes, block_bytes);
                    layout.extents += 1;
                    run_bytes = extent.length;
                }
                layout.end_bytes = Some(extent.end());
            }
        }
    }
    layout.blocks += u64::div_ceil(run_bytes, block_bytes);
    layout
}

/// The runs of a file in bytes, in file order; the runs of [`FileLayout`].
pub(super) fn compute_runs(extents: &[RawExtent]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for extent in extents.iter().filter(|raw| raw.placement() == Placement::Placed).map(|raw| raw.extent) {
        match runs.last_mut() {
            Some(run) if run.start_bytes + run.length_bytes == extent.physical => run.length_bytes += extent.length,
            _ => runs.push(Run { start_bytes: extent.physical, length_bytes: extent.length }),
        }
    }
    runs
}

/// A run of a file's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start_bytes: u64,
    pub(super) length_bytes: u64,
}
