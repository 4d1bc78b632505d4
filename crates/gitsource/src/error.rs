//! What can go wrong with a real repository or the git binary.

use std::path::PathBuf;

use senesce_workload::{WorkloadError, git::Oid};

/// A repository could not be read, or the git binary failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is there.
    #[error("no repository at {path}: there is no such directory\nhint: give the path of a git repository, or its URL")]
    Missing {
        /// What was given.
        path: PathBuf,
    },
    /// Something is there, but no repository.
    #[error("{path} is not a git repository\nhint: give the directory that holds `.git`, or a bare repository")]
    NotARepository {
        /// What was given.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The history is cut off.
    #[error("{path} is a shallow clone: its history is cut off\nhint: unshallow it with `git fetch --unshallow`")]
    Shallow {
        /// The repository.
        path: PathBuf,
    },
    /// Not a single commit.
    #[error("{path} has no commits\nhint: commit something, or name another repository")]
    Empty {
        /// The repository.
        path: PathBuf,
    },
    /// The tip names nothing.
    #[error("{path} has no commit {tip:?}: {problem}\nhint: `git -C {path} branch --all` lists its branches")]
    NoSuchTip {
        /// The repository.
        path: PathBuf,
        /// What was asked for.
        tip: String,
        /// What git said.
        problem: String,
    },
    /// A hash other than SHA-1.
    #[error(
        "{path} names its objects by {format}; only sha1 is understood\nhint: use a repository of the usual format"
    )]
    ObjectFormat {
        /// The repository.
        path: PathBuf,
        /// The format.
        format: String,
    },
    /// An object is missing or broken.
    #[error(
        "{path}: object {oid} cannot be read: {problem}\nhint: `git -C {path} fsck --full` shows what else is damaged"
    )]
    Object {
        /// The repository.
        path: PathBuf,
        /// The object.
        oid: Oid,
        /// What is wrong with it.
        problem: String,
        /// The cause, if there is one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The git binary could not be started.
    #[error("cannot run `git {operation}`\nhint: install git")]
    Spawn {
        /// The git command.
        operation: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The git binary failed.
    #[error("`git {operation}` on {path} failed with status {status}: {stderr}")]
    Git {
        /// The git command.
        operation: String,
        /// Where it was run.
        path: PathBuf,
        /// Its exit status; -1 if a signal ended it.
        status: i32,
        /// What it said, the last 2,000 bytes.
        stderr: String,
    },
    /// A file could not be read or written.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A pack was asked for that the history does not know.
    #[error("commit number {number} was asked for, but the history has {count}")]
    NoSuchNumber {
        /// What was asked for.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// The trees could not be compared.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

impl Error {
    /// Whether git failed because the volume was full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::Git { stderr, .. } if stderr.contains("No space left on device"))
    }

    /// The same in the words of a workload.
    pub(crate) fn into_workload(self, what: String) -> WorkloadError {
        match self {
            Error::Workload(error) => error,
            other => WorkloadError::Source { what, problem: other.to_string(), source: Some(Box::new(other)) },
        }
    }
}
