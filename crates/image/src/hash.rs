//! The content hash: of the contents of a volume, not of their storage.

use crate::format::{Entry, HASH_BYTES};

/// The hash of a volume from the hashes of its chunks that are not zero: BLAKE3 of `senesce-image
/// content 1`, the size of the volume, and for each such chunk, in order, its number and its
/// BLAKE3. Equal volumes have equal hashes, whatever the compression. A volume of zeros costs
/// nothing.
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

/// The printed form of a hash.
pub(crate) fn to_hex(hash: &[u8; HASH_BYTES]) -> String {
    blake3::Hash::from_bytes(*hash).to_hex().to_string()
}
