//! Objects in memory.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult, ObjectStore,
    error::{ABSENT, TAKEN},
};

type Objects = BTreeMap<String, Arc<[u8]>>;

/// Objects in memory. A [fork](Self::fork) copies no bytes.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    objects: Mutex<Objects>,
}

impl MemoryObjects {
    /// An independent store with the same objects.
    pub fn fork(&self) -> Self {
        Self { objects: Mutex::new(self.lock().clone()) }
    }

    /// Replaces an object, which clients of a store cannot do.
    pub fn damage(&self, key: &str, bytes: &[u8]) {
        self.lock().insert(key.to_owned(), Arc::from(bytes));
    }

    /// The bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.lock().values().map(|object| object.len() as u64).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObjectStore for MemoryObjects {
    fn name(&self) -> &str {
        "objects in memory"
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        match self.lock().entry(key.to_owned()).or_insert_with(|| Arc::from(bytes)) {
            there if there[..] == *bytes => Ok(()),
            _ => Err(ObjectError {
                store: self.name().to_owned(),
                operation: ObjectOperation::Put,
                key: key.to_owned(),
                kind: ObjectErrorKind::Taken,
                problem: TAKEN.to_owned(),
            }),
        }
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        let objects = self.lock();
        let object = objects.get(key).ok_or_else(|| ObjectError {
            store: self.name().to_owned(),
            operation: ObjectOperation::Get,
            key: key.to_owned(),
            kind: ObjectErrorKind::Absent,
            problem: ABSENT.to_owned(),
        })?;
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(object.len());
        Ok(object[at(range.start)..at(range.end).max(at(range.start))].to_vec())
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.lock().remove(key);
        Ok(())
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        let is_under = |key: &&String| key.strip_prefix(under).is_some_and(|rest| rest.starts_with('/'));
        Ok(self.lock().keys().filter(is_under).cloned().collect())
    }
}
