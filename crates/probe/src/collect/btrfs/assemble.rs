//! Combines chunks, device extents and free entries into block groups and devices. Pure.

use super::items::Chunk;
use crate::map::{
    BtrfsBlockGroup, BtrfsDevice, BtrfsFreeSpace, BtrfsGroupType, BtrfsSource, FreeExtent, merge_neighbours,
};

/// The content of the trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trees {
    pub(super) sector_bytes: u64,
    /// By position.
    pub(super) chunks: Vec<Chunk>,
    /// The start of a block group and its used bytes; by position.
    pub(super) used_bytes: Vec<(u64, u64)>,
    /// Number and size.
    pub(super) devices: Vec<(u64, u64)>,
    /// Device, start, length; in order.
    pub(super) device_extents: Vec<(u64, u64, u64)>,
    /// Free entries (of the free-space tree) or used ones (of the extent tree), by position.
    pub(super) entries: Vec<FreeExtent>,
}

/// The positions of Btrfs' superblock copies on each device, bytes. The space around them is never
/// allocated.
const SUPERBLOCKS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// Bytes of a stripe: the unit of the space reserved for superblocks, and of striping over devices.
const STRIPE_BYTES: u64 = 64 << 10;

/// The start of a device that is never allocated to a block group, bytes.
const DEVICE_RESERVED_BYTES: u64 = 1 << 20;

/// Assembles the free space.
pub(super) fn compute_space(trees: &Trees, source: BtrfsSource) -> BtrfsFreeSpace {
    let (groups, stale_entries) = compute_groups(trees, source);
    let devices = trees.devices.iter().map(|&(id, size)| compute_device(id, size, &trees.device_extents)).collect();
    BtrfsFreeSpace { sector_bytes: trees.sector_bytes, groups, devices, source, stale_entries }
}

fn compute_groups(trees: &Trees, source: BtrfsSource) -> (Vec<BtrfsBlockGroup>, u64) {
    let mut entries = trees.entries.iter().peekable();
    let mut stale_entries = 0;
    let mut groups = Vec::with_capacity(trees.chunks.len());
    for chunk in &trees.chunks {
        let end = chunk.start_bytes.saturating_add(chunk.length_bytes);
        while entries.next_if(|entry| entry.start_bytes < chunk.start_bytes).is_some() {
            stale_entries += 1;
        }
        let mut inside = Vec::new();
        while let Some(entry) = entries.next_if(|entry| entry.start_bytes < end) {
            inside.push(FreeExtent { length_bytes: entry.length_bytes.min(end - entry.start_bytes), ..*entry });
        }
        let mut free = match source {
            BtrfsSource::FreeSpaceTree => merge_neighbours(inside),
            BtrfsSource::ExtentTree => compute_gaps(chunk.start_bytes, end, &inside),
        };
        let total: u64 = free.iter().map(|extent| extent.length_bytes).sum();
        for reserved in compute_superblock_places(chunk) {
            free = subtract(&free, reserved);
        }
        let left: u64 = free.iter().map(|extent| extent.length_bytes).sum();
        let at = trees.used_bytes.binary_search_by_key(&chunk.start_bytes, |(start, _)| *start);
        groups.push(BtrfsBlockGroup {
            start_bytes: chunk.start_bytes,
            length_bytes: chunk.length_bytes,
            group_type: chunk.group_type,
            used_bytes: at.map_or(0, |at| trees.used_bytes[at].1),
            reserved_bytes: total - left,
            free,
            stripes: chunk.stripes.clone(),
            sub_stripes: chunk.sub_stripes,
        });
    }
    (groups, stale_entries + entries.count() as u64)
}

/// The gaps between used extents, which are in order.
fn compute_gaps(start: u64, end: u64, used: &[FreeExtent]) -> Vec<FreeExtent> {
    let mut gaps = Vec::new();
    let mut at = start;
    for extent in used {
        if extent.start_bytes > at {
            gaps.push(FreeExtent { start_bytes: at, length_bytes: extent.start_bytes - at });
        }
        at = at.max(extent.start_bytes.saturating_add(extent.length_bytes));
    }
    if end > at {
        gaps.push(FreeExtent { start_bytes: at, length_bytes: end - at });
    }
    gaps
}

/// The extents without `hole`.
fn subtract(extents: &[FreeExtent], hole: FreeExtent) -> Vec<FreeExtent> {
    let hole_end = hole.start_bytes.saturating_add(hole.length_bytes);
    let mut left = Vec::with_capacity(extents.len() + 1);
    for extent in extents {
        let end = extent.start_bytes + extent.length_bytes;
        for (from, to) in [(extent.start_bytes, end.min(hole.start_bytes)), (extent.start_bytes.max(hole_end), end)] {
            if from < to {
                left.push(FreeExtent { start_bytes: from, length_bytes: to - from });
            }
        }
    }
    left
}

/// The logical ranges of a chunk that overlap a superblock on one of its devices.
fn compute_superblock_places(chunk: &Chunk) -> Vec<FreeExtent> {
    const RAID0_AND_10: u64 = 0x48;
    const RAID5: u64 = 0x80;
    const RAID6: u64 = 0x100;
    let stripes = chunk.stripes.len() as u64;
    let BtrfsGroupType(bits) = chunk.group_type;
    // Stripes with different data.
    let data_stripes = match bits {
        _ if bits & RAID0_AND_10 != 0 => stripes / u64::from(chunk.sub_stripes),
        _ if bits & RAID5 != 0 => stripes.saturating_sub(1),
        _ if bits & RAID6 != 0 => stripes.saturating_sub(2),
        _ => 1,
    }
    .max(1);
    let stripe_length = chunk.length_bytes / data_stripes;
    let unit = if bits & (RAID5 | RAID6) != 0 { STRIPE_BYTES * data_stripes } else { STRIPE_BYTES };
    let end = chunk.start_bytes.saturating_add(chunk.length_bytes);
    let mut places = Vec::new();
    for (index, stripe) in chunk.stripes.iter().enumerate() {
        for superblock in SUPERBLOCKS {
            let Some(inside) = superblock.checked_sub(stripe.start_bytes).filter(|at| *at < stripe_length) else {
                continue;
            };
            let (mut number, offset) = (inside / STRIPE_BYTES, inside % STRIPE_BYTES);
            if bits & RAID0_AND_10 != 0 {
                number = (number * stripes + index as u64) / u64::from(chunk.sub_stripes);
            }
            let start_bytes = chunk.start_bytes + number * unit + offset;
            if start_bytes < end {
                places.push(FreeExtent { start_bytes, length_bytes: unit.min(end - start_bytes) });
            }
        }
    }
    places
}

/// A device, with the space that no block group has.
fn compute_device(id: u64, size_bytes: u64, extents: &[(u64, u64, u64)]) -> BtrfsDevice {
    let taken: Vec<_> = extents
        .iter()
        .filter(|(device, ..)| *device == id)
        .map(|&(_, start_bytes, length_bytes)| FreeExtent { start_bytes, length_bytes })
        .collect();
    let gaps = compute_gaps(0, size_bytes, &taken);
    let head = FreeExtent { start_bytes: 0, length_bytes: DEVICE_RESERVED_BYTES };
    let unallocated = subtract(&gaps, head);
    let sum = |extents: &[FreeExtent]| extents.iter().map(|extent| extent.length_bytes).sum::<u64>();
    BtrfsDevice {
        id,
        size_bytes,
        allocated_bytes: sum(&taken),
        reserved_bytes: sum(&gaps) - sum(&unallocated),
        unallocated,
    }
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
