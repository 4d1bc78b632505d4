//! Layout by directory: shows which parts of the tree have fragmented files.

use std::collections::BTreeMap;

use senesce_core::RelPath;
use serde::Serialize;

use super::{
    file_layout::{FileLayout, compute_file_layout},
    layout::Sums,
};
use crate::map::FileExtents;

/// The layout of the files of one directory. At the scorer's depth it includes those of all
/// subdirectories.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectoryLayout {
    /// The directory, relative to the root of the walk; bytes that are not UTF-8 are shown as
    /// `\xNN`.
    pub directory: String,
    /// Files with blocks.
    pub files: u64,
    /// Files in more than one extent.
    pub fragmented_files: u64,
    /// Their extents, adjacent ones merged.
    pub extents: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Aggregate layout score; none if no file has two blocks.
    pub layout_score: Option<f64>,
    /// Of the pairs of consecutive files, the share whose second starts where the first ends; none
    /// for fewer than two files.
    pub adjacent_files_share: Option<f64>,
}

/// Adds up the layout of a tree by directory. Memory grows with the number of directories down to
/// its depth.
#[derive(Clone, Debug)]
pub struct DirectoryScorer {
    block_bytes: u64,
    depth: usize,
    directories: BTreeMap<RelPath, Entry>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    sums: Sums,
    pairs: u64,
    adjacent: u64,
    end_before: Option<u64>,
}

impl DirectoryScorer {
    /// A scorer that separates directories down to `depth` below the root. Deeper files count for
    /// the directory at that depth. 0 puts everything into the root, `usize::MAX` every file into
    /// its own directory.
    pub fn new(block_bytes: u64, depth: usize) -> Self {
        assert!(block_bytes > 0, "a block of zero bytes has no layout");
        Self { block_bytes, depth, directories: BTreeMap::new() }
    }

    /// Adds the next file in directory order.
    pub fn add_file(&mut self, file: &FileExtents) {
        let layout: FileLayout = compute_file_layout(&file.extents, self.block_bytes);
        let (Some(start), Some(end)) = (layout.start_bytes, layout.end_bytes) else { return };
        let entry = self.directories.entry(ancestor(&file.path, self.depth)).or_default();
        if let Some(before) = entry.end_before.replace(end) {
            entry.pairs += 1;
            entry.adjacent += u64::from(before == start);
        }
        entry.sums.add(Sums::of(&layout));
    }

    /// The directories that have files with blocks, by name.
    pub fn finish(&self) -> Vec<DirectoryLayout> {
        let layout = |(directory, entry): (&RelPath, &Entry)| DirectoryLayout {
            directory: directory.to_string(),
            files: entry.sums.files,
            fragmented_files: entry.sums.fragmented_files,
            extents: entry.sums.extents,
            blocks: entry.sums.blocks,
            layout_score: entry.sums.layout_score(),
            adjacent_files_share: (entry.pairs > 0).then(|| entry.adjacent as f64 / entry.pairs as f64),
        };
        self.directories.iter().map(layout).collect()
    }
}

/// The directory of a file, or its ancestor at `depth`.
fn ancestor(path: &RelPath, depth: usize) -> RelPath {
    let parent = path.parent().unwrap_or_default();
    let bytes = parent.as_bytes();
    let mut slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    match depth {
        0 => RelPath::root(),
        _ => match slashes.nth(depth - 1) {
            Some(end) => RelPath::new(&bytes[..end]).expect("the first components of a path are a path"),
            None => parent,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{Extent, Space};

    use super::*;
    use crate::{
        map::{ExtentFlags, RawExtent},
        score::LayoutScorer,
    };

    fn file(path: &str, pieces: &[(u64, u64)]) -> FileExtents {
        let mut logical = 0;
        let mut extents = Vec::new();
        for &(at, blocks) in pieces {
            let extent = Extent { logical: logical * 4096, physical: at * 4096, length: blocks * 4096 };
            extents.push(RawExtent { extent, flags: ExtentFlags(0) });
            logical += blocks;
        }
        FileExtents { path: RelPath::try_from(path).unwrap(), size_bytes: logical * 4096, extents }
    }

    fn rows(depth: usize, files: &[FileExtents]) -> Vec<(String, u64, u64, Option<f64>)> {
        let mut scorer = DirectoryScorer::new(4096, depth);
        files.iter().for_each(|file| scorer.add_file(file));
        scorer.finish().into_iter().map(|d| (d.directory, d.files, d.extents, d.layout_score)).collect()
    }

    #[test]
    fn directories_are_grouped_at_every_depth() {
        let files = [
            file("top", &[(0, 2)]),
            file("a/x", &[(10, 2), (20, 1)]),
            file("a/b/y", &[(30, 1), (40, 1)]),
            file("a/b/c/z", &[(50, 4)]),
            file("empty/nothing", &[]),
        ];
        let row = |name: &str, files, extents, score| (name.to_owned(), files, extents, score);
        assert_eq!(rows(0, &files), [row("", 4, 6, Some(5.0 / 7.0))]);
        assert_eq!(rows(1, &files), [row("", 1, 1, Some(1.0)), row("a", 3, 5, Some(4.0 / 6.0))]);
        let all = [
            row("", 1, 1, Some(1.0)),
            row("a", 1, 2, Some(0.5)),
            row("a/b", 1, 2, Some(0.0)),
            row("a/b/c", 1, 1, Some(1.0)),
        ];
        assert_eq!(rows(3, &files), all);
        assert_eq!(rows(usize::MAX, &files), all);
    }

    #[test]
    fn only_files_of_one_directory_are_adjacent() {
        let files = [file("a/1", &[(0, 1)]), file("b/1", &[(9, 1)]), file("a/2", &[(1, 1)]), file("a/3", &[(3, 1)])];
        let mut scorer = DirectoryScorer::new(4096, 1);
        files.iter().for_each(|file| scorer.add_file(file));
        let shares: Vec<_> = scorer.finish().into_iter().map(|d| d.adjacent_files_share).collect();
        assert_eq!(shares, [Some(0.5), None]);
    }

    proptest! {
        #[test]
        fn directories_add_up_to_the_tree(
            files in prop::collection::vec(("[ab](/[ab]){0,3}", prop::collection::vec((0u64..40, 1u64..6), 0..5)), 0..20),
            depth in 0usize..5,
        ) {
            let files: Vec<_> = files.iter().map(|(path, pieces)| file(path, pieces)).collect();
            let mut tree = LayoutScorer::new(Space::Device, 4096);
            files.iter().for_each(|file| tree.add_file(file.size_bytes, &file.extents));
            let tree = tree.finish();
            let rows = rows(depth, &files);
            prop_assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), tree.files);
            prop_assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), tree.extents);
            prop_assert!(rows.iter().all(|row| row.0.split('/').count() <= depth.max(1)));
            if depth == 0 && tree.files > 0 {
                prop_assert_eq!(rows[0].3, tree.layout_score);
            }
        }
    }
}
