//! The bytes of a container, version 1: header, frames, index, end. All numbers are little-endian.
//!
//! This module does no I/O: `container` reads files and `save` writes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The first bytes of a container.
pub(crate) const MAGIC: [u8; 8] = *b"SNSC-IMG";
/// The last bytes of a container.
pub(crate) const END_MAGIC: [u8; 8] = *b"GMI-CSNS";
/// The version that is written.
pub const VERSION: u32 = 1;
/// The format name in the header.
pub const FORMAT: &str = "senesce-image/1";
/// Bytes of the volume in a chunk.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Magic, version and length of the header's text.
pub(crate) const PRELUDE_BYTES: usize = 16;
/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 32;
/// Bytes of one chunk in the index.
pub(crate) const ENTRY_BYTES: usize = 8 + 8 + 4 + HASH_BYTES;
/// Position and length of the index, its hash, the content hash, magic.
pub(crate) const END_BYTES: usize = 8 + 8 + HASH_BYTES + HASH_BYTES + 8;
/// The largest header, bytes.
pub(crate) const MAX_HEADER_BYTES: u32 = 16 << 20;

/// The caller's description of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The kernel's name of the file system; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// How, on what and when it was aged: names and values in free form.
    pub circumstances: BTreeMap<String, String>,
}

/// The header of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: String,
    /// Version of the program that wrote it.
    pub senesce: String,
    pub volume_bytes: u64,
    pub chunk_bytes: u64,
    #[serde(flatten)]
    pub description: Description,
}

/// One stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number of the chunk in the volume.
    pub chunk: u64,
    /// The position of its frame in the container.
    pub at_byte: u64,
    /// Length of the frame.
    pub stored_bytes: u32,
    /// BLAKE3 of the chunk's bytes.
    pub hash: [u8; HASH_BYTES],
}

impl Entry {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.chunk.to_le_bytes());
        out.extend(self.at_byte.to_le_bytes());
        out.extend(self.stored_bytes.to_le_bytes());
        out.extend(self.hash);
    }

    pub fn read(bytes: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            chunk: number(bytes, 0),
            at_byte: number(bytes, 8),
            stored_bytes: u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes")),
            hash: bytes[20..].try_into().expect("the rest is a hash"),
        }
    }
}

/// The end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub index_at_byte: u64,
    pub index_bytes: u64,
    pub index_hash: [u8; HASH_BYTES],
    pub content_hash: [u8; HASH_BYTES],
}

impl End {
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(END_BYTES);
        out.extend(self.index_at_byte.to_le_bytes());
        out.extend(self.index_bytes.to_le_bytes());
        out.extend(self.index_hash);
        out.extend(self.content_hash);
        out.extend(END_MAGIC);
        out
    }

    /// Parses the end of a container. `None` if the magic is missing.
    pub fn read(bytes: &[u8; END_BYTES]) -> Option<Self> {
        let hash = |at: usize| bytes[at..at + HASH_BYTES].try_into().expect("a hash");
        (bytes[END_BYTES - 8..] == END_MAGIC).then(|| Self {
            index_at_byte: number(bytes, 0),
            index_bytes: number(bytes, 8),
            index_hash: hash(16),
            content_hash: hash(16 + HASH_BYTES),
        })
    }
}

/// The number in eight bytes.
fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The complete header: magic, version, length, JSON, and the BLAKE3 of those.
pub(crate) fn render_header(header: &Header) -> Vec<u8> {
    let text = serde_json::to_vec(header).expect("strings and numbers always have a text");
    let mut out = Vec::with_capacity(PRELUDE_BYTES + text.len() + HASH_BYTES);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text);
    let hash = blake3::hash(&out);
    out.extend(hash.as_bytes());
    out
}
