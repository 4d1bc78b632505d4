//! Damage that codecs report.

/// Bytes on a device violate the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure}: {field} is {found}, expected {expected}")]
pub struct Damage {
    /// The structure, such as `superblock`.
    pub structure: &'static str,
    /// The field.
    pub field: &'static str,
    /// The value found.
    pub found: String,
    /// The expected value.
    pub expected: String,
}

/// The result of codecs.
pub type Decoded<T> = Result<T, Damage>;

impl Damage {
    /// A field with a wrong value.
    pub fn new(structure: &'static str, field: &'static str, found: impl ToString, expected: impl ToString) -> Self {
        Self { structure, field, found: found.to_string(), expected: expected.to_string() }
    }
}
