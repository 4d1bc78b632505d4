//! The one error of the room.

use std::fmt;

/// What a store was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectOperation {
    /// To be opened.
    Open,
    /// `put`.
    Put,
    /// `get_range`.
    Get,
    /// `delete`.
    Delete,
    /// `list`.
    List,
}

impl fmt::Display for ObjectOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Put => "put",
            Self::Get => "get",
            Self::Delete => "delete",
            Self::List => "list",
        })
    }
}

/// A store did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {key} in {store}: {problem}")]
pub struct ObjectError {
    /// The store's name.
    pub store: String,
    /// What it was asked to do.
    pub operation: ObjectOperation,
    /// Of which object, or those that begin so; empty for all.
    pub key: String,
    /// Why not, in words.
    pub problem: String,
}

/// What a store gives.
pub type ObjectResult<T> = Result<T, ObjectError>;
