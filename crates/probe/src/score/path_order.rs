//! Whether files lie behind each other in the order of their paths.
//!
//! A walk follows the order in which the file system lists a directory, which on ext4 is that of a hash. Many readers
//! (git, tar, rsync, a compiler's wildcard) go by name. Not a distance: only whether one begins where the other ended.

use senesce_core::RelPath;

use super::compute_file_layout;
use crate::map::RawExtent;

/// Takes files in any order.
///
/// Cost: memory for the paths of all files.
#[derive(Clone, Debug, Default)]
pub struct PathOrderScorer {
    /// Path, and the bytes where the file begins and ends.
    files: Vec<(RelPath, u64, u64)>,
}

impl PathOrderScorer {
    /// Takes a file with its extents in file order. One without a place on the device is passed over.
    pub fn add_file(&mut self, path: &RelPath, extents: &[RawExtent]) {
        // The size of a block matters to other figures of the layout only.
        let layout = compute_file_layout(extents, 1);
        if let (Some(start), Some(end)) = (layout.start_bytes, layout.end_bytes) {
            self.files.push((path.clone(), start, end));
        }
    }

    /// Of the files that have one before them in the order of paths (bytewise, the whole path), the share (0..1) that
    /// begin where that one ends; `None` with fewer than two files.
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
    fn files_are_taken_in_the_order_of_their_paths_whatever_order_they_come_in() {
        let mut scorer = PathOrderScorer::default();
        add(&mut scorer, "b/c", &[(4096, 4096)]); // behind a/z
        add(&mut scorer, "a/z", &[(40960, 4096), (0, 4096)]); // in two pieces: what counts is where it ends
        add(&mut scorer, "b/empty", &[]); // has no place
        add(&mut scorer, "b/d", &[(8192, 8192)]); // behind b/c
        add(&mut scorer, "a-b", &[(16384, 4096)]); // '-' sorts before '/'
        // a-b, a/z, b/c, b/d: no, yes, yes.
        assert_eq!(scorer.finish(), Some(2.0 / 3.0));
    }

    #[test]
    fn one_file_has_nobody_before_it() {
        let mut scorer = PathOrderScorer::default();
        assert_eq!(scorer.clone().finish(), None);
        add(&mut scorer, "a", &[(0, 4096)]);
        assert_eq!(scorer.finish(), None);
    }
}
