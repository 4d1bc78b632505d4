//! The whole in a sentence or two, for whoever reads nothing else.

use senesce_core::Bytes;
use senesce_probe::score::FreeSpaceFigures;
use senesce_volume::FileSystemKind;

use crate::figures::Inspection;

/// An XFS inode chunk: 64 inodes of 512 bytes, in one piece.
const XFS_INODE_CHUNK_BYTES: u64 = 64 * 512;
/// Below this, whatever is written next will be in pieces.
const SMALL_FREE_EXTENT_BYTES: u64 = 128 * Bytes::KIB;
/// From these slowdowns on a layout is called so.
const NAMES: [(f64, &str); 4] = [(5.0, "Badly aged"), (2.0, "Aged"), (1.25, "Somewhat aged"), (0.0, "Young")];

/// The verdict on what was found, from its first device.
pub fn compute_verdict(inspection: &Inspection) -> String {
    let Some(cost) = inspection.costs.first().filter(|_| inspection.tree.files > 0) else {
        return "Nothing to judge: there is no file.".to_owned();
    };
    let name = NAMES.iter().find(|(least, _)| cost.slowdown >= *least).map_or("Young", |(_, name)| name);
    let seconds = |seconds: f64| if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") };
    let mut text = format!(
        "{name}: reading all {} files cold would take {} ({}), {:.1}× as long as a fresh copy ({}).",
        thousands(inspection.tree.files),
        seconds(cost.seconds.as_it_lies),
        cost.device,
        cost.slowdown,
        seconds(cost.seconds.fresh_copy),
    );
    if cost.slowdown >= 1.25 {
        let gain = |to: f64| (1.0 - to / cost.seconds.as_it_lies) * 100.0;
        text.push_str(&format!(
            " {:.0}% of the loss is within files, {:.0}% between neighbours, {:.0}% in metadata: defragmenting files would save {:.0}%, a \
             fresh copy {:.0}%.",
            cost.intrafile_share * 100.0,
            cost.interfile_share * 100.0,
            cost.metadata_share * 100.0,
            gain(cost.seconds.defragmented).max(0.0),
            gain(cost.seconds.fresh_copy),
        ));
    }
    if let Some(free) = &inspection.free_space
        && !free.warnings.is_empty()
    {
        text.push_str(&format!(" Free space: {}.", free.warnings.join("; ")));
    }
    text
}

/// Digits in groups of three.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// What to expect of the free space.
pub(crate) fn compute_free_space_warnings(
    free: &FreeSpaceFigures,
    kind: FileSystemKind,
    capacity_bytes: u64,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let largest = Bytes(free.largest_bytes);
    if kind == FileSystemKind::Xfs && free.largest_bytes < XFS_INODE_CHUNK_BYTES {
        warnings.push(format!(
            "the largest free extent ({largest}) is smaller than an inode chunk ({}): new files fail with \"no space\" \
             though {} are free",
            Bytes(XFS_INODE_CHUNK_BYTES),
            Bytes(free.bytes)
        ));
    } else if free.bytes > 0 && free.largest_bytes < SMALL_FREE_EXTENT_BYTES {
        warnings.push(format!("the largest free extent is {largest}: whatever is written next will be in pieces"));
    }
    if free.bytes * 20 < capacity_bytes {
        warnings.push(format!("only {} of {} are free", Bytes(free.bytes), Bytes(capacity_bytes)));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(lengths: &[u64], kind: FileSystemKind, capacity: u64) -> Vec<String> {
        let free = senesce_probe::score::compute_free_space(lengths.iter().copied());
        compute_free_space_warnings(&free, kind, capacity)
    }

    #[test]
    fn half_a_disk_of_small_free_extents_is_a_warning_ahead() {
        let lengths = vec![16 * 1024; 4096]; // 64 MiB
        let said = warnings(&lengths, FileSystemKind::Xfs, 128 << 20);
        assert!(said.len() == 1 && said[0].contains("inode chunk") && said[0].contains("64.00 MiB"), "{said:?}");
        let said = warnings(&lengths, FileSystemKind::Ext4, 128 << 20);
        assert!(said.len() == 1 && said[0].contains("in pieces"), "{said:?}");
        assert_eq!(warnings(&[64 << 20], FileSystemKind::Xfs, 128 << 20), [""; 0]);
        assert!(warnings(&[1 << 20], FileSystemKind::Ext4, 128 << 20)[0].contains("only 1.00 MiB"));
    }
}
