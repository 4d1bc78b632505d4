//! A store whose changes are not made.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult, ObjectStore,
    error::{ABSENT, TAKEN},
};

/// Reads objects of another store, and only notes new objects and deletions. New objects cannot be
/// read, because their bytes are not kept.
pub struct OverlayObjects {
    below: Arc<dyn ObjectStore>,
    /// Keys that were put (true) or deleted (false).
    changed: Mutex<BTreeMap<String, bool>>,
}

impl OverlayObjects {
    /// An overlay over a store.
    pub fn new(below: Arc<dyn ObjectStore>) -> Self {
        Self { below, changed: Mutex::default() }
    }

    fn changed(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, operation: ObjectOperation, key: &str, kind: ObjectErrorKind, problem: &str) -> ObjectError {
        let (store, key, problem) = (self.name().to_owned(), key.to_owned(), problem.to_owned());
        ObjectError { store, operation, key, kind, problem }
    }
}

impl ObjectStore for OverlayObjects {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        if !self.changed().contains_key(key) {
            match self.below.get_range(key, 0..bytes.len() as u64 + 1) {
                Ok(found) if found == bytes => return Ok(()),
                Ok(_) => return Err(self.error(ObjectOperation::Put, key, ObjectErrorKind::Taken, TAKEN)),
                Err(error) if !error.is_absent() => return Err(error),
                Err(_) => {}
            }
        }
        self.changed().insert(key.to_owned(), true);
        Ok(())
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        let (kind, problem) = match self.changed().get(key) {
            None => return self.below.get_range(key, range),
            Some(true) => (ObjectErrorKind::Other, "the bytes of a new object are not kept in a dry run"),
            Some(false) => (ObjectErrorKind::Absent, ABSENT),
        };
        Err(self.error(ObjectOperation::Get, key, kind, problem))
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.changed().insert(key.to_owned(), false);
        Ok(())
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        let mut all: BTreeMap<String, bool> = self.below.list(under)?.into_iter().map(|key| (key, true)).collect();
        let is_under = |key: &String| key.strip_prefix(under).is_some_and(|rest| rest.starts_with('/'));
        let changed = self.changed();
        all.extend(changed.iter().filter(|(key, _)| is_under(key)).map(|(key, &exists)| (key.clone(), exists)));
        Ok(all.into_iter().filter(|(_, exists)| *exists).map(|(key, _)| key).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultObjects, MemoryObjects};

    #[test]
    fn the_store_below_never_changes() {
        let below = Arc::new(FaultObjects::new(MemoryObjects::default()));
        below.put("g/1", b"first").unwrap();
        below.put("g/2", b"second").unwrap();
        let calls = below.calls().len();
        let store = OverlayObjects::new(below.clone());
        store.put("g/3", b"third").unwrap();
        assert_eq!(store.put("g/1", b"other").unwrap_err().kind, ObjectErrorKind::Taken);
        store.put("g/1", b"first").unwrap();
        store.delete("g/2").unwrap();
        assert_eq!(store.list("g").unwrap(), ["g/1", "g/3"]);
        assert!(store.list("h").unwrap().is_empty());
        assert!(store.get_range("g/2", 0..6).unwrap_err().is_absent());
        assert_eq!(store.get_range("g/1", 1..3).unwrap(), b"ir");
        // A reader must not take a new object for a missing one.
        assert!(!store.get_range("g/3", 0..9).unwrap_err().is_absent());
        store.put("g/2", b"again").unwrap();
        assert_eq!(store.list("g").unwrap(), ["g/1", "g/2", "g/3"]);
        assert_eq!(below.list("g").unwrap(), ["g/1", "g/2"]);
        assert_eq!(below.calls().len(), calls);
    }
}
