//! How much a copy of a repository occupies, for planning volumes.

use std::{fs, path::Path};

use crate::{Error, History, command::Git};

/// Files are counted in blocks of this size, bytes.
const BLOCK_BYTES: u64 = 4096;

impl History {
    /// What the files of commit number `number` occupy in blocks of 4 KiB, bytes.
    ///
    /// Cost: one `git ls-tree`; reads the trees and the headers of the blobs.
    pub fn work_tree_bytes(&self, number: usize) -> Result<u64, Error> {
        let commit = self.inner.oid(number)?.to_string();
        let listing = Git::new("ls-tree", self.git_dir()).git_dir().args(["-r", "-l", "-z", &commit]).run()?;
        let sizes = listing.split(|&byte| byte == 0).filter_map(|entry| {
            // "100644 blob <hash> <size>\t<name>"; a submodule has "-" for its size.
            let head = entry.split(|&byte| byte == b'\t').next()?;
            std::str::from_utf8(head).ok()?.split_whitespace().nth(3)?.parse::<u64>().ok()
        });
        Ok(sizes.map(|bytes| bytes.next_multiple_of(BLOCK_BYTES)).sum())
    }

    /// What the repository's objects occupy on disk, bytes: packs and loose objects.
    pub fn packed_bytes(&self) -> u64 {
        files_below(&self.git_dir().join("objects"))
    }
}

/// Sum of the sizes of all files below `dir`; what cannot be read counts as nothing.
fn files_below(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => files_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
