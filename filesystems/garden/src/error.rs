//! The error type of the crate.

use senesce_block::BlockError;
use senesce_fsapi::FsError;
use senesce_objects::ObjectError;

use crate::format::Damage;

/// Why the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// Data on a device are damaged, and parity cannot restore them.
    #[error("{place}: {damage}")]
    Damaged {
        /// Where, in words: the drive and block, or the file and block.
        place: String,
        /// The damaged field.
        damage: Damage,
    },
    /// There are not enough free blocks.
    #[error("no space left: {wanted} blocks wanted, {free} free")]
    NoSpace {
        /// Blocks that the operation needs.
        wanted: u64,
        /// Free blocks, without the reserve for deletions.
        free: u64,
    },
    /// Cold blocks cannot be read now. They are not lost: the way to the object store fails.
    #[error("cannot read the cold blocks in object {object}: {why}")]
    ColdStore {
        /// The key of the object.
        object: String,
        /// The failure, in words.
        why: String,
        /// Whether the store answered that it has no such object.
        is_absent: bool,
    },
    /// The object store does not hold the objects of this aggregate. Nothing is put or deleted.
    #[error("{what}")]
    ForeignObjects {
        /// The mismatch, with its figures.
        what: String,
    },
    /// The request is invalid.
    #[error("{what}")]
    Invalid {
        /// The reason, with its figures.
        what: String,
    },
    /// The devices are not those of one aggregate.
    #[error("{device}: {what}")]
    WrongDevice {
        /// The name of the device.
        device: String,
        /// The mismatch.
        what: String,
    },
    /// An operation on a file failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An earlier failure stopped the engine, because its state in memory is incomplete. The
    /// devices are consistent. The caller must open the aggregate again.
    #[error("stopped by an earlier failure ({reason}); open it again")]
    Stopped {
        /// The earlier failure.
        reason: String,
    },
}

/// The result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    pub(crate) fn damaged(place: impl Into<String>, damage: Damage) -> Self {
        Self::Damaged { place: place.into(), damage }
    }

    /// Wraps an error of the object store for the object `key`.
    pub(crate) fn cold(key: &str, error: &ObjectError) -> Self {
        Self::ColdStore { object: key.to_owned(), why: error.to_string(), is_absent: error.is_absent() }
    }

    /// Whether the store has no such object.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::ColdStore { is_absent: true, .. })
    }
}

impl From<Error> for FsError {
    fn from(error: Error) -> Self {
        match error {
            Error::Fs(error) => error,
            Error::NoSpace { .. } => FsError::NoSpace,
            Error::Damaged { .. } => FsError::Corrupt { what: error.to_string() },
            Error::Stopped { .. } => FsError::ReadOnly,
            Error::ColdStore { .. } => FsError::Io { what: "a cold block cannot be read", source: Box::new(error) },
            Error::Device(_) => FsError::Io { what: "a device failed", source: Box::new(error) },
            Error::Invalid { .. } | Error::ForeignObjects { .. } | Error::WrongDevice { .. } => {
                FsError::Io { what: "the engine refuses", source: Box::new(error) }
            }
        }
    }
}
