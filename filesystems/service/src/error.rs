//! Errors of requests.

use senesce_fsapi::FsError;
use serde::{Deserialize, Serialize};

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request failed, for a caller in the same process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the garden engine.
    #[error("{0}")]
    Garden(#[from] senesce_garden::Error),
    /// An error of the evergreen engine.
    #[error("{0}")]
    Evergreen(#[from] senesce_evergreen::Error),
    /// An operation on a file failed.
    #[error("{0}")]
    Fs(#[from] FsError),
    /// The request is wrong.
    #[error("{message}")]
    Usage {
        /// The fault of the request.
        message: String,
        /// A suggestion.
        hint: Option<String>,
    },
    /// The request cannot be answered now.
    #[error("{message}")]
    Refused {
        /// The reason.
        message: String,
        /// A suggestion.
        hint: Option<String>,
    },
    /// An attempt, with the reason of its failure.
    #[error("{what}")]
    While {
        /// The attempt.
        what: String,
        /// The reason.
        source: Box<Self>,
    },
}

impl Error {
    /// A wrong request.
    pub fn usage(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Usage { message: message.into(), hint: hint.map(str::to_owned) }
    }

    /// A request that cannot be answered now.
    pub fn refused(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Refused { message: message.into(), hint: hint.map(str::to_owned) }
    }
}

/// Adds the attempt to an error.
pub(crate) trait While<T> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> While<T> for std::result::Result<T, E> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::While { what: what(), source: Box::new(error.into()) })
    }
}

/// The kind of a failure, which determines the exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The attempt failed.
    Failed,
    /// The request is wrong.
    Usage,
    /// Rights, space or a device are missing, or something else is in use.
    Environment,
    /// The server has a bug.
    Internal,
}

/// Why a request failed, for a caller in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// The attempt, followed by each cause.
    pub chain: Vec<String>,
    /// A suggestion.
    pub hint: Option<String>,
}
