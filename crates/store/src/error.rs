//! What can go wrong with stored results.

use std::path::PathBuf;

/// An error of this room; its message names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// There are results already.
    #[error("{} already holds results; continue them with --resume, or name another directory", path.display())]
    AlreadyExists {
        /// The directory.
        path: PathBuf,
    },
    /// There are no results.
    #[error("{} holds no results (no {} in it); name the directory of a run", path.display(), crate::RUN_INFO_FILE)]
    NotResults {
        /// The directory.
        path: PathBuf,
    },
    /// Written by a newer version of this program.
    #[error("{} is in format {found}, and this version reads up to {known}; use a newer senesce", path.display())]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The newest format known here.
        known: String,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {detail}; restore it from a copy, or remove it and run its cells again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A table could not be encoded.
    #[error("cannot encode table {table}")]
    Encode {
        /// The table's name.
        table: &'static str,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// An event or the run's description could not become JSON.
    #[error("cannot write {what} as JSON")]
    Json {
        /// What it was.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A row names another cell than the one it was given for.
    #[error("a row of table {table} belongs to cell {row}, but was given for cell {cell}")]
    WrongCell {
        /// The table.
        table: &'static str,
        /// The cell the row names.
        row: String,
        /// The cell it was given for.
        cell: String,
    },
    /// No such table.
    #[error("there is no table `{name}`; the tables are {known}")]
    UnknownTable {
        /// As asked for.
        name: String,
        /// The tables there are.
        known: String,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Error::Io { operation, path: path.to_path_buf(), source }
    }
    pub(crate) fn damaged(path: &std::path::Path, detail: impl ToString) -> Self {
        Error::Damaged { path: path.to_path_buf(), detail: detail.to_string() }
    }
}
