//! The errors of file systems, each with the number that programs know.

use std::error::Error;

/// Why a file system did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// There is no such name, or no such inode.
    #[error("there is no such file")]
    NotFound,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// A directory was needed.
    #[error("not a directory")]
    NotDirectory,
    /// Something other than a directory was needed.
    #[error("a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// There is no space, for bytes or for inodes. Removing things still works.
    #[error("no space left")]
    NoSpace,
    /// A name, a target or a value is longer than any may be.
    #[error("{what} of {bytes} bytes; at most {max}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// The extended attribute's value is longer than any may be.
    #[error("a value of {bytes} bytes; at most {max}")]
    ValueTooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// The file would be longer than any may be.
    #[error("a file of {bytes} bytes; at most {max}")]
    TooLarge {
        /// How long it would be.
        bytes: u64,
        /// How long it may be.
        max: u64,
    },
    /// The inode has as many names as it may have.
    #[error("{max} names are the most that a file may have")]
    TooManyLinks {
        /// How many it may have.
        max: u32,
    },
    /// What was asked for makes no sense.
    #[error("invalid: {what}")]
    Invalid {
        /// Why it makes no sense.
        what: &'static str,
    },
    /// What was asked for is never done, whoever asks (a second name of a directory).
    #[error("not permitted")]
    NotPermitted,
    /// There is no extended attribute of this name.
    #[error("there is no such attribute")]
    NoAttribute,
    /// There is no data (or no hole) from there on.
    #[error("nothing from there on")]
    NoData,
    /// The engine has no such operation.
    #[error("not supported")]
    Unsupported,
    /// The file system takes no changes.
    #[error("read-only")]
    ReadOnly,
    /// The inode is gone.
    #[error("the inode is gone")]
    Stale,
    /// It is in use.
    #[error("in use")]
    Busy,
    /// A device failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the device said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What is on the device cannot be.
    #[error("damaged: {what}")]
    Corrupt {
        /// What was found, where, and what was expected.
        what: String,
    },
}

/// What file systems give.
pub type FsResult<T> = Result<T, FsError>;

impl FsError {
    /// The error's number on Linux.
    pub fn errno(&self) -> i32 {
        match self {
            Self::NotFound => 2,
            Self::Io { .. } => 5,
            Self::NoData => 6,
            Self::Busy => 16,
            Self::Exists => 17,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::Invalid { .. } => 22,
            Self::TooLarge { .. } => 27,
            Self::NoSpace => 28,
            Self::ReadOnly => 30,
            Self::TooManyLinks { .. } => 31,
            Self::TooLong { .. } => 36,
            Self::NotEmpty => 39,
            Self::NoAttribute => 61,
            Self::ValueTooLong { .. } => 7,
            Self::NotPermitted => 1,
            Self::Unsupported => 95,
            Self::Stale => 116,
            Self::Corrupt { .. } => 117,
        }
    }

    /// The kind of error in one word, without what it happened to: `NotFound`.
    pub fn word(&self) -> String {
        let shown = format!("{self:?}");
        shown.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
    }
}
