//! Stores that speak the protocol of S3.

use std::{fmt, time::Duration};

use object_store::{
    BackoffConfig, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    list::{PaginatedListOptions, PaginatedListStore},
    path::Path,
    prefix::PrefixStore,
};

use crate::{LibraryObjects, ObjectError, ObjectOperation, ObjectResult, http::Http};

/// Where objects lie: in a bucket, with keys that all begin the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Place {
    /// The bucket's name.
    pub bucket: String,
    /// What stands before all keys; may be empty.
    pub prefix: String,
}

impl fmt::Display for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

/// Who speaks to it, and which one.
#[derive(Clone)]
pub struct S3Access {
    /// The URL of the store; `None` for Amazon's own.
    pub endpoint: Option<String>,
    /// Amazon's region; others mostly do not mind.
    pub region: String,
    /// The name of the key.
    pub key_id: String,
    /// The key.
    pub secret: String,
    /// Of a key that is lent for some time.
    pub token: Option<String>,
}

/// How long a store is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For a request with the answer.
    pub request: Duration,
    /// For one that sends an object.
    pub put: Duration,
    /// How often a request that failed for a reason that may pass is made again, at intervals that double.
    pub retries: usize,
    /// After so long none is begun again.
    pub in_all: Duration,
}

impl Default for Patience {
    /// An object of 4 MiB has half a minute to be sent. Who reads waits for less than half a minute.
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
    /// Objects in a bucket, which is there. It is asked for the name of one object, to tell at once what cannot work. An object that was put is durable
    /// when the store says that it has it.
    ///
    /// Errors: the store cannot be reached, has no such bucket, or does not let us in. Cost: a small request.
    pub fn s3(place: &S3Place, access: &S3Access, patience: Patience) -> ObjectResult<Self> {
        let name = place.to_string();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&place.bucket)
            .with_region(&access.region)
            .with_access_key_id(&access.key_id)
            .with_secret_access_key(&access.secret)
            .with_disable_bulk_delete(true) // objects go one by one, as everybody who speaks the protocol has it
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

    /// Asks for an answer, which may be that there is nothing: errors of a store that cannot be used are those of opening it.
    fn knock(&self, store: &AmazonS3, prefix: &Path) -> ObjectResult<()> {
        let under = if prefix.as_ref().is_empty() { String::new() } else { format!("{prefix}/") };
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        self.wait(ObjectOperation::Open, "", store.list_paginated(Some(&under), options)).map(drop)
    }
}
