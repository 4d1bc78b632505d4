//! The order of a directory's entries.
//!
//! The kernel lists a directory by the hashes of its names if it has an index. It does the same if
//! the directory could have an index and still has one block or is stored in its inode. Otherwise
//! it lists the entries in the order of the blocks. Source: the behaviour of `getdents64`; tests
//! compare the order with it.

use super::{
    block::Parsed,
    entries::{DirectoryEntries, EntryIterator},
    hash::{HashKey, HashKind, NameHash},
};
use crate::{
    Superblock,
    inode::{Inode, InodeFlags},
};

/// The order in which a directory's entries are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EntryOrder {
    /// The order in which the kernel lists them, which every walk over the mounted tree sees.
    #[default]
    Readdir,
    /// The order in the blocks of the directory.
    OnDisk,
}

/// The rule by which a directory is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The order of the blocks.
    AsItLies,
    /// Hashes of the names.
    ByHash(NameHash),
    /// Hashes that are stored with the names.
    ByStoredHash,
    /// Hashes that this reader cannot compute.
    Unknown,
}

const SIPHASH: u8 = 6;
/// Superblock flags: the signedness of `char` where the file system was first mounted.
const FLAG_SIGNED: u32 = 1;
const FLAG_UNSIGNED: u32 = 2;

/// The listing rule of the kernel for this directory. `root_version` is the hash version of its
/// index, if it has one.
pub(super) fn compute_listing(superblock: &Superblock, inode: &Inode, root_version: Option<u8>) -> Listing {
    if !superblock.has_dir_index() {
        return Listing::AsItLies;
    }
    let is_small = inode.flags.contains(InodeFlags::INLINE_DATA) || inode.size_bytes / superblock.block_bytes == 1;
    if root_version.is_none() && !is_small {
        return Listing::AsItLies;
    }
    if has_stored_hashes(inode) {
        return Listing::ByStoredHash;
    }
    // Without a flag, the kernel uses the `char` of its own machine.
    let signed = match superblock.flags {
        flags if flags & FLAG_UNSIGNED != 0 => false,
        flags if flags & FLAG_SIGNED != 0 => true,
        _ => std::ffi::c_char::MIN != 0,
    };
    let (kind, signed) = match root_version.unwrap_or(superblock.default_hash) {
        // An index never has these versions. The kernel does not use one that has.
        3..=5 if root_version.is_some() => return Listing::AsItLies,
        0 => (HashKind::Legacy, signed),
        1 => (HashKind::HalfMd4, signed),
        2 => (HashKind::Tea, signed),
        3 => (HashKind::Legacy, false),
        4 => (HashKind::HalfMd4, false),
        5 => (HashKind::Tea, false),
        SIPHASH => return Listing::Unknown,
        _ => return if root_version.is_some() { Listing::AsItLies } else { Listing::Unknown },
    };
    Listing::ByHash(NameHash { kind, signed, seed: superblock.hash_seed })
}

/// Whether hashes are stored with the names, because they depend on a key.
pub(super) fn has_stored_hashes(inode: &Inode) -> bool {
    inode.flags.contains(InodeFlags::CASEFOLD) && inode.flags.contains(InodeFlags::ENCRYPTED)
}

/// Sorts entries into the order of a listing. Returns `false` if that order is not certain.
pub(super) fn apply_listing(parsed: Parsed, listing: Listing, folds_case: bool) -> (DirectoryEntries, bool) {
    let mut certain = true;
    let keys: Vec<HashKey> = match listing {
        Listing::AsItLies => return (parsed.entries, true),
        Listing::Unknown => return (parsed.entries, false),
        Listing::ByStoredHash => parsed.hashes,
        Listing::ByHash(hash) => {
            let mut folded = Vec::new();
            parsed
                .entries
                .iter()
                .map(|entry| {
                    if !folds_case {
                        return hash.compute(entry.name);
                    }
                    certain &= entry.name.is_ascii();
                    folded.clear();
                    folded.extend(entry.name.iter().map(u8::to_ascii_lowercase));
                    hash.compute(&folded)
                })
                .collect()
        }
    };
    (compute_sorted(&parsed.entries, &keys), certain)
}

/// Sorts entries by keys. Among equal keys, the first entry stays first and the others follow in
/// reverse, as in the kernel's chains.
fn compute_sorted(entries: &DirectoryEntries, keys: &[HashKey]) -> DirectoryEntries {
    let mut places = Vec::with_capacity(entries.len());
    let mut iterator = EntryIterator(entries.packed());
    loop {
        let from = entries.packed().len() - iterator.0.len();
        if iterator.next().is_none() {
            break;
        }
        let to = entries.packed().len() - iterator.0.len();
        let key = keys.get(places.len()).copied().unwrap_or_default();
        places.push((key, from, to));
    }
    places.sort_unstable_by_key(|&(key, from, _)| (key, from));
    let mut sorted = DirectoryEntries { packed: Vec::with_capacity(entries.packed().len()), count: entries.count };
    for equals in places.chunk_by(|a, b| a.0 == b.0) {
        let (first, others) = (&equals[..1], &equals[1..]);
        for &(_, from, to) in first.iter().chain(others.iter().rev()) {
            sorted.packed.extend_from_slice(&entries.packed()[from..to]);
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::{super::entries::EntryKind, *};

    #[test]
    fn equal_keys_keep_first_and_reverse_rest() {
        let mut entries = DirectoryEntries::default();
        for name in [&b"a"[..], b"b", b"c", b"d", b"e"] {
            entries.push(12, EntryKind::Regular, name);
        }
        let sorted = compute_sorted(&entries, &[(8, 1), (4, 0), (8, 1), (8, 1), (8, 0)]);
        let names: Vec<_> = sorted.iter().map(|entry| entry.name[0]).collect();
        assert_eq!(names, *b"beadc");
    }
}
