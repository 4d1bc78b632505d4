//! Predicts the places of the nodes of Btrfs after contents move.
//!
//! A move changes the map of a file and adds checksums. Btrfs writes no node in place. The first
//! change of a node in a transaction allocates a new place for it and for the nodes above it. Space
//! that a transaction frees is not used again before the next one. The allocator of metadata uses
//! the first free place of a block group (`setup_cluster_no_bitmap` in the kernel's
//! fs/btrfs/free-space-cache.c). So the changed nodes fill the holes of the metadata, in the order
//! of the moves.
//!
//! Not modelled: nodes of other trees between them, splits of leaves, and several transactions.

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
};

use senesce_core::Extent;
use senesce_probe::{collect::Surveyed, map::RawExtent};

use super::{kind, node::Key, volume::Tree};

/// Contents whose checksums fill a leaf, bytes: 4096 sectors, with four bytes of checksum each.
const CHECKSUM_UNIT_BYTES: u64 = 4096 * 4096;

/// The nodes that moves rewrite.
#[derive(Debug, Default)]
pub(super) struct AfterMoves {
    /// The new logical place of a node by its old one.
    places: HashMap<u64, u64>,
    /// The logical place of the leaf with the checksums of new contents, by the number of their
    /// unit, see [`AfterMoves::checksum_units`].
    checksums: HashMap<u64, u64>,
    /// The inodes of the files that moved.
    moved: HashSet<u64>,
}

impl AfterMoves {
    /// Finds new places for the nodes of `tree` that the moves change.
    ///
    /// `moved` are the moved files before the moves and at their new places, in the order of the
    /// moves. `free` are the free extents for metadata, as (start, length), logical bytes, in
    /// order.
    pub fn plan<'a>(
        tree: &Tree,
        node_bytes: u64,
        free: impl IntoIterator<Item = (u64, u64)>,
        moved: impl IntoIterator<Item = (&'a Surveyed, Surveyed)>,
    ) -> Self {
        let nodes = |(start, length): (u64, u64)| (0..length / node_bytes).map(move |at| start + at * node_bytes);
        let mut space = free.into_iter().flat_map(nodes);
        let mut after = Self::default();
        for (before, entry) in moved {
            after.moved.insert(entry.inode);
            // A part of a file may stay.
            for raw in entry.extents.iter().filter(|raw| !is_in(&before.extents, &raw.extent)) {
                for unit in Self::checksum_units(&raw.extent) {
                    if !after.checksums.contains_key(&unit) {
                        after.checksums.extend(space.next().map(|place| (unit, place)));
                    }
                }
            }
            let last = entry.extents.last().map_or(0, |raw| raw.extent.logical);
            let find = |kind, offset| tree.find(Key { object: entry.inode, kind, offset });
            let leaves =
                [find(kind::INODE, 0)].into_iter().chain(find(kind::EXTENT_DATA, 0)..=find(kind::EXTENT_DATA, last));
            for leaf in leaves.filter_map(|at| tree.leaves.get(at)) {
                for &node in tree.parents[leaf.parent as usize].iter().chain([&leaf.logical]) {
                    if !after.places.contains_key(&node) {
                        after.places.extend(space.next().map(|place| (node, place)));
                    }
                }
            }
        }
        after
    }

    /// The numbers of the units that an extent touches. The checksums of a unit are in one leaf.
    pub fn checksum_units(extent: &Extent) -> RangeInclusive<u64> {
        extent.physical / CHECKSUM_UNIT_BYTES..=extent.end().saturating_sub(1) / CHECKSUM_UNIT_BYTES
    }

    /// The place of a node.
    pub fn place(&self, node: u64) -> u64 {
        self.places.get(&node).copied().unwrap_or(node)
    }

    /// The leaf with the checksums of a unit of contents. `None` if the file did not move.
    pub fn find_checksums(&self, inode: u64, unit: u64) -> Option<u64> {
        self.moved.contains(&inode).then(|| self.checksums.get(&unit).copied())?
    }
}

/// Whether a range of a file is at its place in this map, which is in file order.
fn is_in(map: &[RawExtent], range: &Extent) -> bool {
    let behind = map.partition_point(|raw| raw.extent.logical <= range.logical);
    let Some(Extent { logical, physical, length }) = behind.checked_sub(1).map(|at| map[at].extent) else {
        return false;
    };
    let within = range.logical - logical;
    within + range.length <= length && physical + within == range.physical
}

#[cfg(test)]
mod tests {
    use senesce_core::RelPath;
    use senesce_probe::{collect::EntryKind, map::ExtentFlags};

    use super::*;
    use crate::metadata::btrfs::volume::Leaf;

    fn file(inode: u64, physical: u64) -> Surveyed {
        Surveyed {
            path: RelPath::new(inode.to_string().as_bytes()).unwrap(),
            kind: EntryKind::File,
            inode,
            links: 1,
            is_executable: false,
            size_bytes: 4096,
            allocated_bytes: 4096,
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents: vec![RawExtent {
                extent: Extent { logical: 0, physical, length: 4096 },
                flags: ExtentFlags::default(),
            }],
        }
    }

    #[test]
    fn changed_nodes_fill_holes_in_move_order() {
        // A root, and leaves with ten inodes each.
        let leaf = |at: u64| Leaf {
            first: Key { object: at * 10, kind: 0, offset: 0 },
            logical: (50 + at) * 16384,
            parent: 0,
        };
        let tree =
            Tree { root: Some(900 * 16384), leaves: (0..5).map(leaf).collect(), parents: vec![vec![900 * 16384]] };
        let free = [(0, 2 * 16384), (7 * 16384 + 4096, 40_000), (20 * 16384, 100 * 16384)];
        let old = file(1, 1 << 40);
        let mut in_part = file(31, 16384);
        // The rest of the file stays.
        let rest = RawExtent {
            extent: Extent { logical: 4096, physical: 9 << 40, length: 4096 },
            flags: ExtentFlags::default(),
        };
        in_part.extents.push(rest);
        let mut before = file(31, 1 << 40);
        before.extents.push(rest);
        let moved = [(&old, file(35, 4096)), (&old, file(12, 8192)), (&before, in_part)];
        let after = AfterMoves::plan(&tree, 16384, free, moved);
        assert_eq!(after.find_checksums(35, 0), Some(0));
        assert_eq!(after.checksums.len(), 1);
        assert_eq!(after.place(900 * 16384), 16384);
        assert_eq!(after.place(53 * 16384), 7 * 16384 + 4096);
        assert_eq!(after.place(51 * 16384), 8 * 16384 + 4096);
        assert_eq!(after.place(52 * 16384), 52 * 16384, "no file of it moved");
        assert_eq!(after.find_checksums(20, 0), None);
    }
}
