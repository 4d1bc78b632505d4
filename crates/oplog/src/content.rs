//! Contents of writes: inline bytes, bytes generated from a seed, or bytes that a source can make
//! again.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

/// The content of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes themselves, for small contents such as a ref.
    Inline(Arc<[u8]>),
    /// `len` bytes generated from `seed` ([`seeded_bytes`](crate::seeded_bytes)): incompressible,
    /// and different for different seeds.
    Seeded {
        /// The seed of the bytes.
        seed: u64,
        /// Length, bytes.
        len: u64,
    },
    /// Bytes that a [`ContentSource`] makes from a key, for example a git blob.
    Derived(Arc<Derived>),
}

impl Content {
    /// Content that a source makes from `key`.
    pub fn derived(key: impl Into<String>) -> Self {
        Self::Derived(Arc::new(Derived { key: key.into(), payload: OnceLock::new(), hash: OnceLock::new() }))
    }

    /// Returns the bytes to write. The first call asks `source`; the result is kept until the
    /// content is dropped.
    pub fn payload(&self, source: &dyn ContentSource) -> Result<Payload, ContentError> {
        Ok(match self {
            Self::Inline(bytes) => Payload::Bytes(bytes.clone()),
            Self::Seeded { seed, len } => Payload::Seeded { seed: *seed, len: *len },
            Self::Derived(derived) => match derived.payload.get() {
                Some(payload) => payload.clone(),
                None => {
                    let payload = source.payload(&derived.key)?;
                    derived.payload.get_or_init(|| payload).clone()
                }
            },
        })
    }
}

/// A key, and the payload that a source made from it, possibly in advance in another thread.
#[derive(Debug)]
pub struct Derived {
    /// The request in the source's own format, printable ASCII.
    pub key: String,
    payload: OnceLock<Payload>,
    hash: OnceLock<u64>,
}

impl Derived {
    /// The payload, if a source has already made it.
    pub fn resolved(&self) -> Option<&Payload> {
        self.payload.get()
    }

    /// The XXH3-64 of the bytes, if it has been computed.
    pub fn hash(&self) -> Option<u64> {
        self.hash.get().copied()
    }

    /// Keeps the XXH3-64 of the bytes, so that copies that share a content hash it once.
    pub fn remember_hash(&self, hash: u64) {
        // A second computation gives the same value, so a lost race has no effect.
        let _ = self.hash.set(hash);
    }
}

impl PartialEq for Derived {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Derived {}

/// Bytes ready to be written.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// Too large for memory: a file outside the tested volume that holds exactly these bytes.
    File {
        /// The file.
        path: PathBuf,
        /// Length, bytes.
        len: u64,
    },
    /// Generated while it is written.
    Seeded {
        /// The seed of the bytes.
        seed: u64,
        /// Length, bytes.
        len: u64,
    },
}

impl Payload {
    /// Length, bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } | Self::Seeded { len, .. } => *len,
        }
    }

    /// Returns the first `len` bytes, or all if it is shorter. Cost: copies bytes that are in
    /// memory.
    pub fn beginning(&self, len: u64) -> Self {
        let len = len.min(self.len());
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes[..len as usize].into()),
            Self::File { path, .. } => Self::File { path: path.clone(), len },
            Self::Seeded { seed, .. } => Self::Seeded { seed: *seed, len },
        }
    }

    /// Bytes held in memory.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { .. } | Self::Seeded { .. } => 0,
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Makes the bytes of [`Content::Derived`]. It is called from several threads.
pub trait ContentSource: Send + Sync {
    /// Returns the bytes for `key`, always the same for the same key.
    fn payload(&self, key: &str) -> Result<Payload, ContentError>;

    /// Returns bytes and XXH3-64 of a content of any kind, once, if they were made in advance.
    /// Default: `None`.
    fn ready(&self, _content: &Content) -> Option<(Payload, u64)> {
        None
    }
}

/// A content could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make content {key:?}: {problem}")]
pub struct ContentError {
    /// The key.
    pub key: String,
    /// What went wrong, as text.
    pub problem: String,
    /// The cause, if another library reported one.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A source for workloads without derived contents: every key is an error.
impl ContentSource for () {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        Err(ContentError { key: key.to_owned(), problem: "this workload has no content source".into(), source: None })
    }
}
