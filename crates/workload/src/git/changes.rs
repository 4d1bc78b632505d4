//! The difference between two trees, as the leaves (files, links, submodules) that differ.

use std::cmp::Ordering;

use super::{EntryKind, Oid, Repository, TreeEntry, repository::malformed};
use crate::WorkloadError;

/// What a path holds: never a [`EntryKind::Tree`].
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
    /// What it held before.
    pub old: Option<Leaf>,
    /// What it holds after.
    pub new: Option<Leaf>,
}

/// The paths that differ between two trees, sorted by path bytes (the order of an index). `None` is an empty tree.
///
/// Cost: reads the trees that differ, nothing else.
pub fn compute_changes(
    repository: &dyn Repository,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<Vec<Change>, WorkloadError> {
    let mut changes = Vec::new();
    let mut path = Vec::new();
    compare(repository, old, new, &mut path, &mut changes)?;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

fn read(repository: &dyn Repository, oid: Option<Oid>) -> Result<Vec<TreeEntry>, WorkloadError> {
    let Some(oid) = oid else { return Ok(Vec::new()) };
    let mut entries = repository.tree(oid)?;
    // Trees are sorted as if directories ended in a slash; pairing needs plain names.
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

fn compare(
    repository: &dyn Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    path: &mut Vec<u8>,
    changes: &mut Vec<Change>,
) -> Result<(), WorkloadError> {
    if old == new {
        return Ok(());
    }
    let (old, new) = (read(repository, old)?, read(repository, new)?);
    let (mut at_old, mut at_new) = (0, 0);
    while at_old < old.len() || at_new < new.len() {
        let order = match (old.get(at_old), new.get(at_new)) {
            (Some(a), Some(b)) => a.name.cmp(&b.name),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let before = (order != Ordering::Greater).then(|| &old[at_old]);
        let after = (order != Ordering::Less).then(|| &new[at_new]);
        at_old += usize::from(before.is_some());
        at_new += usize::from(after.is_some());
        let tree = |e: Option<&TreeEntry>| e.filter(|e| e.kind() == EntryKind::Tree).map(|e| e.oid);
        let leaf = |e: Option<&TreeEntry>| {
            e.filter(|e| e.kind() != EntryKind::Tree).map(|e| Leaf { kind: e.kind(), oid: e.oid })
        };
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&before.or(after).expect("one of the two sides is ahead").name);
        if leaf(before) != leaf(after) {
            changes.push(Change { path: path.as_slice().into(), old: leaf(before), new: leaf(after) });
        }
        compare(repository, tree(before), tree(after), path, changes)?;
        path.truncate(length);
    }
    Ok(())
}
