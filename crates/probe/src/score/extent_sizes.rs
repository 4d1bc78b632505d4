//! The size of a file's extents: those too short for the device, and parts that huge pages could
//! map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file_layout::Run;
use crate::map::{Placement, RawExtent};

/// Extents shorter than the natural transfer size: from that size on a device reads at its full
/// rate at any position. Extents are runs: adjacent ones are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortExtents {
    /// The natural transfer size, bytes.
    pub natural_transfer_bytes: u64,
    /// Extents below it.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Short extents that are a whole file: such a file is small, not fragmented.
    pub whole_files: u64,
}

impl ShortExtents {
    pub(super) fn new(natural_transfer_bytes: u64) -> Self {
        Self { natural_transfer_bytes, extents: 0, bytes: 0, whole_files: 0 }
    }

    pub(super) fn add(&mut self, runs: &[Run]) {
        for run in runs.iter().filter(|run| run.length_bytes < self.natural_transfer_bytes) {
            self.extents += 1;
            self.bytes = self.bytes.saturating_add(run.length_bytes);
            self.whole_files += u64::from(runs.len() == 1);
        }
    }

    /// Short extents of files with several extents: the effect of fragmentation. The last, smaller
    /// extent of a file is included.
    pub fn of_fragmented_files(&self) -> u64 {
        self.extents - self.whole_files
    }
}

/// The share of the files that is aligned for huge pages: 2 MiB of a file, from a multiple of 2 MiB
/// on, at a multiple of 2 MiB of the device (or partition, or Btrfs logical space), in one extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlignedShare {
    /// Pieces of 2 MiB that files of these sizes have.
    pub pieces: u64,
    /// Pieces that are aligned.
    pub aligned_pieces: u64,
}

impl AlignedShare {
    /// The size of a piece, bytes.
    pub const PIECE_BYTES: u64 = 2 << 20;

    /// Aligned pieces / pieces, 0..1; none if no file is as large as one piece.
    pub fn share(&self) -> Option<f64> {
        (self.pieces > 0).then(|| self.aligned_pieces as f64 / self.pieces as f64)
    }

    /// Adds a file: the size of its content, and its extents in file order.
    pub(super) fn add(&mut self, size_bytes: u64, extents: &[RawExtent]) {
        self.pieces += size_bytes / Self::PIECE_BYTES;
        // Here extents must be adjacent in the file as well as on the device.
        let mut current: Option<(u64, u64, u64)> = None;
        for extent in extents.iter().filter(|raw| raw.placement() == Placement::Placed).map(|raw| raw.extent) {
            match &mut current {
                Some((logical, physical, length))
                    if *logical + *length == extent.logical && *physical + *length == extent.physical =>
                {
                    *length += extent.length;
                }
                _ => {
                    self.add_stretch(size_bytes, current);
                    current = Some((extent.logical, extent.physical, extent.length));
                }
            }
        }
        self.add_stretch(size_bytes, current);
    }

    fn add_stretch(&mut self, size_bytes: u64, stretch: Option<(u64, u64, u64)>) {
        let Some((logical, physical, length)) = stretch else { return };
        if logical % Self::PIECE_BYTES == physical % Self::PIECE_BYTES {
            let first = logical.div_ceil(Self::PIECE_BYTES);
            let end = logical.saturating_add(length).min(size_bytes) / Self::PIECE_BYTES;
            self.aligned_pieces += end.saturating_sub(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::Extent;

    use super::*;
    use crate::{map::ExtentFlags, score::file_layout::compute_runs};

    const BLOCK: u64 = 4096;
    const PIECE: u64 = 512;

    /// Extents from (block of the file, block of the device, blocks).
    fn extents(places: &[(u64, u64, u64)]) -> Vec<RawExtent> {
        let extent = |&(logical, physical, blocks): &(u64, u64, u64)| RawExtent {
            extent: Extent { logical: logical * BLOCK, physical: physical * BLOCK, length: blocks * BLOCK },
            flags: ExtentFlags(0),
        };
        places.iter().map(extent).collect()
    }

    fn aligned(blocks: u64, places: &[(u64, u64, u64)]) -> (u64, u64) {
        let mut share = AlignedShare::default();
        share.add(blocks * BLOCK, &extents(places));
        (share.aligned_pieces, share.pieces)
    }

    #[test]
    fn aligned_pieces_are_counted() {
        assert_eq!(aligned(PIECE, &[(0, 4 * PIECE, PIECE)]), (1, 1));
        assert_eq!(aligned(PIECE, &[(0, 4 * PIECE + 1, PIECE)]), (0, 1), "one block off");
        assert_eq!(aligned(PIECE - 1, &[(0, 0, PIECE)]), (0, 0), "too small a file");
        assert_eq!(aligned(2 * PIECE, &[(0, 0, 100), (100, 100, 2 * PIECE - 100)]), (2, 2), "adjacent extents");
        assert_eq!(aligned(3 * PIECE, &[(0, 7, PIECE), (PIECE, 9 * PIECE, 2 * PIECE)]), (2, 3));
        // Both are shifted by the same offset: the piece in the middle is aligned.
        assert_eq!(aligned(3 * PIECE, &[(0, 7 * PIECE, 3), (3, 3, 3 * PIECE - 3)]), (2, 3));
        // Adjacent on the device, but with a hole in the file.
        assert_eq!(aligned(2 * PIECE, &[(0, 0, 10), (11, 10, 2 * PIECE - 11)]), (0, 2));
        assert_eq!(AlignedShare { pieces: 4, aligned_pieces: 1 }.share(), Some(0.25));
        assert_eq!(AlignedShare::default().share(), None);
    }

    #[test]
    fn short_extents_are_counted() {
        let mut short = ShortExtents::new(64 << 10);
        short.add(&compute_runs(&extents(&[(0, 100, 15)]))); // small, whole
        short.add(&compute_runs(&extents(&[(0, 200, 16)]))); // just long enough
        short.add(&compute_runs(&extents(&[(0, 300, 8), (8, 308, 8), (16, 400, 4)]))); // 16 in one run, 4 apart
        assert_eq!((short.extents, short.bytes, short.whole_files), (2, 19 * BLOCK, 1));
        assert_eq!(short.of_fragmented_files(), 1);
    }

    proptest! {
        #[test]
        fn every_block_of_an_aligned_piece_is_aligned(
            lengths in prop::collection::vec((1u64..1200, 0u64..3, 0u64..2), 1..8),
        ) {
            // Extents are adjacent in the file. On the device each starts at a piece, one block
            // off, or continues the previous one.
            let (mut places, mut logical, mut end) = (Vec::new(), 0, 0u64);
            for (blocks, jump, off) in lengths {
                let physical = if jump == 0 { end } else { (end / PIECE + jump) * PIECE + off + logical % PIECE };
                places.push((logical, physical, blocks));
                logical += blocks;
                end = physical + blocks;
            }
            let at: Vec<u64> = places.iter().flat_map(|&(_, physical, blocks)| physical..physical + blocks).collect();
            let in_place = at.chunks_exact(PIECE as usize)
                .filter(|piece| piece[0] % PIECE == 0 && piece.windows(2).all(|pair| pair[0] + 1 == pair[1]))
                .count() as u64;
            prop_assert_eq!(aligned(logical, &places), (in_place, logical / PIECE));
        }

        #[test]
        fn a_large_limit_makes_every_extent_short(
            places in prop::collection::vec((0u64..50, 1u64..9), 0..20), size in 0u64..10,
        ) {
            let places: Vec<_> = places.iter().enumerate().map(|(n, &(at, blocks))| (n as u64 * 9, at, blocks)).collect();
            let runs = compute_runs(&extents(&places));
            let count = |bytes| { let mut short = ShortExtents::new(bytes); short.add(&runs); short.extents };
            prop_assert_eq!(count(0), 0);
            prop_assert_eq!(count(u64::MAX), runs.len() as u64);
            prop_assert_eq!(count(size * BLOCK), runs.iter().filter(|run| run.length_bytes < size * BLOCK).count() as u64);
        }
    }
}
