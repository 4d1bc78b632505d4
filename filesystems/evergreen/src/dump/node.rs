//! Dumps of nodes: one with its contents, or all with their bounds.

use bytes::Bytes;
use senesce_fsapi::dump::{Dump, DumpTable, DumpValue, read_fields, sum_text, text};

use super::{
    Media,
    field_offsets::{NODE, NODE_IDENTITY},
    log::message_text,
};
use crate::{
    Error, Result,
    disk::{Decoded, NodeId, NodeMap, Place},
    node::{Basement, Body, Buffer, Header, Node, is_whole},
};

/// The bytes of a header at fixed offsets in every version, and in versions with a UUID.
const FIXED_BYTES: usize = 40;
const IDENTITY_END: usize = 56;

/// Dumps a node at its place in the map.
pub(super) fn node(media: &Media, id: NodeId, most: u64) -> Result<Dump> {
    let map = NodeMap::load(&media.area, &media.superblock)?;
    let Some(place) = map.get(id) else {
        return Err(Error::Invalid { what: format!("there is no node {id}; the root is {}", media.superblock.root) });
    };
    let bytes = read_copy(media, place)?;
    let mut dump = Dump::new(format!("node {id} at units {}", place.extents));
    if bytes.len() >= FIXED_BYTES {
        read_fields(&mut dump, &bytes, NODE);
    }
    if bytes.len() >= IDENTITY_END && bytes[20] > 1 {
        read_fields(&mut dump, &bytes, NODE_IDENTITY);
    }
    if !place.second.is_empty() {
        dump.field("second copy at units", place.second.to_string());
        for (name, copy) in ["first", "second"].into_iter().zip(place.copies()) {
            match media.area.read(&copy.extents, 0, copy.bytes as usize) {
                Ok(bytes) if is_whole(&bytes, copy.header_sum) => {}
                Ok(_) => dump.wrong(format!("the {name} copy is damaged")),
                Err(error) => dump.wrong(format!("the {name} copy: {error}")),
            }
        }
    }
    let mut node = match header(&bytes) {
        Ok(header) => header.node,
        Err(damage) => {
            dump.wrong(damage);
            return Ok(dump);
        }
    };
    dump.field("lower bound", text(&node.lower));
    dump.field("upper bound", node.upper.as_ref().map(|upper| text(upper)));
    let stored: Vec<_> = (0..node.parts()).filter_map(|number| node.stored(number)).collect();
    for (number, stored) in stored.into_iter().enumerate() {
        let loaded = match bytes.get(stored.at..stored.at + stored.bytes) {
            Some(_) => node.load(number, bytes.slice(stored.at..stored.at + stored.bytes)),
            None => Ok(()),
        };
        let mut part = Dump::new(part_title(&node, number));
        part.field("at", stored.at as u64);
        part.field("bytes", stored.bytes as u64);
        part.field("sum", sum_text(stored.sum));
        match loaded {
            Ok(()) if node.stored(number).is_none() => part.table = Some(part_table(&node, number, most)),
            Ok(()) => part.wrong("it exceeds the node's end"),
            Err(damage) => part.wrong(damage),
        }
        dump.parts.push(part);
    }
    Ok(dump)
}

/// Dumps all nodes that are reached from the root.
pub(super) fn tree(media: &Media, most: u64) -> Result<Dump> {
    let map = NodeMap::load(&media.area, &media.superblock)?;
    let mut dump = Dump::new(format!("tree of superblock {}", media.superblock.generation));
    let mut table = DumpTable::new(&["height", "node", "generation", "bytes", "extents", "parts", "lower bound"]);
    let mut open = vec![media.superblock.root];
    let mut left = map.len();
    while let Some(id) = open.pop() {
        let Some(place) = map.get(id) else {
            dump.wrong(format!("node {id} has a parent, but is not in the map of nodes"));
            continue;
        };
        // A damaged tree may name a node twice.
        let Some(fewer) = left.checked_sub(1) else { break };
        left = fewer;
        match read_header(media, place)? {
            Ok(header) => {
                table.push(most, row(id, place, &header));
                if let Body::Inner(inner) = &header.node.body {
                    open.extend(inner.children().iter().rev().map(|child| child.id));
                }
            }
            Err(damage) => dump.wrong(format!("node {id}: {damage}")),
        }
    }
    dump.table = Some(table);
    Ok(dump)
}

fn row(id: NodeId, place: &Place, header: &Header) -> Vec<DumpValue> {
    vec![
        u64::from(header.node.height()).into(),
        id.0.into(),
        header.generation.into(),
        u64::from(place.bytes).into(),
        place.extents.to_string().into(),
        (header.node.parts() as u64).into(),
        text(&header.node.lower).into(),
    ]
}

/// The bytes of the first whole copy of a node; if none is whole, those of the first copy. Errors:
/// those of the device.
pub(super) fn read_copy(media: &Media, place: &Place) -> Result<Bytes> {
    let read = |copy: Place| media.area.read(&copy.extents, 0, copy.bytes as usize);
    let is_sound = |bytes: &Result<Bytes>| bytes.as_ref().is_ok_and(|bytes| is_whole(bytes, place.header_sum));
    // An error of a later copy is no reason to refuse the first.
    place.copies().map(read).find(is_sound).unwrap_or_else(|| media.area.read(&place.extents, 0, place.bytes as usize))
}

/// The header of a node, from the first copy that has it whole.
pub(super) fn read_header(media: &Media, place: &Place) -> Result<Decoded<Header>> {
    let mut first = None;
    for copy in place.copies() {
        match read_own_header(media, &copy) {
            Ok(Ok(header)) => return Ok(Ok(header)),
            other => first = first.or(Some(other)),
        }
    }
    first.unwrap_or_else(|| read_own_header(media, place))
}

fn read_own_header(media: &Media, place: &Place) -> Result<Decoded<Header>> {
    let start = media.area.read(&place.extents, 0, FIXED_BYTES.min(place.bytes as usize))?;
    let bytes = match Header::bytes(&start) {
        Ok(bytes) => bytes.min(place.bytes as usize),
        Err(damage) => return Ok(Err(damage)),
    };
    Ok(Header::decode(media.area.read(&place.extents, 0, bytes)?))
}

fn header(bytes: &Bytes) -> Decoded<Header> {
    let header = Header::bytes(bytes)?;
    Header::decode(bytes.slice(..header.min(bytes.len())))
}

fn part_title(node: &Node, number: usize) -> String {
    match &node.body {
        Body::Leaf(leaf) => format!("basement {number} from {}", text(&leaf.parts()[number].first)),
        Body::Inner(inner) => {
            let child = &inner.children()[number];
            format!("buffer {number} for node {} from {}", child.id, text(&child.lower))
        }
    }
}

fn part_table(node: &Node, number: usize, most: u64) -> DumpTable {
    match &node.body {
        Body::Leaf(leaf) => basement(leaf.parts()[number].body.here(), most),
        Body::Inner(inner) => buffer(inner.children()[number].body.here(), most),
    }
}

fn basement(basement: &Basement, most: u64) -> DumpTable {
    let mut table = DumpTable::new(&["bytes", "key"]);
    for (key, value) in basement.entries() {
        table.push(most, vec![(value.len() as u64).into(), text(key).into()]);
    }
    table
}

/// Ranges first, because they act first.
fn buffer(buffer: &Buffer, most: u64) -> DumpTable {
    let mut table = DumpTable::new(&["waiting"]);
    for (from, to) in buffer.ranges().iter() {
        table.push(most, vec![format!("delete {} .. {}", text(from), text(to)).into()]);
    }
    for (key, message) in buffer.messages() {
        table.push(most, vec![format!("{} {}", message_text(message), text(key)).into()]);
    }
    table
}
