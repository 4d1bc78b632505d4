//! Stores that implement the S3 protocol: the access to a bucket. `requests` has the requests.

mod http;
mod requests;

use std::{fmt, time::Duration};

use object_store::{
    BackoffConfig, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    list::{PaginatedListOptions, PaginatedListStore},
    path::Path,
    prefix::PrefixStore,
};

use crate::{LibraryObjects, ObjectError, ObjectOperation, ObjectResult};
use http::Http;
pub(crate) use requests::explain;

/// The place of objects: a bucket, and a common prefix of all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Place {
    /// The bucket's name.
    pub bucket: String,
    /// The prefix of all keys; may be empty.
    pub prefix: String,
}

impl fmt::Display for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// The endpoint, the region and the credentials.
#[derive(Clone)]
pub struct S3Access {
    /// The URL of the store; `None` for Amazon S3.
    pub endpoint: Option<String>,
    /// The region; most other stores ignore it.
    pub region: String,
    /// The id of the access key.
    pub key_id: String,
    /// The secret of the access key.
    pub secret: String,
    /// The session token of temporary credentials.
    pub token: Option<String>,
}

/// How long to wait for a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For a request with its answer.
    pub request: Duration,
    /// For a request that sends an object.
    pub put: Duration,
    /// How often to repeat a request after a transient failure, at intervals that double.
    pub retries: usize,
    /// After this time no repetition starts.
    pub in_all: Duration,
}

impl Default for Patience {
    /// An object of 4 MiB has half a minute to be sent. A read waits for less than half a minute.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            request: Duration::from_secs(10),
            put: Duration::from_secs(30),
            retries: 3,
            in_all: Duration::from_secs(15),
        }
    }
}

impl LibraryObjects {
    /// Objects in an existing bucket. A list of one object detects errors of the access at once. A
    /// `put` is durable when the store confirms it.
    ///
    /// Errors: the store cannot be reached, has no such bucket, or refuses access. Cost: a small
    /// request.
    pub fn s3(place: &S3Place, access: &S3Access, patience: Patience) -> ObjectResult<Self> {
        let name = place.to_string();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&place.bucket)
            .with_region(&access.region)
            .with_access_key_id(&access.key_id)
            .with_secret_access_key(&access.secret)
            .with_disable_bulk_delete(true) // stores need not implement bulk deletion
            .with_http_connector(Http::new(patience.connect, patience.request, patience.put))
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: patience.retries,
                retry_timeout: patience.in_all,
            });
        if let Some(endpoint) = &access.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(true);
        }
        if let Some(token) = &access.token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| ObjectError::cannot_open(&name, &error))?;
        let prefix = Path::from(place.prefix.as_str());
        let objects = Self::over(name, Box::new(PrefixStore::new(store.clone(), prefix.clone())))?;
        objects.knock(&store, &prefix)?;
        Ok(objects)
    }

    /// Sends one list request, whose answer may be empty. Its errors are reported as errors of
    /// opening.
    fn knock(&self, store: &AmazonS3, prefix: &Path) -> ObjectResult<()> {
        let under = if prefix.as_ref().is_empty() { String::new() } else { format!("{prefix}/") };
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        self.wait(ObjectOperation::Open, "", store.list_paginated(Some(&under), options)).map(drop)
    }
}
