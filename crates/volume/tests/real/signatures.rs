//! Devices with foreign contents: every known format is refused without `force`, and so is data
//! without a mark.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use senesce_core::Bytes;
use senesce_testkit::root_or_skip;
use senesce_volume::{Claim, Error, Host, LinuxHost, Purpose, check_device};

const SIZE: u64 = 64 << 20;
const KIB: i64 = 1024;

/// A format, the offset of its mark (from the end if negative), the mark, and a part of the
/// refusal.
type Signed = (&'static str, i64, &'static [u8], &'static str);

const LUKS2_AT_16K: &[u8] = b"SKUL\xba\xbe\0\x02\0\0\0\0\0\0\x40\0";
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";

#[rustfmt::skip]
const SIGNED: &[Signed] = &[
    ("ext journal", 1080, b"\x53\xef", "ext4 file system"),
    ("LUKS1", 0, b"LUKS\xba\xbe\0\x01", "a LUKS container"),
    ("LUKS2, second header", 16 * KIB, LUKS2_AT_16K, "crypto_LUKS"),
    ("LVM2", 512, b"LABELONE", "an LVM physical volume"),
    ("NTFS", 3, b"NTFS    ", "an NTFS file system"),
    ("swap, 4 KiB pages", 4086, b"SWAPSPACE2", "a swap area"),
    ("swap, 8 KiB pages", 8182, b"SWAPSPACE2", "a swap area"),
    ("swap, 16 KiB pages", 16_374, b"SWAPSPACE2", "a swap area"),
    ("swap, 32 KiB pages", 32_758, b"SWAPSPACE2", "a swap area"),
    ("swsuspend", 4086, b"S1SUSPEND", "hibernated"),
    ("swsuspend 2", 4086, b"S2SUSPEND", "hibernated"),
    ("uswsusp", 4086, b"ULSUSPEND", "hibernated"),
    ("hibernation, new", 4086, b"LINHIB0001", "hibernated"),
    ("TuxOnIce", 0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c", "hibernated"),
    ("bluestore", 0, b"bluestore block device\n", "ceph_bluestore"),
    ("Oracle ASM", 32, b"ORCLDISK", "oracleasm"),
    ("dm-verity", 0, b"verity\0\0\x01\0\0\0", "DM_verity_hash"),
    ("dm-integrity", 0, b"integrt\0", "dm-integrity"),
    ("LVM snapshot", 0, b"SnAp", "DM_snapshot_cow"),
    ("LVM1", 0, b"HM\x01\0", "LVM1_member"),
    ("VDO", 0, b"dmvdo001", "vdo"),
    ("VMFS", 2048 * KIB, b"\x5e\xf1\xab\x2f", "VMFS"),
    ("VMFS volume", 1024 * KIB, b"\x0d\xd0\x01\xc0", "VMFS_volume_member"),
    ("OCFS", 8 * KIB, b"OracleCFS", "ocfs"),
    ("OCFS2", KIB, b"OCFSV2", "ocfs2"),
    ("OCFS2, 4 KiB blocks", 4 * KIB, b"OCFSV2", "ocfs2"),
    ("GFS2", 64 * KIB, b"\x01\x16\x19\x70", "data"),
    ("HFS", KIB, b"BD", "data"),
    ("HFS+", KIB, b"H+\0\x04", "data"),
    ("UFS1", 8 * KIB + 0x55c, b"\x54\x19\x01\x00", "ufs"),
    ("UFS2", 64 * KIB + 0x55c, b"\x19\x01\x54\x19", "ufs"),
    ("Reiser4", 64 * KIB, b"ReIsEr4", "reiser4"),
    ("ReiserFS", 64 * KIB + 0x34, b"ReIsEr2Fs", "a ReiserFS file system"),
    ("cramfs", 0, b"\x45\x3d\xcd\x28", "cramfs"),
    ("romfs", 0, b"-rom1fs-\0\0\0\0", "romfs"),
    ("squashfs", 0, b"hsqs", "a squashfs file system"),
    ("squashfs, big endian", 0, b"sqsh", "squashfs"),
    ("VxFS", KIB, b"\xf5\xfc\x01\xa5", "vxfs"),
    ("System V", KIB + 0x1f8, b"\xfd\x18\x7e\x20", "data"),
    ("UBI", 0, b"UBI#\x01", "ubi"),
    ("UBIFS", 0, b"\x31\x18\x10\x06", "ubifs"),
    ("zonefs", 0, b"SFOZ", "zonefs"),
    ("Mac partition table", 0, b"ER\x02\0", "data"),
    ("BitLocker", 0, b"\xeb\x58\x90-FVE-FS-", "a BitLocker volume"),
    ("Stratis", 512, STRATIS, "a Stratis block device"),
    ("bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache"),
    ("bcachefs", 4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9", "a bcachefs file system"),
    ("APFS", 32, b"NXSB", "an APFS container"),
    ("UDF", 32 * KIB + 1, b"BEA01", "a UDF file system"),
    ("ISO 9660", 32 * KIB + 1, b"CD001", "an ISO 9660 file system"),
    ("Minix", KIB + 0x10, b"\x7f\x13", "data"),
    ("BSD label", 512, b"\x57\x45\x56\x82", "a BSD disk label"),
    ("Sun label", 508, b"\xda\xbe", "data"),
    ("SGI label", 0, b"\x0b\xe5\xa9\x41", "an SGI disk label"),
    ("Atari label", 0x1c6, b"\x01GEM", "data"),
    ("exFAT", 3, b"EXFAT   ", "an exFAT file system"),
    ("BeFS", 32, b"BFS1", "data"),
    ("BFS", 0, b"\xce\xfa\xad\x1b", "bfs"),
    ("HPFS", 8 * KIB, b"\x49\xe8\x95\xf9", "an HPFS file system"),
    ("JFS", 32 * KIB, b"JFS1", "a JFS file system"),
    ("NILFS2", KIB + 6, b"\x34\x34", "a NILFS2 file system"),
    ("F2FS", KIB, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    ("EROFS", KIB, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
    ("ReFS", 0, b"\0\0\0ReFS\0", "ReFS"),
    ("NSS", 4 * KIB, b"SPB5", "nss"),
    ("DRBD manage", 0, b"$DRBDmgr=q", "data"),
    ("DRBD proxy", 0, b"DRBDdlh*", "drbdproxy_datalog"),
    ("DRBD 8.3", -4 * KIB + 60, b"\x83\x74\x02\x67", "the metadata of DRBD"),
    ("DRBD 8.4", -4 * KIB + 60, b"\x83\x74\x02\x6b", "drbd"),
    ("DRBD 9", -4 * KIB + 60, b"\x83\x74\x02\x6d", "drbd"),
    ("mpool", 0, b"mpoolDev", "mpool"),
    ("Intel RAID", -KIB, b"Intel Raid ISM Cfg Sig. ", "isw_raid_member"),
    ("DDF RAID", -512, b"\xde\x11\xde\x11", "ddf_raid_member"),
    ("NVIDIA RAID", -KIB, b"NVIDIA  \x1e\0\0\0", "nvidia_raid_member"),
    ("LSI RAID", -512, b"$XIDE$", "lsi_mega_raid_member"),
    ("VIA RAID", -512, b"\x55\xaa", "via_raid_member"),
    ("JMicron RAID", -512, b"JM", "jmicron_raid_member"),
    ("Silicon RAID", -512 + 0x60, b"\x00\x00\xfd\x2f", "Silicon Image RAID"),
    ("Adaptec RAID", -512, b"DPTM", "Adaptec RAID"),
    ("HighPoint 37x RAID", 4 * KIB + 544, b"\xf0\x16\x78\x5a", "hpt37x_raid_member"),
    ("HighPoint 45x RAID", -11 * 512 + 32, b"\xf0\x16\x78\x5a", "HighPoint RAID"),
    ("Promise RAID", -63 * 512, b"Promise Technology, Inc.", "promise_fasttrack_raid_member"),
    ("MD RAID 0.90", -64 * KIB, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    ("MD RAID 1.0", -8 * KIB, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    ("MD RAID 1.1", 0, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    ("ZFS, first label", 128 * KIB, b"\x0c\xb1\xba\0\0\0\0\0", "data"),
    ("ZFS, last label", -128 * KIB, b"\x0c\xb1\xba\0\0\0\0\0", "data"),
    ("ScoutFS", 64 * KIB + 4, b"\x8b\x42\x3c\x10", "data"),
    ("FileVault 2", 88, b"CS\x01", "data"),
    ("GPT copy", -512, b"EFI PART", "GPT partition table"),
    ("Btrfs", 64 * KIB + 64, b"_BHRfS_M", "a Btrfs file system"),
    ("garden", 0, b"SNSCdriv", "garden of senesce"),
    ("evergreen", 0, b"SNSCevrg", "evergreen of senesce"),
    ("text at the start", 0, b"dear diary", "data"),
    ("text at the end", -10, b"yours, me\n", "data"),
];

/// A LUKS2 header contains its offset, so libblkid accepts it far from the start.
fn luks2_header(at: u64) -> Vec<u8> {
    let mut header = b"SKUL\xba\xbe\0\x02".to_vec();
    header.resize(4096, 0);
    header[256..264].copy_from_slice(&at.to_be_bytes());
    header
}

fn write_mark(image: &Path, at: i64, mark: &[u8]) {
    let file = File::create(image).unwrap();
    file.set_len(SIZE).unwrap();
    let at = if at < 0 { SIZE - at.unsigned_abs() } else { at.unsigned_abs() };
    file.write_all_at(mark, at).unwrap();
}

#[track_caller]
fn assert_refused(name: &str, result: Result<(), Error>, says: &str) {
    match result {
        Err(Error::HasSignature { found, .. }) => assert!(found.contains(says), "{name}: {found:?}, not {says:?}"),
        other => panic!("{name} is not refused: {other:?}"),
    }
}

#[test]
fn a_file_with_any_known_signature_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let check = || Claim::open(&image, Purpose::Write).unwrap().check_content(false);
    for &(name, at, mark, says) in SIGNED {
        write_mark(&image, at, mark);
        assert_refused(name, check(), says);
    }
    write_mark(&image, 4 << 20, &luks2_header(4 << 20));
    assert_refused("LUKS2, last place of the second header", check(), "crypto_LUKS");
    write_mark(&image, 0, &[0; 4096]);
    check().unwrap();
}

#[test]
fn a_device_with_any_known_signature_is_refused() {
    if !root_or_skip("loop devices") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let host = LinuxHost::default();
    host.create_file(&image, Bytes(SIZE)).unwrap();
    for &(name, at, mark, says) in SIGNED {
        write_mark(&image, at, mark);
        let device = host.attach_loop(&image).unwrap().path;
        let result = check_device(&host, &device, false);
        let forced = check_device(&host, &device, true);
        host.detach_loop(&device).unwrap();
        assert_refused(name, result, says);
        forced.unwrap();
    }
}
