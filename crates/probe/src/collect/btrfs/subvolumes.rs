//! The subvolumes and snapshots of a mounted Btrfs.

use std::os::fd::AsFd;

use super::tree_search::{Key, Search, u16_at, u64_at};

/// The tree of trees.
const ROOT_TREE: u64 = 1;
/// `BTRFS_ROOT_BACKREF_KEY`: from a subvolume to the directory that has it.
const ROOT_BACKREF: u32 = 144;
/// The fields of a reference before the name: directory, sequence, length of the name.
const REFERENCE_BYTES: usize = 18;

/// A subvolume or snapshot, and the directory that has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtrfsSubvolume {
    /// The number of the subvolume.
    pub id: u64,
    /// The number of the subvolume that contains it.
    pub parent: u64,
    /// The inode number of the directory in the parent.
    pub directory: u64,
    /// The name in this directory.
    pub name: Vec<u8>,
}

/// Lists all subvolumes except the top one, ordered by number. `file` is any open file or
/// directory on the file system.
///
/// Errors: not a Btrfs; the caller is not root.
pub fn collect_btrfs_subvolumes(file: impl AsFd) -> rustix::io::Result<Vec<BtrfsSubvolume>> {
    let mut found = Vec::new();
    let kind = ROOT_BACKREF;
    let (from, to) = (Key { object: 256, kind, offset: 0 }, Key { object: u64::MAX, kind, offset: u64::MAX });
    Search::new().each(file, ROOT_TREE, from, to, &mut |key, data| {
        if key.kind == ROOT_BACKREF {
            found.extend(parse(key, data));
        }
    })?;
    Ok(found)
}

fn parse(key: Key, data: &[u8]) -> Option<BtrfsSubvolume> {
    let length = usize::from(u16_at(data, 16)?);
    let name = data.get(REFERENCE_BYTES..REFERENCE_BYTES + length)?.to_vec();
    Some(BtrfsSubvolume { id: key.object, parent: key.offset, directory: u64_at(data, 0)?, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_references_are_left_out() {
        let mut data = vec![0; REFERENCE_BYTES];
        (data[0], data[1], data[16]) = (1, 1, 4);
        let key = Key { object: 300, kind: ROOT_BACKREF, offset: 5 };
        assert_eq!(parse(key, &data), None);
        data.extend(b"snap");
        let found = parse(key, &data).unwrap();
        assert_eq!((found.id, found.parent, found.directory, &*found.name), (300, 5, 257, &b"snap"[..]));
    }
}
