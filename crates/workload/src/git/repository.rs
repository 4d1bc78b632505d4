//! The traits through which workloads read a git repository. Workloads stay pure: they know git
//! objects only through these traits.

use super::{ContentKey, Oid, PackKey};
use crate::WorkloadError;

/// The parts of a commit that a workload needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The commit's tree.
    pub tree: Oid,
    /// Its parents, in order; empty for a root.
    pub parents: Vec<Oid>,
    /// The committer's time, seconds since 1970-01-01 UTC. The author of the history can have
    /// written any value.
    pub committed_unix_seconds: i64,
}

/// The kind of a tree entry. Legacy modes are mapped to those of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A file, mode 100644.
    File,
    /// An executable file, mode 100755.
    Executable,
    /// A symbolic link, mode 120000; its blob is the target.
    Symlink,
    /// A submodule, mode 160000: an empty directory in the work tree.
    Submodule,
    /// A directory, mode 40000.
    Tree,
}

impl EntryKind {
    /// The kind of a mode in a tree. Like git, it maps unusual modes by their type bits.
    pub fn from_mode(mode: u32) -> Self {
        match mode & 0o170000 {
            0o040000 => Self::Tree,
            0o120000 => Self::Symlink,
            0o100000 if mode & 0o100 != 0 => Self::Executable,
            0o100000 => Self::File,
            _ => Self::Submodule,
        }
    }

    /// The mode as the index writes it.
    pub fn mode(self) -> u32 {
        match self {
            Self::File => 0o100644,
            Self::Executable => 0o100755,
            Self::Symlink => 0o120000,
            Self::Submodule => 0o160000,
            Self::Tree => 0o040000,
        }
    }
}

/// One entry of a tree object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The mode as the tree has it, for example `0o100644`.
    pub mode: u32,
    /// The name: any bytes but NUL and `/`.
    pub name: Box<[u8]>,
    /// The object.
    pub oid: Oid,
}

impl TreeEntry {
    /// The kind of the entry.
    pub fn kind(&self) -> EntryKind {
        EntryKind::from_mode(self.mode)
    }
}

/// A git repository to read commits, trees and link targets from.
pub trait Repository: Send {
    /// Reads a commit.
    fn commit(&self, oid: Oid) -> Result<CommitInfo, WorkloadError>;
    /// Reads one tree object, entries in the order of the object.
    fn tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, WorkloadError>;
    /// Reads a blob. Only called for the targets of symbolic links.
    fn blob(&self, oid: Oid) -> Result<Vec<u8>, WorkloadError>;
}

/// Returns the names of packs, which depend on the bytes of the packs.
pub trait PackNames: Send + Sync {
    /// The 40 hexadecimal digits in the name of the pack. Makes the pack if it does not exist yet,
    /// which can take minutes.
    fn pack_name(&self, pack: PackKey) -> Result<Oid, WorkloadError>;
}

/// An error about content that a repository should have.
pub(crate) fn malformed(what: impl ToString, problem: impl ToString) -> WorkloadError {
    WorkloadError::Source { what: what.to_string(), problem: problem.to_string(), source: None }
}

/// Shorthand for the content of a key.
pub(crate) fn content(key: ContentKey) -> senesce_oplog::Content {
    senesce_oplog::Content::derived(key.to_string())
}
