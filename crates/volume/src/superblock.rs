//! Reads the identity of a file system from its superblock, to prove that mkfs made it.

use crate::{FileSystemKind, Uuid};

/// The identity in a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockIdentity {
    /// Its file system.
    pub file_system: FileSystemKind,
    /// Its UUID.
    pub uuid: Uuid,
    /// Time of its creation, seconds since 1970, if the format stores it (ext4: `s_mkfs_time`).
    pub made_unix_seconds: Option<u64>,
}

/// Reads the superblock in the first 128 KiB of a device. `None` if there is no ext4, XFS, Btrfs,
/// F2FS, NILFS2, JFS, ReiserFS, drive of a garden, or evergreen.
///
/// Source: ext4, `s_magic` at 1024+0x38, `s_uuid` +0x68, `s_mkfs_time` +0x108; XFS, `sb_magicnum`
/// at 0, `sb_uuid` at 32; Btrfs, superblock at 64 KiB, fsid +0x20, magic +0x40; F2FS, magic at
/// 1024, `uuid` +0x6c; NILFS2, `s_magic` at 1024+0x6, `s_uuid` +0x98; JFS, superblock at 32 KiB,
/// `s_uuid` +0x88; ReiserFS, superblock at 64 KiB, `s_magic` +0x34, `s_uuid` +0x54; garden, the
/// label at 0, its UUID at 16 (docs/reference/garden-format.md); evergreen, the superblock at 0,
/// its UUID at 16 (docs/reference/evergreen-format.md).
pub fn read_superblock(prefix: &[u8]) -> Option<SuperblockIdentity> {
    let at = |offset: usize, length: usize| prefix.get(offset..offset + length);
    let uuid = |offset: usize| Some(Uuid(at(offset, 16)?.try_into().ok()?));
    let found = |file_system, uuid, made| Some(SuperblockIdentity { file_system, uuid, made_unix_seconds: made });
    if at(1024 + 0x38, 2) == Some(&[0x53, 0xef]) {
        let made = u32::from_le_bytes(at(1024 + 0x108, 4)?.try_into().ok()?);
        return found(FileSystemKind::Ext4, uuid(1024 + 0x68)?, Some(u64::from(made)));
    }
    if at(0, 4) == Some(b"XFSB") {
        return found(FileSystemKind::Xfs, uuid(32)?, None);
    }
    if at(65_536 + 0x40, 8) == Some(b"_BHRfS_M") {
        return found(FileSystemKind::Btrfs, uuid(65_536 + 0x20)?, None);
    }
    if at(1024, 4) == Some(b"\x10\x20\xf5\xf2") {
        return found(FileSystemKind::F2fs, uuid(1024 + 0x6c)?, None);
    }
    // The magic number alone has two bytes; revision 2.0 is before it.
    if at(1024, 8) == Some(b"\x02\0\0\0\0\0\x34\x34") {
        return found(FileSystemKind::Nilfs2, uuid(1024 + 0x98)?, None);
    }
    if at(32_768, 4) == Some(b"JFS1") {
        return found(FileSystemKind::Jfs, uuid(32_768 + 0x88)?, None);
    }
    if at(65_536 + 52, 6) == Some(b"ReIsEr") {
        return found(FileSystemKind::Reiserfs, uuid(65_536 + 84)?, None);
    }
    if at(0, 8) == Some(b"SNSCdriv") {
        return found(FileSystemKind::Garden, uuid(16)?, None);
    }
    if at(0, 8) == Some(b"SNSCevrg") {
        return found(FileSystemKind::Evergreen, uuid(16)?, None);
    }
    None
}

/// Bytes that the superblock in the first 128 KiB of a device counts as used, with its own
/// structures. `None` if there is no known file system, for Btrfs, whose superblock counts
/// duplicated data once, and for others, which store the number elsewhere.
///
/// Source: ext4, `s_blocks_count` at 1024+0x4 and +0x150, `s_free_blocks_count` +0xC and +0x158,
/// `s_log_block_size` +0x18, the high halves with feature 64bit (+0x60, 0x80); XFS, `sb_blocksize`
/// at 4, `sb_dblocks` 8, `sb_fdblocks` 144.
pub fn read_used_bytes(prefix: &[u8]) -> Option<u64> {
    let little = |at: usize| Some(u64::from(u32::from_le_bytes(prefix.get(at..at + 4)?.try_into().ok()?)));
    let big = |at: usize| Some(u64::from_be_bytes(prefix.get(at..at + 8)?.try_into().ok()?));
    match read_superblock(prefix)?.file_system {
        FileSystemKind::Ext4 => {
            let high = |at| if little(1024 + 0x60)? & 0x80 == 0 { Some(0) } else { little(at) };
            let blocks = little(1024 + 0x4)? | high(1024 + 0x150)? << 32;
            let free = little(1024 + 0xc)? | high(1024 + 0x158)? << 32;
            blocks.checked_sub(free)?.checked_mul(1024u64.checked_shl(little(1024 + 0x18)? as u32)?)
        }
        FileSystemKind::Xfs => big(8)?.checked_sub(big(144)?)?.checked_mul(big(0)? & 0xffff_ffff),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 128 << 10];
        for (offset, part) in parts {
            bytes[*offset..offset + part.len()].copy_from_slice(part);
        }
        bytes
    }

    #[test]
    fn each_format_shows_its_uuid() {
        let id = [7u8; 16];
        let ext4 = prefix(&[(1080, &[0x53, 0xef]), (1128, &id), (1288, &[1, 0, 0, 0])]);
        let xfs = prefix(&[(0, b"XFSB"), (32, &id)]);
        let btrfs = prefix(&[(65_600, b"_BHRfS_M"), (65_568, &id)]);
        let garden = prefix(&[(0, b"SNSCdriv"), (16, &id)]);
        let evergreen = prefix(&[(0, b"SNSCevrg"), (16, &id)]);
        let f2fs = prefix(&[(1024, b"\x10\x20\xf5\xf2"), (1132, &id)]);
        let nilfs2 = prefix(&[(1024, b"\x02\0\0\0\0\0\x34\x34"), (1176, &id)]);
        let jfs = prefix(&[(32_768, b"JFS1"), (32_904, &id)]);
        let reiserfs = prefix(&[(65_588, b"ReIsEr2Fs"), (65_620, &id)]);
        for (bytes, kind) in
            [ext4, xfs, btrfs, f2fs, nilfs2, jfs, reiserfs, garden, evergreen].into_iter().zip(FileSystemKind::ALL)
        {
            let got = read_superblock(&bytes).unwrap();
            assert_eq!((got.file_system, got.uuid), (kind, Uuid(id)));
        }
    }

    #[test]
    fn zeros_and_short_prefixes_are_no_file_system() {
        assert_eq!(read_superblock(&[0; 131_072]), None);
        assert_eq!(read_superblock(&[]), None);
    }
}
