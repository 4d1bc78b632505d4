//! Errors of stored results.

use std::path::PathBuf;

/// The error type of the crate. Its message names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The failed operation, as a verb.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The directory already has results.
    #[error("{} already holds results; continue them with --resume, or name another directory", path.display())]
    AlreadyExists {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no results.
    #[error("{} holds no results (no {} in it); name the directory of a run", path.display(), crate::RUN_INFO_FILE)]
    NotResults {
        /// The directory.
        path: PathBuf,
    },
    /// The results were written by a newer version of this program.
    #[error("{} is in format {found}, and this version reads up to {known}; use a newer senesce", path.display())]
    NewerFormat {
        /// The file with the format.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The newest format that this version reads.
        known: String,
    },
    /// The content of a file is not valid.
    #[error("{} is damaged: {detail}; restore it from a copy, or remove it and run its cells again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
    /// A table could not be encoded.
    #[error("cannot encode table {table}")]
    Encode {
        /// The table's name.
        table: &'static str,
        /// The cause.
        source: parquet::errors::ParquetError,
    },
    /// An event or the run's description could not be encoded as JSON.
    #[error("cannot write {what} as JSON")]
    Json {
        /// The object.
        what: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// A row names another cell than the cell it was passed with.
    #[error("a row of table {table} belongs to cell {row}, but was given for cell {cell}")]
    WrongCell {
        /// The table.
        table: &'static str,
        /// The cell in the row.
        row: String,
        /// The cell it was passed with.
        cell: String,
    },
    /// The table does not exist.
    #[error("there is no table `{name}`; the tables are {known}")]
    UnknownTable {
        /// The requested name.
        name: String,
        /// The existing tables.
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
