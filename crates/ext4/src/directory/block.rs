//! One block of a directory: its entries, each checked, and its checksum.
//!
//! Source: the kernel's documentation of the format, "Directory Entries" and "Hash Tree
//! Directories".

use super::{
    entries::{DirectoryEntries, EntryKind},
    hash::HashKey,
};
use crate::{
    Problem,
    bytes::{u8_at, u16_at, u32_at},
    checksum::crc32c,
};

/// The properties that all blocks of a directory share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether entries have the type of their inodes.
    pub(super) has_kinds: bool,
    /// Whether names are encrypted, so that they may have any bytes.
    pub(super) encrypted: bool,
    /// Whether hashes follow the names.
    pub(super) has_hashes: bool,
    /// The highest inode number.
    pub(super) inodes: u32,
}

/// The contents of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    pub(super) entries: DirectoryEntries,
    /// A hash for each entry, if the entries have hashes.
    pub(super) hashes: Vec<HashKey>,
}

const HEADER_BYTES: usize = 8;

/// Parses the entries of a block, or of the part of an inode that serves as one, without `.` and
/// `..`.
///
/// Errors: an entry does not fit, or has an invalid name or inode number.
pub(super) fn parse_block(bytes: &[u8], rules: &Rules, parsed: &mut Parsed) -> Result<(), Problem> {
    let mut at = 0;
    while at < bytes.len() {
        let length = entry_length(u16_at(bytes, at + 4), bytes.len());
        let (name_length, kind) = match rules.has_kinds {
            true => (usize::from(u8_at(bytes, at + 6)), EntryKind::from_byte(u8_at(bytes, at + 7))),
            false => (usize::from(u16_at(bytes, at + 6)), EntryKind::Unknown),
        };
        if length < HEADER_BYTES + 4 || !length.is_multiple_of(4) || length > bytes.len() - at {
            return Err(format!("the entry at byte {at} would have {length} of {} bytes", bytes.len()).into());
        }
        let inode = u32_at(bytes, at);
        if inode != 0 {
            let name = bytes.get(at + HEADER_BYTES..at + HEADER_BYTES + name_length).unwrap_or(&[]);
            if name.is_empty() || name.len() > 255 || HEADER_BYTES + name_length > length {
                return Err(format!("the entry at byte {at} has a name of {name_length} bytes in {length}").into());
            }
            if inode > rules.inodes {
                return Err(format!("the entry at byte {at} is for inode {inode} of {}", rules.inodes).into());
            }
            if !matches!(name, b"." | b"..") {
                if !rules.encrypted && name.iter().any(|&byte| byte == 0 || byte == b'/') {
                    return Err(format!("the entry at byte {at} has a slash or a zero in its name").into());
                }
                parsed.entries.push(inode, kind, name);
                if rules.has_hashes {
                    let behind = at + HEADER_BYTES + name_length.next_multiple_of(4);
                    parsed.hashes.push((u32_at(bytes, behind), u32_at(bytes, behind + 4)));
                }
            }
        }
        at += length;
    }
    Ok(())
}

/// The length of an entry. In blocks of 65,536 bytes a length may not fit into the field. Then its
/// lowest two bits, which are zero otherwise, have the highest bits.
fn entry_length(field: u16, block_bytes: usize) -> usize {
    match (field, block_bytes) {
        (0 | 0xFFFF, 65_536) => block_bytes,
        (_, 65_536) => usize::from(field & !3) | usize::from(field & 3) << 16,
        _ => usize::from(field),
    }
}

/// The offset of the list of an index node: after the entries `.` and `..` and a header in the
/// first block, after an empty entry that spans the block in others. `None` if the block is a leaf.
fn index_offset(bytes: &[u8], is_first: bool) -> Option<usize> {
    if is_first {
        return Some(32);
    }
    (u32_at(bytes, 0) == 0 && entry_length(u16_at(bytes, 4), bytes.len()) == bytes.len()).then_some(8)
}

/// The role of a block in the index of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The directory has no index.
    NotIndexed,
    /// The first block, which is the root of the index.
    Root,
    /// Another block, which may be a node of the index.
    Behind,
}

/// Verifies the checksum at the end of a leaf, or after the list of an index node.
pub(super) fn verify_checksum(bytes: &[u8], seed: u32, place: Place) -> Result<(), Problem> {
    // An index node may still have the tail of the leaf that it was before.
    let list = index_offset(bytes, place == Place::Root).filter(|_| place != Place::NotIndexed);
    let (stored, computed) = match list {
        None => {
            let end = bytes.len().saturating_sub(12);
            if u32_at(bytes, end) != 0 || u16_at(bytes, end + 4) != 12 || u16_at(bytes, end + 6) != 0xDE00 {
                return Err("it has no space for its checksum".into());
            }
            (u32_at(bytes, end + 8), crc32c(seed, &bytes[..end]))
        }
        Some(list) => {
            let (limit, count) = (usize::from(u16_at(bytes, list)), usize::from(u16_at(bytes, list + 2)));
            let (list_end, tail) = (list + count * 8, list + limit * 8);
            if count > limit || tail + 8 > bytes.len() {
                return Err(format!("its index has {count} entries of at most {limit}").into());
            }
            let crc = crc32c(crc32c(seed, &bytes[..list_end]), &bytes[tail..tail + 4]);
            (u32_at(bytes, tail + 4), crc32c(crc, &[0; 4]))
        }
    };
    if stored == computed { Ok(()) } else { Err(Problem::Checksum { stored, computed }) }
}

/// The number of the hash function in the first block of an indexed directory.
pub(super) fn parse_index_root(bytes: &[u8]) -> Result<u8, Problem> {
    let (reserved, version, length) = (u32_at(bytes, 24), u8_at(bytes, 28), u8_at(bytes, 29));
    if reserved != 0 || length != 8 {
        return Err(format!("its index starts with {reserved:#x} and a length of {length}, not with 0 and 8").into());
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { has_kinds: true, encrypted: false, has_hashes: false, inodes: 100 };

    fn entry(inode: u32, length: u16, kind: u8, name: &[u8]) -> Vec<u8> {
        let mut bytes = inode.to_le_bytes().to_vec();
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&[name.len() as u8, kind]);
        bytes.extend_from_slice(name);
        bytes.resize(usize::from(length), 0);
        bytes
    }

    fn parse(bytes: &[u8], rules: &Rules) -> Result<Vec<(u32, Vec<u8>)>, String> {
        let mut parsed = Parsed::default();
        parse_block(bytes, rules, &mut parsed).map_err(|problem| problem.to_string())?;
        Ok(parsed.entries.iter().map(|entry| (entry.inode, entry.name.to_vec())).collect())
    }

    #[test]
    fn deleted_entries_and_dots_are_left_out() {
        let block =
            [entry(2, 12, 2, b"."), entry(2, 12, 2, b".."), entry(0, 16, 1, b"gone"), entry(12, 24, 1, b"\xc3\x28")];
        assert_eq!(parse(&block.concat(), &RULES).unwrap(), [(12, b"\xc3\x28".to_vec())]);
    }

    #[test]
    fn invalid_entries_are_refused() {
        let cases = [
            (entry(12, 12, 1, b"a/b"), "slash"),
            (entry(101, 12, 1, b"a"), "inode 101 of 100"),
            (entry(12, 12, 1, b""), "name of 0 bytes"),
            ([entry(12, 12, 1, b"a"), vec![0; 8]].concat(), "would have 0 of 20 bytes"),
            (
                {
                    let mut bytes = entry(12, 16, 1, b"a");
                    bytes[4] = 20;
                    bytes
                },
                "would have 20 of 16 bytes",
            ),
            (
                {
                    let mut bytes = entry(12, 12, 1, b"abcd");
                    bytes[6] = 5;
                    bytes
                },
                "name of 5 bytes",
            ),
        ];
        for (bytes, part) in cases {
            let message = parse(&bytes, &RULES).unwrap_err();
            assert!(message.contains(part), "{message} should say {part}");
        }
    }

    #[test]
    fn encrypted_names_may_have_any_bytes() {
        let rules = Rules { encrypted: true, has_hashes: true, ..RULES };
        let mut bytes = entry(12, 24, 1, b"a/\0d");
        bytes[12..20].copy_from_slice(&[8, 0, 0, 0, 9, 0, 0, 0]);
        let mut parsed = Parsed::default();
        parse_block(&bytes, &rules, &mut parsed).unwrap();
        assert_eq!(parsed.hashes, [(8, 9)]);
    }

    #[test]
    fn lengths_in_largest_blocks_use_low_bits() {
        assert_eq!(entry_length(0xFFFF, 65_536), 65_536);
        assert_eq!(entry_length(0, 65_536), 65_536);
        assert_eq!(entry_length(12, 65_536), 12);
        assert_eq!(entry_length(0, 4096), 0);
    }
}
