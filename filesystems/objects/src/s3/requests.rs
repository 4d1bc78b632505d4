//! The requests to a store: put, get of a range, delete, list, and the errors in its replies.
//!
//! The `object_store` library sends them in the S3 protocol, or does the same on a directory.

use std::{error::Error, ops::Range};

use object_store::{
    GetOptions, ObjectStoreExt, PutMode, PutOptions,
    client::{HttpError, HttpErrorKind},
    path::Path,
};

use crate::{
    LibraryObjects, ObjectErrorKind, ObjectOperation, ObjectResult, ObjectStore,
    error::{ABSENT, TAKEN},
};

/// The most characters of a store's message that are kept.
const MOST_CHARACTERS: usize = 400;

/// The status and the body of the reply in an error; the library has them only in its text.
fn answer(told: &str) -> Option<(&str, &str)> {
    match told.split_once("Server returned non-2xx status code: ") {
        Some((_, answer)) => Some(answer.split_once(": ").unwrap_or((answer, ""))),
        None => Some(("200 OK", told.split_once("Server returned error response: ")?.1)),
    }
}

/// The text of an element in the XML reply of a cloud.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    Some(body.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0)
}

/// Whether there was no reply.
fn is_silent(error: &object_store::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            let kind = error.kind();
            return matches!(kind, HttpErrorKind::Connect | HttpErrorKind::Timeout | HttpErrorKind::Interrupted);
        }
        cause = error.source();
    }
    false
}

/// The kind of an error, and the store's message. Of the reply it keeps only the parts for people,
/// because the rest may contain secrets, such as the token of a session.
pub(crate) fn explain(error: &object_store::Error) -> (ObjectErrorKind, String) {
    let told = error.to_string();
    let found = answer(&told);
    let code = found.and_then(|(_, body)| element(body, "Code"));
    let (kind, problem) = match (error, found) {
        _ if code == Some("NoSuchBucket") => (ObjectErrorKind::Other, "there is no such bucket".to_owned()),
        (object_store::Error::NotFound { .. }, _) => (ObjectErrorKind::Absent, ABSENT.to_owned()),
        (object_store::Error::AlreadyExists { .. }, _) => (ObjectErrorKind::Taken, TAKEN.to_owned()),
        (_, Some((status, body))) => {
            let why = code.map(|code| format!("{code}: {}", element(body, "Message").unwrap_or_default()));
            let why = why.unwrap_or_else(|| "it does not say why".to_owned());
            // Waiting does not help if a store does not implement a request.
            let is_away = status.starts_with('5') && !status.starts_with("501");
            let kind = if is_away { ObjectErrorKind::Away } else { ObjectErrorKind::Other };
            let is_locked = status.starts_with("401") || status.starts_with("403");
            let problem = if is_locked { "it does not let us in".to_owned() } else { format!("it answers {status}") };
            (kind, format!("{problem}: {why}"))
        }
        (_, None) if is_silent(error) => (ObjectErrorKind::Away, told),
        (_, None) => (ObjectErrorKind::Other, told),
    };
    (kind, problem.chars().take(MOST_CHARACTERS).collect())
}

/// Whether a range was refused because it starts after the end of the object.
fn is_behind_the_end(error: &object_store::Error) -> bool {
    let told = error.to_string();
    told.contains("416 Range Not Satisfiable") || told.contains("Requested range was invalid")
}

impl ObjectStore for LibraryObjects {
    fn name(&self) -> &str {
        &self.name
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        let path = Path::from(key);
        let put = async {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.store.put_opts(&path, bytes.to_vec().into(), options).await {
                // Put by an earlier try whose reply was lost, or by another client.
                Err(taken @ object_store::Error::AlreadyExists { .. }) => {
                    let there = self.store.get(&path).await?.bytes().await?;
                    if there == bytes { Ok(()) } else { Err(taken) }
                }
                done => done.map(drop),
            }
        };
        self.wait(ObjectOperation::Put, key, put)
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        let path = Path::from(key);
        let read = async {
            if range.is_empty() {
                return self.store.head(&path).await.map(|_| Vec::new());
            }
            let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
            match self.store.get_opts(&path, options).await {
                Ok(found) => Ok(found.bytes().await?.to_vec()),
                Err(error) if is_behind_the_end(&error) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        };
        self.wait(ObjectOperation::Get, key, read)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        let path = Path::from(key);
        let deleted = async {
            match self.store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                done => done,
            }
        };
        self.wait(ObjectOperation::Delete, key, deleted)
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        let path = Path::from(under);
        let listed =
            self.wait(ObjectOperation::List, under, async { self.store.list_with_delimiter(Some(&path)).await })?;
        let mut keys: Vec<String> = listed.objects.into_iter().map(|object| object.location.to_string()).collect();
        keys.sort();
        Ok(keys)
    }
}
