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
#[error("cannot {operation} {}{store}: {problem}", of(.key))]
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

/// Why an object cannot be had that is not there.
pub(crate) const ABSENT: &str = "there is no such object";

impl ObjectError {
    /// Whether the store answered, and has no such object.
    pub fn is_absent(&self) -> bool {
        self.problem == ABSENT
    }
}

/// The object's part of a message, if it is about one.
fn of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key} in ") }
}

/// What a store gives.
pub type ObjectResult<T> = Result<T, ObjectError>;
