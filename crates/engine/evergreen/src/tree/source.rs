//! Where nodes are read from, and how: a header and one part, or all in one reading.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use crate::{
    Result,
    disk::{Damage, Decoded, NodeId},
    node::{FIRST_READ_BYTES, Header, Node, Stored},
};

/// What is known of a node's bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// How many there are.
    pub(crate) bytes: usize,
    /// The xxh3 of its header.
    pub(crate) header_sum: u64,
}

/// Where nodes are read from.
pub(crate) trait Source: Send {
    /// What is known of a node; none: it is not there.
    fn known(&self, id: NodeId) -> Option<Known>;

    /// So many bytes of a node from `at` on.
    fn read(&self, id: NodeId, at: usize, bytes: usize) -> Result<Bytes>;

    /// A node from byte `at` on, and as many of those that follow as lie directly behind it, in one request.
    fn read_row(&self, id: NodeId, at: usize, behind: &[NodeId]) -> Result<Vec<Bytes>>;

    /// Notes what was read, when it is known to be a leaf or not.
    fn note_read(&self, is_leaf: bool, bytes: usize);

    /// Where a node lies, in words.
    fn place(&self, id: NodeId) -> String;

    /// The room that a node of so many bytes takes.
    fn room_bytes(&self, bytes: usize) -> u64;
}

fn known(source: &impl Source, id: NodeId) -> Result<Known> {
    source.known(id).ok_or_else(|| Damage::new("node map", "node", "none", "one, for it is named").at(source.place(id)))
}

/// The header, of which `start` was read; what is missing of it is read now.
fn header(source: &impl Source, id: NodeId, known: Known, start: &Bytes) -> Result<Header> {
    let told = |damage: Damage| damage.at(source.place(id));
    let wrong = |field, found: String, expected: String| Err(told(Damage::new("node", field, found, expected)));
    let bytes = Header::bytes(start).map_err(told)?;
    if bytes > known.bytes {
        return wrong("header bytes", bytes.to_string(), format!("at most {}, those of the node", known.bytes));
    }
    let all = if bytes > start.len() {
        Bytes::from([&start[..], &source.read(id, start.len(), bytes - start.len())?].concat())
    } else {
        start.slice(..bytes)
    };
    let header = Header::decode(all).map_err(told)?;
    if header.id != id {
        return wrong("number", format!("{} of checkpoint {}", header.id, header.generation), id.to_string());
    }
    if header.sum != known.header_sum {
        let found = format!("{:#018x} of checkpoint {}", header.sum, header.generation);
        return wrong("header sum", found, format!("{:#018x} as in the node map", known.header_sum));
    }
    if header.bytes != known.bytes {
        return wrong("bytes", header.bytes.to_string(), format!("{} as in the node map", known.bytes));
    }
    Ok(header)
}

/// Reads a node's header; and, since they come with it, the parts that are in the first bytes.
pub(super) fn read_header(source: &impl Source, id: NodeId) -> Result<Arc<Node>> {
    let known = known(source, id)?;
    let start = source.read(id, 0, known.bytes.min(FIRST_READ_BYTES))?;
    let header = header(source, id, known, &start)?;
    let mut node = header.node;
    source.note_read(node.height() == 0, start.len());
    load_parts(source, id, &mut node, 0, &start)?;
    Ok(Arc::new(node))
}

/// Reads one part of a node.
pub(super) fn read_part(
    source: &impl Source,
    id: NodeId,
    node: &mut Node,
    number: usize,
    stored: Stored,
) -> Result<()> {
    let bytes = source.read(id, stored.at, stored.bytes)?;
    source.note_read(node.height() == 0, bytes.len());
    loaded(source, id, node.load(number, bytes))
}

/// Reads all of a node in one reading.
pub(super) fn read_whole(source: &impl Source, id: NodeId) -> Result<Arc<Node>> {
    let known = known(source, id)?;
    let bytes = source.read(id, 0, known.bytes)?;
    let mut node = header(source, id, known, &bytes)?.node;
    source.note_read(node.height() == 0, bytes.len());
    load_parts(source, id, &mut node, 0, &bytes)?;
    Ok(Arc::new(node))
}

/// Reads what is missing of some parts of a node in one reading, with all that lies between.
pub(super) fn read_parts(source: &impl Source, id: NodeId, node: &Node, parts: Range<usize>) -> Result<Arc<Node>> {
    let away = || parts.clone().filter_map(|number| node.stored(number));
    let at = away().map(|stored| stored.at).min().unwrap_or(0);
    let end = away().map(|stored| stored.at + stored.bytes).max().unwrap_or(0);
    let bytes = source.read(id, at, end - at)?;
    source.note_read(node.height() == 0, bytes.len());
    let mut node = node.clone();
    load_parts(source, id, &mut node, at, &bytes)?;
    Ok(Arc::new(node))
}

/// Reads what is missing of a leaf in one reading, and with it all of those that follow and lie directly behind it.
pub(super) fn read_row(
    source: &impl Source,
    (id, node): (NodeId, Option<&Arc<Node>>),
    behind: &[NodeId],
) -> Result<Vec<(NodeId, Arc<Node>)>> {
    let at = node.map_or(0, |node| {
        let away = (0..node.parts()).filter_map(|number| node.stored(number));
        away.map(|stored| stored.at).min().unwrap_or(0)
    });
    let row = source.read_row(id, at, behind)?;
    source.note_read(true, row.iter().map(Bytes::len).sum());
    let mut nodes = Vec::with_capacity(row.len());
    for (number, (id, bytes)) in std::iter::once(id).chain(behind.iter().copied()).zip(row).enumerate() {
        let (at, mut node) = match node.filter(|_| number == 0) {
            Some(node) => (at, Node::clone(node)),
            None => (0, header(source, id, known(source, id)?, &bytes)?.node),
        };
        load_parts(source, id, &mut node, at, &bytes)?;
        nodes.push((id, Arc::new(node)));
    }
    Ok(nodes)
}

/// Takes all parts into memory that lie within bytes of the node that were read from `at` on. Each has its own memory, which
/// goes when it goes.
fn load_parts(source: &impl Source, id: NodeId, node: &mut Node, at: usize, bytes: &[u8]) -> Result<()> {
    for number in 0..node.parts() {
        if let Some(stored) = node.stored(number)
            && stored.at >= at
            && stored.at + stored.bytes <= at + bytes.len()
        {
            let part = Bytes::copy_from_slice(&bytes[stored.at - at..][..stored.bytes]);
            loaded(source, id, node.load(number, part))?;
        }
    }
    Ok(())
}

fn loaded(source: &impl Source, id: NodeId, decoded: Decoded<()>) -> Result<()> {
    decoded.map_err(|damage| damage.at(source.place(id)))
}
