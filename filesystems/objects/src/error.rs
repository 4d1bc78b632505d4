//! The error type of the crate.

use std::fmt;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectOperation {
    /// Opening the store.
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

/// The kind of a failure, as far as callers distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectErrorKind {
    /// The store replied that the object does not exist.
    Absent,
    /// The key has another object.
    Taken,
    /// The store cannot be reached now.
    Away,
    /// Any other failure, such as a rejected key.
    Other,
}

/// A failed operation of a store.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}{store}: {problem}", of(.key))]
pub struct ObjectError {
    /// The name of the store.
    pub store: String,
    /// The operation.
    pub operation: ObjectOperation,
    /// The key, or the prefix of keys; empty for all.
    pub key: String,
    /// The kind of the failure.
    pub kind: ObjectErrorKind,
    /// The reason, as text.
    pub problem: String,
}

/// The message for a key that has another object.
pub(crate) const TAKEN: &str = "there is another object of that name; it was left as it is";
/// The message for a missing object.
pub(crate) const ABSENT: &str = "there is no such object";

impl ObjectError {
    /// A store that cannot be opened; waiting does not help.
    #[cfg(feature = "library")]
    pub(crate) fn cannot_open(store: &str, problem: &dyn fmt::Display) -> Self {
        Self {
            store: store.to_owned(),
            operation: ObjectOperation::Open,
            key: String::new(),
            kind: ObjectErrorKind::Other,
            problem: problem.to_string(),
        }
    }

    /// Whether the store replied that the object does not exist.
    pub fn is_absent(&self) -> bool {
        self.kind == ObjectErrorKind::Absent
    }
}

/// The object's part of a message, if there is one.
fn of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key} in ") }
}

/// The result of a store.
pub type ObjectResult<T> = Result<T, ObjectError>;
