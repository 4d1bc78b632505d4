//! The work tree's part of a pull: the operations of git's `unpack_trees`, in its order.

use std::sync::Arc;

use senesce_core::RelPath;
use senesce_oplog::Op;

use super::{
    Change, ContentKey, EntryKind, IndexState, Leaf, Repository,
    repository::{content, malformed},
};
use crate::WorkloadError;

/// Plans the operations that bring the work tree from `index` over `changes`, and updates `index`.
///
/// In: changes sorted by path, `old` as the index has it.
pub(super) fn plan_checkout(
    repository: &dyn Repository,
    index: &mut IndexState,
    changes: &[Change],
    ops: &mut Vec<Op>,
) -> Result<(), WorkloadError> {
    let mut removal = Removal { ops, scheduled: Vec::new() };
    for change in changes.iter().filter(|change| change.new.is_none()) {
        index.set(&change.path, None);
        removal.remove_leaf(&change.path, change.old)?;
        removal.schedule(index, &change.path)?;
    }
    removal.flush(index, 0)?;
    for change in changes {
        let Some(new) = change.new else { continue };
        match change.old {
            Some(Leaf { kind: EntryKind::Submodule, .. }) if new.kind == EntryKind::Submodule => {}
            Some(old) => {
                ops.push(remove_op(&change.path, old)?);
                ops.push(create_op(repository, &change.path, new)?);
            }
            None => {
                make_parents(index, &change.path, ops)?;
                ops.push(create_op(repository, &change.path, new)?);
            }
        }
        index.set(&change.path, Some(new));
    }
    Ok(())
}

/// Removes files, and later their empty directories. Git removes a directory only when the removals
/// reach another directory.
struct Removal<'a> {
    ops: &'a mut Vec<Op>,
    /// The directory that is removed later if it is empty, with its parents.
    scheduled: Vec<u8>,
}

impl Removal<'_> {
    fn remove_leaf(&mut self, path: &[u8], old: Option<Leaf>) -> Result<(), WorkloadError> {
        if let Some(old) = old {
            self.ops.push(remove_op(path, old)?);
        }
        Ok(())
    }

    fn schedule(&mut self, index: &IndexState, path: &[u8]) -> Result<(), WorkloadError> {
        let directory = &path[..path.iter().rposition(|&b| b == b'/').unwrap_or(0)];
        let common = common_directory(&self.scheduled, directory);
        if common < directory.len() {
            self.flush(index, common)?;
            self.scheduled = directory.to_vec();
        }
        Ok(())
    }

    /// Removes the scheduled directory and its parents, down to `keep` bytes of its path, while
    /// they are empty.
    fn flush(&mut self, index: &IndexState, keep: usize) -> Result<(), WorkloadError> {
        while self.scheduled.len() > keep && !index.has_below(&self.scheduled) {
            self.ops.push(Op::Rmdir { path: rel(&self.scheduled)? });
            let parent = self.scheduled.iter().rposition(|&b| b == b'/').unwrap_or(0);
            self.scheduled.truncate(parent);
        }
        self.scheduled.truncate(keep);
        Ok(())
    }
}

/// Length of the common leading directories of two directory paths, bytes.
fn common_directory(a: &[u8], b: &[u8]) -> usize {
    let mut common = 0;
    for at in 0..=a.len().min(b.len()) {
        let (end_a, end_b) = (a.get(at), b.get(at));
        if matches!(end_a, None | Some(b'/')) && matches!(end_b, None | Some(b'/')) {
            common = at;
        }
        if end_a != end_b {
            break;
        }
    }
    common
}

/// Makes the missing directories above `path`. A directory is missing if the index has no path
/// below it.
fn make_parents(index: &IndexState, path: &[u8], ops: &mut Vec<Op>) -> Result<(), WorkloadError> {
    let slashes: Vec<usize> = (0..path.len()).filter(|&at| path[at] == b'/').collect();
    let existing = slashes.iter().rposition(|&at| index.has_below(&path[..at])).map_or(0, |at| at + 1);
    for &at in &slashes[existing..] {
        ops.push(Op::Mkdir { path: rel(&path[..at])?, mode: 0o755 });
    }
    Ok(())
}

fn remove_op(path: &[u8], old: Leaf) -> Result<Op, WorkloadError> {
    let path = rel(path)?;
    Ok(match old.kind {
        EntryKind::Submodule => Op::Rmdir { path },
        _ => Op::Unlink { path },
    })
}

fn create_op(repository: &dyn Repository, path: &[u8], new: Leaf) -> Result<Op, WorkloadError> {
    let path = rel(path)?;
    let content = || content(ContentKey::Blob(new.oid));
    Ok(match new.kind {
        EntryKind::Submodule => Op::Mkdir { path, mode: 0o755 },
        EntryKind::Executable => Op::Create { path, mode: 0o755, content: content() },
        EntryKind::Symlink => {
            let target: Arc<[u8]> = repository.blob(new.oid)?.into();
            if target.is_empty() || target.contains(&0) {
                let problem = format!("it is the target of the link {path}, but it is empty or has a NUL byte");
                return Err(malformed(format!("blob {}", new.oid), problem));
            }
            Op::Symlink { path, target }
        }
        EntryKind::File | EntryKind::Tree => Op::Create { path, mode: 0o644, content: content() },
    })
}

fn rel(path: &[u8]) -> Result<RelPath, WorkloadError> {
    RelPath::new(path).map_err(|error| malformed("a tree", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_directories_end_at_slashes() {
        for (a, b, want) in [
            ("a/b", "a/b", 3),
            ("a/b", "a/bc", 1),
            ("a/b", "a", 1),
            ("", "a", 0),
            ("ab", "ac", 0),
            ("a/b/c", "a/b/d", 3),
        ] {
            assert_eq!(common_directory(a.as_bytes(), b.as_bytes()), want, "{a} {b}");
            assert_eq!(common_directory(b.as_bytes(), a.as_bytes()), want, "{b} {a}");
        }
    }
}
