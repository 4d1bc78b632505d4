//! Makes the free space of a Btrfs contiguous: the contents of the worst block groups of data move
//! to others, and the groups become unallocated space.
//!
//! A group is bad if most of its free space is in short extents. The kernel moves the contents of
//! one group at a time (`BTRFS_IOC_BALANCE_V2` with a range of addresses), and keeps sharing.

use std::{fs::File, path::Path};

use senesce_probe::map::{BtrfsBlockGroup, BtrfsFreeSpace, BtrfsGroupType};

use crate::{Error, apply::balance_range};

/// A group whose use exceeds this percentage stays: moving it writes more than it frees.
const MOST_USED_PERCENT: u64 = 50;

/// A block group to empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstGroup {
    /// Its start, a logical address.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
    /// Bytes of contents that move.
    pub used_bytes: u64,
    /// Free bytes that are not in its longest free extent.
    pub scattered_bytes: u64,
}

/// Chooses the block groups of data that gain most contiguous space for each byte that moves, up to
/// `budget_bytes` of contents. Pure.
///
/// A group is chosen only if the groups that stay have space for its contents.
pub fn plan_balance(space: &BtrfsFreeSpace, budget_bytes: u64) -> Vec<WorstGroup> {
    choose_groups(space, budget_bytes, |_| true)
}

fn choose_groups(
    space: &BtrfsFreeSpace,
    budget_bytes: u64,
    is_candidate: impl Fn(&WorstGroup) -> bool,
) -> Vec<WorstGroup> {
    let is_data = |group: &&BtrfsBlockGroup| group.group_type.contains(BtrfsGroupType::DATA);
    let free: u64 = space.groups.iter().filter(is_data).map(BtrfsBlockGroup::free_bytes).sum();
    let mut worst: Vec<WorstGroup> =
        space.groups.iter().filter(is_data).filter_map(judge).filter(is_candidate).collect();
    // Scattered bytes for each byte that moves, compared without a division.
    let worth = |group: &WorstGroup| (u128::from(group.scattered_bytes), u128::from(group.used_bytes));
    worst.sort_by(|a, b| {
        let ((gain_a, cost_a), (gain_b, cost_b)) = (worth(a), worth(b));
        (gain_b * cost_a).cmp(&(gain_a * cost_b)).then(a.start_bytes.cmp(&b.start_bytes))
    });
    let (mut budget, mut space_left) = (budget_bytes, free);
    worst.retain(|group| {
        let gone = group.used_bytes + (group.length_bytes - group.used_bytes);
        let is_chosen = group.used_bytes <= budget && gone <= space_left;
        if is_chosen {
            budget -= group.used_bytes;
            space_left -= gone;
        }
        is_chosen
    });
    worst
}

/// Takes the next of the chosen groups, with its contents as they are now. Pure.
///
/// The contents of an earlier group may have moved into a later one. Then the later one has more to
/// move, and stays if that exceeds `budget_bytes` or if it is not worth it any more.
pub fn next_group(space: &BtrfsFreeSpace, waiting: &mut Vec<WorstGroup>, budget_bytes: u64) -> Option<WorstGroup> {
    let is_waiting = |group: &WorstGroup| waiting.iter().any(|waiting| waiting.start_bytes == group.start_bytes);
    // A group that became bad meanwhile must not take the budget of one that waits.
    let next = choose_groups(space, budget_bytes, is_waiting).into_iter().next()?;
    waiting.retain(|group| group.start_bytes != next.start_bytes);
    Some(next)
}

fn judge(group: &BtrfsBlockGroup) -> Option<WorstGroup> {
    let longest = group.free.iter().map(|free| free.length_bytes).max()?;
    let scattered_bytes = group.free_bytes().saturating_sub(longest);
    let used_bytes = group.used_bytes.min(group.length_bytes);
    let is_bad = used_bytes > 0
        && used_bytes * 100 <= group.length_bytes * MOST_USED_PERCENT
        && 2 * scattered_bytes > group.free_bytes();
    let (start_bytes, length_bytes) = (group.start_bytes, group.length_bytes);
    is_bad.then_some(WorstGroup { start_bytes, length_bytes, used_bytes, scattered_bytes })
}

/// Lengths of the free extents of data and of the unallocated space, bytes.
pub fn free_lengths(space: &BtrfsFreeSpace) -> Vec<u64> {
    let unallocated = space.devices.iter().flat_map(|device| &device.unallocated).map(|free| free.length_bytes);
    space.free_extents(BtrfsGroupType::DATA).map(|free| free.length_bytes).chain(unallocated).collect()
}

/// The same as [`free_lengths`] after these groups are empty. The contents count as moved to the
/// longest free extents that stay.
pub fn predict_free_lengths(space: &BtrfsFreeSpace, groups: &[WorstGroup]) -> Vec<u64> {
    let is_gone = |group: &BtrfsBlockGroup| groups.iter().any(|gone| gone.start_bytes == group.start_bytes);
    let staying: Vec<BtrfsBlockGroup> = space.groups.iter().filter(|group| !is_gone(group)).cloned().collect();
    let mut lengths = free_lengths(&BtrfsFreeSpace { groups: staying, ..space.clone() });
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let mut moved: u64 = groups.iter().map(|group| group.used_bytes).sum();
    for length in &mut lengths {
        let filled = moved.min(*length);
        (*length, moved) = (*length - filled, moved - filled);
    }
    lengths.retain(|length| *length > 0);
    lengths.extend(groups.iter().map(|group| group.length_bytes));
    lengths
}

/// Moves the contents of one block group elsewhere.
///
/// Errors: another balance runs; no space; the caller is not root.
pub fn balance_group(path: &Path, group: &WorstGroup) -> Result<(), Error> {
    let open = |source| Error::Io { operation: "open", path: path.to_owned(), source };
    let directory = File::open(path).map_err(open)?;
    balance_range(&directory, group.start_bytes, group.start_bytes + group.length_bytes)
        .map_err(Error::sys("balance a block group of", path))
}

#[cfg(test)]
mod tests {
    use senesce_probe::map::FreeExtent;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn group(start: u64, used_mib: u64, free_mib: &[u64]) -> BtrfsBlockGroup {
        let mut at = start;
        let mut free = Vec::new();
        for length in free_mib {
            free.push(FreeExtent { start_bytes: at, length_bytes: length * MIB });
            at += length * MIB + MIB;
        }
        BtrfsBlockGroup {
            start_bytes: start,
            length_bytes: (used_mib + free_mib.iter().sum::<u64>()) * MIB,
            group_type: BtrfsGroupType::DATA,
            used_bytes: used_mib * MIB,
            reserved_bytes: 0,
            free,
            stripes: Vec::new(),
            sub_stripes: 0,
        }
    }

    fn space(groups: Vec<BtrfsBlockGroup>) -> BtrfsFreeSpace {
        let source = senesce_probe::map::BtrfsSource::FreeSpaceTree;
        BtrfsFreeSpace { sector_bytes: 4096, groups, devices: Vec::new(), source, stale_entries: 0 }
    }

    #[test]
    fn scattered_groups_with_few_contents_are_first() {
        let all = space(vec![
            group(0, 60, &[20, 20]),
            group(1 << 30, 10, &[30, 30, 30]),
            group(2 << 30, 5, &[10, 85]),
            group(3 << 30, 40, &[20, 20, 20]),
            group(4 << 30, 0, &[400]),
        ]);
        let starts =
            |budget| -> Vec<u64> { plan_balance(&all, budget).iter().map(|group| group.start_bytes >> 30).collect() };
        assert_eq!(starts(u64::MAX), [1, 3], "full groups, and those with one long extent, stay");
        assert_eq!(starts(10 * MIB), [1]);
        assert_eq!(starts(MIB), [0; 0]);
        let chosen = plan_balance(&all, 10 * MIB);
        let after = predict_free_lengths(&all, &chosen);
        assert_eq!(after.iter().sum::<u64>(), free_lengths(&all).iter().sum::<u64>());
        assert!(after.len() == free_lengths(&all).len() - 2 && after.contains(&(390 * MIB)), "{after:?}");
        let full = space(vec![group(0, 10, &[30, 30, 30])]);
        assert!(plan_balance(&full, u64::MAX).is_empty(), "no other group has space");
    }

    #[test]
    fn contents_that_moved_into_a_waiting_group_count_again() {
        let before =
            space(vec![group(0, 10, &[30, 30, 30]), group(1 << 30, 20, &[30, 30, 20]), group(2 << 30, 0, &[400])]);
        let mut waiting = plan_balance(&before, 30 * MIB);
        assert_eq!(waiting.len(), 2);
        let first = next_group(&before, &mut waiting, 30 * MIB).unwrap();
        assert_eq!((first.start_bytes, first.used_bytes), (0, 10 * MIB));
        // Its contents are in the other group now.
        let after = space(vec![group(1 << 30, 30, &[30, 20, 20]), group(2 << 30, 0, &[400])]);
        assert_eq!(next_group(&after, &mut waiting.clone(), 20 * MIB), None, "30 MiB are over the budget");
        assert_eq!(next_group(&after, &mut waiting, 30 * MIB).unwrap().used_bytes, 30 * MIB);
        assert_eq!(next_group(&before, &mut waiting, u64::MAX), None, "no group twice");
    }
}
