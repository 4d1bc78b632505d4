//! Maps as the file system reports them: the extents of a file with their flags. Shared by
//! collectors and scores.

mod btrfs;

use std::fmt;

use senesce_core::{Extent, RelPath};
use serde::{Deserialize, Serialize};

pub(crate) use btrfs::merge_neighbours;
pub use btrfs::{BtrfsBlockGroup, BtrfsDevice, BtrfsFreeSpace, BtrfsGroupType, BtrfsProfile, BtrfsSource, BtrfsStripe};

/// The flags of FIEMAP for an extent (`linux/fiemap.h`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExtentFlags(pub u32);

impl ExtentFlags {
    /// The last extent of the file.
    pub const LAST: Self = Self(0x1);
    /// The position is not known (yet).
    pub const UNKNOWN: Self = Self(0x2);
    /// Not allocated yet: the data is still in memory.
    pub const DELAYED: Self = Self(0x4);
    /// Compressed or encrypted: the length on the device differs from the length in the file.
    pub const ENCODED: Self = Self(0x8);
    /// Encrypted by the file system.
    pub const ENCRYPTED: Self = Self(0x80);
    /// Position or length is not a multiple of a block.
    pub const NOT_ALIGNED: Self = Self(0x100);
    /// The data is stored among the metadata: there is no data block.
    pub const INLINE: Self = Self(0x200);
    /// The data shares a block with other files' tails.
    pub const TAIL: Self = Self(0x400);
    /// Allocated but never written: reads as zeros, without reading the device.
    pub const UNWRITTEN: Self = Self(0x800);
    /// The file system has no extents, and merged blocks for the answer.
    pub const MERGED: Self = Self(0x1000);
    /// Shared with other files or snapshots.
    pub const SHARED: Self = Self(0x2000);

    const NAMES: [(Self, &'static str); 11] = [
        (Self::LAST, "last"),
        (Self::UNKNOWN, "unknown"),
        (Self::DELAYED, "delayed"),
        (Self::ENCODED, "encoded"),
        (Self::ENCRYPTED, "encrypted"),
        (Self::NOT_ALIGNED, "not-aligned"),
        (Self::INLINE, "inline"),
        (Self::TAIL, "tail"),
        (Self::UNWRITTEN, "unwritten"),
        (Self::MERGED, "merged"),
        (Self::SHARED, "shared"),
    ];

    /// Whether every flag of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both sets.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for ExtentFlags {
    /// The flags' names, as `unwritten|last`; unknown bits in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut parts = Vec::new();
        for (flag, name) in Self::NAMES {
            if self.contains(flag) {
                parts.push(name.to_owned());
                rest &= !flag.0;
            }
        }
        if rest != 0 {
            parts.push(format!("{rest:#x}"));
        }
        f.write_str(&parts.join("|"))
    }
}

/// The role of an extent in a measurement of layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It has blocks of its own at a known position.
    Placed,
    /// Its data is stored among the metadata: no data block.
    Inline,
    /// It has no position (yet): still in memory, or unknown.
    Unplaced,
    /// Its position is known, but not its length on the device: compressed, encrypted, or packed
    /// with other files' tails.
    Encoded,
}

/// An extent of a file as FIEMAP reports it, with its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawExtent {
    /// Its location. Unless it is [`Placement::Placed`], the position or length on the device has
    /// no meaning.
    pub extent: Extent,
    /// The flags that the file system reports.
    pub flags: ExtentFlags,
}

impl RawExtent {
    /// The role of the extent in a measurement of layout. Unwritten and shared extents are placed:
    /// they have blocks.
    pub fn placement(&self) -> Placement {
        let has = |flag| self.flags.contains(flag);
        if has(ExtentFlags::INLINE) {
            Placement::Inline
        } else if has(ExtentFlags::DELAYED) {
            Placement::Unplaced
        } else if has(ExtentFlags::ENCODED) || has(ExtentFlags::ENCRYPTED) || has(ExtentFlags::TAIL) {
            Placement::Encoded
        } else if has(ExtentFlags::UNKNOWN) || self.extent.length == 0 {
            Placement::Unplaced
        } else {
            Placement::Placed
        }
    }
}

/// A file of a tree and its extents, in the order of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtents {
    /// The file, relative to the root of the walk.
    pub path: RelPath,
    /// Size of its content, bytes.
    pub size_bytes: u64,
    /// Its extents in file order.
    pub extents: Vec<RawExtent>,
}

/// A run of free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FreeExtent {
    /// Where it starts, bytes from the start of the device.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(flags: u32) -> Placement {
        RawExtent { extent: Extent { logical: 0, physical: 4096, length: 4096 }, flags: ExtentFlags(flags) }.placement()
    }

    #[test]
    fn only_extents_with_own_blocks_are_placed() {
        assert_eq!(placement(0x1), Placement::Placed);
        assert_eq!(placement(0x801), Placement::Placed, "unwritten blocks have a position");
        assert_eq!(placement(0x2001), Placement::Placed, "shared blocks have a position");
        assert_eq!(placement(0x301), Placement::Inline);
        assert_eq!(placement(0x7), Placement::Unplaced, "delayed allocation comes with the flag for unknown");
        assert_eq!(placement(0x9), Placement::Encoded);
        assert_eq!(placement(0x2), Placement::Unplaced);
    }

    #[test]
    fn flags_are_named() {
        assert_eq!(format!("{:?}", ExtentFlags(0x801)), "last|unwritten");
        assert_eq!(format!("{:?}", ExtentFlags(0x80000008)), "encoded|0x80000000");
    }
}
