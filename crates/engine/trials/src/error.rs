//! The one error of the room.

use senesce_fsapi::FsError;

/// Why a trial could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The garden says no.
    #[error(transparent)]
    Garden(#[from] senesce_garden::Error),
    /// An operation on a file failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A block does not hold what was written to it last: the garden is wrong, and so are all figures.
    #[error("block {block} of the file holds {found:#018x}, and {wanted:#018x} was written to it last")]
    WrongData {
        /// Its number in the file.
        block: u64,
        /// The word that was found in it.
        found: u64,
        /// The word that was wanted.
        wanted: u64,
    },
    /// What is on the drives contradicts itself: the garden is wrong, and so are all figures.
    #[error("the check found damage after the trial: {finding}")]
    Check {
        /// The first of what was found.
        finding: String,
    },
    /// A set-up that makes no sense.
    #[error("{what}")]
    Setup {
        /// What is wrong with it, with the figures.
        what: String,
    },
}

/// What trials give.
pub type Result<T> = std::result::Result<T, Error>;
