//! A map of a volume: the owner and state of each part, in as many cells as a picture can show.
//!
//! A cell is a range of the volume's bytes. Cells are drawn along a Hilbert curve, so that ranges
//! close on the volume are close in the picture. A volume that was filled in the order of its tree
//! shows a few smooth areas; an aged one is speckled.
//!
//! ```
//! use senesce_probe::score::MapBuilder;
//! let mut map = MapBuilder::new(1 << 20, 2); // 1 MiB in 4 x 4 cells of 64 KiB
//! map.add_extent(0, 0, 70_000, 1_000);
//! map.add_free(128 << 10, 896 << 10);
//! let map = map.finish();
//! assert_eq!((map.cells[0].owner, map.cells[1].used_bytes), (Some(0), 70_000 - 65_536));
//! assert_eq!(map.cells[2].free_bytes, 65_536);
//! ```

use serde::{Deserialize, Serialize};

/// No device is larger. Positions beyond this are invalid and left out.
const FARTHEST_BYTES: u64 = 1 << 60;

/// The smallest cell, bytes: a block.
const LEAST_CELL_BYTES: u64 = 4096;

/// One cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapCell {
    /// Bytes of files' extents. Bytes that are neither used nor free are metadata or unknown.
    pub used_bytes: u64,
    /// Bytes of free extents.
    pub free_bytes: u64,
    /// Extents that overlap the cell.
    pub extents: u32,
    /// The file with the most bytes in the cell, as its number in the order of the tree.
    pub owner: Option<u32>,
    /// Mean time of modification of the used bytes, seconds since 1970.
    pub modified_unix_seconds: i64,
}

/// A map of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMap {
    /// Cells on each side of the picture: a power of two.
    pub side: u32,
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// The cells in the order of the volume. The last ones may be beyond its end, and are empty.
    pub cells: Vec<MapCell>,
}

impl VolumeMap {
    /// The numbers of the files that own cells, each once, in the order of the tree.
    pub fn owners(&self) -> Vec<u32> {
        let mut owners: Vec<u32> = self.cells.iter().filter_map(|cell| cell.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

/// Sums a map.
#[derive(Clone, Debug)]
pub struct MapBuilder {
    side: u32,
    cell_bytes: u64,
    sums: Vec<Sum>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    cell: MapCell,
    /// The file of the most recent extent, and its bytes in the cell.
    current: Option<(u32, u64)>,
    /// The most bytes of one file so far.
    most_bytes: u64,
    /// Sum of bytes times seconds.
    modified: i128,
}

impl MapBuilder {
    /// An empty map. In: `order`, so that each side has `2^order` cells (at most 2^12);
    /// `capacity_bytes`, a first estimate. Positions beyond it make the map larger, by merging
    /// pairs of adjacent cells.
    pub fn new(capacity_bytes: u64, order: u32) -> Self {
        let side = 1u32 << order.min(12);
        let count = u64::from(side) * u64::from(side);
        let cell_bytes = capacity_bytes.div_ceil(count).next_multiple_of(LEAST_CELL_BYTES).max(LEAST_CELL_BYTES);
        Self { side, cell_bytes, sums: vec![Sum::default(); count as usize] }
    }

    /// Adds an extent of the file with this number. All extents of a file must be added
    /// consecutively.
    pub fn add_extent(&mut self, owner: u32, start_bytes: u64, length_bytes: u64, modified_unix_seconds: i64) {
        self.each_cell(start_bytes, length_bytes, |sum, bytes| {
            sum.cell.used_bytes += bytes;
            sum.cell.extents += 1;
            sum.modified += i128::from(bytes) * i128::from(modified_unix_seconds);
            let of_owner = match sum.current {
                Some((current, so_far)) if current == owner => so_far + bytes,
                _ => bytes,
            };
            sum.current = Some((owner, of_owner));
            if of_owner > sum.most_bytes {
                (sum.most_bytes, sum.cell.owner) = (of_owner, Some(owner));
            }
        });
    }

    /// Adds a free extent.
    pub fn add_free(&mut self, start_bytes: u64, length_bytes: u64) {
        self.each_cell(start_bytes, length_bytes, |sum, bytes| sum.cell.free_bytes += bytes);
    }

    /// Returns the map.
    pub fn finish(self) -> VolumeMap {
        let cells = self.sums.into_iter().map(|mut sum| {
            if sum.cell.used_bytes > 0 {
                sum.cell.modified_unix_seconds = (sum.modified / i128::from(sum.cell.used_bytes)) as i64;
            }
            sum.cell
        });
        VolumeMap { side: self.side, cell_bytes: self.cell_bytes, cells: cells.collect() }
    }

    fn each_cell(&mut self, start_bytes: u64, length_bytes: u64, mut add: impl FnMut(&mut Sum, u64)) {
        let end = start_bytes.saturating_add(length_bytes).min(FARTHEST_BYTES);
        while end.div_ceil(self.cell_bytes) > self.sums.len() as u64 {
            self.grow();
        }
        let mut at = start_bytes;
        while at < end {
            let next = (at / self.cell_bytes + 1) * self.cell_bytes;
            add(&mut self.sums[(at / self.cell_bytes) as usize], end.min(next) - at);
            at = next;
        }
    }

    /// Doubles the size of a cell. A file in both halves then counts only with its bytes in one of
    /// them.
    fn grow(&mut self) {
        let count = self.sums.len();
        for at in 0..count / 2 {
            let (one, other) = (self.sums[2 * at].clone(), &self.sums[2 * at + 1]);
            let larger = if one.most_bytes >= other.most_bytes { &one } else { other };
            self.sums[at] = Sum {
                cell: MapCell {
                    used_bytes: one.cell.used_bytes + other.cell.used_bytes,
                    free_bytes: one.cell.free_bytes + other.cell.free_bytes,
                    extents: one.cell.extents + other.cell.extents,
                    owner: larger.cell.owner,
                    modified_unix_seconds: 0,
                },
                current: None,
                most_bytes: larger.most_bytes,
                modified: one.modified + other.modified,
            };
        }
        self.sums[count / 2..].fill(Sum::default());
        self.cell_bytes *= 2;
    }
}

/// The column and row of cell number `index` along a Hilbert curve that fills a square of `side` (a
/// power of two) cells. Adjacent cells on the curve are adjacent in the square.
///
/// Source: D. Hilbert, Mathematische Annalen 38, 1891; the usual walk over pairs of bits.
pub fn compute_hilbert_place(side: u32, index: u64) -> (u32, u32) {
    let (mut x, mut y) = (0u32, 0u32);
    let mut rest = index;
    let mut step = 1u32;
    while step < side {
        let right = (rest / 2) as u32 & 1;
        let up = (rest as u32 ^ right) & 1;
        if up == 0 {
            if right == 1 {
                (x, y) = (step - 1 - x, step - 1 - y);
            }
            (x, y) = (y, x);
        }
        x += step * right;
        y += step * up;
        rest /= 4;
        step *= 2;
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_curve_starts_in_the_usual_orientation() {
        let places: Vec<_> = (0..4).map(|index| compute_hilbert_place(2, index)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (1, 1), (1, 0)]);
    }

    #[test]
    fn the_curve_visits_every_cell_by_single_steps() {
        for side in [2u32, 4, 16, 64] {
            let count = u64::from(side) * u64::from(side);
            let places: Vec<_> = (0..count).map(|index| compute_hilbert_place(side, index)).collect();
            let distinct: std::collections::HashSet<_> = places.iter().collect();
            assert_eq!(distinct.len() as u64, count);
            for pair in places.windows(2) {
                assert_eq!(pair[0].0.abs_diff(pair[1].0) + pair[0].1.abs_diff(pair[1].1), 1);
            }
        }
    }

    #[test]
    fn the_file_with_most_bytes_owns_a_cell() {
        let mut map = MapBuilder::new(16 * 4096, 1); // four cells of 16 KiB
        map.add_extent(7, 0, 3000, 10);
        map.add_extent(7, 6000, 3000, 10);
        map.add_extent(8, 9000, 5000, 40);
        let cell = map.finish().cells[0];
        assert_eq!((cell.owner, cell.extents, cell.used_bytes), (Some(7), 3, 11_000));
        assert_eq!(cell.modified_unix_seconds, (6000 * 10 + 5000 * 40) / 11_000);
    }

    #[test]
    fn a_map_grows_for_extents_beyond_its_end() {
        let mut map = MapBuilder::new(16 * 4096, 2); // 16 cells of 4 KiB
        map.add_extent(1, 0, 4096, 5);
        map.add_extent(2, 4096, 8192, 5);
        map.add_extent(3, 100 * 4096, 4096, 5);
        let map = map.finish();
        assert_eq!(map.cell_bytes, 8 * 4096);
        assert_eq!((map.cells[0].owner, map.cells[0].used_bytes, map.cells[0].extents), (Some(1), 3 * 4096, 3));
        assert_eq!(map.cells[12].owner, Some(3));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_counted_twice(
            capacity in 1u64..1 << 40,
            extents in prop::collection::vec((0u64..1 << 40, 1u64..1 << 30), 0..20),
        ) {
            let mut map = MapBuilder::new(capacity, 4);
            let mut expected = 0;
            for (owner, (start, length)) in extents.iter().enumerate() {
                expected += length;
                map.add_extent(owner as u32, *start, *length, 0);
                map.add_free(*start, *length);
            }
            let map = map.finish();
            prop_assert!(u64::from(map.side) * u64::from(map.side) * map.cell_bytes >= capacity);
            prop_assert_eq!(map.cells.iter().map(|cell| cell.used_bytes).sum::<u64>(), expected);
            prop_assert_eq!(map.cells.iter().map(|cell| cell.free_bytes).sum::<u64>(), expected);
        }
    }
}
