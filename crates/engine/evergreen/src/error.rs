//! The one error of the room.

use senesce_block::BlockError;
use senesce_fsapi::{Damage, FsError};

/// Why the engine did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// What lies on the device is damaged.
    #[error("{place}: {what}")]
    Damaged {
        /// Where, in words: the structure, its number, and the place on the device.
        place: String,
        /// What is wrong with it, with the figures.
        what: String,
    },
    /// There is not enough space.
    #[error("no space left: {wanted} bytes wanted, {free} free")]
    NoSpace {
        /// How many bytes were wanted.
        wanted: u64,
        /// How many there are, without those that are kept for deleting.
        free: u64,
    },
    /// What was asked for cannot be.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it, with the figures.
        what: String,
    },
    /// The device holds something else, or a part of it only.
    #[error("{device}: {what}")]
    WrongDevice {
        /// Its name.
        device: String,
        /// What is wrong with it.
        what: String,
    },
    /// An operation on a file failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An earlier failure left the state in memory unfit to go on; what is on the device is whole. Open it again.
    #[error("stopped by an earlier failure ({reason}); open it again")]
    Stopped {
        /// The earlier failure.
        reason: String,
    },
}

/// What the engine gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What a codec found, at a place on the device.
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
