//! A store with injected failures that counts its calls.

use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult, ObjectStore};

/// Counts of the calls of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// Objects put.
    pub puts: u64,
    /// Ranges read.
    pub gets: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Lists.
    pub lists: u64,
}

impl ObjectCounts {
    /// The sum of all calls.
    pub fn all(&self) -> u64 {
        self.puts + self.gets + self.deletes + self.lists
    }
}

/// A call that changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectCall {
    /// The object that was put.
    Put(String, Arc<[u8]>),
    /// The key that was deleted.
    Delete(String),
}

#[derive(Debug, Default)]
struct State {
    counts: ObjectCounts,
    /// The first failing call and the first one after the failures, by number.
    fails: Option<(u64, u64)>,
    calls: Vec<ObjectCall>,
}

/// Another store with injected failures. It counts calls, and lists those that changed something.
#[derive(Debug)]
pub struct FaultObjects<S> {
    inner: S,
    state: Mutex<State>,
}

impl<S: ObjectStore> FaultObjects<S> {
    /// A store without failures over `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// The counts of all calls, including failed ones.
    pub fn counts(&self) -> ObjectCounts {
        self.lock().counts
    }

    /// After `good` more calls, the next `calls` calls fail.
    pub fn fail_after(&self, good: u64, calls: u64) {
        let mut state = self.lock();
        let first = state.counts.all() + good;
        state.fails = Some((first, first.saturating_add(calls)));
    }

    /// Ends the failures.
    pub fn heal(&self) {
        self.lock().fails = None;
    }

    /// The calls that changed something, in order.
    pub fn calls(&self) -> Vec<ObjectCall> {
        self.lock().calls.clone()
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, operation: ObjectOperation, key: &str, count: impl Fn(&mut ObjectCounts)) -> ObjectResult<()> {
        let mut state = self.lock();
        let number = state.counts.all();
        count(&mut state.counts);
        match state.fails {
            Some((first, end)) if (first..end).contains(&number) => Err(ObjectError {
                store: self.inner.name().to_owned(),
                operation,
                key: key.to_owned(),
                kind: ObjectErrorKind::Away,
                problem: format!("call {number} is to fail"),
            }),
            _ => Ok(()),
        }
    }
}

impl<S: ObjectStore> ObjectStore for FaultObjects<S> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.note(ObjectOperation::Put, key, |counts| counts.puts += 1)?;
        self.inner.put(key, bytes)?;
        self.lock().calls.push(ObjectCall::Put(key.to_owned(), Arc::from(bytes)));
        Ok(())
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        self.note(ObjectOperation::Get, key, |counts| counts.gets += 1)?;
        self.inner.get_range(key, range)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.note(ObjectOperation::Delete, key, |counts| counts.deletes += 1)?;
        self.inner.delete(key)?;
        self.lock().calls.push(ObjectCall::Delete(key.to_owned()));
        Ok(())
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.note(ObjectOperation::List, under, |counts| counts.lists += 1)?;
        self.inner.list(under)
    }
}
