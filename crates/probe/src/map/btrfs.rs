//! The space of a Btrfs file system: block groups in its logical space, and the devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FreeExtent;

/// The layout of a block group on its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BtrfsProfile {
    /// One copy.
    Single,
    /// Two copies on one device.
    Dup,
    /// Two copies on different devices.
    Raid1,
    /// Three copies.
    Raid1c3,
    /// Four copies.
    Raid1c4,
    /// Striped, one copy.
    Raid0,
    /// Striped, two copies.
    Raid10,
    /// Striped with one parity.
    Raid5,
    /// Striped with two parities.
    Raid6,
}

impl BtrfsProfile {
    /// Bytes on devices for each byte of the group, without parity.
    pub fn copies(self) -> u64 {
        match self {
            Self::Single | Self::Raid0 | Self::Raid5 | Self::Raid6 => 1,
            Self::Dup | Self::Raid1 | Self::Raid10 => 2,
            Self::Raid1c3 => 3,
            Self::Raid1c4 => 4,
        }
    }

    /// Whether consecutive bytes are on different devices, so that a free extent is not contiguous
    /// on any device.
    pub fn is_striped(self) -> bool {
        matches!(self, Self::Raid0 | Self::Raid10 | Self::Raid5 | Self::Raid6)
    }
}

/// The purpose and layout of a block group: the bits of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BtrfsGroupType(pub u64);

impl BtrfsGroupType {
    /// File content.
    pub const DATA: Self = Self(0x1);
    /// The chunk tree.
    pub const SYSTEM: Self = Self(0x2);
    /// All other trees.
    pub const METADATA: Self = Self(0x4);

    const PROFILES: [(u64, BtrfsProfile); 8] = [
        (0x8, BtrfsProfile::Raid0),
        (0x10, BtrfsProfile::Raid1),
        (0x20, BtrfsProfile::Dup),
        (0x40, BtrfsProfile::Raid10),
        (0x80, BtrfsProfile::Raid5),
        (0x100, BtrfsProfile::Raid6),
        (0x200, BtrfsProfile::Raid1c3),
        (0x400, BtrfsProfile::Raid1c4),
    ];

    /// Whether every bit of `other` is set. A mixed block group holds data and metadata.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Its layout on devices.
    pub fn profile(self) -> BtrfsProfile {
        let found = Self::PROFILES.iter().find(|(bit, _)| self.0 & bit != 0);
        found.map_or(BtrfsProfile::Single, |(_, profile)| *profile)
    }
}

/// One copy, or one stripe, of a block group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BtrfsStripe {
    /// The device, by Btrfs' number.
    pub device_id: u64,
    /// Its start, bytes from the start of that device.
    pub start_bytes: u64,
}

/// A block group: a part of the logical space that serves one purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BtrfsBlockGroup {
    /// Its start, logical bytes.
    pub start_bytes: u64,
    /// Its length, logical bytes. Every copy needs the same number of bytes.
    pub length_bytes: u64,
    /// Its purpose, and its layout on devices.
    pub group_type: BtrfsGroupType,
    /// Used, as Btrfs accounts it, logical bytes.
    pub used_bytes: u64,
    /// Neither used nor free: reserved for copies of the superblock, logical bytes.
    pub reserved_bytes: u64,
    /// Allocatable extents, in order, with adjacent ones merged; positions are logical. No extent
    /// exceeds the group.
    pub free: Vec<FreeExtent>,
    /// Its copies or stripes.
    pub stripes: Vec<BtrfsStripe>,
    /// Stripes that hold different parts of a mirrored pair (RAID10: 2; otherwise 1).
    pub sub_stripes: u16,
}

impl BtrfsBlockGroup {
    /// Free bytes, logical.
    pub fn free_bytes(&self) -> u64 {
        self.free.iter().map(|extent| extent.length_bytes).sum()
    }

    /// The first byte after it.
    pub fn end_bytes(&self) -> u64 {
        self.start_bytes.saturating_add(self.length_bytes)
    }

    /// The difference between its length and the sum of used, reserved and free bytes: 0 on a quiet
    /// volume.
    pub fn mismatch_bytes(&self) -> u64 {
        self.length_bytes.abs_diff(self.used_bytes + self.reserved_bytes + self.free_bytes())
    }
}

/// A device of a Btrfs file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BtrfsDevice {
    /// Its number in Btrfs.
    pub id: u64,
    /// Its size in the file system, bytes.
    pub size_bytes: u64,
    /// Bytes allocated to block groups.
    pub allocated_bytes: u64,
    /// Space that no block group has, in order, without the first MiB, which is never allocated.
    pub unallocated: Vec<FreeExtent>,
    /// Bytes of the first MiB that no block group has.
    pub reserved_bytes: u64,
}

/// The source of the free extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BtrfsSource {
    /// The tree that Btrfs maintains for free space.
    FreeSpaceTree,
    /// The gaps between the extents of the extent tree, for volumes without a free-space tree.
    ExtentTree,
}

/// The free space of a Btrfs file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BtrfsFreeSpace {
    /// The smallest unit of allocation, bytes.
    pub sector_bytes: u64,
    /// The block groups, by position.
    pub groups: Vec<BtrfsBlockGroup>,
    /// The devices, by number.
    pub devices: Vec<BtrfsDevice>,
    /// The source of the free extents.
    pub source: BtrfsSource,
    /// Entries for space that no block group has any more; left out.
    pub stale_entries: u64,
}

impl BtrfsFreeSpace {
    /// The free extents of the groups with every bit of `purpose`, in logical space; not merged
    /// across groups.
    pub fn free_extents(&self, purpose: BtrfsGroupType) -> impl Iterator<Item = FreeExtent> + '_ {
        let groups = self.groups.iter().filter(move |group| group.group_type.contains(purpose));
        groups.flat_map(|group| group.free.iter().copied())
    }

    /// The sum of the groups' mismatches: 0 on a quiet volume. On a volume in use, the trees change
    /// while they are read.
    pub fn mismatch_bytes(&self) -> u64 {
        self.groups.iter().map(BtrfsBlockGroup::mismatch_bytes).sum()
    }

    /// The free extents of one device, in order, with adjacent ones merged: unallocated space, and
    /// the free space of the groups that have a copy there. None if one of them is striped, or if
    /// there is no such device.
    pub fn device_free_extents(&self, device_id: u64) -> Option<Vec<FreeExtent>> {
        let mut free = self.devices.iter().find(|device| device.id == device_id)?.unallocated.clone();
        for group in &self.groups {
            for stripe in group.stripes.iter().filter(|stripe| stripe.device_id == device_id) {
                if group.group_type.profile().is_striped() {
                    return None;
                }
                free.extend(group.free.iter().map(|extent| FreeExtent {
                    start_bytes: stripe.start_bytes + (extent.start_bytes - group.start_bytes),
                    length_bytes: extent.length_bytes,
                }));
            }
        }
        free.sort_unstable();
        Some(merge_neighbours(free))
    }

    /// The device and the byte on it that a logical position maps to, in the first copy. None if no
    /// block group has it, or if the group is striped.
    pub fn device_position(&self, logical: u64) -> Option<(u64, u64)> {
        let behind = self.groups.partition_point(|group| group.start_bytes <= logical);
        let group = self.groups[..behind].last().filter(|group| logical < group.end_bytes())?;
        let stripe = group.stripes.first().filter(|_| !group.group_type.profile().is_striped())?;
        Some((stripe.device_id, stripe.start_bytes + (logical - group.start_bytes)))
    }
}

/// Merges adjacent extents; they must be in order.
pub(crate) fn merge_neighbours(extents: Vec<FreeExtent>) -> Vec<FreeExtent> {
    let mut merged: Vec<FreeExtent> = Vec::with_capacity(extents.len());
    for extent in extents.into_iter().filter(|extent| extent.length_bytes > 0) {
        match merged.last_mut() {
            Some(last) if last.start_bytes + last.length_bytes == extent.start_bytes => {
                last.length_bytes += extent.length_bytes;
            }
            _ => merged.push(extent),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start_bytes: u64, length_bytes: u64) -> FreeExtent {
        FreeExtent { start_bytes, length_bytes }
    }

    fn space() -> BtrfsFreeSpace {
        let group = |start, bits, stripes: &[(u64, u64)], free: &[FreeExtent]| BtrfsBlockGroup {
            start_bytes: start,
            length_bytes: 1000,
            group_type: BtrfsGroupType(bits),
            used_bytes: 0,
            reserved_bytes: 0,
            free: free.to_vec(),
            stripes: stripes.iter().map(|&(device_id, start_bytes)| BtrfsStripe { device_id, start_bytes }).collect(),
            sub_stripes: 1,
        };
        let device = |id, unallocated: &[FreeExtent]| BtrfsDevice {
            id,
            size_bytes: 10_000,
            allocated_bytes: 0,
            unallocated: unallocated.to_vec(),
            reserved_bytes: 0,
        };
        BtrfsFreeSpace {
            sector_bytes: 100,
            groups: vec![
                group(5000, 0x24, &[(1, 2000), (1, 4000)], &[extent(5900, 100)]), // metadata, dup
                group(7000, 0x1, &[(1, 3000)], &[extent(7000, 200), extent(7500, 100)]), // data, single
                group(9000, 0x9, &[(2, 0), (3, 0)], &[extent(9000, 1000)]),       // data, raid0
            ],
            devices: vec![device(1, &[extent(5000, 5000)]), device(2, &[])],
            source: BtrfsSource::FreeSpaceTree,
            stale_entries: 0,
        }
    }

    #[test]
    fn both_copies_are_free_on_the_device() {
        // The end of the first copy touches the start of the data; the end of the second copy
        // touches the unallocated rest.
        let free = space().device_free_extents(1).unwrap();
        assert_eq!(free, [extent(2900, 300), extent(3500, 100), extent(4900, 5100)]);
    }

    #[test]
    fn striped_space_has_no_device_position() {
        assert_eq!(space().device_free_extents(2), None);
        assert_eq!(space().device_free_extents(9), None);
        assert_eq!(space().device_position(9500), None);
    }

    #[test]
    fn positions_map_to_the_first_copy() {
        assert_eq!(space().device_position(5010), Some((1, 2010)));
        assert_eq!(space().device_position(7999), Some((1, 3999)));
        assert_eq!(space().device_position(6500), None);
        assert_eq!(space().device_position(0), None);
    }

    #[test]
    fn groups_are_chosen_by_purpose() {
        let lengths = |purpose| space().free_extents(purpose).map(|free| free.length_bytes).collect::<Vec<_>>();
        assert_eq!(lengths(BtrfsGroupType::DATA), [200, 100, 1000]);
        assert_eq!(lengths(BtrfsGroupType::METADATA), [100]);
        assert_eq!(lengths(BtrfsGroupType::SYSTEM), [0; 0]);
    }
}
