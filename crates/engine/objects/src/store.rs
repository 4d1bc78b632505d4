//! The trait.

use std::ops::Range;

use crate::ObjectResult;

/// Objects under their keys. A key is words of letters, digits and `-`, joined by `/`.
pub trait ObjectStore: Send + Sync {
    /// What errors and reports call it.
    fn name(&self) -> &str;

    /// Makes an object. When it returns the object is durable; whatever fails, there is the whole object or none. One that is there
    /// already, with the same bytes, is as good: it may be that of an earlier try.
    ///
    /// Errors: of the kind `Taken` if there is one with other bytes, which stays.
    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()>;

    /// The bytes of a range, fewer if the object ends before. Errors: there is no such object.
    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>>;

    /// Removes an object. Nothing happens if there is none.
    fn delete(&self, key: &str) -> ObjectResult<()>;

    /// The keys that begin with a word and `/`, in order. Cost: with their number.
    fn list(&self, under: &str) -> ObjectResult<Vec<String>>;
}
