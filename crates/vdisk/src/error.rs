//! The error type of the crate.

use std::{io, path::PathBuf};

use rustix::io::Errno;

/// The failures of a disk in virtual time.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The failed operation.
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The configuration is not valid.
    #[error("a virtual disk cannot have {key} = {value}: {problem}")]
    Config {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Its fault.
        problem: &'static str,
    },
    /// The device model does not exist.
    #[error("there is no device model {name:?}: {problem}")]
    Device {
        /// The requested name.
        name: String,
        /// The fault, or the known names.
        problem: String,
    },
    /// The other side of the pipe does not speak the protocol, or speaks another version.
    #[error("the server of the virtual disk said {line:?}: {problem}")]
    Protocol {
        /// The line.
        line: String,
        /// Its fault.
        problem: String,
    },
    /// The server or its guard could not start.
    #[error("the {role} of the virtual disk did not start: {problem}")]
    NotStarted {
        /// Server or guard.
        role: &'static str,
        /// The reason.
        problem: String,
    },
    /// The server refused a command.
    #[error("the server of the virtual disk refused {command:?}: {problem}")]
    Refused {
        /// The command.
        command: &'static str,
        /// The reason.
        problem: String,
    },
    /// The server runs but does not answer.
    #[error("the server of the virtual disk did not answer {command:?} for {seconds} s")]
    Unanswered {
        /// The command.
        command: &'static str,
        /// The waiting time, seconds.
        seconds: u64,
    },
    /// The server is dead.
    #[error("the server of the virtual disk is gone: {problem}")]
    Gone {
        /// Its last message.
        problem: String,
    },
    /// A request log is damaged, or the file is not a request log.
    #[error("the request log {} is damaged at byte {offset}: {problem}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The position, bytes.
        offset: u64,
        /// The fault at this position.
        problem: String,
    },
}

/// The result type of the crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Converts errors of rustix calls, for `map_err`.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(Errno) -> Self {
        let path = path.into();
        move |errno| Error::Io { operation, path, source: errno.into() }
    }

    /// Converts errors of the standard library, for `map_err`.
    pub(crate) fn std(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { operation, path, source }
    }
}
