//! Warns before a file system returns "no space" although space is left.

use super::FreeSpaceWarning;
use crate::map::{BtrfsBlockGroup, BtrfsFreeSpace, BtrfsGroupType};

/// Metadata (or data) is nearly out of space if it can grow by less than its current size divided
/// by this.
const SHARE: u64 = 4;
/// The smallest limit below which space is short, bytes: the reserve of Btrfs on the smallest
/// volumes.
const LEAST_ROOM_BYTES: u64 = 4 << 20;
/// The largest such limit, bytes: the reserve of Btrfs is never larger.
const MOST_ROOM_BYTES: u64 = 512 << 20;
/// Inodes are few if less than one in this many is free.
const INODES: u64 = 50;
/// Space is nearly full if less than one byte in this many is free.
const LITTLE: u64 = 20;

/// The warnings for the block groups of a Btrfs: metadata without space while data has some, or
/// data while metadata has some.
///
/// The space for a purpose is the free space in its block groups, plus the unallocated space
/// divided by the number of copies of its newest group. It is short if it is below a quarter of the
/// used space, a limit of at least 4 MiB and at most 512 MiB (the reserve of Btrfs). A warning also
/// needs more than twice that space free for the other purpose. Mixed block groups share their
/// space. The check ignores whether each device can hold its part of a copy or stripe.
pub fn compute_btrfs_warnings(space: &BtrfsFreeSpace) -> Vec<FreeSpaceWarning> {
    let unallocated: u64 =
        space.devices.iter().flat_map(|device| &device.unallocated).map(|free| free.length_bytes).sum();
    let data = Purpose::of(space, BtrfsGroupType::DATA, unallocated);
    let metadata = Purpose::of(space, BtrfsGroupType::METADATA, unallocated);
    if space.groups.iter().any(is_mixed) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if metadata.is_short() && data.free_bytes > 2 * metadata.room_bytes {
        warnings.push(FreeSpaceWarning::NoRoomForMetadata {
            room_bytes: metadata.room_bytes,
            used_bytes: metadata.used_bytes,
            data_free_bytes: data.free_bytes,
        });
    }
    if data.is_short() && metadata.free_bytes > 2 * data.room_bytes {
        warnings.push(FreeSpaceWarning::NoRoomForData {
            room_bytes: data.room_bytes,
            metadata_free_bytes: metadata.free_bytes,
        });
    }
    warnings
}

fn is_mixed(group: &BtrfsBlockGroup) -> bool {
    group.group_type.contains(BtrfsGroupType::DATA) && group.group_type.contains(BtrfsGroupType::METADATA)
}

/// The block groups for one purpose.
struct Purpose {
    used_bytes: u64,
    free_bytes: u64,
    room_bytes: u64,
}

impl Purpose {
    fn of(space: &BtrfsFreeSpace, purpose: BtrfsGroupType, unallocated_bytes: u64) -> Self {
        let groups = || space.groups.iter().filter(|group| group.group_type.contains(purpose));
        let free_bytes = groups().map(BtrfsBlockGroup::free_bytes).sum();
        let copies = groups().next_back().map_or(1, |group| group.group_type.profile().copies());
        Self {
            used_bytes: groups().map(|group| group.used_bytes).sum(),
            free_bytes,
            room_bytes: free_bytes + unallocated_bytes / copies,
        }
    }

    fn is_short(&self) -> bool {
        self.room_bytes < (self.used_bytes / SHARE).clamp(LEAST_ROOM_BYTES, MOST_ROOM_BYTES)
    }
}

/// The warning that a fixed number of inodes runs out before the space: less than one in fifty is
/// free, and a larger share of the space.
///
/// In: inodes, bytes. None if there is no fixed number (0 inodes).
pub fn compute_inode_warning(
    free_inodes: u64,
    inodes: u64,
    free_bytes: u64,
    capacity_bytes: u64,
) -> Option<FreeSpaceWarning> {
    let is_few = inodes > 0 && free_inodes < inodes / INODES;
    let has_more_space =
        u128::from(free_bytes) * u128::from(inodes) > u128::from(free_inodes) * u128::from(capacity_bytes);
    (is_few && has_more_space).then_some(FreeSpaceWarning::FewInodes { free: free_inodes, all: inodes, free_bytes })
}

/// The warning that less than a twentieth is free.
pub fn compute_full_warning(free_bytes: u64, capacity_bytes: u64) -> Option<FreeSpaceWarning> {
    (free_bytes < capacity_bytes / LITTLE).then_some(FreeSpaceWarning::NearlyFull { free_bytes, capacity_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{BtrfsDevice, BtrfsSource, FreeExtent};

    const MIB: u64 = 1 << 20;

    fn group(bits: u64, length: u64, used: u64) -> BtrfsBlockGroup {
        BtrfsBlockGroup {
            start_bytes: 0,
            length_bytes: length * MIB,
            group_type: BtrfsGroupType(bits),
            used_bytes: used * MIB,
            reserved_bytes: 0,
            free: vec![FreeExtent { start_bytes: used * MIB, length_bytes: (length - used) * MIB }],
            stripes: Vec::new(),
            sub_stripes: 1,
        }
    }

    fn warnings(groups: Vec<BtrfsBlockGroup>, unallocated: u64) -> Vec<FreeSpaceWarning> {
        let device = BtrfsDevice {
            id: 1,
            size_bytes: 0,
            allocated_bytes: 0,
            unallocated: vec![FreeExtent { start_bytes: 0, length_bytes: unallocated * MIB }],
            reserved_bytes: 0,
        };
        let source = BtrfsSource::FreeSpaceTree;
        compute_btrfs_warnings(&BtrfsFreeSpace {
            sector_bytes: 4096,
            groups,
            devices: vec![device],
            source,
            stale_entries: 0,
        })
    }

    const DATA: u64 = 0x1;
    const METADATA_DUP: u64 = 0x24;

    #[test]
    fn metadata_shortage_is_warned_of_before_enospc() {
        // 10 GiB of data groups, half empty; 1 GiB of metadata groups with 100 MiB free; nothing
        // unallocated.
        let groups = || vec![group(DATA, 10_240, 5120), group(METADATA_DUP, 1024, 924)];
        let (room_bytes, used_bytes, data_free_bytes) = (100 * MIB, 924 * MIB, 5120 * MIB);
        let expected = FreeSpaceWarning::NoRoomForMetadata { room_bytes, used_bytes, data_free_bytes };
        assert_eq!(warnings(groups(), 0), std::slice::from_ref(&expected));
        let text = expected.to_string();
        assert_eq!(
            text,
            "\"no space\" is ahead although 5 GiB are free for data: metadata uses 924 MiB and can grow by 100 MiB"
        );
        // Another unallocated GiB gives metadata half of it, in two copies.
        assert_eq!(warnings(groups(), 1024), []);
    }

    #[test]
    fn data_shortage_is_warned_of_while_metadata_has_space() {
        let groups = vec![group(DATA, 1024, 1023), group(METADATA_DUP, 512, 100)];
        let expected = FreeSpaceWarning::NoRoomForData { room_bytes: MIB, metadata_free_bytes: 412 * MIB };
        assert_eq!(warnings(groups, 0), [expected]);
        // Both are full: no warning.
        assert_eq!(warnings(vec![group(DATA, 1024, 1023), group(METADATA_DUP, 512, 511)], 0), []);
        // Mixed groups share their space.
        assert_eq!(warnings(vec![group(DATA | 4, 64, 63)], 0), []);
        assert_eq!(warnings(Vec::new(), 0), []);
    }

    #[test]
    fn scarce_inodes_and_space_are_warned_of() {
        let few = FreeSpaceWarning::FewInodes { free: 19, all: 1000, free_bytes: 500 };
        assert_eq!(compute_inode_warning(19, 1000, 500, 1000), Some(few));
        assert_eq!(compute_inode_warning(20, 1000, 500, 1000), None);
        assert_eq!(compute_inode_warning(19, 1000, 10, 1000), None, "the space runs out first");
        assert_eq!(compute_inode_warning(0, 0, 500, 1000), None);
        assert_eq!(few.to_string(), "\"no space\" is ahead although 500 B are free: only 19 of 1000 inodes are free");
        assert_eq!(
            compute_full_warning(49, 1000).map(|warning| warning.to_string()).as_deref(),
            Some("only 49 B of 1,000 B are free")
        );
        assert_eq!(compute_full_warning(50, 1000), None);
    }
}
