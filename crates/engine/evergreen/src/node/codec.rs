//! Nodes in bytes: a header, then the parts, each with a sum of its own, so that one can be read without the others.
//!
//! A basement: the number of entries; each: key, value. A buffer: the number of ranges; each: first key, first key behind; the
//! number of messages; each: key, message. Keys are without what they share with the key before, the first of each list with
//! nothing.

use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Basement, Body, Buffer, Node, NodeId, Part, Stored, header,
    keys::{push_key, read_next_key},
};
use crate::{
    MAX_VALUE_BYTES,
    disk::{Damage, Decoded, Reader, decode_message, encode_message, push_number},
};

/// A node in bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// Header and parts.
    pub(crate) bytes: Vec<u8>,
    /// The header's xxh3, which holds the sums of all parts.
    pub(crate) header_sum: u64,
}

impl Node {
    /// It in bytes; all its parts must be in memory.
    pub(crate) fn encode(&self, id: NodeId, generation: u64) -> Encoded {
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
        let (mut bytes, header_sum) = header::encode(self, id, generation, &stored);
        bytes.append(&mut parts);
        Encoded { bytes, header_sum }
    }

    /// The most bytes that [`encode`](Self::encode) gives.
    pub(crate) fn most_bytes(&self) -> usize {
        const COUNTS: usize = 20;
        header::most_bytes(self) + self.weight() + self.parts() * COUNTS
    }

    /// A part of it was read and is in memory from now on. Errors: the first field that is not as it must be.
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
    use super::*;
    use crate::{Message, node::weight::message_weight};

    #[test]
    fn messages_are_not_heavier_than_said() {
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
