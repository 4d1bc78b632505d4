//! Printable bytes without newlines, derived from a seed. The content is one long line, so that a
//! search reads all of it.

use std::sync::Arc;

use senesce_oplog::{Content, ContentError, ContentSource, Payload, seeded_bytes};

/// The first word of the keys of these contents.
pub const PRINTABLE: &str = "printable";

/// The content of `len` printable bytes that derives from `seed`.
pub fn printable_content(seed: u64, len: u64) -> Content {
    Content::derived(format!("{PRINTABLE} {seed:016x} {len}"))
}

/// Produces the contents of [`printable_content`]; any other key is an error.
///
/// A byte is `32 + floor(95 r / 256)` of a seeded byte *r*. The result covers all printable
/// characters of ASCII, space and tilde included. Each character has the probability 2/256 or
/// 3/256.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintableContents;

impl ContentSource for PrintableContents {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        let error = || ContentError {
            key: key.to_owned(),
            problem: "it is not of the form \"printable SEED LENGTH\"".into(),
            source: None,
        };
        let mut words = key.split(' ');
        let (name, seed, len) = (words.next(), words.next(), words.next());
        let seed = seed.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or_else(error)?;
        let len: usize = len.and_then(|text| text.parse().ok()).ok_or_else(error)?;
        if name != Some(PRINTABLE) || words.next().is_some() {
            return Err(error());
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        let out = Arc::get_mut(&mut bytes).ok_or_else(error)?;
        seeded_bytes(seed, 0, out);
        for byte in out {
            *byte = 32 + ((u16::from(*byte) * 95) >> 8) as u8;
        }
        Ok(Payload::Bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u64, len: u64) -> Arc<[u8]> {
        match printable_content(seed, len).payload(&PrintableContents).unwrap() {
            Payload::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_printable_characters_occur() {
        let mut seen = [0u64; 256];
        bytes(3, 100_000).iter().for_each(|&byte| seen[usize::from(byte)] += 1);
        for (byte, &count) in seen.iter().enumerate() {
            assert_eq!(count > 0, (32..=126).contains(&byte), "byte {byte} occurs {count} times");
        }
    }

    #[test]
    fn contents_of_a_seed_never_change() {
        assert_eq!(&*bytes(7, 12), GOLDEN);
        assert_eq!(&bytes(7, 5_000)[..12], GOLDEN);
    }
    const GOLDEN: &[u8] = b"\\PGaJC*rs\\L7";

    #[test]
    fn invalid_keys_are_refused() {
        for key in ["", "printable", "printable x 7", "printable 1", "printable 1 2 3", "blob 1 2"] {
            assert!(PrintableContents.payload(key).is_err(), "{key:?}");
        }
    }
}
