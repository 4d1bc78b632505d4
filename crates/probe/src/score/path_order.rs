//! Measures whether consecutive files in path order are adjacent on the device.
//!
//! A walk follows the order of the directory listings, which on ext4 is the order of a hash.
//! Several readers (git, tar, rsync, a compiler's wildcard) use the order of names. The figure is
//! not a distance: it only counts files that start where the previous one ended.

use senesce_core::RelPath;

use super::compute_file_layout;
use crate::map::RawExtent;

/// Scores files that arrive in any order.
///
/// Cost: memory for the paths of all files.
#[derive(Clone, Debug, Default)]
pub struct PathOrderScorer {
    /// Path, and the first and end byte of the file.
    files: Vec<(RelPath, u64, u64)>,
}

impl PathOrderScorer {
    /// Adds a file with its extents in file order. A file without a position on the device is
    /// skipped.
    pub fn add_file(&mut self, path: &RelPath, extents: &[RawExtent]) {
        // The block size matters only for other figures of the layout.
        let layout = compute_file_layout(extents, 1);
        if let (Some(start), Some(end)) = (layout.start_bytes, layout.end_bytes) {
            self.files.push((path.clone(), start, end));
        }
    }

    /// Of the files with a predecessor in path order (bytewise, the whole path), the share (0..1)
    /// that starts where the predecessor ends; `None` with fewer than two files.
    pub fn finish(mut self) -> Option<f64> {
        self.files.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        let pairs = self.files.len().checked_sub(1).filter(|&pairs| pairs > 0)?;
        let adjacent = self.files.windows(2).filter(|pair| pair[0].2 == pair[1].1).count();
        Some(adjacent as f64 / pairs as f64)
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{Extent, RelPath};

    use super::*;
    use crate::map::ExtentFlags;

    fn add(scorer: &mut PathOrderScorer, path: &str, places: &[(u64, u64)]) {
        let mut logical = 0;
        let extents = places.iter().map(|&(physical, length)| {
            let extent = Extent { logical, physical, length };
            logical += length;
            RawExtent { extent, flags: ExtentFlags(0) }
        });
        scorer.add_file(&RelPath::new(path.as_bytes()).unwrap(), &extents.collect::<Vec<_>>());
    }

    #[test]
    fn files_are_scored_in_path_order() {
        let mut scorer = PathOrderScorer::default();
        add(&mut scorer, "b/c", &[(4096, 4096)]); // after a/z
        add(&mut scorer, "a/z", &[(40960, 4096), (0, 4096)]); // in two extents: only its end counts
        add(&mut scorer, "b/empty", &[]); // has no position
        add(&mut scorer, "b/d", &[(8192, 8192)]); // after b/c
        add(&mut scorer, "a-b", &[(16384, 4096)]); // '-' sorts before '/'
        // a-b, a/z, b/c, b/d: no, yes, yes.
        assert_eq!(scorer.finish(), Some(2.0 / 3.0));
    }

    #[test]
    fn one_file_has_no_score() {
        let mut scorer = PathOrderScorer::default();
        assert_eq!(scorer.clone().finish(), None);
        add(&mut scorer, "a", &[(0, 4096)]);
        assert_eq!(scorer.finish(), None);
    }
}
