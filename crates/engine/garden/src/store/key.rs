//! Names of blocks: a file, a level of its tree, and a number on that level. Caches know blocks by these names only,
//! never by where they lie.

use crate::format::{pointer::Shape, snapshot::MAX_SNAPSHOTS};

/// The space of the aggregate's own files; smaller numbers are volumes and their snapshots.
pub(crate) const AGGREGATE: u32 = u32::MAX;

/// Files of the aggregate. That of inodes has its own inode in the superblock.
pub(crate) mod aggregate {
    /// The inodes of the others.
    pub(crate) const INODES: u64 = 0;
    /// A bit for each PVBN: in use.
    pub(crate) const BITMAP: u64 = 1;
    /// The records of the volumes.
    pub(crate) const VOLUMES: u64 = 2;
    /// The areas with most free blocks: a block for each RAID group.
    pub(crate) const TOP_AREAS: u64 = 3;
    /// The records of the snapshots.
    pub(crate) const SNAPSHOTS: u64 = 4;
    /// How many chunks each compacted block had at first and has left, a byte each for every PVBN.
    pub(crate) const CHUNKS: u64 = 5;
    /// No file: compacted blocks on their way to the drives, by their PVBNs.
    pub(crate) const COMPACTED: u64 = 6;
    /// The records of the objects that hold cold blocks.
    pub(crate) const OBJECTS: u64 = 7;
    /// The container file of volume 0; the others follow.
    pub(crate) const FIRST_CONTAINER: u64 = 16;
    pub(crate) use crate::format::superblock::MAX_VOLUMES;
}

/// Files of a volume that hold metadata. That of inodes has its own inode in the volume table.
pub(crate) mod volume {
    /// The inodes of the others.
    pub(crate) const INODES: u64 = 0;
    /// The root directory, a file like all directories.
    pub(crate) const ROOT: u64 = 1;
    /// A bit for each VVBN: in use.
    pub(crate) const ACTIVE_MAP: u64 = 2;
    /// A bit for each inode: in use.
    pub(crate) const INODE_MAP: u64 = 3;
    /// The numbers of inodes without a name, 8 bytes each.
    pub(crate) const ORPHANS: u64 = 4;
    /// A bit for each VVBN: a snapshot uses it.
    pub(crate) const SUMMARY_MAP: u64 = 5;
    /// How many pointers name each VVBN, 2 bytes each.
    pub(crate) const REFERENCES: u64 = 6;
    /// Inodes in use below those of users: those above, but that of inodes.
    pub(crate) const FIXED_FILES: u64 = 6;
    /// The first inode of a user.
    pub(crate) const FIRST_USER: u64 = 16;
}

/// A block. The order is that in which a consistency point gives blocks their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    phase: u8,
    pub space: u32,
    pub file: u64,
    pub level: u8,
    pub index: u64,
}

impl Key {
    pub fn new(space: u32, file: u64, level: u8, index: u64) -> Self {
        let phase = match (space, file) {
            (AGGREGATE, file) if file >= aggregate::FIRST_CONTAINER => 4,
            (AGGREGATE, _) => 5,
            (_, volume::ACTIVE_MAP) => 3,
            (_, volume::INODES) => 2,
            (_, volume::INODE_MAP | volume::ORPHANS | volume::SUMMARY_MAP | volume::REFERENCES) => 1,
            _ => 0,
        };
        Self { phase, space, file, level, index }
    }

    /// Whether a block of zeros need not be kept: pointers, and metadata in which zeros mean nothing is there.
    pub fn zeros_are_a_hole(self) -> bool {
        // What stands in a list of areas is known only when it has a place.
        let is_list = (self.space, self.file) == (AGGREGATE, aggregate::TOP_AREAS);
        // What lies in a container is a volume's block, whatever it holds.
        let is_of_volume = self.space == AGGREGATE && self.file >= aggregate::FIRST_CONTAINER;
        self.level > 0 || self.phase > 0 && !is_list && !is_of_volume
    }

    pub fn shape(self) -> Shape {
        shape_of(self.space)
    }

    /// Another block of the same level.
    pub fn neighbour(self, index: u64) -> Self {
        Self { index, ..self }
    }

    /// The block one level up, and the place in it.
    pub fn parent(self) -> (Key, u64) {
        let fanout = self.shape().fanout();
        (Key { level: self.level + 1, index: self.index / fanout, ..self }, self.index % fanout)
    }
}

pub(crate) fn shape_of(space: u32) -> Shape {
    if space == AGGREGATE { Shape::Aggregate } else { Shape::Volume }
}

/// The container file of a volume; a snapshot's blocks lie in that of its volume.
pub(crate) fn container_of(space: u32) -> u64 {
    aggregate::FIRST_CONTAINER + u64::from(volume_of(space))
}

/// Spaces of snapshots: the place in the snapshot table, from 1 on, above the number of the volume.
const VOLUME_BITS: u32 = aggregate::MAX_VOLUMES.ilog2();

/// The space of a snapshot.
pub(crate) fn snapshot_space(slot: u32, volume: u32) -> u32 {
    (slot + 1) << VOLUME_BITS | volume
}

/// Whether a space is a snapshot, which nobody changes.
pub(crate) fn is_snapshot(space: u32) -> bool {
    space != AGGREGATE && space >= aggregate::MAX_VOLUMES
}

/// The volume of a space: its own number, or that of the volume whose snapshot it is.
pub(crate) fn volume_of(space: u32) -> u32 {
    space & (aggregate::MAX_VOLUMES - 1)
}

const _: () = assert!(aggregate::MAX_VOLUMES.is_power_of_two() && MAX_SNAPSHOTS < AGGREGATE >> VOLUME_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_lies_in_the_container_of_its_volume() {
        for volume in [0, 1, aggregate::MAX_VOLUMES - 1] {
            assert!(!is_snapshot(volume));
            for slot in [0, 7, MAX_SNAPSHOTS - 1] {
                let space = snapshot_space(slot, volume);
                assert!(is_snapshot(space));
                assert_eq!((volume_of(space), container_of(space)), (volume, container_of(volume)));
                assert_eq!(shape_of(space), Shape::Volume);
            }
        }
        assert!(!is_snapshot(AGGREGATE));
    }
}
