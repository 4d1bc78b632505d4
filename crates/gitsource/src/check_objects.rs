//! Checks that the objects of a range of commits exist, before any volume is made.

use std::collections::HashSet;

use senesce_workload::git::{EntryKind, Oid, TreeEntry};

use crate::{Error, History};

/// The number of missing objects that an error names.
const NAMED: usize = 5;

/// The longest path that Linux accepts, bytes.
const LONGEST_PATH_BYTES: usize = 4096;

/// Checks the objects that pulls of consecutive commits bring.
///
/// Trees and commits are read and so verified. Blobs are only searched for; their bytes are
/// verified when they are read. git packs the objects of the commits before the range, and fails if
/// one is missing.
pub struct ObjectCheck {
    history: History,
    /// Commits that are reached from the list but not in it: side branches, if only first parents
    /// are listed.
    visited: HashSet<Oid>,
    missing: Vec<String>,
}

/// A directory in the walk of a commit.
struct Level {
    /// Its path with a slash at the end; empty for the root.
    path: String,
    /// Entries that no parent has.
    entries: std::vec::IntoIter<TreeEntry>,
    /// The entries of the same directory in the parents.
    known: Vec<Vec<TreeEntry>>,
}

impl ObjectCheck {
    /// Starts a check.
    pub fn new(history: &History) -> Self {
        Self { history: history.clone(), visited: HashSet::new(), missing: Vec::new() }
    }

    /// Checks the objects that commit number `number` has and its parents do not.
    ///
    /// Errors: [`Error::MissingObjects`] as soon as five objects are missing; a damaged object.
    /// Cost: reads the trees in which the commit differs from its parents.
    pub fn check_commit(&mut self, number: usize) -> Result<(), Error> {
        let mut to_visit = vec![self.history.inner.oid(number)?];
        while let Some(commit) = to_visit.pop() {
            let inner = self.history.inner.clone();
            let Some(info) = self.found(commit, || format!("commit {commit}"), |oid| inner.objects.read_commit(oid))?
            else {
                continue;
            };
            let mut known = Vec::with_capacity(info.parents.len());
            for parent in info.parents {
                let is_listed = inner.numbers.get(&parent).is_some_and(|&at| (at as usize) < number);
                if !is_listed && self.visited.insert(parent) {
                    to_visit.push(parent);
                }
                // A missing parent is reported when it is visited.
                known.extend(inner.objects.read_commit(parent).ok().map(|parent| parent.tree));
            }
            self.check_tree(commit, info.tree, &known)?;
        }
        Ok(())
    }

    /// Finishes the check. Errors: an object is missing.
    pub fn finish(self) -> Result<(), Error> {
        if self.missing.is_empty() { Ok(()) } else { Err(self.error()) }
    }

    /// Walks with a stack of its own, because a repository may nest trees deeper than the stack of
    /// a thread.
    fn check_tree(&mut self, commit: Oid, tree: Oid, known: &[Oid]) -> Result<(), Error> {
        let mut levels: Vec<Level> = self.open_tree(commit, tree, known, String::new())?.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            let path = format!("{}{}", level.path, String::from_utf8_lossy(&entry.name));
            if entry.kind() == EntryKind::Tree {
                let before =
                    level.known.iter().flat_map(|entries| entries.iter().find(|other| other.name == entry.name));
                let before: Vec<Oid> =
                    before.filter(|other| other.kind() == EntryKind::Tree).map(|tree| tree.oid).collect();
                levels.extend(self.open_tree(commit, entry.oid, &before, format!("{path}/"))?);
            } else if !self.history.inner.objects.contains(entry.oid) {
                self.note(format!("blob {}: file {path:?} of commit {commit}", entry.oid))?;
            }
        }
        Ok(())
    }

    /// Reads the tree at `path`. `None` if it is missing, or equals one of `known`, the trees of
    /// the parents there.
    fn open_tree(&mut self, commit: Oid, tree: Oid, known: &[Oid], path: String) -> Result<Option<Level>, Error> {
        if known.contains(&tree) {
            return Ok(None);
        }
        let inner = self.history.inner.clone();
        let shown = || format!("tree {tree}: directory {path:?} of commit {commit}");
        let Some(entries) = self.found(tree, shown, |oid| inner.objects.read_tree(oid))? else { return Ok(None) };
        if path.len() > LONGEST_PATH_BYTES {
            return Err(inner.objects.error(tree, "its directories are deeper than a path can be long", None));
        }
        let known: Vec<Vec<TreeEntry>> = known.iter().filter_map(|&tree| inner.objects.read_tree(tree).ok()).collect();
        let same: HashSet<(&[u8], Oid)> = known.iter().flatten().map(|entry| (&*entry.name, entry.oid)).collect();
        let is_new =
            |entry: &TreeEntry| !same.contains(&(&*entry.name, entry.oid)) && entry.kind() != EntryKind::Submodule;
        let entries: Vec<TreeEntry> = entries.into_iter().filter(is_new).collect();
        Ok(Some(Level { path, entries: entries.into_iter(), known }))
    }

    /// Returns the result of `read`. If the object is missing, notes it and returns `None`.
    fn found<T>(
        &mut self,
        oid: Oid,
        shown: impl FnOnce() -> String,
        read: impl FnOnce(Oid) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        if self.history.inner.objects.contains(oid) {
            return read(oid).map(Some);
        }
        self.note(shown())?;
        Ok(None)
    }

    fn note(&mut self, missing: String) -> Result<(), Error> {
        self.missing.push(missing);
        if self.missing.len() == NAMED { Err(self.error()) } else { Ok(()) }
    }

    fn error(&self) -> Error {
        Error::MissingObjects { path: self.history.inner.objects.origin().to_owned(), missing: self.missing.clone() }
    }
}
