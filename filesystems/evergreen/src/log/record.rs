//! The encoding of a batch as a record of the log: its claim, and its changes.

use bytes::Bytes;

use crate::{
    Batch, Change, Claim, MAX_KEY_BYTES, MAX_VALUE_BYTES, Message,
    disk::{Decoded, Reader, decode_message, encode_message, message_bytes, push_sized},
};

const STRUCTURE: &str = "log record";
const REMOVAL: u8 = 1;
const ONE: u8 = 1;
const RANGE: u8 = 2;
/// The bytes of a record before its changes, and of a length.
const HEAD: usize = 8 + 1 + 4;
const SIZE: usize = 2;

/// Encodes a batch.
#[cfg(test)]
pub fn encode_batch(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::with_capacity(record_bytes(batch));
    encode_batch_to(batch, &mut out);
    out
}

/// The number of bytes that [`encode_batch_to`] appends.
pub fn record_bytes(batch: &Batch) -> usize {
    let changes = batch.changes().iter().map(|change| match change {
        Change::One { key, message } => SIZE + key.len() + message_bytes(message),
        Change::DeleteRange { from, to } => 2 * SIZE + from.len() + to.len(),
    });
    HEAD + batch.changes().len() + changes.sum::<usize>()
}

/// Appends an encoded batch.
pub fn encode_batch_to(batch: &Batch, out: &mut Vec<u8>) {
    out.extend_from_slice(&batch.claim.bytes.to_le_bytes());
    out.push(if batch.claim.is_removal { REMOVAL } else { 0 });
    out.extend_from_slice(&(batch.changes().len() as u32).to_le_bytes());
    for change in batch.changes() {
        match change {
            Change::One { key, message } => {
                out.push(ONE);
                push_sized(out, key);
                encode_message(message, out);
            }
            Change::DeleteRange { from, to } => {
                out.push(RANGE);
                push_sized(out, from);
                push_sized(out, to);
            }
        }
    }
}

/// Decodes a batch; keys and values share the memory of `bytes`. Errors: the first wrong field.
pub fn decode_batch(bytes: Bytes) -> Decoded<Batch> {
    let mut reader = Reader::new(STRUCTURE, bytes);
    let claimed = reader.i64("claim")?;
    let flags = reader.u8("flags")?;
    if flags & !REMOVAL != 0 {
        return Err(reader.damage("flags", flags, "0 or 1"));
    }
    let count = reader.u32("changes")?;
    // A damaged count must not allocate too much: each change has several bytes.
    let mut changes = Vec::with_capacity((count as usize).min(reader.left() / 4));
    for _ in 0..count {
        changes.push(match reader.u8("change")? {
            ONE => {
                let key = decode_key(&mut reader, "key")?;
                let message = decode_message(&mut reader)?;
                if let Message::Put(value) = &message
                    && value.len() > MAX_VALUE_BYTES
                {
                    let found = format!("{} bytes", value.len());
                    return Err(reader.damage("value", found, format!("at most {MAX_VALUE_BYTES}")));
                }
                Change::One { key, message }
            }
            RANGE => {
                let (from, to) = (decode_key(&mut reader, "from")?, decode_key(&mut reader, "to")?);
                if from >= to {
                    return Err(reader.damage("to", to.escape_ascii(), format!("more than {}", from.escape_ascii())));
                }
                Change::DeleteRange { from, to }
            }
            other => return Err(reader.damage("change", other, "one key (1) or a range (2)")),
        });
    }
    reader.end()?;
    let mut batch = Batch::from(changes);
    batch.claim = Claim { bytes: claimed, is_removal: flags & REMOVAL != 0 };
    Ok(batch)
}

fn decode_key(reader: &mut Reader, field: &'static str) -> Decoded<Bytes> {
    let key = reader.sized(field)?;
    if key.len() > MAX_KEY_BYTES {
        return Err(reader.damage(field, format!("{} bytes", key.len()), format!("at most {MAX_KEY_BYTES}")));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..most).prop_map(Bytes::from)
    }

    fn message() -> impl Strategy<Value = Message> {
        let patch = || (0u32..3000, bytes(50)).prop_map(|(offset, bytes)| Message::patch(offset, bytes));
        prop_oneof![
            bytes(100).prop_map(Message::put),
            (0u32..5000).prop_map(Message::cut),
            (patch(), patch(), 0u32..100).prop_map(|(a, b, cut)| a.after(&Message::cut(cut)).after(&b)),
        ]
    }

    fn batch() -> impl Strategy<Value = Batch> {
        let one = (bytes(40), message()).prop_map(|(key, message)| Change::One { key, message });
        let range = (bytes(40), bytes(40)).prop_filter_map("a range", |(a, b)| {
            (a != b).then(|| Change::DeleteRange { from: a.clone().min(b.clone()), to: a.max(b) })
        });
        let changes = proptest::collection::vec(prop_oneof![3 => one, 1 => range], 0..20);
        (changes, any::<i64>(), any::<bool>()).prop_map(|(changes, bytes, is_removal)| {
            let mut batch = Batch::from(changes);
            batch.claim = Claim { bytes, is_removal };
            batch
        })
    }

    proptest! {
        #[test]
        fn batches_round_trip(batch in batch()) {
            let bytes = encode_batch(&batch);
            prop_assert_eq!(bytes.len(), record_bytes(&batch));
            prop_assert_eq!(decode_batch(bytes.into()).unwrap(), batch);
        }

        #[test]
        fn cut_records_are_refused(batch in batch(), share in 0.0..1.0) {
            let bytes = encode_batch(&batch);
            let cut = (bytes.len() as f64 * share) as usize;
            prop_assert!(decode_batch(bytes[..cut].to_vec().into()).is_err());
        }

        #[test]
        fn decoded_records_encode_to_the_same_bytes(batch in batch(), at in any::<usize>(), value in any::<u8>()) {
            let mut bytes = encode_batch(&batch);
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(batch) = decode_batch(bytes.clone().into()) {
                prop_assert_eq!(encode_batch(&batch), bytes);
            }
        }
    }

    #[test]
    fn golden() {
        let mut batch = Batch::new();
        batch.put(&b"key"[..], &b"value"[..]);
        batch.delete(&b"gone"[..]);
        batch.send(&b"k"[..], Message::patch(3, Bytes::from_static(b"xy")).after(&Message::cut(1)));
        batch.delete_range(&b"a"[..], &b"b"[..]);
        batch.claim = Claim { bytes: -2, is_removal: true };
        let wanted = [
            &b"\xfe\xff\xff\xff\xff\xff\xff\xff\x01\x04\0\0\0"[..],
            b"\x01\x03\0key\x01\x05\0value",
            b"\x01\x04\0gone\x02",
            b"\x01\x01\0k\x03\x01\0\0\0\x05\0\0\0\x01\0\x03\0\0\0\x02\0xy",
            b"\x02\x01\0a\x01\0b",
        ];
        assert_eq!(encode_batch(&batch), wanted.concat());
    }

    #[test]
    fn wrong_fields_are_named() {
        let mut batch = Batch::new();
        batch.put(&b"k"[..], &b"v"[..]);
        let bytes = encode_batch(&batch);
        let field = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            decode_batch(bytes.into()).unwrap_err().field
        };
        assert_eq!(field(8, 2), "flags");
        assert_eq!(field(9, 2), "change");
        assert_eq!(field(9, 0), "length");
        assert_eq!(field(13, 3), "change");
        assert_eq!(field(15, 200), "key");
        assert_eq!(field(17, 9), "message");
        assert_eq!(field(18, 0), "value");
        let mut batch = Batch::new();
        batch.send(&b"k"[..], Message::patch(3, Bytes::from_static(b"xy")));
        let mut bytes = encode_batch(&batch);
        bytes[24] = 1;
        assert_eq!(decode_batch(bytes.into()).unwrap_err().field, "least", "65,541 bytes at least");
    }
}
