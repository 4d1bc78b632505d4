//! The static layout of a tree: how much of it a reader finds where it looks next.

use senesce_core::Space;
use serde::{Deserialize, Serialize};

use super::distance::{DistanceBucket, Distances};
use crate::map::{ExtentFlags, Placement, RawExtent};

/// The layout of one file.
///
/// A *run* is a longest row of placed blocks, in file order, of which each lies directly behind the one before.
/// Extents that touch are one run; a hole in the file does not end a run that goes on behind it on the device.
/// So `following = blocks - extents` and layout score = `following / (blocks - 1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// Blocks that have a place, unwritten ones among them.
    pub blocks: u64,
    /// Runs of them: the file's extents after merging neighbours.
    pub extents: u64,
    /// Blocks of allocated but never written extents.
    pub unwritten_blocks: u64,
    /// Blocks shared with other files or snapshots.
    pub shared_blocks: u64,
    /// Bytes of content kept among the metadata; no blocks.
    pub inline_bytes: u64,
    /// Bytes without a place: waiting in memory or unknown.
    pub unplaced_bytes: u64,
    /// Compressed, encrypted or packed extents: their length on the device is unknown, so they are left out of blocks
    /// and score.
    pub encoded_extents: u64,
    /// Bytes of content in them.
    pub encoded_bytes: u64,
    /// First byte of the first run, if there is one.
    pub start_bytes: Option<u64>,
    /// First byte behind the last run, if there is one.
    pub end_bytes: Option<u64>,
}

impl FileLayout {
    /// Blocks that directly follow their predecessor in the file.
    pub fn following(&self) -> u64 {
        self.blocks - self.extents
    }

    /// Layout score, 0..1: the share of blocks, the first excepted, that directly follow their predecessor; none for
    /// fewer than two blocks. Source: K. Smith and M. Seltzer, File System Aging, SIGMETRICS 1997.
    pub fn layout_score(&self) -> Option<f64> {
        (self.blocks >= 2).then(|| self.following() as f64 / (self.blocks - 1) as f64)
    }
}

/// The layout of one file from its extents in file order, as FIEMAP gives them.
///
/// In: `block_bytes`, what counts as a block (4096 in every result table); a run that is not a whole number of blocks
/// is rounded up. Cost: one pass.
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

/// The layout of the files of one size class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeClass {
    /// The smallest size of the class, bytes: 0 or a power of two; it ends below the next power.
    pub at_least_bytes: u64,
    /// Files with blocks.
    pub files: u64,
    /// Of them, those in more than one extent.
    pub fragmented_files: u64,
    /// Their extents, neighbours merged.
    pub extents: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Aggregate layout score of the class; none if no file has two blocks.
    pub layout_score: Option<f64>,
}

/// The layout of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutFigures {
    /// Which addresses the extents' positions are; on Btrfs not those of the device.
    pub space: Space,
    /// What a block is, bytes.
    pub block_bytes: u64,
    /// Files with at least one placed block.
    pub files: u64,
    /// Files in more than one extent.
    pub fragmented_files: u64,
    /// Extents of all files, neighbours merged.
    pub extents: u64,
    /// Blocks of all files.
    pub blocks: u64,
    /// Mean extents per file with blocks; none if there is no such file.
    pub extents_per_file: Option<f64>,
    /// Aggregate layout score: sum of following blocks / sum of (blocks - 1), over files of two blocks and more; none
    /// if there is no such file.
    pub layout_score: Option<f64>,
    /// Of the pairs of files with blocks that follow each other in directory order, the share whose second starts
    /// exactly where the first ends; none for fewer than two such files.
    pub adjacent_files_share: Option<f64>,
    /// The gaps of those pairs.
    pub interfile_distances: Vec<DistanceBucket>,
    /// By size of the file's content, smallest first; classes without files are left out.
    pub by_size: Vec<SizeClass>,
    /// Files whose content lies wholly or partly among the metadata.
    pub inline_files: u64,
    /// Their bytes there.
    pub inline_bytes: u64,
    /// Files without any extent: empty, or one hole.
    pub empty_files: u64,
    /// Bytes without a place; not zero means that the map was taken before the data was written.
    pub unplaced_bytes: u64,
    /// Compressed, encrypted or packed extents, left out of blocks and scores.
    pub encoded_extents: u64,
    /// Bytes of content in them.
    pub encoded_bytes: u64,
    /// Blocks allocated but never written; counted in `blocks`.
    pub unwritten_blocks: u64,
    /// Blocks shared with other files or snapshots; counted in `blocks` once for each file.
    pub shared_blocks: u64,
}

/// Adds up the layout of a tree, file by file in directory order. Memory does not grow with the tree.
#[derive(Clone, Debug)]
pub struct LayoutScorer {
    space: Space,
    block_bytes: u64,
    /// All files, and by size class: 0 for empty files, n + 1 for 2^n bytes.
    classes: Vec<Sums>,
    distances: Distances,
    pairs: u64,
    end_before: Option<u64>,
    inline_files: u64,
    empty_files: u64,
    /// Sums of what is not in `classes`.
    rest: FileLayout,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    files: u64,
    fragmented_files: u64,
    extents: u64,
    blocks: u64,
    following: u64,
    /// Sum of (blocks - 1) over files of two blocks and more.
    followable: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.files += other.files;
        self.fragmented_files += other.fragmented_files;
        self.extents += other.extents;
        self.blocks += other.blocks;
        self.following += other.following;
        self.followable += other.followable;
    }

    fn layout_score(&self) -> Option<f64> {
        (self.followable > 0).then(|| self.following as f64 / self.followable as f64)
    }
}

impl LayoutScorer {
    /// A scorer of extents in `space`, counting blocks of `block_bytes`.
    pub fn new(space: Space, block_bytes: u64) -> Self {
        assert!(block_bytes > 0, "a block of zero bytes has no layout");
        Self {
            space,
            block_bytes,
            classes: vec![Sums::default(); 65],
            distances: Distances::default(),
            pairs: 0,
            end_before: None,
            inline_files: 0,
            empty_files: 0,
            rest: FileLayout::default(),
        }
    }

    /// Takes the next file in directory order: the size of its content, and its extents in file order.
    pub fn add_file(&mut self, size_bytes: u64, extents: &[RawExtent]) {
        let layout = compute_file_layout(extents, self.block_bytes);
        self.inline_files += u64::from(layout.inline_bytes > 0);
        self.empty_files += u64::from(extents.is_empty());
        self.rest.inline_bytes += layout.inline_bytes;
        self.rest.unplaced_bytes += layout.unplaced_bytes;
        self.rest.encoded_extents += layout.encoded_extents;
        self.rest.encoded_bytes += layout.encoded_bytes;
        self.rest.unwritten_blocks += layout.unwritten_blocks;
        self.rest.shared_blocks += layout.shared_blocks;
        let (Some(start), Some(end)) = (layout.start_bytes, layout.end_bytes) else { return };
        if let Some(before) = self.end_before.replace(end) {
            self.pairs += 1;
            self.distances.add(before, start, self.block_bytes);
        }
        self.classes[size_bytes.checked_ilog2().map_or(0, |power| power as usize + 1)].add(Sums {
            files: 1,
            fragmented_files: u64::from(layout.extents > 1),
            extents: layout.extents,
            blocks: layout.blocks,
            following: layout.following(),
            followable: layout.blocks - 1,
        });
    }

    /// The figures of all files taken.
    pub fn finish(&self) -> LayoutFigures {
        let mut all = Sums::default();
        self.classes.iter().for_each(|class| all.add(*class));
        let by_size = self.classes.iter().enumerate().filter(|(_, class)| class.files > 0);
        LayoutFigures {
            space: self.space,
            block_bytes: self.block_bytes,
            files: all.files,
            fragmented_files: all.fragmented_files,
            extents: all.extents,
            blocks: all.blocks,
            extents_per_file: (all.files > 0).then(|| all.extents as f64 / all.files as f64),
            layout_score: all.layout_score(),
            adjacent_files_share: (self.pairs > 0).then(|| self.distances.adjacent() as f64 / self.pairs as f64),
            interfile_distances: self.distances.buckets(),
            by_size: by_size
                .map(|(index, class)| SizeClass {
                    at_least_bytes: if index == 0 { 0 } else { 1 << (index - 1) },
                    files: class.files,
                    fragmented_files: class.fragmented_files,
                    extents: class.extents,
                    blocks: class.blocks,
                    layout_score: class.layout_score(),
                })
                .collect(),
            inline_files: self.inline_files,
            inline_bytes: self.rest.inline_bytes,
            empty_files: self.empty_files,
            unplaced_bytes: self.rest.unplaced_bytes,
            encoded_extents: self.rest.encoded_extents,
            encoded_bytes: self.rest.encoded_bytes,
            unwritten_blocks: self.rest.unwritten_blocks,
            shared_blocks: self.rest.shared_blocks,
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
