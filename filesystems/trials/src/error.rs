//! The error type of the crate.

use senesce_fsapi::FsError;

/// The reason why a trial failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The garden returned an error.
    #[error(transparent)]
    Garden(#[from] senesce_garden::Error),
    /// An operation on a file failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A block does not hold the last data that was written to it. The garden is wrong, so all
    /// figures are wrong.
    #[error("block {block} of the file holds {found:#018x}, and {wanted:#018x} was written to it last")]
    WrongData {
        /// The block's number in the file.
        block: u64,
        /// The word that was read.
        found: u64,
        /// The expected word.
        wanted: u64,
    },
    /// The structures on the drives are inconsistent. The garden is wrong, so all figures are
    /// wrong.
    #[error("the check found damage after the trial: {finding}")]
    Check {
        /// The first finding of the check.
        finding: String,
    },
    /// The set-up is not valid.
    #[error("{what}")]
    Setup {
        /// The reason, with the values.
        what: String,
    },
}

/// The result type of the crate.
pub type Result<T> = std::result::Result<T, Error>;
