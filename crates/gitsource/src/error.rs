//! Errors of a real repository or the git binary.

use std::path::PathBuf;

use senesce_workload::{WorkloadError, git::Oid};

/// A repository could not be read, or the git binary failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not exist.
    #[error("no repository at {path}: there is no such directory\nhint: give the path of a git repository, or its URL")]
    Missing {
        /// The given path.
        path: PathBuf,
    },
    /// The path is not a repository.
    #[error("{path} is not a git repository")]
    NotARepository {
        /// The given path.
        path: PathBuf,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The history is truncated.
    #[error("{path} is a shallow clone: its history is cut off\nhint: unshallow it with `git fetch --unshallow`")]
    Shallow {
        /// The repository.
        path: PathBuf,
    },
    /// A partial clone: git would fetch the missing objects when it needs them.
    #[error(
        "{path} is a partial clone ({sign}): it lacks objects\nhint: clone its origin again without --filter, and name \
         the new clone"
    )]
    Partial {
        /// The repository.
        path: PathBuf,
        /// The sign of it, in words.
        sign: String,
    },
    /// Another user could have prepared the repository.
    #[error(
        "{path}: {place} belongs to user {owner}, who is neither root nor the user who runs senesce\nhint: if you trust \
         that user, add --trust-repo; or run senesce as that user"
    )]
    ForeignOwner {
        /// The repository.
        path: PathBuf,
        /// The directory or file.
        place: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// A stranger's repository points to files of another user.
    #[error(
        "{path} belongs to user {stranger}, but points to {place}, which belongs to user {owner}\nhint: --trust-repo \
         reads only files of the repository's owner; let the owner clone it with --dissociate"
    )]
    Elsewhere {
        /// The repository.
        path: PathBuf,
        /// The place that it points to.
        place: PathBuf,
        /// The owner of that place.
        owner: u32,
        /// The owner of the repository.
        stranger: u32,
    },
    /// A link, a FIFO or a device where a repository has a file or a directory.
    #[error("{path}: {place} is not a regular file or directory\nhint: clone the repository, and name the clone")]
    Irregular {
        /// The repository.
        path: PathBuf,
        /// The path of the link, FIFO or device.
        place: PathBuf,
    },
    /// References in another format than files (reftable).
    #[error(
        "{path} stores its references as {format}; only files are supported\nhint: clone it, or as its owner run \
         `git -C {path} refs migrate --ref-format=files`"
    )]
    RefStorage {
        /// The repository.
        path: PathBuf,
        /// The format.
        format: String,
    },
    /// A pack that is not what its index describes.
    #[error("the pack {pack} is damaged: {problem}\nhint: restore it from a backup or another clone of the repository")]
    DamagedPack {
        /// The pack's file.
        pack: PathBuf,
        /// The problem, in words.
        problem: String,
    },
    /// A file of the repository is larger than the free space of the spool directory.
    #[error(
        "cannot copy {from} ({needed} bytes) to {dir}: only {available} bytes are free\nhint: free space there, or name a \
         directory on another file system (--out)"
    )]
    SpoolFull {
        /// The file.
        from: PathBuf,
        /// Its size, bytes.
        needed: u64,
        /// The spool directory.
        dir: PathBuf,
        /// Its free space, bytes.
        available: u64,
    },
    /// Objects of the range of commits are missing.
    #[error(
        "{path} lacks objects that its commits need:\n  {}\nhint: use a complete clone; as its owner, run `git -C {path} fsck \
         --full` to list all of them", missing.join("\n  ")
    )]
    MissingObjects {
        /// The repository.
        path: PathBuf,
        /// The first missing objects, with the commit and path that use them.
        missing: Vec<String>,
    },
    /// The caller stopped the operation.
    #[error("stopped")]
    Stopped,
    /// The repository has no commits.
    #[error("{path} has no commits\nhint: commit something, or name another repository")]
    Empty {
        /// The repository.
        path: PathBuf,
    },
    /// The tip names no commit.
    #[error(
        "{path} has no commit {tip:?}: {problem}\nhint: as its owner, run `git -C {path} branch --all` to list its branches"
    )]
    NoSuchTip {
        /// The repository.
        path: PathBuf,
        /// The requested tip.
        tip: String,
        /// The message of git.
        problem: String,
    },
    /// The object format is not SHA-1.
    #[error("{path} has object format {format}; only sha1 is supported\nhint: use a repository with SHA-1 objects")]
    ObjectFormat {
        /// The repository.
        path: PathBuf,
        /// The format.
        format: String,
    },
    /// An object is missing or damaged.
    #[error(
        "{path}: object {oid} cannot be read: {problem}\nhint: as its owner, run `git -C {path} fsck --full` to list all damage"
    )]
    Object {
        /// The repository.
        path: PathBuf,
        /// The object.
        oid: Oid,
        /// The fault.
        problem: String,
        /// The cause, if there is one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The git binary could not be started.
    #[error("cannot run `git {operation}`")]
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
        /// The directory of the run.
        path: PathBuf,
        /// Its exit status; -1 if a signal ended it.
        status: i32,
        /// The last 2,000 characters of its messages.
        stderr: String,
    },
    /// A file could not be read or written.
    #[error("cannot {operation} {path}")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A commit was requested that the history does not have.
    #[error("commit number {number} was requested, but the history has {count}")]
    NoSuchNumber {
        /// The requested number.
        number: usize,
        /// The number of commits.
        count: usize,
    },
    /// The trees could not be compared.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

impl Error {
    /// Makes an [`Error::Io`] of the cause.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { operation, path, source }
    }

    /// Whether git failed because the volume was full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Error::Git { stderr, .. } if stderr.contains("No space left on device"))
    }

    /// Converts the error to one of a workload. `what` names the content.
    pub(crate) fn into_workload(self, what: String) -> WorkloadError {
        match self {
            Error::Workload(error) => error,
            other => WorkloadError::Source { what, problem: other.to_string(), source: Some(Box::new(other)) },
        }
    }
}

impl Error {
    /// The hint of an error that has a cause. The cause is printed between the message and the
    /// hint. Other messages contain their hints.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotARepository { .. } => Some("give the directory that holds `.git`, or a bare repository"),
            Self::Spawn { .. } => Some("install git"),
            _ => None,
        }
    }
}
