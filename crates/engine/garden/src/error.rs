//! The one error of the room.

use senesce_block::BlockError;
use senesce_fsapi::FsError;
use senesce_objects::ObjectError;

use crate::format::Damage;

/// Why the engine did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// What lies on a device is damaged, beyond what parity gives back.
    #[error("{place}: {damage}")]
    Damaged {
        /// Where, in words: the drive and block, or the file and block.
        place: String,
        /// What is wrong with it.
        damage: Damage,
    },
    /// There are not enough blocks.
    #[error("no space left: {wanted} blocks wanted, {free} free")]
    NoSpace {
        /// How many blocks were wanted.
        wanted: u64,
        /// How many there are, without those that are kept for deleting.
        free: u64,
    },
    /// Cold blocks are not to be had now. They are not lost: what is wrong is the way to them.
    #[error("cold blocks are in object {object}, which cannot be had: {why}")]
    ColdStore {
        /// The object's key.
        object: String,
        /// Why not.
        why: String,
        /// The store was asked, and has no such object.
        is_absent: bool,
    },
    /// What lies in the object store is not what this aggregate has put there; nothing is put or deleted.
    #[error("{what}")]
    ForeignObjects {
        /// What is wrong with it, with the figures.
        what: String,
    },
    /// What was asked for cannot be.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it, with the figures.
        what: String,
    },
    /// The devices are not those of one aggregate.
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
    /// An earlier failure left the state in memory unfit to go on; what is on the devices is whole. Open it again.
    #[error("stopped by an earlier failure ({reason}); open it again")]
    Stopped {
        /// The earlier failure.
        reason: String,
    },
}

/// What the engine gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    pub(crate) fn damaged(place: impl Into<String>, damage: Damage) -> Self {
        Self::Damaged { place: place.into(), damage }
    }

    /// What the store said when it was asked for an object.
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
            Error::ColdStore { .. } => FsError::Io { what: "a cold block cannot be had", source: Box::new(error) },
            Error::Device(_) => FsError::Io { what: "a device failed", source: Box::new(error) },
            Error::Invalid { .. } | Error::ForeignObjects { .. } | Error::WrongDevice { .. } => {
                FsError::Io { what: "the engine refuses", source: Box::new(error) }
            }
        }
    }
}
