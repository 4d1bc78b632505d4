//! Encodes keys without the prefix that they share with the key before.

use bytes::Bytes;

use crate::{
    MAX_KEY_BYTES,
    disk::{Decoded, Reader, push_number},
};

/// Appends a key: the number of bytes shared with `before`, the number of other bytes, and these.
pub(super) fn push_key(out: &mut Vec<u8>, before: &[u8], key: &[u8]) {
    let shared = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    push_number(out, shared as u64);
    push_number(out, (key.len() - shared) as u64);
    out.extend_from_slice(&key[shared..]);
}

/// Decodes a key that [`push_key`] encoded with the same `before`.
pub(super) fn read_key(reader: &mut Reader, field: &'static str, before: &[u8]) -> Decoded<Bytes> {
    let shared = reader.number(field, before.len() as u64)? as usize;
    let rest = reader.number(field, MAX_KEY_BYTES.saturating_sub(shared) as u64)? as usize;
    let rest = reader.take(field, rest)?;
    if shared == 0 {
        // Copied, so that the key does not keep the whole read buffer alive.
        return Ok(Bytes::copy_from_slice(&rest));
    }
    Ok([&before[..shared], &rest[..]].concat().into())
}

/// Like [`read_key`], but the key must be greater than `before`.
pub(super) fn read_next_key(reader: &mut Reader, field: &'static str, before: Option<&Bytes>) -> Decoded<Bytes> {
    let key = read_key(reader, field, before.map_or(b"", |before| &before[..]))?;
    match before {
        Some(before) if key <= *before => {
            Err(reader.damage(field, key.escape_ascii(), format!("more than {}", before.escape_ascii())))
        }
        _ => Ok(key),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_keys_round_trip(number: u64, rest: Vec<u8>, before: Vec<u8>, cut: prop::sample::Index) {
            let mut out = Vec::new();
            let key = [&before[..before.len() / 2], &rest[..]].concat();
            push_number(&mut out, number);
            push_key(&mut out, &before, &key);
            let read = |bytes: &[u8]| {
                let mut reader = Reader::new("test", Bytes::copy_from_slice(bytes));
                let both = (reader.number("number", u64::MAX)?, read_key(&mut reader, "key", &before)?);
                reader.end().map(|()| both)
            };
            prop_assert_eq!(read(&out), Ok((number, key.into())));
            prop_assert!(read(&out[..cut.index(out.len())]).is_err(), "a cut encoding is refused");
        }
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let reader = |bytes: &[u8]| Reader::new("test", Bytes::copy_from_slice(bytes));
        assert!(reader(&[0xff; 11]).number("number", u64::MAX).is_err());
        assert!(reader(&[5]).number("number", 4).is_err());
        assert!(read_key(&mut reader(&[3, 0]), "key", b"ab").is_err());
        assert!(read_next_key(&mut reader(&[1, 1, b'a']), "key", Some(&Bytes::from_static(b"ab"))).is_err());
    }
}
