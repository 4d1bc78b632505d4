//! In which order a directory's entries are given.
//!
//! The kernel lists a directory by the hashes of its names if it has an index, and also if it could have one and is
//! still one block long or lies in its inode; otherwise as the entries lie. Source: behaviour of `getdents64`, held
//! against this in tests.

use super::{
    block::Parsed,
    entries::{DirectoryEntries, EntryIterator},
    hash::{HashKey, HashKind, NameHash},
};
use crate::{
    Superblock,
    inode::{Inode, InodeFlags},
};

/// The order of a directory's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EntryOrder {
    /// As the kernel lists them: what every walk over the mounted tree sees.
    #[default]
    Readdir,
    /// As they lie in the directory's blocks.
    OnDisk,
}

/// By what a directory is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// As it lies.
    AsItLies,
    /// By hashes of the names.
    ByHash(NameHash),
    /// By hashes that stand beside the names.
    ByStoredHash,
    /// By hashes that cannot be computed here.
    Unknown,
}

const SIPHASH: u8 = 6;
/// Superblock flags: what `char` was where the file system was first mounted.
const FLAG_SIGNED: u32 = 1;
const FLAG_UNSIGNED: u32 = 2;

/// How the kernel lists this directory. `root_version` is what its index says, if it has one.
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
    // Where nothing says it, the kernel takes the `char` of the machine it runs on.
    let signed = match superblock.flags {
        flags if flags & FLAG_UNSIGNED != 0 => false,
        flags if flags & FLAG_SIGNED != 0 => true,
        _ => std::ffi::c_char::MIN != 0,
    };
    let (kind, signed) = match root_version.unwrap_or(superblock.default_hash) {
        // An index never says so; the kernel does not use one that does.
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

/// Whether hashes stand beside the names: they depend on a key.
pub(super) fn has_stored_hashes(inode: &Inode) -> bool {
    inode.flags.contains(InodeFlags::CASEFOLD) && inode.flags.contains(InodeFlags::ENCRYPTED)
}

/// Brings entries into the order of a listing; false if that order is not certain.
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

/// Sorts entries by keys. Of those with equal keys the first comes first and the others follow backwards, as the
/// kernel chains them.
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
    fn equal_keys_give_the_first_and_then_the_others_backwards() {
        let mut entries = DirectoryEntries::default();
        for name in [&b"a"[..], b"b", b"c", b"d", b"e"] {
            entries.push(12, EntryKind::Regular, name);
        }
        let sorted = compute_sorted(&entries, &[(8, 1), (4, 0), (8, 1), (8, 1), (8, 0)]);
        let names: Vec<_> = sorted.iter().map(|entry| entry.name[0]).collect();
        assert_eq!(names, *b"beadc");
    }
}
