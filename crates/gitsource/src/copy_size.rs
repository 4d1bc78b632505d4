//! The size of a copy of a repository, to plan volumes.

use std::{fs, path::Path};

use senesce_workload::git::EntryKind;

use crate::{Error, History};

/// Files are counted in blocks of this size, bytes.
const BLOCK_BYTES: u64 = 4096;

/// The largest depth of a tree: Linux accepts paths of 4,096 bytes.
const DEEPEST: usize = 2048;

impl History {
    /// The size of the files of commit number `number` in blocks of 4 KiB, bytes.
    ///
    /// Cost: reads the trees and the headers of the blobs.
    pub fn work_tree_bytes(&self, number: usize) -> Result<u64, Error> {
        let objects = &self.inner.objects;
        let tree = objects.read_commit(self.inner.oid(number)?)?.tree;
        let mut sum: u64 = 0;
        // Trees to read, each with its depth.
        let mut trees = vec![(tree, 0)];
        while let Some((tree, depth)) = trees.pop() {
            if depth > DEEPEST {
                return Err(objects.error(tree, "its directories are deeper than a path can be long", None));
            }
            for entry in objects.read_tree(tree)? {
                match entry.kind() {
                    EntryKind::Tree => trees.push((entry.oid, depth + 1)),
                    EntryKind::Submodule => {}
                    _ => sum = sum.saturating_add(objects.size(entry.oid)?.next_multiple_of(BLOCK_BYTES)),
                }
            }
        }
        Ok(sum)
    }

    /// The size of the repository's objects on disk, bytes: packs and loose objects.
    pub fn packed_bytes(&self) -> u64 {
        files_below(&self.git_dir().join("objects"))
    }
}

/// Sum of the sizes of all files below `dir`. Entries that cannot be read count as 0.
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
