//! What a codec says of bytes that are not what the format says.

/// What lies on a device is not what the format says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure}: {field} is {found}, expected {expected}")]
pub struct Damage {
    /// The structure, such as `superblock`.
    pub structure: &'static str,
    /// The field of it.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

/// What codecs give.
pub type Decoded<T> = Result<T, Damage>;

impl Damage {
    /// A field that holds something else than it should.
    pub fn new(structure: &'static str, field: &'static str, found: impl ToString, expected: impl ToString) -> Self {
        Self { structure, field, found: found.to_string(), expected: expected.to_string() }
    }
}
