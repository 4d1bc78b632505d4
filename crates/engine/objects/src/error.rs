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

/// Of which kind a failure is, as far as whoever asked does something else then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectErrorKind {
    /// The store answered, and has no such object.
    Absent,
    /// There is another object under the key.
    Taken,
    /// The store cannot be reached, or not now.
    Away,
    /// Anything else, such as a key that is not let in.
    Other,
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
    /// Of which kind that is.
    pub kind: ObjectErrorKind,
    /// Why not, in words.
    pub problem: String,
}

/// Why an object cannot be put where there is another one.
pub(crate) const TAKEN: &str = "there is another object of that name; it was left as it is";
/// Why an object cannot be had that is not there.
pub(crate) const ABSENT: &str = "there is no such object";

impl ObjectError {
    /// A store cannot be opened, and waiting does not help.
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

    /// Whether the store answered, and has no such object.
    pub fn is_absent(&self) -> bool {
        self.kind == ObjectErrorKind::Absent
    }
}

/// The object's part of a message, if it is about one.
fn of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key} in ") }
}

/// What a store gives.
pub type ObjectResult<T> = Result<T, ObjectError>;
