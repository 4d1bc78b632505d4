//! The encoding of nodes: a header, then the parts. Each part has a checksum, so that it can be
//! read alone. docs/reference/evergreen-format.md has the layout.

use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Basement, Body, Buffer, Node, NodeId, Part, Stored, header,
    key_prefixes::{push_key, read_next_key},
};
use crate::{
    MAX_VALUE_BYTES,
    disk::{Damage, Decoded, Reader, decode_message, encode_message, push_number},
};

/// An encoded node.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// Header and parts.
    pub(crate) bytes: Vec<u8>,
    /// The xxh3 of the header, which has the checksums of all parts.
    pub(crate) header_sum: u64,
}

impl Node {
    /// Encodes the node for the file system `uuid`; without a UUID in format version 1. All parts
    /// must be in memory.
    pub(crate) fn encode(&self, uuid: Option<&[u8; 16]>, id: NodeId, generation: u64) -> Encoded {
        let mut parts = Vec::with_capacity(self.weight());
        let mut stored = Vec::with_capacity(self.parts());
        for number in 0..self.parts() {
            let at = parts.len();
            match &self.body {
                Body::Leaf(leaf) => encode_basement(&mut parts, leaf.parts()[number].body.here()),
                Body::Inner(inner) => encode_buffer(&mut parts, inner.children()[number].body.here()),
            }
            stored.push(Stored { at, bytes: parts.len() - at, sum: xxh3_64(&parts[at..]) });
        }
        let (mut bytes, header_sum) = header::encode(self, uuid, id, generation, &stored);
        bytes.append(&mut parts);
        Encoded { bytes, header_sum }
    }

    /// The most bytes that [`encode`](Self::encode) returns.
    pub(crate) fn most_bytes(&self) -> usize {
        const COUNTS: usize = 20;
        header::most_bytes(self) + self.weight() + self.parts() * COUNTS
    }

    /// Decodes a part of the node from its bytes. Errors: the first wrong field.
    pub(crate) fn load(&mut self, number: usize, bytes: Bytes) -> Decoded<()> {
        let Some(stored) = self.stored(number) else { return Ok(()) };
        let told = |damage: Damage| Damage { found: format!("{} (part {number})", damage.found), ..damage };
        let sum = xxh3_64(&bytes);
        if sum != stored.sum {
            let (found, expected) = (format!("{sum:#018x}"), format!("{:#018x}", stored.sum));
            return Err(told(Damage::new("node", "sum", found, expected)));
        }
        match &mut self.body {
            Body::Leaf(leaf) => {
                let part = &mut leaf.parts_mut()[number];
                let basement = decode_basement(bytes).map_err(told)?;
                let first = &basement.entries()[0].0;
                if *first != part.first {
                    let (found, expected) = (first.escape_ascii(), part.first.escape_ascii());
                    return Err(told(Damage::new("basement", "first key", found, expected)));
                }
                expect_weight("basement", basement.weight(), part.weight).map_err(told)?;
                part.body = Part::Here(Arc::new(basement));
            }
            Body::Inner(inner) => {
                let child = &mut inner.children_mut()[number];
                let buffer = decode_buffer(bytes).map_err(told)?;
                expect_weight("buffer", buffer.weight(), child.weight).map_err(told)?;
                child.body = Part::Here(Arc::new(buffer));
            }
        }
        Ok(())
    }
}

fn expect_weight(structure: &'static str, found: usize, expected: usize) -> Decoded<()> {
    if found == expected { Ok(()) } else { Err(Damage::new(structure, "weight", found, expected)) }
}

fn encode_basement(out: &mut Vec<u8>, basement: &Basement) {
    push_number(out, basement.entries().len() as u64);
    let mut before: &[u8] = b"";
    for (key, value) in basement.entries() {
        push_key(out, before, key);
        push_number(out, value.len() as u64);
        out.extend_from_slice(value);
        before = key;
    }
}

fn decode_basement(bytes: Bytes) -> Decoded<Basement> {
    let most = bytes.len() as u64;
    let mut reader = Reader::new("basement", bytes);
    let count = reader.number("entries", most)? as usize;
    let mut entries: Vec<(Bytes, Bytes)> = Vec::with_capacity(count);
    for _ in 0..count {
        let key = read_next_key(&mut reader, "key", entries.last().map(|(key, _)| key))?;
        let bytes = reader.number("value", MAX_VALUE_BYTES as u64)? as usize;
        if bytes == 0 {
            return Err(reader.damage("value", "empty", "some bytes"));
        }
        entries.push((key, reader.take("value", bytes)?));
    }
    reader.end()?;
    if entries.is_empty() {
        return Err(reader.damage("entries", 0, "some"));
    }
    Ok(Basement::new(entries))
}

fn encode_buffer(out: &mut Vec<u8>, buffer: &Buffer) {
    push_number(out, buffer.ranges().len() as u64);
    let mut before: &[u8] = b"";
    for (from, to) in buffer.ranges().iter() {
        push_key(out, before, from);
        push_key(out, from, to);
        before = to;
    }
    push_number(out, buffer.messages().len() as u64);
    before = b"";
    for (key, message) in buffer.messages() {
        push_key(out, before, key);
        encode_message(message, out);
        before = key;
    }
}

fn decode_buffer(bytes: Bytes) -> Decoded<Buffer> {
    let most = bytes.len() as u64;
    let mut reader = Reader::new("buffer", bytes);
    let mut buffer = Buffer::default();
    let mut before = None;
    for _ in 0..reader.number("ranges", most)? {
        let from = read_next_key(&mut reader, "range from", before.as_ref())?;
        let to = read_next_key(&mut reader, "range to", Some(&from))?;
        buffer.delete_range(from, to.clone());
        before = Some(to);
    }
    before = None;
    for _ in 0..reader.number("messages", most)? {
        let key = read_next_key(&mut reader, "key", before.as_ref())?;
        let message = decode_message(&mut reader)?;
        buffer.put_message(key.clone(), message);
        before = Some(key);
    }
    reader.end()?;
    match buffer.fault() {
        None => Ok(buffer),
        Some(fault) => Err(reader.damage("normal form", fault, "normal form")),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::header::{is_whole, renew},
        *,
    };
    use crate::{
        Message,
        node::{BasementSizes, Child, Header, Inner, Leaf, weight::message_weight},
    };

    const UUID: Option<&[u8; 16]> = Some(b"evergreen golden");
    const OLD_LEAF_GOLDEN: (usize, u64) = (621, 2_931_852_401_444_015_654);
    const OLD_INNER_GOLDEN: (usize, u64) = (160, 167628573790155352);
    const LEAF_GOLDEN: (usize, u64) = (637, 7_479_942_407_919_597_715);
    const INNER_GOLDEN: (usize, u64) = (176, 5_163_247_708_938_975_909);

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn buffer() -> Buffer {
        let mut buffer = Buffer::default();
        buffer.delete_range(bytes("directory/b"), bytes("directory/d"));
        buffer.delete_range(bytes("directory/f"), bytes("directory/g"));
        buffer.send(bytes("directory/c"), Message::put(bytes("anew")));
        buffer.send(bytes("directory/e"), Message::patch(4, bytes("patched")));
        buffer.send(bytes("directory/x"), Message::Delete);
        buffer
    }

    fn leaf() -> Node {
        let mut messages = Buffer::default();
        for number in 0..40 {
            messages.send(bytes(&format!("directory/{number:02}")), Message::put(bytes(&format!("value {number}"))));
        }
        let mut leaf = Leaf::default();
        leaf.receive(&messages, BasementSizes { least: 256, most: 512 });
        Node { lower: bytes("dir"), upper: Some(bytes("directory/z")), body: Body::Leaf(leaf) }
    }

    fn inner() -> Node {
        let children = vec![
            Child::new(bytes("d"), NodeId(7), Buffer::default()),
            Child::new(bytes("directory/a"), NodeId(300), buffer()),
        ];
        Node { lower: bytes("d"), upper: None, body: Body::Inner(Inner::new(2, children)) }
    }

    #[test]
    fn golden() {
        let cases = [
            (leaf(), 5, UUID, LEAF_GOLDEN),
            (inner(), 1 << 40, UUID, INNER_GOLDEN),
            (leaf(), 5, None, OLD_LEAF_GOLDEN),
            (inner(), 1 << 40, None, OLD_INNER_GOLDEN),
        ];
        for (node, id, uuid, golden) in cases {
            let Encoded { bytes, header_sum } = node.encode(uuid, NodeId(id), 9);
            assert_eq!((bytes.len(), xxh3_64(&bytes)), golden);
            assert!(bytes.len() <= node.most_bytes());
            let bytes = Bytes::from(bytes);
            let header = Header::decode(bytes.slice(..Header::bytes(&bytes).unwrap())).unwrap();
            assert_eq!((header.id, header.generation, header.sum), (NodeId(id), 9, header_sum));
            assert_eq!(header.uuid.as_ref(), uuid);
            assert_eq!(header.bytes, bytes.len());
            let mut again = header.node;
            for number in 0..again.parts() {
                let stored = again.stored(number).unwrap();
                again.load(number, bytes.slice(stored.at..stored.at + stored.bytes)).unwrap();
            }
            assert_eq!(format!("{again:?}"), format!("{node:?}"));
        }
    }

    /// Each byte of a header and of a part is checked, and the error names the field.
    #[test]
    fn wrong_fields_are_named() {
        let bytes = inner().encode(UUID, NodeId(3), 9).bytes;
        let header_bytes = Header::bytes(&bytes).unwrap();
        let cases: &[(usize, u8, &str)] = &[
            (0, 0, "magic"),
            (16, 1, "header bytes"),
            (20, 9, "version"),
            (24, 4, "header sum"),
            (56, 7, "lower bound"),
        ];
        for &(at, value, field) in cases {
            let mut header = bytes[..header_bytes].to_vec();
            header[at] = value;
            if field != "header sum" {
                let sum = xxh3_64(&header[16..]);
                header[8..16].copy_from_slice(&sum.to_le_bytes());
            }
            assert_eq!(Header::decode(header.into()).unwrap_err().field, field);
        }
        for (part, field) in [(vec![0u8], "messages"), (vec![0, 0, 0], "length"), (vec![2, 0, 1], "range from")] {
            assert_eq!(decode_buffer(part.into()).unwrap_err().field, field);
        }
        for (part, field) in
            [(vec![0u8], "entries"), (vec![1, 0, 1, b'a', 0], "value"), (vec![2, 0, 1, b'a', 1, 1, 0, 1, b'a'], "key")]
        {
            assert_eq!(decode_basement(part.into()).unwrap_err().field, field);
        }
    }

    #[test]
    fn only_unchanged_nodes_are_renewed() {
        for node in [leaf(), inner()] {
            let old = node.encode(UUID, NodeId(3), 9);
            let new = node.encode(UUID, NodeId(3), 11);
            let mut renewed = old.bytes.clone();
            assert_eq!(renew(&mut renewed, old.header_sum, 11), Some(new.header_sum));
            assert_eq!(renewed, new.bytes);
            for at in 16..old.bytes.len() {
                let mut other = old.bytes.clone();
                other[at] ^= 1;
                assert_eq!(renew(&mut other, old.header_sum, 11), None, "byte {at}");
                assert!(!is_whole(&other, old.header_sum), "byte {at}");
            }
        }
    }

    #[test]
    fn encoded_messages_fit_their_weight() {
        let messages = [
            Message::patch(4000, Bytes::from_static(b"abc")).after(&Message::patch(2, Bytes::from_static(b"x"))),
            Message::cut(7),
            Message::patch(0, vec![7; MAX_VALUE_BYTES].into()),
            Message::Delete,
            Message::put(vec![1; MAX_VALUE_BYTES].into()),
        ];
        for message in messages {
            let (key, mut out) = (vec![b'k'; crate::MAX_KEY_BYTES], Vec::new());
            push_key(&mut out, b"", &key);
            encode_message(&message, &mut out);
            assert!(out.len() <= message_weight(&key, &message), "{} bytes of {message:?}", out.len());
        }
    }
}
