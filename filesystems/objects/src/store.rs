//! The trait.

use std::ops::Range;

use crate::ObjectResult;

/// Objects under their keys. A key consists of words of letters, digits and `-`, joined by `/`.
pub trait ObjectStore: Send + Sync {
    /// The name of the store in errors and reports.
    fn name(&self) -> &str;

    /// Creates an object, durable on return. After an error, the whole object exists or none. An
    /// existing object with the same bytes counts as success, because an earlier try may have
    /// created it.
    ///
    /// Errors: of the kind `Taken` if the key has other bytes, which stay.
    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()>;

    /// The bytes of a range; fewer if the object ends before the end of the range. Errors: there is
    /// no such object.
    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>>;

    /// Removes an object. Does nothing if there is none.
    fn delete(&self, key: &str) -> ObjectResult<()>;

    /// The keys that start with a word and `/`, in order. Cost: linear in their number.
    fn list(&self, under: &str) -> ObjectResult<Vec<String>>;
}
