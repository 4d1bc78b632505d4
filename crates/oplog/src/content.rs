//! What is written into files: a few bytes at hand, bytes grown from a seed, or bytes that a source can make again.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

/// The content of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes themselves; for small things such as a ref.
    Inline(Arc<[u8]>),
    /// `len` bytes grown from `seed` ([`seeded_bytes`](crate::seeded_bytes)): incompressible, never equal by chance.
    Seeded {
        /// The seed of the bytes.
        seed: u64,
        /// How many bytes.
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

    /// The bytes to write, asking `source` if nobody has yet; the answer is kept until the content is dropped.
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

/// A key, and what a source made of it once it was asked (possibly ahead of time, by another thread).
#[derive(Debug)]
pub struct Derived {
    /// What to make, in the words of the source; printable ASCII.
    pub key: String,
    payload: OnceLock<Payload>,
    hash: OnceLock<u64>,
}

impl Derived {
    /// The bytes, if a source was already asked for them and they are kept.
    pub fn resolved(&self) -> Option<&Payload> {
        self.payload.get()
    }

    /// The XXH3-64 of the bytes, if somebody has computed it.
    pub fn hash(&self) -> Option<u64> {
        self.hash.get().copied()
    }

    /// Keeps the XXH3-64 of the bytes, so that several copies hash a shared content once.
    pub fn remember_hash(&self, hash: u64) {
        // A second computation of the same bytes gives the same value, so losing the race loses nothing.
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
    /// Too large for memory: a file, off the tested volume, that holds exactly these bytes.
    File {
        /// Where it lies.
        path: PathBuf,
        /// Its length, bytes.
        len: u64,
    },
    /// To be grown while writing.
    Seeded {
        /// The seed of the bytes.
        seed: u64,
        /// How many bytes.
        len: u64,
    },
}

impl Payload {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } | Self::Seeded { len, .. } => *len,
        }
    }

    /// The first `len` bytes of it; all of it if it is shorter. Cost: copies what is in memory.
    pub fn beginning(&self, len: u64) -> Self {
        let len = len.min(self.len());
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes[..len as usize].into()),
            Self::File { path, .. } => Self::File { path: path.clone(), len },
            Self::Seeded { seed, .. } => Self::Seeded { seed: *seed, len },
        }
    }

    /// Bytes of it that are held in memory.
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

/// Makes the bytes of [`Content::Derived`]; called from several threads.
pub trait ContentSource: Send + Sync {
    /// The bytes that `key` stands for; the same for the same key, always.
    fn payload(&self, key: &str) -> Result<Payload, ContentError>;

    /// Bytes and XXH3-64 of a content of any kind, if they were made ahead; given once. A source that makes nothing
    /// ahead has none.
    fn ready(&self, _content: &Content) -> Option<(Payload, u64)> {
        None
    }
}

/// A content could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make content {key:?}: {problem}")]
pub struct ContentError {
    /// The key that was asked for.
    pub key: String,
    /// What went wrong, for a reader.
    pub problem: String,
    /// The cause, if another library gave one.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A source for workloads that derive nothing: every key is an error.
impl ContentSource for () {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        Err(ContentError { key: key.to_owned(), problem: "this workload has no content source".into(), source: None })
    }
}
