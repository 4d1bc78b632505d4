//! The static layout of a tree: the share of it that a sequential reader finds at the next
//! position.

use schemars::JsonSchema;
use senesce_core::Space;
use serde::{Deserialize, Serialize};

use super::{
    extent_flags::ExtentKinds,
    extent_sizes::{AlignedShare, ShortExtents},
    file_layout::{FileLayout, compute_file_layout, compute_runs},
    jump_distance::{DistanceBucket, Distances},
    loss::{LossCounter, LossFigures, Owner},
};
use crate::map::RawExtent;

/// The layout of the files of one size class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeClass {
    /// The smallest size of the class, bytes: 0 or a power of two. The class ends below the next
    /// power.
    pub at_least_bytes: u64,
    /// Files with blocks.
    pub files: u64,
    /// Files in more than one extent.
    pub fragmented_files: u64,
    /// Extents of the files of the class, adjacent ones merged.
    pub extents: u64,
    /// Blocks of the files of the class.
    pub blocks: u64,
    /// Aggregate layout score of the class; `None` if no file has two blocks.
    pub layout_score: Option<f64>,
}

/// The layout of a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutFigures {
    /// The address space of the extents' positions; on Btrfs not that of the device.
    pub space: Space,
    /// Size of a block, bytes.
    pub block_bytes: u64,
    /// Files with at least one placed block.
    pub files: u64,
    /// Files in more than one extent.
    pub fragmented_files: u64,
    /// Extents of all files, adjacent ones merged.
    pub extents: u64,
    /// Blocks of all files.
    pub blocks: u64,
    /// Mean extents per file with blocks; `None` if there is no such file.
    pub extents_per_file: Option<f64>,
    /// Aggregate layout score: sum of following blocks / sum of (blocks - 1), over files of at
    /// least two blocks; `None` if there is no such file.
    pub layout_score: Option<f64>,
    /// The share of adjacent pairs among the pairs of files that are consecutive in directory order
    /// and have blocks. A pair is adjacent if the second file starts exactly at the end of the
    /// first. `None` for fewer than two such files.
    pub adjacent_files_share: Option<f64>,
    /// The gaps between the files of the pairs of `adjacent_files_share`.
    pub interfile_distances: Vec<DistanceBucket>,
    /// Mean gap of the pairs of `adjacent_files_share`, forward or backward, blocks; `None` if
    /// there is no pair.
    pub interfile_distance_mean_blocks: Option<f64>,
    /// Extents by the file system's flags, and the holes of the files.
    pub kinds: ExtentKinds,
    /// Extents shorter than the natural transfer size; `None` if that size is not known.
    pub short_extents: Option<ShortExtents>,
    /// The share of the files that huge pages could map.
    pub aligned: AlignedShare,
    /// The jumps of a reader that reads the tree in directory order, by their cause.
    pub loss: LossFigures,
    /// The layout by size of the file's content, smallest first. Classes without files are absent.
    pub by_size: Vec<SizeClass>,
    /// Files whose content is wholly or partly among the metadata.
    pub inline_files: u64,
    /// Bytes of content among the metadata.
    pub inline_bytes: u64,
    /// Files without any extent: empty, or one hole.
    pub empty_files: u64,
    /// Bytes without a position. If not zero, the map was taken before the data was written.
    pub unplaced_bytes: u64,
    /// Compressed, encrypted or packed extents; blocks and scores leave them out.
    pub encoded_extents: u64,
    /// Bytes of content in them.
    pub encoded_bytes: u64,
    /// Blocks allocated but never written; counted in `blocks`.
    pub unwritten_blocks: u64,
    /// Blocks shared with other files or snapshots; counted in `blocks` once for each file.
    pub shared_blocks: u64,
}

/// Sums the layout of a tree, file by file in directory order. Memory does not grow with the tree.
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
    /// Sums of the quantities that are not in `classes`.
    rest: FileLayout,
    kinds: ExtentKinds,
    short: Option<ShortExtents>,
    aligned: AlignedShare,
    loss: LossCounter,
    files_added: u64,
    directories_added: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) files: u64,
    pub(super) fragmented_files: u64,
    pub(super) extents: u64,
    pub(super) blocks: u64,
    following: u64,
    /// Sum of (blocks - 1) over files of at least two blocks.
    followable: u64,
}

impl Sums {
    /// The sums of one file with blocks.
    pub(super) fn of(layout: &FileLayout) -> Self {
        Self {
            files: 1,
            fragmented_files: u64::from(layout.extents > 1),
            extents: layout.extents,
            blocks: layout.blocks,
            following: layout.following(),
            followable: layout.blocks - 1,
        }
    }

    pub(super) fn add(&mut self, other: Sums) {
        self.files += other.files;
        self.fragmented_files += other.fragmented_files;
        self.extents += other.extents;
        self.blocks += other.blocks;
        self.following += other.following;
        self.followable += other.followable;
    }

    pub(super) fn layout_score(&self) -> Option<f64> {
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
            kinds: ExtentKinds::default(),
            short: None,
            aligned: AlignedShare::default(),
            loss: LossCounter::default(),
            files_added: 0,
            directories_added: 0,
        }
    }

    /// Counts extents below this size as short: the natural transfer size of the device, bytes.
    pub fn with_natural_transfer_size(mut self, bytes: u64) -> Self {
        self.short = Some(ShortExtents::new(bytes));
        self
    }

    /// Adds a directory when the walk enters it, with its own extents: metadata that a reader reads
    /// on its way. Without directories the loss through metadata is unknown, and is not counted.
    pub fn add_directory(&mut self, extents: &[RawExtent]) {
        self.directories_added += 1;
        for run in compute_runs(extents) {
            self.loss.add(Owner::Metadata, Owner::Metadata, run.start_bytes, run.start_bytes + run.length_bytes);
        }
    }

    /// Adds the next file in directory order: the size of its content, and its extents in file
    /// order.
    pub fn add_file(&mut self, size_bytes: u64, extents: &[RawExtent]) {
        self.score_file(size_bytes, extents);
    }

    /// The same; returns the file's own layout.
    pub fn score_file(&mut self, size_bytes: u64, extents: &[RawExtent]) -> FileLayout {
        let layout = compute_file_layout(extents, self.block_bytes);
        let runs = compute_runs(extents);
        self.kinds.add(size_bytes, extents);
        self.aligned.add(size_bytes, extents);
        if let Some(short) = &mut self.short {
            short.add(&runs);
        }
        let owner = Owner::File(self.files_added);
        self.files_added += 1;
        for run in &runs {
            self.loss.add(owner, owner, run.start_bytes, run.start_bytes + run.length_bytes);
        }
        self.inline_files += u64::from(layout.inline_bytes > 0);
        self.empty_files += u64::from(extents.is_empty());
        self.rest.inline_bytes += layout.inline_bytes;
        self.rest.unplaced_bytes += layout.unplaced_bytes;
        self.rest.encoded_extents += layout.encoded_extents;
        self.rest.encoded_bytes += layout.encoded_bytes;
        self.rest.unwritten_blocks += layout.unwritten_blocks;
        self.rest.shared_blocks += layout.shared_blocks;
        let (Some(start), Some(end)) = (layout.start_bytes, layout.end_bytes) else { return layout };
        if let Some(before) = self.end_before.replace(end) {
            self.pairs += 1;
            self.distances.add(before, start, self.block_bytes);
        }
        self.classes[size_bytes.checked_ilog2().map_or(0, |power| power as usize + 1)].add(Sums::of(&layout));
        layout
    }

    /// The figures of all added files.
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
            interfile_distance_mean_blocks: (self.pairs > 0).then(|| self.distances.sum() as f64 / self.pairs as f64),
            kinds: self.kinds,
            short_extents: self.short,
            aligned: self.aligned,
            loss: self.loss.finish(self.directories_added > 0),
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
