//! The differences between two trees.

use std::fmt;

use senesce_core::RelPath;

use super::{Entry, Tree};

/// One difference between two trees, called a and b.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path.
    pub path: RelPath,
    /// The difference at that path.
    pub differs: Differs,
}

/// A kind of difference at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Differs {
    /// Only a has it.
    OnlyInA,
    /// Only b has it.
    OnlyInB,
    /// The types, as words.
    Type(&'static str, &'static str),
    /// The permissions.
    Mode(u32, u32),
    /// The sizes, bytes.
    Size(u64, u64),
    /// The contents of files of the same size.
    Content,
    /// The targets of symbolic links.
    Target,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe("the first tree", "the second tree"))
    }
}

impl Difference {
    /// The path and the difference as words. `a` and `b` are the names of the two trees.
    pub fn describe(&self, a: &str, b: &str) -> String {
        let differs = match self.differs {
            Differs::OnlyInA => format!("only in {a}"),
            Differs::OnlyInB => format!("only in {b}"),
            Differs::Type(of_a, of_b) => format!("a {of_a} in {a}, a {of_b} in {b}"),
            Differs::Mode(of_a, of_b) => format!("mode {of_a:04o} in {a}, {of_b:04o} in {b}"),
            Differs::Size(of_a, of_b) => format!("{of_a} bytes in {a}, {of_b} in {b}"),
            Differs::Content => "same size, other content".to_owned(),
            Differs::Target => "a symbolic link to another target".to_owned(),
        };
        format!("{}: {differs}", self.path)
    }
}

/// The first `most` differences between two trees, in the order of the paths; empty if the trees
/// are equal.
pub fn compare_trees(a: &Tree, b: &Tree, most: usize) -> Vec<Difference> {
    let (mut left, mut right) = (a.entries.iter().peekable(), b.entries.iter().peekable());
    let mut differences = Vec::new();
    while differences.len() < most {
        let differs = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some((path, _)), other) if other.is_none_or(|(theirs, _)| path < theirs) => {
                let path = (*path).clone();
                left.next();
                Some((path, Differs::OnlyInA))
            }
            (Some((path, mine)), Some((theirs, entry))) if path == theirs => {
                let differs = compare_entries(mine, entry).map(|differs| ((*path).clone(), differs));
                left.next();
                right.next();
                differs
            }
            _ => right.next().map(|(path, _)| (path.clone(), Differs::OnlyInB)),
        };
        differences.extend(differs.map(|(path, differs)| Difference { path, differs }));
    }
    differences
}

fn compare_entries(a: &Entry, b: &Entry) -> Option<Differs> {
    let mode = |a: u32, b: u32| (a != b).then_some(Differs::Mode(a, b));
    match (a, b) {
        (Entry::Directory { mode: a }, Entry::Directory { mode: b }) => mode(*a, *b),
        (
            Entry::File { mode: mode_a, size_bytes: size_a, hash: hash_a },
            Entry::File { mode: mode_b, size_bytes: size_b, hash: hash_b },
        ) => match () {
            () if size_a != size_b => Some(Differs::Size(*size_a, *size_b)),
            () if hash_a != hash_b => Some(Differs::Content),
            () => mode(*mode_a, *mode_b),
        },
        (Entry::Symlink { target: a }, Entry::Symlink { target: b }) => (a != b).then_some(Differs::Target),
        (Entry::Other { mode: a }, Entry::Other { mode: b }) => mode(*a, *b),
        _ => Some(Differs::Type(word(a), word(b))),
    }
}

fn word(entry: &Entry) -> &'static str {
    match entry {
        Entry::Directory { .. } => "directory",
        Entry::File { .. } => "file",
        Entry::Symlink { .. } => "symbolic link",
        Entry::Other { .. } => "special file",
    }
}
