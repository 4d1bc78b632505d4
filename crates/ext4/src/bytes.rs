//! Little-endian numbers in blocks. Bytes after the end are zero, so that no length can cause a
//! panic. Callers check lengths if a zero would have a meaning.

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&chunk| u16::from_le_bytes(chunk))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&chunk| u32::from_le_bytes(chunk))
}

/// A number from its two halves.
pub(crate) fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
