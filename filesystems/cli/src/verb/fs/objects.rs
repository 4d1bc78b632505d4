//! Stores of objects that a command names.

use std::{
    collections::BTreeSet,
    env,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use senesce_experiment::ErrorKind;
use senesce_objects::{
    AZURE_HOT, LibraryObjects, ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult, ObjectStore, Patience,
    PriceList, S3_STANDARD, S3Access,
};

use crate::{
    args::{FsObjectsArgs, ObjectsPlace, PricesArg},
    exit::{Failure, usage},
};

impl PricesArg {
    pub fn list(self) -> PriceList {
        match self {
            Self::S3 => S3_STANDARD,
            Self::Azure => AZURE_HOT,
        }
    }
}

impl FsObjectsArgs {
    /// The store that is named, if any.
    pub fn open(&self) -> Result<Option<Arc<dyn ObjectStore>>> {
        self.objects.as_ref().map(|place| open_objects(place, false)).transpose()
    }

    /// The same, that says on stderr when it is away, and when it is back.
    pub fn open_telling(&self) -> Result<Option<Arc<dyn ObjectStore>>> {
        let telling = |inner| -> Arc<dyn ObjectStore> { Arc::new(Telling::new(inner)) };
        Ok(self.open()?.map(telling))
    }
}

/// The store of objects at a place. Errors: a new directory, unless it `may_be_new`; no key of a
/// bucket; a store that cannot be used.
pub fn open_objects(place: &ObjectsPlace, may_be_new: bool) -> Result<Arc<dyn ObjectStore>> {
    match place {
        ObjectsPlace::Directory(dir) if !may_be_new && !dir.is_dir() => Err(usage(
            format!("there is no directory {} with objects", dir.display()),
            Some("name the store that `fs tier` used, or leave --objects out to continue without cold blocks"),
        )),
        ObjectsPlace::Directory(dir) => Ok(Arc::new(LibraryObjects::directory(dir)?)),
        ObjectsPlace::S3(bucket) => {
            let access = access(place)?;
            Ok(Arc::new(LibraryObjects::s3(bucket, &access, Patience::default())?))
        }
    }
}

const NAMES: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are the key of the store, AWS_ENDPOINT_URL its URL if it is not \
                     Amazon's";

/// Who speaks to a store, and where it is, as the environment says.
fn access(place: &ObjectsPlace) -> Result<S3Access> {
    let told = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let one_of = |names: [&str; 2]| names.into_iter().find_map(told);
    let needed = |name: &str| {
        told(name).ok_or_else(|| Failure {
            kind: ErrorKind::Environment,
            message: format!("cannot open {place}: {name} is not set"),
            hint: Some(NAMES.to_owned()),
        })
    };
    Ok(S3Access {
        endpoint: one_of(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
        region: one_of(["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".to_owned()),
        key_id: needed("AWS_ACCESS_KEY_ID")?,
        secret: needed("AWS_SECRET_ACCESS_KEY")?,
        token: told("AWS_SESSION_TOKEN"),
    })
}

/// A store that is away is asked again after this time, by one call that reads; others fail at
/// once, so that not all who serve wait for it.
const AGAIN: Duration = Duration::from_secs(1);
/// The shortest interval between reports of other failures.
const TOLD: Duration = Duration::from_secs(60);

/// A store that reports on stderr when it is away, and when it is back: a reader learns no more
/// than of an I/O error.
struct Telling {
    inner: Arc<dyn ObjectStore>,
    away: Mutex<Option<Away>>,
    /// Missing objects that were reported.
    absent: Mutex<BTreeSet<String>>,
    /// When another failure was reported.
    told: Mutex<Option<Instant>>,
}

/// Since some call that reads had no answer.
struct Away {
    problem: String,
    /// When it may be asked again; `None` while a thread does.
    again: Option<Instant>,
}

impl Telling {
    fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, away: Mutex::default(), absent: Mutex::default(), told: Mutex::default() }
    }

    /// Only reading says whether it is away: who may not put or delete may still read.
    fn ask<T>(&self, operation: ObjectOperation, key: &str, call: impl FnOnce() -> ObjectResult<T>) -> ObjectResult<T> {
        let reads = operation == ObjectOperation::Get;
        if let Some(away) = &mut *lock(&self.away) {
            if away.again.is_none_or(|again| Instant::now() < again) {
                let (store, key, problem) = (self.name().to_owned(), key.to_owned(), away.problem.clone());
                return Err(ObjectError { store, operation, key, kind: ObjectErrorKind::Away, problem });
            }
            if reads {
                away.again = None;
            }
        }
        let done = call();
        if let Err(error) = &done
            && reads
            && error.kind == ObjectErrorKind::Away
        {
            let away = Away { problem: error.problem.clone(), again: Some(Instant::now() + AGAIN) };
            if lock(&self.away).replace(away).is_none() {
                eprintln!("senesce: {error}; cold blocks cannot be read until the store answers again");
            }
            return done;
        }
        // It answers, if nothing good: so it is not away for those who read.
        if (reads || done.is_ok()) && lock(&self.away).take().is_some() {
            eprintln!("senesce: the objects in {} can be read again", self.name());
        }
        if let Err(error) = &done {
            let is_new = match error.kind {
                ObjectErrorKind::Absent => lock(&self.absent).insert(error.key.clone()),
                _ => {
                    let (now, mut told) = (Instant::now(), lock(&self.told));
                    let is_due = told.is_none_or(|told| now >= told + TOLD);
                    *told = if is_due { Some(now) } else { *told };
                    is_due
                }
            };
            if is_new {
                eprintln!("senesce: {error}");
            }
        }
        done
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectStore for Telling {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        self.ask(ObjectOperation::Put, key, || self.inner.put(key, bytes))
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        self.ask(ObjectOperation::Get, key, || self.inner.get_range(key, range))
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        self.ask(ObjectOperation::Delete, key, || self.inner.delete(key))
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        self.ask(ObjectOperation::List, under, || self.inner.list(under))
    }
}

#[cfg(test)]
mod tests {
    use senesce_objects::{FaultObjects, MemoryObjects};

    use super::*;

    #[test]
    fn a_store_that_is_away_is_asked_by_one_call_in_a_while() {
        let store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let telling = Telling::new(store.clone());
        telling.put("garden/1", b"first").unwrap();
        store.fail_after(0, u64::MAX);
        for _ in 0..1000 {
            assert!(!telling.get_range("garden/1", 0..5).unwrap_err().is_absent());
        }
        // However long that took, it was not asked each time.
        let asked = store.counts().gets;
        assert!((1..900).contains(&asked), "{asked}");
        store.heal();
        let found = std::iter::repeat_with(|| telling.get_range("garden/1", 0..5)).find_map(Result::ok);
        assert_eq!(found.as_deref(), Some(&b"first"[..]));
        // An object that is not there is no store that is away.
        assert!(telling.get_range("garden/2", 0..5).unwrap_err().is_absent());
        assert_eq!(telling.get_range("garden/1", 0..5).unwrap(), b"first");
    }

    #[test]
    fn what_cannot_be_put_or_deleted_keeps_nobody_from_reading() {
        let store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let telling = Telling::new(store.clone());
        telling.put("garden/1", b"first").unwrap();
        store.fail_after(0, 3);
        telling.put("garden/2", b"second").unwrap_err();
        telling.delete("garden/1").unwrap_err();
        telling.list("garden").unwrap_err();
        assert_eq!(telling.get_range("garden/1", 0..5).unwrap(), b"first");
        // Nor does an answer that is no good.
        assert_eq!(telling.put("garden/1", b"other").unwrap_err().kind, ObjectErrorKind::Taken);
        assert_eq!(telling.get_range("garden/1", 0..5).unwrap(), b"first");
    }
}
