//! Predicts the places of moved files on Btrfs: the mover runs against a model of the allocator.
//! Pure.
//!
//! The model has these rules of the kernel's fs/btrfs/extent-tree.c (`find_free_extent`), from
//! Linux 6.3 on:
//!
//! - The allocator searches the block groups in the order of their addresses. It first uses groups
//!   of the size class of the extent. Then follow groups without a class, a new group, and all
//!   groups.
//! - In a group it uses the start of the longest free extent.
//! - If no free extent is long enough, the allocator halves the extent.
//! - Space that becomes free counts as free at once, and is used again after the next commit. The
//!   model has one commit, when the plug is removed: the kernel then frees thousands of extents.
//!
//! The kernel does not store the class of a group. After a mount, it derives the class from five of
//! the extents of the group, and so does the model. The model knows only the extents of the tree.

use std::collections::BTreeMap;

use senesce_core::Extent;
use senesce_inspect::NEW_GROUPS_START;
use senesce_probe::{
    collect::Surveyed,
    map::{BtrfsBlockGroup, BtrfsFreeSpace, BtrfsGroupType},
};

use crate::{
    apply::{BatchReport, Runs, Skip, Space, size_class},
    place::{FreeSpace, Piece},
    plan::{Batch, Part, extents_of},
};

/// Extents of a group from which its class is guessed.
const SAMPLES: u64 = 5;
/// A new group has one part in this number of the bytes of the devices. The size is rounded up to
/// the multiple, and is at most [`MOST_GROUP_BYTES`] (`decide_stripe_size_regular` in the kernel's
/// fs/btrfs/volumes.c). A group has whole stripes.
const NEW_GROUP_PART: u64 = 10;
const NEW_GROUP_MULTIPLE: u64 = 16 << 20;
const MOST_GROUP_BYTES: u64 = 1 << 30;
const STRIPE_BYTES: u64 = 64 << 10;
/// The longest extent that a reservation requests, bytes.
const LONGEST_BYTES: u64 = 256 << 20;

/// Places the batches one after the other, as the mover does. `None` for a batch that stays. After
/// `stop` returns `true`, all batches stay.
pub(crate) fn place_in_groups(
    entries: &[Surveyed],
    batches: &[Batch],
    space: &BtrfsFreeSpace,
    may_plug: bool,
    stop: &dyn Fn() -> bool,
) -> Vec<Option<Vec<Piece>>> {
    place_all(&mut Groups::new(entries, space), entries, batches, may_plug, stop)
}

fn place_all(
    groups: &mut Groups,
    entries: &[Surveyed],
    batches: &[Batch],
    may_plug: bool,
    stop: &dyn Fn() -> bool,
) -> Vec<Option<Vec<Piece>>> {
    let mut runs = Runs::new(may_plug);
    let place = |batch: &Batch| {
        let mut report = BatchReport::default();
        let reserved = runs.reserve_batch(groups, batch, &mut |_| !stop(), &mut report);
        let is_error = reserved.is_err();
        let pieces = reserved.ok().flatten().unwrap_or_default().into_iter().flat_map(|donor| {
            let entry = donor.parts[0].entry;
            donor.extents.into_iter().map(move |extent| Piece { entry, extent })
        });
        let pieces: Vec<Piece> = pieces.collect();
        let reserved = std::mem::take(&mut groups.reserved);
        if pieces.is_empty() {
            groups.release(reserved);
        } else {
            groups.release(batch.parts.iter().flat_map(|part| extents_of(&entries[part.entry], part)));
        }
        if is_error {
            groups.commit();
        }
        (!pieces.is_empty()).then_some(pieces)
    };
    batches.iter().map(place).collect()
}

/// A block group for contents.
struct Group {
    start: u64,
    end: u64,
    /// `None` if it has no extents yet.
    class: Option<usize>,
    free: FreeSpace,
}

/// The block groups of a file system.
struct Groups {
    groups: Vec<Group>,
    /// The unit of allocation, bytes.
    sector_bytes: u64,
    /// Space for new groups, as (start, length) on the device.
    unallocated: Vec<(u64, u64)>,
    new_group_bytes: u64,
    /// The logical address of the next new group. `None` if its place on the only device defines
    /// it, see [`NEW_GROUPS_START`].
    next_group: Option<u64>,
    /// The donors of the current batch.
    reserved: Vec<Extent>,
    /// The space of the plug.
    plugged: Vec<Extent>,
    /// Space that is free after the next commit.
    freed: Vec<Extent>,
    freed_bytes: u64,
}

impl Groups {
    fn new(entries: &[Surveyed], space: &BtrfsFreeSpace) -> Self {
        let mut by_start: BTreeMap<u64, u64> = BTreeMap::new();
        for raw in entries.iter().flat_map(|entry| &entry.extents) {
            by_start.insert(raw.extent.physical, raw.extent.length);
        }
        let of_data = space.groups.iter().filter(|group| group.group_type.contains(BtrfsGroupType::DATA));
        let groups = of_data.map(|group| {
            let step = group.length_bytes / SAMPLES;
            let sample = |at: u64| {
                let start = group.start_bytes + at * step;
                by_start.range(start..start + step).next().map(|(_, length)| *length)
            };
            let mut free = FreeSpace::default();
            group.free.iter().for_each(|extent| free.insert(extent.start_bytes, extent.length_bytes));
            let (start, end) = (group.start_bytes, group.end_bytes());
            Group { start, end, class: (0..SAMPLES).filter_map(sample).min().map(size_class), free }
        });
        let groups = groups.collect();
        let unallocated = space.devices.iter().flat_map(|device| &device.unallocated);
        let unallocated = unallocated.map(|extent| (extent.start_bytes, extent.length_bytes)).collect();
        let device_bytes: u64 = space.devices.iter().map(|device| device.size_bytes).sum();
        let new_group_bytes =
            (device_bytes / NEW_GROUP_PART).next_multiple_of(NEW_GROUP_MULTIPLE).min(MOST_GROUP_BYTES);
        let sector_bytes = space.sector_bytes;
        // The places of groups on several devices are not read.
        let end = space.groups.iter().map(BtrfsBlockGroup::end_bytes).max().unwrap_or(0);
        let next_group = (space.devices.len() != 1).then_some(end);
        let (reserved, plugged, freed) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            groups,
            sector_bytes,
            unallocated,
            new_group_bytes,
            next_group,
            reserved,
            plugged,
            freed,
            freed_bytes: 0,
        }
    }

    /// Frees space at the next commit.
    fn release(&mut self, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            self.freed_bytes += extent.length;
            self.freed.push(extent);
        }
    }

    /// Makes the freed space available again.
    fn commit(&mut self) {
        self.freed_bytes = 0;
        for extent in self.freed.drain(..) {
            let group = self.groups.iter_mut().find(|group| (group.start..group.end).contains(&extent.physical));
            if let Some(group) = group {
                group.free.insert(extent.physical, extent.length);
            }
        }
    }

    /// Allocates one extent.
    fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let class = size_class(bytes);
        let fits = |group: &mut Group| group.free.take_from_largest(bytes);
        let found = self.groups.iter_mut().filter(|group| group.class == Some(class)).find_map(fits);
        if found.is_some() {
            return found;
        }
        for group in self.groups.iter_mut().filter(|group| group.class.is_none()) {
            if let Some(start) = fits(group) {
                group.class = Some(class);
                return Some(start);
            }
        }
        if self.add_group() {
            let group = self.groups.last_mut()?;
            if let Some(start) = fits(group) {
                group.class = Some(class);
                return Some(start);
            }
        }
        self.groups.iter_mut().find_map(fits)
    }

    /// Makes a block group in the first unallocated space that is long enough, or in the longest.
    fn add_group(&mut self) -> bool {
        let wanted = self.new_group_bytes;
        let at = self.unallocated.iter().position(|(_, length)| *length >= wanted);
        let longest = || (0..self.unallocated.len()).max_by_key(|at| self.unallocated[*at].1);
        let Some(at) = at.or_else(longest) else { return false };
        let (start, length) = &mut self.unallocated[at];
        let taken = wanted.min(*length) / STRIPE_BYTES * STRIPE_BYTES;
        if taken == 0 {
            return false;
        }
        let mut free = FreeSpace::default();
        let group_start = match &mut self.next_group {
            Some(next) => std::mem::replace(next, *next + taken),
            None => NEW_GROUPS_START + *start,
        };
        free.insert(group_start, taken);
        (*start, *length) = (*start + taken, *length - taken);
        self.groups.push(Group { start: group_start, end: group_start + taken, class: None, free });
        true
    }
}

impl Space for Groups {
    /// The number of its extents.
    type Donor = usize;

    fn reserve(&mut self, parts: &[Part]) -> Result<(usize, Vec<Extent>), Skip> {
        let mut extents: Vec<Extent> = Vec::new();
        for &Part { mut logical, mut length, .. } in parts {
            let mut wanted = length.min(LONGEST_BYTES);
            while length > 0 {
                wanted = wanted.min(length);
                match self.allocate(wanted) {
                    Some(physical) => {
                        extents.push(Extent { logical, physical, length: wanted });
                        // If a later extent finds no space, this one is released with the batch.
                        self.reserved.extend(extents.last());
                        (logical, length) = (logical + wanted, length - wanted);
                    }
                    None if wanted <= self.sector_bytes => return Err(Skip::NoSpace),
                    None => wanted = (wanted / 2).next_multiple_of(self.sector_bytes).min(wanted - self.sector_bytes),
                }
            }
        }
        Ok((extents.len(), extents))
    }

    /// The donor is the last one that was reserved.
    fn plug(&mut self, extents: &usize, _: &[Part]) -> Result<(), Skip> {
        self.plugged.extend(self.reserved.drain(self.reserved.len() - extents..));
        Ok(())
    }

    fn unplug(&mut self) {
        let plugged = std::mem::take(&mut self.plugged);
        self.release(plugged);
        self.commit();
    }

    fn free_bytes(&self) -> Result<u64, Skip> {
        let unallocated: u64 = self.unallocated.iter().map(|(_, length)| length).sum();
        Ok(self.groups.iter().map(|group| group.free.bytes).sum::<u64>() + unallocated + self.freed_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{RelPath, never};
    use senesce_probe::{
        collect::EntryKind,
        map::{BtrfsDevice, BtrfsSource, ExtentFlags, FreeExtent, RawExtent},
    };

    use super::*;
    use crate::place::measure_pieces;

    const BLOCK: u64 = 4096;
    const GROUP: u64 = 1 << 30;

    /// A file at each of these blocks.
    fn files(blocks: &[(u64, u64)]) -> Vec<Surveyed> {
        let file = |(number, &(start, length)): (usize, &(u64, u64))| Surveyed {
            path: RelPath::new(number.to_string().as_bytes()).unwrap(),
            kind: EntryKind::File,
            inode: number as u64 + 257,
            links: 1,
            is_executable: false,
            size_bytes: length * BLOCK,
            allocated_bytes: length * BLOCK,
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents: vec![RawExtent {
                extent: Extent { logical: 0, physical: start * BLOCK, length: length * BLOCK },
                flags: ExtentFlags::default(),
            }],
        };
        blocks.iter().enumerate().map(file).collect()
    }

    /// Groups of a GiB for contents, with free extents as (start, length) in blocks.
    fn space(groups: &[&[(u64, u64)]], unallocated: u64) -> BtrfsFreeSpace {
        let group = |(at, free): (usize, &&[(u64, u64)])| BtrfsBlockGroup {
            start_bytes: at as u64 * GROUP,
            length_bytes: GROUP,
            group_type: BtrfsGroupType::DATA,
            used_bytes: 0,
            reserved_bytes: 0,
            free: free
                .iter()
                .map(|(start, length)| FreeExtent { start_bytes: start * BLOCK, length_bytes: length * BLOCK })
                .collect(),
            stripes: Vec::new(),
            sub_stripes: 1,
        };
        let device = BtrfsDevice {
            id: 1,
            size_bytes: 100 * GROUP,
            allocated_bytes: 0,
            unallocated: vec![FreeExtent { start_bytes: 7 * GROUP, length_bytes: unallocated }],
            reserved_bytes: 0,
        };
        BtrfsFreeSpace {
            sector_bytes: BLOCK,
            groups: groups.iter().enumerate().map(group).collect(),
            devices: vec![device],
            source: BtrfsSource::FreeSpaceTree,
            stale_entries: 0,
        }
    }

    fn batch(entries: &[Surveyed]) -> Batch {
        let part = |(entry, surveyed): (usize, &Surveyed)| Part { entry, logical: 0, length: surveyed.size_bytes };
        Batch { parts: entries.iter().enumerate().map(part).collect(), pieces: 1000, runs: 1, ..Batch::default() }
    }

    #[test]
    fn extent_uses_the_longest_hole_of_its_class() {
        // The first group has a long extent, so it is for medium extents.
        let group = GROUP / BLOCK;
        let files = files(&[(10, 100), (group + 10, 2), (group + 20, 2)]);
        let space = space(&[&[(1000, 5000)], &[(group + 100, 300), (group + 900, 400)]], 0);
        let mut groups = Groups::new(&files, &space);
        assert_eq!(groups.allocate(2 * BLOCK), Some((group + 900) * BLOCK));
        assert_eq!(groups.allocate(100 * BLOCK), Some(1000 * BLOCK));
    }

    #[test]
    fn new_group_precedes_groups_of_another_class() {
        let files = files(&[(10, 100)]);
        let mut groups = Groups::new(&files, &space(&[&[(1000, 5000)]], 8 << 20));
        assert_eq!(groups.allocate(2 * BLOCK), Some(NEW_GROUPS_START + 7 * GROUP));
        let mut groups = Groups::new(&files, &space(&[&[(1000, 5000)]], 0));
        assert_eq!(groups.allocate(2 * BLOCK), Some(1000 * BLOCK));
    }

    #[test]
    fn small_files_follow_each_other_in_a_large_hole() {
        let files = files(&[(10, 2), (20, 2), (30, 2), (40, 2)]);
        // Holes of one file, and a large one.
        let holes: Vec<(u64, u64)> = (0..50).map(|at| (100 + at * 9, 2)).chain([(5000, 4000)]).collect();
        let batches = [batch(&files)];
        let places = place_in_groups(&files, &batches, &space(&[&holes], 0), true, &never);
        let pieces = places[0].as_ref().unwrap();
        assert_eq!(measure_pieces(&batches[0], pieces), 1, "{pieces:?}");
    }

    #[test]
    fn new_groups_on_several_devices_follow_the_others() {
        let files = files(&[(10, 2)]);
        let mut space = space(&[&[]], 1 << 30);
        space.devices.push(space.devices[0].clone());
        let mut groups = Groups::new(&files, &space);
        let bytes = groups.new_group_bytes;
        assert_eq!([groups.allocate(bytes), groups.allocate(bytes)], [Some(GROUP), Some(GROUP + bytes)]);
    }

    proptest! {
        /// No two pieces have one place, each is in free space, and no space is lost.
        #[test]
        fn pieces_are_in_free_space(
            sizes in prop::collection::vec(1u64..90, 1..60),
            holes in prop::collection::vec((1u64..400, 1u64..50), 1..60),
            may_plug in any::<bool>(),
        ) {
            let mut at = 100_000;
            let free: Vec<(u64, u64)> = holes.iter().map(|&(length, gap)| {
                at += length + gap;
                (at - length, length)
            }).collect();
            let files = files(&sizes.iter().enumerate().map(|(at, size)| (at as u64 * 100, *size)).collect::<Vec<_>>());
            let batches = [batch(&files)];
            let mut groups = Groups::new(&files, &space(&[&free], 0));
            let free_bytes = groups.free_bytes().unwrap();
            let places = place_all(&mut groups, &files, &batches, may_plug, &never);
            // A batch leaves as much space as it takes.
            let plugged: u64 = groups.plugged.iter().map(|extent| extent.length).sum();
            prop_assert_eq!(groups.free_bytes().unwrap() + plugged, free_bytes);
            let mut blocks: Vec<u64> = Vec::new();
            for piece in places.iter().flatten().flatten() {
                let (start, length) = (piece.extent.physical / BLOCK, piece.extent.length / BLOCK);
                prop_assert!(free.iter().any(|hole| hole.0 <= start && start + length <= hole.0 + hole.1));
                blocks.extend(start..start + length);
            }
            let count = blocks.len();
            blocks.sort_unstable();
            blocks.dedup();
            prop_assert_eq!(blocks.len(), count);
            if let Some(pieces) = &places[0] {
                prop_assert_eq!(pieces.iter().map(|piece| piece.extent.length).sum::<u64>(), batches[0].bytes());
            }
        }
    }
}
