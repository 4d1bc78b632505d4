//! The free space of a file system, its arrangement, and its consequences.

use std::path::Path;

use senesce_ext4::{FileSystem, ReadAt};
use senesce_probe::{
    collect::{collect_btrfs_free_space_as_it_is, collect_free_extents_as_it_is, collect_xfs_inode_chunk_bytes},
    map::{BtrfsFreeSpace, BtrfsGroupType, FreeExtent},
    score::{
        FreeSpaceWarning, WarningLimits, compute_btrfs_warnings, compute_free_space, compute_free_space_warnings,
        compute_full_warning, compute_inode_warning,
    },
};
use senesce_volume::FileSystemKind;

use crate::figures::{AreaGroup, BtrfsGroup, BtrfsPurpose, BtrfsSpace, FreeSpace};

/// The free space that was found.
pub(crate) struct FoundFree {
    /// Free runs on the device, for the map.
    pub extents: Vec<FreeExtent>,
    /// Their figures and warnings.
    pub figures: FreeSpace,
}

/// The facts that free space is judged by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances {
    /// Capacity of the file system, bytes.
    pub capacity_bytes: u64,
    /// Free inodes and all inodes. Both are 0 if the file system has no fixed number.
    pub inodes: (u64, u64),
    /// The natural transfer size of the first device that is modelled, bytes.
    pub natural_transfer_bytes: Option<u64>,
}

/// Reads the free space of a mounted file system. Causes no write.
///
/// Errors: the reason why it cannot be read, as text.
pub(crate) fn collect_mounted(
    kind: FileSystemKind,
    mount_point: &Path,
    circumstances: &Circumstances,
) -> Result<FoundFree, String> {
    if kind == FileSystemKind::Btrfs {
        let space = collect_btrfs_free_space_as_it_is(mount_point).map_err(said)?;
        return Ok(judge_btrfs(&space, circumstances));
    }
    let extents = collect_free_extents_as_it_is(mount_point).map_err(said)?;
    let chunk_bytes = collect_xfs_inode_chunk_bytes(mount_point).unwrap_or(None);
    Ok(judge(extents, chunk_bytes, circumstances))
}

/// An error with its cause, in one line.
fn said(error: senesce_probe::Error) -> String {
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reads the free space of an ext4 from its device. Also returns the warnings about its bitmaps.
///
/// Errors: the reason why it cannot be read, as text.
pub(crate) fn collect_offline<D: ReadAt>(
    fs: &FileSystem<D>,
    circumstances: &Circumstances,
) -> Result<(FoundFree, Vec<String>), String> {
    let free = fs.collect_free_space().map_err(|error| error.to_string())?;
    let extents =
        free.extents.iter().map(|free| FreeExtent { start_bytes: free.start_bytes, length_bytes: free.length_bytes });
    let warnings = free.report.warnings.iter().map(|warning| warning.to_string()).collect();
    Ok((judge(extents.collect(), None, circumstances), warnings))
}

/// Judges free space that another reader surveyed, with its allocation areas.
pub(crate) fn judge_told(extents: Vec<FreeExtent>, areas: Vec<AreaGroup>, circumstances: &Circumstances) -> FoundFree {
    let mut found = judge(extents, None, circumstances);
    found.figures.areas = areas;
    found
}

fn judge(extents: Vec<FreeExtent>, xfs_inode_chunk_bytes: Option<u64>, circumstances: &Circumstances) -> FoundFree {
    let figures = compute_free_space(extents.iter().map(|extent| extent.length_bytes));
    let limits = WarningLimits { xfs_inode_chunk_bytes, natural_transfer_bytes: circumstances.natural_transfer_bytes };
    let (free_inodes, inodes) = circumstances.inodes;
    let findings: Vec<FreeSpaceWarning> =
        compute_inode_warning(free_inodes, inodes, figures.bytes, circumstances.capacity_bytes)
            .into_iter()
            .chain(compute_free_space_warnings(&figures, &limits))
            .chain(compute_full_warning(figures.bytes, circumstances.capacity_bytes))
            .collect();
    let warnings = findings.iter().map(|finding| explain(finding, figures.bytes)).collect();
    FoundFree { extents, figures: FreeSpace { figures, warnings, findings, btrfs: None, areas: Vec::new() } }
}

fn judge_btrfs(space: &BtrfsFreeSpace, circumstances: &Circumstances) -> FoundFree {
    let unallocated = || space.devices.iter().flat_map(|device| &device.unallocated).map(|free| free.length_bytes);
    let lengths = space.free_extents(BtrfsGroupType::DATA).map(|free| free.length_bytes).chain(unallocated());
    let figures = compute_free_space(lengths);
    let natural_transfer_bytes = circumstances.natural_transfer_bytes;
    let limits = WarningLimits { xfs_inode_chunk_bytes: None, natural_transfer_bytes };
    let findings: Vec<FreeSpaceWarning> = compute_btrfs_warnings(space)
        .into_iter()
        .chain(compute_free_space_warnings(&figures, &limits))
        .chain(compute_full_warning(figures.bytes, circumstances.capacity_bytes))
        .collect();
    let mut warnings: Vec<String> = findings.iter().map(|finding| explain(finding, figures.bytes)).collect();
    if space.mismatch_bytes() > 0 {
        warnings.push(format!(
            "used and free bytes of the block groups differ from their lengths by {}: a transaction was open during the read",
            senesce_core::Bytes(space.mismatch_bytes())
        ));
    }
    // Positions of several devices do not fit into one map.
    let extents = match space.devices.as_slice() {
        [device] => space.device_free_extents(device.id).unwrap_or_default(),
        _ => Vec::new(),
    };
    let btrfs = BtrfsSpace {
        source: space.source,
        unallocated: compute_free_space(unallocated()),
        purposes: purposes(space),
        groups: space.groups.iter().map(BtrfsGroup::of).collect(),
        mismatch_bytes: space.mismatch_bytes(),
    };
    FoundFree { extents, figures: FreeSpace { figures, warnings, findings, btrfs: Some(btrfs), areas: Vec::new() } }
}

/// The block groups by purpose and profile, in the order of their first occurrence.
fn purposes(space: &BtrfsFreeSpace) -> Vec<BtrfsPurpose> {
    let mut kinds: Vec<BtrfsGroupType> = Vec::new();
    for group in &space.groups {
        if !kinds.contains(&group.group_type) {
            kinds.push(group.group_type);
        }
    }
    let of = |kind: BtrfsGroupType| {
        let groups = || space.groups.iter().filter(move |group| group.group_type == kind);
        BtrfsPurpose {
            purpose: BtrfsGroup::purpose(kind),
            profile: kind.profile(),
            groups: groups().count() as u64,
            bytes: groups().map(|group| group.length_bytes).sum(),
            used_bytes: groups().map(|group| group.used_bytes).sum(),
            free: compute_free_space(groups().flat_map(|group| &group.free).map(|free| free.length_bytes)),
        }
    };
    kinds.into_iter().map(of).collect()
}

/// A finding, with its consequence unless the finding names it.
fn explain(finding: &FreeSpaceWarning, free_bytes: u64) -> String {
    let free = senesce_core::Bytes(free_bytes);
    match finding {
        FreeSpaceWarning::BelowXfsInodeChunk { .. } => {
            format!("{finding}: new files may fail with \"no space\" though {free} are free")
        }
        FreeSpaceWarning::Below128Kib { .. } => format!("{finding}: new data will be in pieces"),
        FreeSpaceWarning::NoRoomForMetadata { .. } => {
            format!("{finding}; `btrfs balance start -dusage=10` frees nearly empty block groups of data")
        }
        FreeSpaceWarning::NoRoomForData { .. } => {
            format!("{finding}; `btrfs balance start -musage=10` frees nearly empty block groups of metadata")
        }
        _ => finding.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(lengths: &[u64], chunk_bytes: Option<u64>, capacity_bytes: u64) -> Vec<String> {
        let mut start_bytes = 0;
        let extents = lengths.iter().map(|&length_bytes| {
            start_bytes += length_bytes + 4096;
            FreeExtent { start_bytes, length_bytes }
        });
        let circumstances = Circumstances { capacity_bytes, ..Circumstances::default() };
        judge(extents.collect(), chunk_bytes, &circumstances).figures.warnings
    }

    #[test]
    fn small_free_extents_on_half_a_disk_warn() {
        let lengths = vec![16 * 1024; 4096]; // 64 MiB
        let said = warnings(&lengths, Some(32 << 10), 128 << 20);
        assert!(said[0].contains("inode chunk") && said[0].contains("64 MiB are free"), "{said:?}");
        let said = warnings(&lengths, None, 128 << 20);
        assert!(said.len() == 1 && said[0].contains("in pieces"), "{said:?}");
        assert_eq!(warnings(&[64 << 20], Some(32 << 10), 128 << 20), [""; 0]);
        assert!(warnings(&[1 << 20], None, 128 << 20)[0].contains("only 1 MiB"));
    }
}
