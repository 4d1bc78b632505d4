//! The index (staging area) of a checked-out commit, and its file format.
//!
//! The file has version 2, zero stat fields and no extensions. It depends only on the commit, so
//! that two volumes hold the same bytes. If the size of an entry is zero, git compares contents.
//! Source: `gitformat-index(5)`.

use std::collections::BTreeMap;
use std::ops::Bound;

use sha1::{Digest, Sha1};

use super::{Change, Leaf};

/// The leaves of a tree by path, in the order of the index file.
///
/// Memory: about 110 bytes a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexState(BTreeMap<Box<[u8]>, Leaf>);

impl IndexState {
    /// Brings the index from one tree to another.
    pub fn apply(&mut self, changes: &[Change]) {
        // A file that becomes a directory (or the reverse) is one removal and several additions of
        // other paths. The order does not matter.
        for change in changes {
            self.set(&change.path, change.new);
        }
    }

    /// Sets or removes one path.
    pub fn set(&mut self, path: &[u8], leaf: Option<Leaf>) {
        match leaf {
            Some(leaf) => {
                self.0.insert(path.into(), leaf);
            }
            None => {
                self.0.remove(path);
            }
        }
    }

    /// Whether a path is below the directory `directory` (without a trailing slash).
    pub fn has_below(&self, directory: &[u8]) -> bool {
        let prefix = [directory, b"/"].concat();
        let range = (Bound::Included(prefix.as_slice()), Bound::Unbounded);
        self.0.range::<[u8], _>(range).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the index has no path.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Paths and their entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Leaf)> {
        self.0.iter().map(|(path, leaf)| (&**path, *leaf))
    }

    /// The index file. Cost: linear in the number of paths: about 100 bytes each, hashed with
    /// SHA-1.
    pub fn to_file(&self) -> Vec<u8> {
        let size: usize = self.0.keys().map(|path| (62 + path.len() + 8) & !7).sum();
        let mut file = Vec::with_capacity(12 + size + 20);
        file.extend_from_slice(b"DIRC\0\0\0\x02");
        file.extend_from_slice(&(self.0.len() as u32).to_be_bytes());
        for (path, leaf) in &self.0 {
            let start = file.len();
            file.extend_from_slice(&[0; 24]); // ctime, mtime, dev, ino
            file.extend_from_slice(&leaf.kind.mode().to_be_bytes());
            file.extend_from_slice(&[0; 12]); // uid, gid, size
            file.extend_from_slice(&leaf.oid.0);
            file.extend_from_slice(&(path.len().min(0xfff) as u16).to_be_bytes());
            file.extend_from_slice(path);
            let entry = file.len() - start;
            file.resize(start + ((entry + 8) & !7), 0); // 1 to 8 NULs, to a multiple of 8
        }
        let hash = Sha1::digest(&file);
        file.extend_from_slice(&hash);
        file
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EntryKind, Oid};
    use super::*;

    #[test]
    fn a_common_name_prefix_is_no_directory() {
        let mut index = IndexState::default();
        let leaf = Some(Leaf { kind: EntryKind::File, oid: Oid([1; 20]) });
        index.set(b"a-b/x", leaf);
        index.set(b"a0", leaf);
        assert!(!index.has_below(b"a"));
        index.set(b"a/x", leaf);
        assert!(index.has_below(b"a"));
        index.set(b"a/x", None);
        assert!(!index.has_below(b"a"));
    }

    #[test]
    fn an_entry_is_laid_out_as_the_format_says() {
        let mut index = IndexState::default();
        index.set(b"ab", Some(Leaf { kind: EntryKind::Executable, oid: Oid([7; 20]) }));
        let file = index.to_file();
        assert_eq!(file.len(), 12 + 72 + 20); // 62 + 2 = 64 is a multiple of 8 already, and needs a NUL
        assert_eq!(&file[..12], b"DIRC\0\0\0\x02\0\0\0\x01");
        assert_eq!(&file[12 + 24..12 + 28], &0o100755u32.to_be_bytes());
        assert_eq!(&file[12 + 60..12 + 64], b"\0\x02ab");
    }
}
