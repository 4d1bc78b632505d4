//! The errors of file systems, with their error numbers.

use std::error::Error;

/// The reason why a file system refused a call.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The name or the inode does not exist.
    #[error("there is no such file")]
    NotFound,
    /// The name is in use.
    #[error("the name is taken")]
    Exists,
    /// A directory is required.
    #[error("not a directory")]
    NotDirectory,
    /// An object other than a directory is required.
    #[error("a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// No space is left, for bytes or for inodes. Removals still work.
    #[error("no space left")]
    NoSpace,
    /// A name, a target or a value exceeds its limit.
    #[error("{what} of {bytes} bytes; at most {max}")]
    TooLong {
        /// The object that is too long.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The value of an extended attribute exceeds the limit.
    #[error("a value of {bytes} bytes; at most {max}")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The file would exceed the limit.
    #[error("a file of {bytes} bytes; at most {max}")]
    TooLarge {
        /// The length that it would have.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The inode has the most names that are allowed.
    #[error("{max} names are the most that a file may have")]
    TooManyLinks {
        /// The limit.
        max: u32,
    },
    /// The request is invalid.
    #[error("invalid: {what}")]
    Invalid {
        /// The reason.
        what: &'static str,
    },
    /// The request is never permitted to any caller, for example a second name of a directory.
    #[error("not permitted")]
    NotPermitted,
    /// The extended attribute does not exist.
    #[error("there is no such attribute")]
    NoAttribute,
    /// There is no data, or no hole, from this offset on.
    #[error("nothing from there on")]
    NoData,
    /// The engine does not support the operation.
    #[error("not supported")]
    Unsupported,
    /// The file system is read-only.
    #[error("read-only")]
    ReadOnly,
    /// The inode was removed.
    #[error("the inode is gone")]
    Stale,
    /// The object is in use.
    #[error("in use")]
    Busy,
    /// A device failed.
    #[error("{what}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The error of the device.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The data on the device is damaged.
    #[error("damaged: {what}")]
    Corrupt {
        /// The value found, its place, and the expected value.
        what: String,
    },
}

/// The result of file system calls.
pub type FsResult<T> = Result<T, FsError>;

impl FsError {
    /// The error number on Linux.
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

    /// The kind of the error in one word, without details: `NotFound`.
    pub fn word(&self) -> String {
        let shown = format!("{self:?}");
        shown.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
    }
}
