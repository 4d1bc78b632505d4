//! The content hash: of what a volume holds, not of how it is stored.

use crate::format::{Entry, HASH_BYTES};

/// Hash of a volume from those of its chunks that are not zero: BLAKE3 of `senesce-image content 1`, the volume's size,
/// and for each such chunk, in order, its number and its BLAKE3. Equal volumes have equal hashes, whatever the
/// compression, and a volume of zeros costs nothing.
pub(crate) fn compute_content_hash<'a>(
    volume_bytes: u64,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"senesce-image content 1");
    hasher.update(&volume_bytes.to_le_bytes());
    for entry in entries {
        hasher.update(&entry.chunk.to_le_bytes());
        hasher.update(&entry.hash);
    }
    *hasher.finalize().as_bytes()
}

/// As it is printed.
pub(crate) fn to_hex(hash: &[u8; HASH_BYTES]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}
