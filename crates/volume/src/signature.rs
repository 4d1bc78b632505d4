//! Finds data on a device that a user could miss: known marks at known places.

/// The number of bytes from the start, and before the end, of a device that [`find_signatures`]
/// needs.
pub const SCAN_BYTES: usize = 128 << 10;

/// The bytes at the start and before the end of a device that must be zeros if the device is to
/// count as empty.
pub(crate) const EDGE_BYTES: usize = 1 << 20;

/// A known mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The object that the mark identifies, with its article.
    pub holds: &'static str,
    /// Offset in the scanned part, bytes.
    pub offset: usize,
}

/// Marks at fixed offsets from the start. They are those that `inspect` names, those of senesce,
/// and those that libblkid accepts only with the rest of an intact superblock. libblkid finds all
/// others.
///
/// Sources: each format's documentation, and util-linux's list.
const AT_START: &[(usize, &[u8], &str)] = &[
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (65_600, b"_BHRfS_M", "a Btrfs file system"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (1030, b"\x34\x34", "a NILFS2 file system"),
    (0, b"\x3a\xff\x26\xed", "a bcache device"),
    (4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache or bcachefs device"),
    (4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9", "a bcachefs file system"),
    (3, b"-FVE-FS-", "a BitLocker volume"),
    (512, b"!Stra0tis\x86\xff\x02^\x41rh", "a Stratis block device"),
    (4608, b"!Stra0tis\x86\xff\x02^\x41rh", "a Stratis block device"),
    (32, b"NXSB", "an APFS container"),
    (32_769, b"BEA01", "a UDF file system"),
    (0, b"integrt\0", "a dm-integrity device"),
    (65_588, b"ReIsEr", "a ReiserFS file system"),
    (8192, b"\x49\xe8\x95\xf9", "an HPFS file system"),
    (0, b"\x0b\xe5\xa9\x41", "an SGI disk label"),
    (512, b"\x57\x45\x56\x82", "a BSD disk label"),
    (32_768, b"JFS1", "a JFS file system"),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    (0, b"hsqs", "a squashfs file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (54, b"FAT", "a FAT (vfat) file system"),
    (82, b"FAT32", "a FAT (vfat) file system"),
    (4086, b"SWAPSPACE2", "a swap area"),
    (4086, b"SWAP-SPACE", "a swap area"),
    (8182, b"SWAPSPACE2", "a swap area"),
    (16_374, b"SWAPSPACE2", "a swap area"),
    (32_758, b"SWAPSPACE2", "a swap area"),
    (65_526, b"SWAPSPACE2", "a swap area"),
    (4086, b"S1SUSPEND", "the memory of a hibernated machine"),
    (4086, b"S2SUSPEND", "the memory of a hibernated machine"),
    (4086, b"ULSUSPEND", "the memory of a hibernated machine"),
    (4086, b"LINHIB0001", "the memory of a hibernated machine"),
    (0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c", "the memory of a hibernated machine"),
    (0, b"SNSCdriv", "a drive of a garden of senesce"),
    (0, b"SNSClog\0", "the log of a garden of senesce"),
    (0, b"SNSCevrg", "an evergreen of senesce"),
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0, b"LABELONE", "an LVM physical volume"),
    (512, b"LABELONE", "an LVM physical volume"),
    (1024, b"LABELONE", "an LVM physical volume"),
    (1536, b"LABELONE", "an LVM physical volume"),
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (0, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    (510, b"\x55\xaa", "an MBR partition table or a boot sector"),
];

/// Marks at fixed distances from the end.
const AT_END: &[(usize, &[u8], &str)] = &[
    (512, b"EFI PART", "the copy of a GPT partition table"),
    (4096, b"EFI PART", "the copy of a GPT partition table"),
    (512, b"DPTM", "a member of an Adaptec RAID array"),
    (416, b"\x00\x00\xfd\x2f", "a member of a Silicon Image RAID array"),
    (5600, b"\xf0\x16\x78\x5a", "a member of a HighPoint RAID array"),
    (4036, b"\x83\x74\x02\x67", "the metadata of DRBD"),
];

/// Finds marks in the first and the last [`SCAN_BYTES`] of a device. Both are shorter on a small
/// device.
///
/// Returns nothing for zeros and for contents without a known mark. So it protects against the name
/// of a wrong device, but does not prove that a device is empty.
pub fn find_signatures(start: &[u8], end: &[u8]) -> Vec<Signature> {
    let has = |part: &[u8], offset: usize, mark: &[u8]| part.get(offset..offset + mark.len()) == Some(mark);
    let mut found: Vec<Signature> = AT_START
        .iter()
        .filter(|(offset, mark, _)| has(start, *offset, mark))
        .map(|&(offset, _, holds)| Signature { holds, offset })
        .collect();
    // ZFS: a ring of uberblocks starts 128 KiB into each label, at least 1 KiB apart. The label's
    // list of names and values starts at 16 KiB and names the pool's version first.
    if start.get(16 << 10..32 << 10).is_some_and(|label| label.windows(8).any(|at| at == &b"pool_guid"[..8])) {
        found.push(Signature { holds: "a ZFS label", offset: 16 << 10 });
    }
    for &(back, mark, holds) in AT_END {
        if let Some(offset) = end.len().checked_sub(back).filter(|&offset| has(end, offset, mark)) {
            found.push(Signature { holds, offset });
        }
    }
    // RAID metadata 0.90 and 1.0 is 64..128 KiB and 8..12 KiB before the end, aligned to at least 4
    // KiB.
    for offset in (0..end.len()).step_by(4096) {
        if has(end, offset, b"\xfc\x4e\x2b\xa9") {
            found.push(Signature { holds: "a member of a RAID array", offset });
        }
    }
    found
}

/// Names the marks of the first and last [`EDGE_BYTES`] of a device. `None` if there are none.
pub(crate) fn describe_content(start: &[u8], end: &[u8]) -> Option<String> {
    let start = &start[..start.len().min(SCAN_BYTES)];
    let end = &end[end.len().saturating_sub(SCAN_BYTES)..];
    let found = find_signatures(start, end);
    let names: Vec<&str> = found.iter().map(|signature| signature.holds).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_found_at_its_place() {
        for &(offset, mark, holds) in AT_START {
            let mut start = vec![0; SCAN_BYTES];
            start[offset..offset + mark.len()].copy_from_slice(mark);
            assert!(find_signatures(&start, &[]).iter().any(|found| found.holds == holds), "{holds} at {offset}");
        }
    }

    #[test]
    fn the_end_is_scanned_too() {
        let mut end = vec![0; SCAN_BYTES];
        end[SCAN_BYTES - 512..SCAN_BYTES - 504].copy_from_slice(b"EFI PART");
        end[SCAN_BYTES - 8192..SCAN_BYTES - 8188].copy_from_slice(b"\xfc\x4e\x2b\xa9");
        assert_eq!(find_signatures(&[0; SCAN_BYTES], &end).len(), 2);
    }

    #[test]
    fn zeros_and_small_devices_hold_nothing() {
        assert!(find_signatures(&[0; SCAN_BYTES], &[0; SCAN_BYTES]).is_empty());
        assert!(find_signatures(&[], &[]).is_empty());
        assert!(find_signatures(&[0; 700], &[0; 100]).is_empty());
    }
}
