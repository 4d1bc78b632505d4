//! Why a request was not answered.

use senesce_fsapi::FsError;
use serde::{Deserialize, Serialize};

/// What answering gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request was not answered, for a caller in the same process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine failed.
    #[error("{0}")]
    Garden(#[from] senesce_garden::Error),
    /// The other engine failed.
    #[error("{0}")]
    Evergreen(#[from] senesce_evergreen::Error),
    /// An operation on a file failed.
    #[error("{0}")]
    Fs(#[from] FsError),
    /// The request is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Something else keeps the request from being answered now.
    #[error("{message}")]
    Refused {
        /// What.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// What was tried, around why it failed.
    #[error("{what}")]
    While {
        /// What was tried.
        what: String,
        /// Why it failed.
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

/// Adds what was tried to an error.
pub(crate) trait While<T> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> While<T> for std::result::Result<T, E> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::While { what: what(), source: Box::new(error.into()) })
    }
}

/// What kind of failure it is: the exit code of a command follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It was tried and failed.
    Failed,
    /// The request is wrong.
    Usage,
    /// Rights, space or a device are missing, or something else is in use.
    Environment,
    /// The server has a fault.
    Internal,
}

/// Why a request was not answered, for a caller in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind it is.
    pub kind: FailureKind,
    /// What was tried, and then each cause.
    pub chain: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}
