//! The difference between two trees, as the leaves (files, links, submodules) that differ.

use std::cmp::Ordering;

use super::{EntryKind, Oid, Repository, TreeEntry, repository::malformed};
use crate::WorkloadError;

/// The longest path that Linux accepts, bytes.
const LONGEST_PATH_BYTES: usize = 4096;

/// The entry at a path: never a [`EntryKind::Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// File, executable, link or submodule.
    pub kind: EntryKind,
    /// The blob, or the submodule's commit.
    pub oid: Oid,
}

/// One path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path from the top of the tree.
    pub path: Box<[u8]>,
    /// The entry in the old tree.
    pub old: Option<Leaf>,
    /// The entry in the new tree.
    pub new: Option<Leaf>,
}

/// Returns the paths that differ between two trees, sorted by path bytes (the order of an index).
/// `None` is an empty tree.
///
/// Errors: a tree that cannot be checked out: an invalid or duplicate name, or a path longer than
/// 4,096 bytes.
///
/// Cost: reads only the trees that differ.
pub fn compute_changes(
    repository: &dyn Repository,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<Vec<Change>, WorkloadError> {
    let mut changes = Vec::new();
    compare(repository, old, new, &mut changes)?;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

fn read(repository: &dyn Repository, oid: Option<Oid>) -> Result<Vec<TreeEntry>, WorkloadError> {
    let Some(oid) = oid else { return Ok(Vec::new()) };
    let mut entries = repository.tree(oid)?;
    // Trees are sorted as if directory names ended in a slash; pairing needs plain names.
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in &entries {
        let bad =
            matches!(&*entry.name, b"" | b"." | b".." | b".git") || entry.name.iter().any(|b| matches!(b, 0 | b'/'));
        if bad {
            let name = String::from_utf8_lossy(&entry.name);
            return Err(malformed(
                format!("tree {oid}"),
                format!("it has an entry named {name:?}, which cannot be checked out"),
            ));
        }
    }
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let name = String::from_utf8_lossy(&pair[0].name).into_owned();
        return Err(malformed(format!("tree {oid}"), format!("it has two entries named {name:?}")));
    }
    Ok(entries)
}

/// A directory of both trees in the walk, and the position of the walk in it.
struct Level {
    old: Vec<TreeEntry>,
    new: Vec<TreeEntry>,
    at_old: usize,
    at_new: usize,
    /// Length of the directory's own path, bytes.
    path_bytes: usize,
}

impl Level {
    /// Reads a directory of both trees.
    fn open(
        repository: &dyn Repository,
        old: Option<Oid>,
        new: Option<Oid>,
        path: &[u8],
    ) -> Result<Self, WorkloadError> {
        if path.len() > LONGEST_PATH_BYTES {
            let tree = new.or(old).map_or_else(String::new, |oid| format!("tree {oid}"));
            return Err(malformed(tree, format!("its path is longer than {LONGEST_PATH_BYTES} bytes")));
        }
        Ok(Self {
            old: read(repository, old)?,
            new: read(repository, new)?,
            at_old: 0,
            at_new: 0,
            path_bytes: path.len(),
        })
    }

    /// The entries of both trees with the next name.
    fn next_pair(&mut self) -> Option<(Option<&TreeEntry>, Option<&TreeEntry>)> {
        let order = match (self.old.get(self.at_old), self.new.get(self.at_new)) {
            (Some(a), Some(b)) => a.name.cmp(&b.name),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let before = (order != Ordering::Greater).then(|| &self.old[self.at_old]);
        let after = (order != Ordering::Less).then(|| &self.new[self.at_new]);
        self.at_old += usize::from(before.is_some());
        self.at_new += usize::from(after.is_some());
        Some((before, after))
    }
}

/// Walks both trees with an explicit stack: directories may nest deeper than a thread's stack
/// allows.
fn compare(
    repository: &dyn Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    changes: &mut Vec<Change>,
) -> Result<(), WorkloadError> {
    if old == new {
        return Ok(());
    }
    let mut path = Vec::new();
    let mut levels = vec![Level::open(repository, old, new, &path)?];
    while let Some(level) = levels.last_mut() {
        path.truncate(level.path_bytes);
        let Some((before, after)) = level.next_pair() else {
            levels.pop();
            continue;
        };
        let tree = |e: Option<&TreeEntry>| e.filter(|e| e.kind() == EntryKind::Tree).map(|e| e.oid);
        let leaf = |e: Option<&TreeEntry>| {
            e.filter(|e| e.kind() != EntryKind::Tree).map(|e| Leaf { kind: e.kind(), oid: e.oid })
        };
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(&before.or(after).expect("one of the two sides is ahead").name);
        if leaf(before) != leaf(after) {
            changes.push(Change { path: path.as_slice().into(), old: leaf(before), new: leaf(after) });
        }
        let (old, new) = (tree(before), tree(after));
        if old != new {
            levels.push(Level::open(repository, old, new, &path)?);
        }
    }
    Ok(())
}
