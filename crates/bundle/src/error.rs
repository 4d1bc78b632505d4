//! Errors of bundles.

use std::path::{Path, PathBuf};

use senesce_core::Printable;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a bundle could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}", Printable::new(path))]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is of another kind.
    #[error("{} is no bundle: {detail}", Printable::new(path))]
    NotABundle {
        /// The file.
        path: PathBuf,
        /// The difference from a bundle.
        detail: String,
    },
    /// The bundle has a version that this program does not read.
    #[error("{} has format {}; this version reads {known:?}", Printable::new(path), Printable::new(found))]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The format that this version reads.
        known: &'static str,
    },
    /// The bundle is damaged, or was made to harm. The detail is escaped.
    #[error("{} is damaged: {detail}", Printable::new(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
    /// The run has too many files or bytes for a bundle.
    #[error("cannot bundle the run: {problem}")]
    TooLarge {
        /// The size of the run, and the limit that it exceeds.
        problem: String,
    },
    /// The contents cannot become a bundle.
    #[error("cannot bundle {}: {problem}", Printable::new(name))]
    Content {
        /// The name of the content.
        name: String,
        /// The problem.
        problem: String,
    },
}

impl Error {
    /// Makes an [`Error::Io`].
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { operation, path, source }
    }

    /// Makes an [`Error::Damaged`]. Escapes the detail.
    pub(crate) fn damaged(path: &Path, detail: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), detail: Printable::new(&detail.to_string()).to_string() }
    }
}
