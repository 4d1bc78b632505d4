//! Keys of blocks: a file, a level of its tree, and a number on that level. Caches use keys, never
//! places.

use crate::format::{pointer::Shape, snapshot::MAX_SNAPSHOTS};

/// The space of the aggregate's own files. Smaller numbers are volumes and their snapshots.
pub(crate) const AGGREGATE: u32 = u32::MAX;

/// Files of the aggregate. The inode of `INODES` is in the superblock.
pub(crate) mod aggregate {
    /// The inodes of the other files.
    pub(crate) const INODES: u64 = 0;
    /// A bit for each PVBN: in use.
    pub(crate) const BITMAP: u64 = 1;
    /// The records of the volumes.
    pub(crate) const VOLUMES: u64 = 2;
    /// The areas with most free blocks: a block for each RAID group.
    pub(crate) const TOP_AREAS: u64 = 3;
    /// The records of the snapshots.
    pub(crate) const SNAPSHOTS: u64 = 4;
    /// The initial and current number of chunks of each compacted block, one byte each for every
    /// PVBN.
    pub(crate) const CHUNKS: u64 = 5;
    /// Not a file: compacted blocks to be written, by their PVBNs.
    pub(crate) const COMPACTED: u64 = 6;
    /// The records of the objects that hold cold blocks.
    pub(crate) const OBJECTS: u64 = 7;
    /// The container file of volume 0; the others follow.
    pub(crate) const FIRST_CONTAINER: u64 = 16;
    pub(crate) use crate::format::superblock::MAX_VOLUMES;
}

/// Files of a volume that hold metadata. The inode of `INODES` is in the volume table.
pub(crate) mod volume {
    /// The inodes of the other files.
    pub(crate) const INODES: u64 = 0;
    /// The root directory, a file like all directories.
    pub(crate) const ROOT: u64 = 1;
    /// A bit for each VVBN: in use.
    pub(crate) const ACTIVE_MAP: u64 = 2;
    /// A bit for each inode: in use.
    pub(crate) const INODE_MAP: u64 = 3;
    /// The numbers of inodes without a name, 8 bytes each.
    pub(crate) const ORPHANS: u64 = 4;
    /// A bit for each VVBN: used by a snapshot.
    pub(crate) const SUMMARY_MAP: u64 = 5;
    /// The number of pointers to each VVBN, 2 bytes each.
    pub(crate) const REFERENCES: u64 = 6;
    /// Inodes in use below those of users: the files above, except `INODES`.
    pub(crate) const FIXED_FILES: u64 = 6;
    /// The first inode of a user.
    pub(crate) const FIRST_USER: u64 = 16;
}

/// The key of a block. The order is that in which a consistency point allocates places.
///
/// Two words, because each written block needs dozens of comparisons and copies of keys. From the
/// top bits down: 3 of the phase, 32 of the space, 41 of the file, 4 of the level and 48 of the
/// index. No block exceeds these. Larger values, which only damage requests, become the last key,
/// which no tree contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    high: u64,
    low: u64,
}

const FILE_BITS: u32 = 41;
const LEVEL_BITS: u32 = 4;
const INDEX_BITS: u32 = 48;
/// Bits of the file in the lower word.
const LOW_FILE_BITS: u32 = 64 - LEVEL_BITS - INDEX_BITS;
/// Bits of the file in the higher word.
const HIGH_FILE_BITS: u32 = FILE_BITS - LOW_FILE_BITS;

const fn most(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Key {
    #[inline]
    pub fn new(space: u32, file: u64, level: u8, index: u64) -> Self {
        let phase: u64 = match (space, file) {
            (AGGREGATE, file) if file >= aggregate::FIRST_CONTAINER => 4,
            (AGGREGATE, _) => 5,
            (_, volume::ACTIVE_MAP) => 3,
            (_, volume::INODES) => 2,
            (_, volume::INODE_MAP | volume::ORPHANS | volume::SUMMARY_MAP | volume::REFERENCES) => 1,
            _ => 0,
        };
        let (file, level, index) =
            (file.min(most(FILE_BITS)), u64::from(level).min(most(LEVEL_BITS)), index.min(most(INDEX_BITS)));
        let high = phase << 61 | u64::from(space) << HIGH_FILE_BITS | file >> LOW_FILE_BITS;
        Self { high, low: file << (LEVEL_BITS + INDEX_BITS) | level << INDEX_BITS | index }
    }

    fn phase(self) -> u64 {
        self.high >> 61
    }

    #[inline]
    pub fn space(self) -> u32 {
        (self.high >> HIGH_FILE_BITS) as u32
    }

    #[inline]
    pub fn file(self) -> u64 {
        (self.high & most(HIGH_FILE_BITS)) << LOW_FILE_BITS | self.low >> (LEVEL_BITS + INDEX_BITS)
    }

    #[inline]
    pub fn level(self) -> u8 {
        (self.low >> INDEX_BITS & most(LEVEL_BITS)) as u8
    }

    #[inline]
    pub fn index(self) -> u64 {
        self.low & most(INDEX_BITS)
    }

    /// Whether a block of zeros is stored as a hole: blocks of pointers, and metadata whose zeros
    /// mean "absent".
    pub fn zeros_are_a_hole(self) -> bool {
        // The contents of a list of areas are only known after it has a place.
        let is_list = (self.space(), self.file()) == (AGGREGATE, aggregate::TOP_AREAS);
        // A block of a container is a volume's block, whatever its contents.
        let is_of_volume = self.space() == AGGREGATE && self.file() >= aggregate::FIRST_CONTAINER;
        self.level() > 0 || self.phase() > 0 && !is_list && !is_of_volume
    }

    #[inline]
    pub fn shape(self) -> Shape {
        shape_of(self.space())
    }

    /// A small number that is equal for blocks that are used one after another: contents of a file,
    /// its pointers, or a map.
    #[inline]
    pub fn kind(self) -> usize {
        (self.phase() << 3 ^ self.file() & 7 ^ (u64::from(self.level()) * 0x15)) as usize
    }

    /// Another block of the same level.
    #[inline]
    pub fn neighbour(self, index: u64) -> Self {
        Self { low: self.low & !most(INDEX_BITS) | index.min(most(INDEX_BITS)), ..self }
    }

    /// The block one level up, and the position in it.
    #[inline]
    pub fn parent(self) -> (Key, u64) {
        let fanout = self.shape().fanout();
        (Self::new(self.space(), self.file(), self.level() + 1, self.index() / fanout), self.index() % fanout)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (space, file, level, index) = (self.space(), self.file(), self.level(), self.index());
        write!(out, "Key({space}, {file}, {level}, {index})")
    }
}

pub(crate) fn shape_of(space: u32) -> Shape {
    if space == AGGREGATE { Shape::Aggregate } else { Shape::Volume }
}

/// The container file of a volume. Blocks of a snapshot are in that of its volume.
pub(crate) fn container_of(space: u32) -> u64 {
    aggregate::FIRST_CONTAINER + u64::from(volume_of(space))
}

/// The space of a snapshot is its place in the snapshot table, counted from 1, above these bits of
/// the volume.
const VOLUME_BITS: u32 = aggregate::MAX_VOLUMES.ilog2();

/// The space of a snapshot.
pub(crate) fn snapshot_space(slot: u32, volume: u32) -> u32 {
    (slot + 1) << VOLUME_BITS | volume
}

/// Whether a space is a snapshot, which is read-only.
pub(crate) fn is_snapshot(space: u32) -> bool {
    space != AGGREGATE && space >= aggregate::MAX_VOLUMES
}

/// The volume of a space: its own number, or that of the snapshot's volume.
pub(crate) fn volume_of(space: u32) -> u32 {
    space & (aggregate::MAX_VOLUMES - 1)
}

const _: () = assert!(aggregate::MAX_VOLUMES.is_power_of_two() && MAX_SNAPSHOTS < AGGREGATE >> VOLUME_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_like_their_parts() {
        let parts = |number: u64| {
            let file = [0, 3, 16, 4096, (1 << 40) + 5][number as usize % 5];
            let space = [0, 1, snapshot_space(2, 1), AGGREGATE][number as usize / 5 % 4];
            let index = [0, 1, 511, (1 << 44) + 3][number as usize / 20 % 4];
            (space, file, (number / 80 % 9) as u8, index)
        };
        for one in 0..720 {
            let (space, file, level, index) = parts(one);
            let key = Key::new(space, file, level, index);
            assert_eq!((key.space(), key.file(), key.level(), key.index()), parts(one));
            assert_eq!(key.neighbour(7), Key::new(space, file, level, 7));
            let fanout = shape_of(space).fanout();
            assert_eq!(key.parent(), (Key::new(space, file, level + 1, index / fanout), index % fanout));
            for other in 0..720 {
                let (other_space, other_file, other_level, other_index) = parts(other);
                let with = Key::new(other_space, other_file, other_level, other_index);
                let order = (key.phase(), parts(one)).cmp(&(with.phase(), parts(other)));
                assert_eq!(key.cmp(&with), order, "{key:?} {with:?}");
            }
        }
        let last = Key::new(AGGREGATE, u64::MAX, u8::MAX, u64::MAX);
        assert_eq!((last.file(), last.level(), last.index()), ((1 << 41) - 1, 15, (1 << 48) - 1));
    }

    #[test]
    fn snapshot_uses_the_container_of_its_volume() {
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
