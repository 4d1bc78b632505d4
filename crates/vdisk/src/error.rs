//! The one error of the room.

use std::{io, path::PathBuf};

use rustix::io::Errno;

/// Why a disk in virtual time could not be made, asked or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The configuration describes no disk.
    #[error("a virtual disk cannot have {key} = {value}: {problem}")]
    Config {
        /// Which setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no such device model.
    #[error("there is no device model {name:?}: {problem}")]
    Device {
        /// The name that was asked for.
        name: String,
        /// What is known instead.
        problem: String,
    },
    /// The other side of the pipe does not speak the protocol, or another version of it.
    #[error("the server of the virtual disk said {line:?}: {problem}")]
    Protocol {
        /// The line.
        line: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server or its guard could not begin.
    #[error("the {role} of the virtual disk did not start: {problem}")]
    NotStarted {
        /// Which of the two.
        role: &'static str,
        /// What it said.
        problem: String,
    },
    /// The server refused a command.
    #[error("the server of the virtual disk refused {command:?}: {problem}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Why.
        problem: String,
    },
    /// The server is there and says nothing.
    #[error("the server of the virtual disk did not answer {command:?} for {seconds} s")]
    Unanswered {
        /// The command.
        command: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The server is gone.
    #[error("the server of the virtual disk is gone: {problem}")]
    Gone {
        /// What was its last word.
        problem: String,
    },
    /// A request log is damaged or none at all.
    #[error("the request log {} is damaged at byte {offset}: {problem}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
}

/// What this room's functions give.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err` after rustix calls.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(Errno) -> Self {
        let path = path.into();
        move |errno| Error::Io { operation, path, source: errno.into() }
    }

    /// For `map_err` after calls of the standard library.
    pub(crate) fn std(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { operation, path, source }
    }
}
