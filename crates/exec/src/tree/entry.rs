//! The entries of a tree, and the hash of a tree.

use std::collections::BTreeMap;

use senesce_core::RelPath;

/// One name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory {
        /// Permissions, 12 bits.
        mode: u32,
    },
    /// A regular file.
    File {
        /// Permissions, 12 bits.
        mode: u32,
        /// Length, bytes.
        size_bytes: u64,
        /// BLAKE3 of the content.
        hash: [u8; 32],
    },
    /// A symbolic link.
    Symlink {
        /// The path that it points to.
        target: Vec<u8>,
    },
    /// A device, pipe or socket.
    Other {
        /// Type and permissions as in `st_mode`.
        mode: u32,
    },
}

/// A tree, without its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Every name, in the order of the paths' bytes.
    pub entries: BTreeMap<RelPath, Entry>,
}

impl Tree {
    /// A hash (hex BLAKE3) over all entries in order. It is equal for equal trees only.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut text = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (path, entry) in &self.entries {
            text(path.as_bytes());
            match entry {
                Entry::Directory { mode } => text(&[b"d", &mode.to_le_bytes()[..]].concat()),
                Entry::File { mode, size_bytes, hash } => {
                    text(&[b"f", &mode.to_le_bytes()[..], &size_bytes.to_le_bytes(), hash].concat());
                }
                Entry::Symlink { target } => text(&[b"l", &target[..]].concat()),
                Entry::Other { mode } => text(&[b"o", &mode.to_le_bytes()[..]].concat()),
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The number of regular files.
    pub fn files(&self) -> u64 {
        self.entries.values().filter(|entry| matches!(entry, Entry::File { .. })).count() as u64
    }

    /// The number of directories, without the root.
    pub fn directories(&self) -> u64 {
        self.entries.values().filter(|entry| matches!(entry, Entry::Directory { .. })).count() as u64
    }

    /// Sum of the files' sizes, bytes. A file with two names counts twice.
    pub fn content_bytes(&self) -> u64 {
        let size = |entry: &Entry| if let Entry::File { size_bytes, .. } = entry { *size_bytes } else { 0 };
        self.entries.values().map(size).sum()
    }
}
