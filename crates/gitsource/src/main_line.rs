//! The main line of a repository as changes with sizes, for the statistics of a history.

use std::collections::HashMap;

use senesce_core::RelPath;
use senesce_workload::{
    WorkloadError,
    git::{Change, EntryKind, Leaf, Oid, Repository, compute_changes},
    synthetic::{FEWEST_START_FILES, HistoryChange, HistoryCommit},
};

use crate::{Error, History};

/// The main line of a history, from a commit on.
pub struct MainLine {
    /// The files of the first tree: path and bytes.
    pub start: Vec<(RelPath, u64)>,
    /// The number of the commit with that tree, from 0.
    pub start_number: usize,
    history: History,
    next: usize,
    sizes: HashMap<Oid, u64>,
}

impl MainLine {
    /// Reads `history` up to the first tree that has a quarter of the files of the newest one, and
    /// at least [`FEWEST_START_FILES`]. `history` must follow first parents only.
    ///
    /// A repository often starts with a few files. Its first commits differ from all later ones.
    ///
    /// Symbolic links count as files; submodules do not. Errors: an object is missing or damaged.
    ///
    /// Cost: reads each tree that differs from the one before, and the header of each blob.
    pub fn open(history: History) -> Result<Self, Error> {
        let mut line = Self { start: Vec::new(), start_number: 0, history, next: 0, sizes: HashMap::new() };
        let newest = line.history.len().saturating_sub(1);
        let tip = line.tree(newest)?;
        let of_tip = compute_changes(&line.history, None, Some(tip))?;
        let of_tip = of_tip.iter().filter(|change| change.new.is_some_and(is_file)).count() as u64;
        let wanted = (of_tip / 4).max(FEWEST_START_FILES);
        let mut live: HashMap<Box<[u8]>, Leaf> = HashMap::new();
        while line.next <= newest && (live.len() as u64) < wanted {
            for change in line.changes_of_next()? {
                match change.new.filter(|&new| is_file(new)) {
                    Some(leaf) => live.insert(change.path, leaf),
                    None => live.remove(&change.path),
                };
            }
        }
        line.start_number = line.next.saturating_sub(1);
        let mut start = Vec::with_capacity(live.len());
        for (path, leaf) in live {
            start.push((to_path(&path)?, line.size(leaf.oid)?));
        }
        start.sort_unstable();
        line.start = start;
        Ok(line)
    }

    fn tree(&self, number: usize) -> Result<Oid, Error> {
        Ok(self.history.inner.objects.read_commit(self.history.inner.oid(number)?)?.tree)
    }

    fn size(&mut self, oid: Oid) -> Result<u64, Error> {
        if let Some(&size) = self.sizes.get(&oid) {
            return Ok(size);
        }
        let size = self.history.inner.objects.size(oid)?;
        self.sizes.insert(oid, size);
        Ok(size)
    }

    fn changes_of_next(&mut self) -> Result<Vec<Change>, Error> {
        let before = self.next.checked_sub(1).map(|number| self.tree(number)).transpose()?;
        let changes = compute_changes(&self.history, before, Some(self.tree(self.next)?))?;
        self.next += 1;
        Ok(changes)
    }

    /// The next commit; `None` after the newest one.
    ///
    /// A deleted and an added file with the same content are a rename. Errors: an object is missing
    /// or damaged.
    pub fn next_commit(&mut self) -> Result<Option<HistoryCommit>, Error> {
        if self.next >= self.history.len() {
            return Ok(None);
        }
        let oid = self.history.inner.oid(self.next)?;
        let merge = self.history.commit(oid)?.parents.len() > 1;
        let found = self.changes_of_next()?;
        // Deleted files by content, the last path first.
        let mut deleted: HashMap<Oid, Vec<&Change>> = HashMap::new();
        for change in found.iter().rev() {
            if let (Some(old), None) = (change.old.filter(|&old| is_file(old)), change.new.filter(|&new| is_file(new)))
            {
                deleted.entry(old.oid).or_default().push(change);
            }
        }
        let mut changes = Vec::with_capacity(found.len());
        for change in &found {
            let Some(new) = change.new.filter(|&new| is_file(new)) else { continue };
            let (path, size) = (to_path(&change.path)?, self.size(new.oid)?);
            if change.old.is_some_and(is_file) {
                changes.push(HistoryChange::Modify { path, size });
                continue;
            }
            changes.push(match deleted.get_mut(&new.oid).and_then(Vec::pop) {
                Some(from) => HistoryChange::Rename { from: to_path(&from.path)?, to: path, size },
                None => HistoryChange::Add { path, size },
            });
        }
        // The remaining files were deleted. Sort them, because the order of a map is random.
        let mut deleted: Vec<&Change> = deleted.into_values().flatten().collect();
        deleted.sort_by(|one, other| one.path.cmp(&other.path));
        for change in deleted {
            changes.push(HistoryChange::Delete { path: to_path(&change.path)? });
        }
        Ok(Some(HistoryCommit { merge, changes }))
    }
}

fn is_file(leaf: Leaf) -> bool {
    leaf.kind != EntryKind::Submodule
}

fn to_path(bytes: &[u8]) -> Result<RelPath, Error> {
    let wrong = |error: senesce_core::PathError| WorkloadError::Source {
        what: "a path of the history".into(),
        problem: error.to_string(),
        source: None,
    };
    Ok(RelPath::new(bytes).map_err(wrong)?)
}
