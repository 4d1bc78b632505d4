//! The encoded header of a node. docs/reference/evergreen-format.md has the layout.
//!
//! A header has the first keys and checksums of its parts, which follow without gaps. It also names
//! the file system, the node, its height above the leaves, and the bounds of its keys. So a repair
//! can find the tree without its map.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Body, Child, Inner, Leaf, Node, NodeId, Part, Stored,
    key_prefixes::{push_key, read_key},
    leaf::LeafPart,
};
use crate::{
    MAX_KEY_BYTES,
    disk::{Damage, Decoded, FORMAT_VERSION, OLDEST_VERSION, Reader, array_at, push_number, put_at, u32_at, u64_at},
};

const MAGIC: &[u8; 8] = b"SNSCnode";
const STRUCTURE: &str = "node";

/// The bytes of the fixed part of a header, now and in format version 1, which has no UUID.
const FIXED_BYTES: usize = 56;
const OLD_FIXED_BYTES: usize = 40;
const UUID_AT: usize = 40;

/// The checksum covers the bytes from here on.
const SUMMED_FROM: usize = 16;

/// The most parts of a node. With the longest keys it also limits the length of a header.
const MOST_PARTS: usize = 1 << 16;

/// The bytes of the first read, if one part of a node is wanted. Most headers are not longer.
pub(crate) const FIRST_READ_BYTES: usize = 16 << 10;

/// A decoded header.
#[derive(Debug)]
pub(crate) struct Header {
    /// The file system; headers of format version 1 do not have it.
    pub(crate) uuid: Option<[u8; 16]>,
    /// The number of the node.
    pub(crate) id: NodeId,
    /// The generation of the checkpoint that wrote it.
    pub(crate) generation: u64,
    /// The xxh3 of the header.
    pub(crate) sum: u64,
    /// The bytes of header and parts together.
    pub(crate) bytes: usize,
    /// The node, without parts in memory.
    pub(crate) node: Node,
}

impl Header {
    /// The length of a header, from its first bytes.
    pub(crate) fn bytes(start: &[u8]) -> Decoded<usize> {
        let magic = &start[..start.len().min(MAGIC.len())];
        if magic != MAGIC || start.len() < OLD_FIXED_BYTES {
            return Err(Damage::new(STRUCTURE, "magic", magic.escape_ascii(), MAGIC.escape_ascii()));
        }
        match u32_at(start, 16) as usize {
            bytes if (OLD_FIXED_BYTES..=MOST_PARTS * MAX_KEY_BYTES).contains(&bytes) => Ok(bytes),
            bytes => Err(Damage::new(STRUCTURE, "header bytes", bytes, format!("at least {OLD_FIXED_BYTES}"))),
        }
    }

    /// Decodes a header from exactly its bytes. Errors: the first wrong field.
    pub(crate) fn decode(bytes: Bytes) -> Decoded<Self> {
        let header_bytes = Self::bytes(&bytes)?;
        if header_bytes != bytes.len() {
            return Err(Damage::new(STRUCTURE, "header bytes", header_bytes, bytes.len()));
        }
        let (sum, found) = (u64_at(&bytes, 8), xxh3_64(&bytes[SUMMED_FROM..]));
        if sum != found {
            return Err(Damage::new(STRUCTURE, "header sum", format!("{sum:#018x}"), format!("{found:#018x}")));
        }
        let (version, height) = (bytes[20], bytes[21]);
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version.into()) {
            let expected = format!("{OLDEST_VERSION} to {FORMAT_VERSION}");
            return Err(Damage::new(STRUCTURE, "version", version, expected));
        }
        let fixed = if u32::from(version) == OLDEST_VERSION { OLD_FIXED_BYTES } else { FIXED_BYTES };
        if bytes.len() < fixed {
            return Err(Damage::new(STRUCTURE, "header bytes", bytes.len(), format!("at least {fixed}")));
        }
        let uuid = (fixed == FIXED_BYTES).then(|| array_at(&bytes, UUID_AT));
        let (id, generation) = (NodeId(u64_at(&bytes, 24)), u64_at(&bytes, 32));
        let mut reader = Reader::new(STRUCTURE, bytes.slice(fixed..));
        let lower = read_key(&mut reader, "lower bound", b"")?;
        let upper = match reader.u8("upper bound")? {
            0 => None,
            1 => Some(read_key(&mut reader, "upper bound", &lower)?),
            other => return Err(reader.damage("upper bound", other, "none (0) or one (1)")),
        };
        if let Some(upper) = upper.as_ref().filter(|upper| **upper <= lower) {
            let expected = format!("more than {}, the lower", lower.escape_ascii());
            return Err(reader.damage("upper bound", upper.escape_ascii(), expected));
        }
        let (body, end) = decode_parts(&mut reader, height, &lower, upper.as_ref(), header_bytes)?;
        reader.end()?;
        Ok(Self { uuid, id, generation, sum, bytes: end, node: Node { lower, upper, body } })
    }
}

/// Decodes the parts of a header. Also returns the offset at which the last part ends.
fn decode_parts(
    reader: &mut Reader,
    height: u8,
    lower: &Bytes,
    upper: Option<&Bytes>,
    header_bytes: usize,
) -> Decoded<(Body, usize)> {
    let count = reader.number("parts", MOST_PARTS as u64)?;
    if height > 0 && count == 0 {
        return Err(reader.damage("parts", 0, "at least one child"));
    }
    let (mut parts, mut children) = (Vec::new(), Vec::new());
    let (mut before, mut at) = (lower.clone(), header_bytes);
    for number in 0..count {
        let first = read_key(reader, "first key", &before)?;
        let is_behind = match (number, height) {
            (0, 0) => first >= before,
            (0, _) => first == before,
            _ => first > before,
        };
        if !is_behind || upper.is_some_and(|upper| first >= *upper) {
            let expected = format!("after {}, before the upper bound", before.escape_ascii());
            return Err(reader.damage("first key", format!("{} (part {number})", first.escape_ascii()), expected));
        }
        let id = NodeId(if height == 0 { 0 } else { reader.number("child", u64::MAX)? });
        let weight = reader.number("weight", u64::from(u32::MAX))? as usize;
        let bytes = reader.number("bytes", u64::from(u32::MAX))? as usize;
        let stored = Stored { at, bytes, sum: reader.u64("sum")? };
        at += bytes;
        if height == 0 {
            parts.push(LeafPart { first: first.clone(), weight, body: Part::Away(stored) });
        } else {
            children.push(Child { lower: first.clone(), id, weight, body: Part::Away(stored) });
        }
        before = first;
    }
    let body =
        if height == 0 { Body::Leaf(Leaf::from_parts(parts)) } else { Body::Inner(Inner::new(height, children)) };
    Ok((body, at))
}

/// Encodes the header of a node with its parts at the given places. Also returns its xxh3.
pub(super) fn encode(
    node: &Node,
    uuid: Option<&[u8; 16]>,
    id: NodeId,
    generation: u64,
    parts: &[Stored],
) -> (Vec<u8>, u64) {
    let (fixed, version) = match uuid {
        Some(_) => (FIXED_BYTES, FORMAT_VERSION),
        None => (OLD_FIXED_BYTES, OLDEST_VERSION),
    };
    let mut out = vec![0; fixed];
    put_at(&mut out, 0, MAGIC);
    out[20] = version as u8;
    out[21] = node.height();
    put_at(&mut out, 24, &id.0.to_le_bytes());
    put_at(&mut out, 32, &generation.to_le_bytes());
    if let Some(uuid) = uuid {
        put_at(&mut out, UUID_AT, uuid);
    }
    push_key(&mut out, b"", &node.lower);
    match &node.upper {
        None => out.push(0),
        Some(upper) => {
            out.push(1);
            push_key(&mut out, &node.lower, upper);
        }
    }
    push_number(&mut out, parts.len() as u64);
    let mut before = &node.lower;
    for (number, stored) in parts.iter().enumerate() {
        let (first, child, weight) = match &node.body {
            Body::Leaf(leaf) => (&leaf.parts()[number].first, None, leaf.parts()[number].weight),
            Body::Inner(inner) => {
                let child = &inner.children()[number];
                (&child.lower, Some(child.id), child.weight)
            }
        };
        push_key(&mut out, before, first);
        if let Some(child) = child {
            push_number(&mut out, child.0);
        }
        push_number(&mut out, weight as u64);
        push_number(&mut out, stored.bytes as u64);
        out.extend_from_slice(&stored.sum.to_le_bytes());
        before = first;
    }
    let bytes = out.len() as u32;
    put_at(&mut out, 16, &bytes.to_le_bytes());
    let sum = xxh3_64(&out[SUMMED_FROM..]);
    put_at(&mut out, 8, &sum.to_le_bytes());
    (out, sum)
}

/// Changes the bytes of a node to those that checkpoint `generation` would write. Returns the xxh3
/// of the header, or `None` if the bytes are not [whole](is_whole).
pub(crate) fn renew(bytes: &mut [u8], sum: u64, generation: u64) -> Option<u64> {
    if !is_whole(bytes, sum) {
        return None;
    }
    let header = Header::bytes(bytes).ok()?;
    let header = &mut bytes[..header];
    put_at(header, 32, &generation.to_le_bytes());
    let sum = xxh3_64(&header[SUMMED_FROM..]);
    put_at(header, 8, &sum.to_le_bytes());
    Some(sum)
}

/// Whether the bytes of a node are those that were written: the header has the checksum `sum`, and
/// each part the checksum in the header. If they are not, the fault may be in one read and not on
/// the device.
pub(crate) fn is_whole(bytes: &[u8], sum: u64) -> bool {
    let header = Header::bytes(bytes).ok().filter(|header| *header <= bytes.len());
    let Some(header) = header.filter(|header| xxh3_64(&bytes[SUMMED_FROM..*header]) == sum) else { return false };
    let Ok(header) = Header::decode(Bytes::copy_from_slice(&bytes[..header])) else { return false };
    let is_part =
        |part: Stored| bytes.get(part.at..part.at + part.bytes).is_some_and(|bytes| xxh3_64(bytes) == part.sum);
    header.sum == sum && (0..header.node.parts()).filter_map(|number| header.node.stored(number)).all(is_part)
}

/// The most bytes that the header of a node takes.
pub(super) fn most_bytes(node: &Node) -> usize {
    const EACH: usize = 4 + 10 + 5 + 5 + 8;
    let firsts: usize = match &node.body {
        Body::Leaf(leaf) => leaf.parts().iter().map(|part| part.first.len() + EACH).sum(),
        Body::Inner(inner) => inner.children().iter().map(|child| child.lower.len() + EACH).sum(),
    };
    FIXED_BYTES + 16 + node.lower.len() + node.upper.as_ref().map_or(0, Bytes::len) + firsts
}
