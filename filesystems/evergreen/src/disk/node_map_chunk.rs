//! Chunks of the map of nodes: blocks of entries, in this format version and in the previous one.

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, Damage, Decoded, Extent, Extents, Geometry, MAX_PIECES, NodeId, Place,
    bytes::{array_at, u32_at, u64_at},
};

/// Magic numbers of a chunk, now and in format version 1. In version 1 nodes have one copy, and
/// chunks have no UUID.
pub(super) const MAGIC: u32 = 0x3270_4d6e;
pub(super) const OLD_MAGIC: u32 = 0x7061_4d6e;
pub(super) const HEADER: usize = 40;
pub(super) const OLD_HEADER: usize = 24;
pub(super) const UUID_AT: usize = 24;
pub(super) const SUM_AT: usize = BLOCK - 8;
/// Bytes of an entry without its pieces, and of a piece.
pub(super) const ENTRY: usize = 24;
pub(super) const PIECE: usize = 8;
pub(super) const STRUCTURE: &str = "node map";

/// An entry as it is stored in a chunk.
struct Entry {
    node: NodeId,
    header_sum: u64,
    bytes: u32,
    /// The numbers of pieces of the first and the second copy.
    pieces: [usize; 2],
    extents: Vec<Extent>,
}

/// The entries of a chunk in order; `None` if an entry does not fit. The caller stops at `left` =
/// 0.
struct Entries<'a> {
    chunk: &'a [u8],
    at: usize,
    left: u32,
    is_old: bool,
}

impl<'a> Entries<'a> {
    fn new(chunk: &'a [u8]) -> Self {
        let is_old = u32_at(chunk, 0) == OLD_MAGIC;
        Self { chunk, at: if is_old { OLD_HEADER } else { HEADER }, left: u32_at(chunk, 16), is_old }
    }

    fn next(&mut self) -> Option<Entry> {
        let (chunk, at) = (self.chunk, self.at);
        if at + ENTRY > SUM_AT {
            return None;
        }
        let pieces = match u32_at(chunk, at + 20) as usize {
            pieces if self.is_old => [pieces, 0],
            both => [both & 0xffff, both >> 16],
        };
        let end = at + ENTRY + PIECE * pieces.iter().map(|pieces| (*pieces).min(MAX_PIECES)).sum::<usize>();
        if end > SUM_AT {
            return None;
        }
        self.at = end;
        self.left -= 1;
        let extent = |at| Extent { first: u32_at(chunk, at), count: u32_at(chunk, at + 4) };
        let extents = (at + ENTRY..end).step_by(PIECE).map(extent).collect();
        let (node, header_sum, bytes) = (NodeId(u64_at(chunk, at)), u64_at(chunk, at + 8), u32_at(chunk, at + 16));
        Some(Entry { node, header_sum, bytes, pieces, extents })
    }
}

/// An entry of a chunk of an unknown map: the node, the checksum of its header, and the extents of
/// both copies, not validated.
pub(crate) type LooseEntry = (NodeId, u64, [Vec<Extent>; 2]);

/// A chunk of an unknown map.
pub(crate) struct Loose {
    /// The UUID of the file system; chunks of format version 1 have none.
    pub uuid: Option<[u8; 16]>,
    /// The generation of the superblock that names the map.
    pub generation: u64,
    pub entries: Vec<LooseEntry>,
}

/// Decodes a block that may be a chunk of some map. A repair uses it to find nodes whose map is
/// lost. Returns `None` if the block is no chunk.
pub(crate) fn loose_entries(chunk: &[u8]) -> Option<Loose> {
    let magic = u32_at(chunk, 0);
    if (magic != MAGIC && magic != OLD_MAGIC) || u64_at(chunk, SUM_AT) != xxh3_64(&chunk[..SUM_AT]) {
        return None;
    }
    let (mut entries, mut found) = (Entries::new(chunk), Vec::new());
    while entries.left > 0 {
        let mut entry = entries.next().filter(|entry| (1..=MAX_PIECES).contains(&entry.pieces[0]))?;
        let second = entry.extents.split_off(entry.pieces[0].min(entry.extents.len()));
        found.push((entry.node, entry.header_sum, [entry.extents, second]));
    }
    let uuid = (magic == MAGIC).then(|| array_at(chunk, UUID_AT));
    Some(Loose { uuid, generation: u64_at(chunk, 8), entries: found })
}

/// Decodes and validates the entries of a chunk.
pub(super) fn decode_chunk(
    chunk: &[u8],
    number: usize,
    uuid: &[u8; 16],
    generation: u64,
    geometry: &Geometry,
) -> Decoded<Vec<(NodeId, Place)>> {
    let damage = |field, found: String, expected: String| {
        Err(Damage::new(STRUCTURE, field, format!("{found} (chunk {number})"), expected))
    };
    let (found, sum) = (u64_at(chunk, SUM_AT), xxh3_64(&chunk[..SUM_AT]));
    if found != sum {
        return damage("checksum", format!("{found:#018x}"), format!("{sum:#018x}"));
    }
    let magic = u32_at(chunk, 0);
    if magic != MAGIC && magic != OLD_MAGIC {
        return damage("magic", format!("{magic:#010x}"), format!("{MAGIC:#010x}"));
    }
    if u32_at(chunk, 4) as usize != number {
        return damage("chunk number", u32_at(chunk, 4).to_string(), number.to_string());
    }
    if u64_at(chunk, 8) != generation {
        return damage("generation", u64_at(chunk, 8).to_string(), generation.to_string());
    }
    if magic == MAGIC && chunk[UUID_AT..][..16] != uuid[..] {
        return damage("identity", hex(&chunk[UUID_AT..][..16]), format!("{}, of the superblock", hex(uuid)));
    }
    let (mut entries, mut found) = (Entries::new(chunk), Vec::new());
    while entries.left > 0 {
        let Some(Entry { node, header_sum, bytes, pieces, extents }) = entries.next() else {
            return damage("entries", u32_at(chunk, 16).to_string(), format!("at most {}", found.len()));
        };
        if !(1..=MAX_PIECES).contains(&pieces[0]) || pieces[0] + pieces[1] > MAX_PIECES {
            let pieces = format!("{} and {} of node {node}", pieces[0], pieces[1]);
            return damage("pieces", pieces, format!("1 to {MAX_PIECES}"));
        }
        let inside = |extent: &Extent| extent.first.checked_add(extent.count).is_some_and(|end| end <= geometry.units);
        if let Some(extent) = extents.iter().find(|extent| extent.count == 0 || !inside(extent)) {
            let found = format!("{} units from {} of node {node}", extent.count, extent.first);
            return damage("extent", found, format!("some of {} units", geometry.units));
        }
        let (first, second) = extents.split_at(pieces[0]);
        let copies = [first, second].map(|extents| Extents::new(extents).unwrap_or_default());
        let is_wrong = |copy: &Extents| u64::from(geometry.units_for(u64::from(bytes))) != copy.units();
        if bytes == 0 || copies.iter().take(1 + usize::from(pieces[1] > 0)).any(is_wrong) {
            let units = copies[0].units();
            return damage("bytes", format!("{bytes} of node {node}"), format!("a length that takes {units} units"));
        }
        if node.0 == 0 {
            return damage("node", "0".to_owned(), "a number of 1 or more".to_owned());
        }
        let [extents, second] = copies;
        found.push((node, Place { extents, second, bytes, header_sum }));
    }
    Ok(found)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
