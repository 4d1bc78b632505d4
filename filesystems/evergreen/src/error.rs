//! The error type of the crate.

use senesce_block::BlockError;
use senesce_fsapi::{Damage, FsError};

/// Why an operation of the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// A structure on the device is damaged.
    #[error("{place}: {what}")]
    Damaged {
        /// The structure, its number, and its place on the device.
        place: String,
        /// The fault, with its figures.
        what: String,
    },
    /// There is not enough space.
    #[error("no space left: {wanted} bytes wanted, {free} free")]
    NoSpace {
        /// The bytes that were requested.
        wanted: u64,
        /// The free bytes, without those reserved for removals.
        free: u64,
    },
    /// The request is not possible.
    #[error("{what}")]
    Invalid {
        /// The fault, with its figures.
        what: String,
    },
    /// The device holds something else, or only a part of the file system.
    #[error("{device}: {what}")]
    WrongDevice {
        /// The name of the device.
        device: String,
        /// The fault.
        what: String,
    },
    /// An operation on a file failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An earlier failure made the state in memory unusable; the state on the device is whole. The
    /// caller must open the file system again.
    #[error("stopped by an earlier failure ({reason}); open it again")]
    Stopped {
        /// The earlier failure.
        reason: String,
    },
}

/// The result of the engine's operations.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The damage that a codec found at a place on the device.
    pub(crate) fn damaged(place: impl Into<String>, damage: &Damage) -> Self {
        Self::Damaged { place: place.into(), what: damage.to_string() }
    }
}

impl From<Error> for FsError {
    fn from(error: Error) -> Self {
        match error {
            Error::Fs(error) => error,
            Error::NoSpace { .. } => FsError::NoSpace,
            Error::Damaged { .. } => FsError::Corrupt { what: error.to_string() },
            Error::Stopped { .. } => FsError::ReadOnly,
            Error::Device(_) => FsError::Io { what: "a device failed", source: Box::new(error) },
            Error::Invalid { .. } | Error::WrongDevice { .. } => {
                FsError::Io { what: "the engine refuses", source: Box::new(error) }
            }
        }
    }
}
