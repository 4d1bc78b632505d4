//! Errors of a whole tree.

use std::path::{Path, PathBuf};

use crate::Skip;

/// The reason why a tree cannot be moved at all. A file that cannot be moved is counted instead,
/// see [`crate::Skip`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The tree could not be listed.
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    /// The costs could not be modelled.
    #[error(transparent)]
    Inspect(#[from] senesce_inspect::Error),
    /// The file system cannot move blocks.
    #[error("cannot move files on {}: {problem}", path.display())]
    NotSupported {
        /// The tree.
        path: PathBuf,
        /// The reason.
        problem: String,
        /// How the file system could be changed.
        hint: Option<&'static str>,
    },
    /// No file could hold the free space.
    #[error("cannot hold the free space of {}: {}", path.display(), hold_words(*why))]
    CannotHold {
        /// The tree.
        path: PathBuf,
        /// The reason.
        why: Skip,
    },
    /// A list of files is not usable.
    #[error("{}: line {line}: {problem}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem.
        problem: &'static str,
    },
    /// The caller stopped the work.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// What the user can do. `None` if nothing helps.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotSupported { hint, .. } => *hint,
            _ => None,
        }
    }
}

fn hold_words(why: Skip) -> &'static str {
    match why {
        // XFS stores 64 inodes in a chunk, and needs contiguous space for a new one.
        Skip::NoSpace => "no inode or no space is free; remove a few files and try again",
        Skip::Refused => "this user may not create files in it",
        _ => "the file system refuses to reserve space",
    }
}

impl Error {
    pub(crate) fn sys(operation: &'static str, path: &Path) -> impl Fn(rustix::io::Errno) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source: source.into() }
    }
}
