//! Names of blocks: a file, a level of its tree, and a number on that level. Caches know blocks by these names only,
//! never by where they lie.

use crate::format::pointer::Shape;

/// The space of the aggregate's own files; smaller numbers are volumes.
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
    /// Inodes in use below those of users: the four above.
    pub(crate) const FIXED_FILES: u64 = 4;
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
            (_, volume::INODE_MAP | volume::ORPHANS) => 1,
            _ => 0,
        };
        Self { phase, space, file, level, index }
    }

    /// Whether a block of zeros need not be kept: pointers, and metadata in which zeros mean nothing is there.
    pub fn zeros_are_a_hole(self) -> bool {
        // What stands in a list of areas is known only when it has a place.
        let is_list = (self.space, self.file) == (AGGREGATE, aggregate::TOP_AREAS);
        self.level > 0 || self.phase > 0 && !is_list
    }

    pub fn shape(self) -> Shape {
        shape_of(self.space)
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

/// The container file of a volume.
pub(crate) fn container_of(space: u32) -> u64 {
    aggregate::FIRST_CONTAINER + u64::from(space)
}
