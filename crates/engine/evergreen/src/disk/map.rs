//! The map of nodes: where each one lies. It is written whole with every superblock, so that a node may move without
//! anything else being written.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Area, BLOCK, Damage, Decoded, Extent, Extents, FEW_PIECES, Geometry, MAX_PIECES, NodeId, Place, Superblock,
    bytes::{put_at, u32_at, u64_at},
};
use crate::{Error, Result};

const MAGIC: u32 = 0x7061_4d6e;
const HEADER: usize = 24;
const SUM_AT: usize = BLOCK - 8;
/// Bytes of an entry without its pieces, and of a piece.
const ENTRY: usize = 24;
const PIECE: usize = 8;
const STRUCTURE: &str = "node map";

/// Where each node lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMap {
    places: BTreeMap<NodeId, Place>,
}

impl NodeMap {
    /// Of no nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where a node lies.
    pub fn get(&self, node: NodeId) -> Option<&Place> {
        self.places.get(&node)
    }

    /// A node lies here from now on; gives where it lay before.
    pub fn insert(&mut self, node: NodeId, place: Place) -> Option<Place> {
        self.places.insert(node, place)
    }

    /// There is no such node any more; gives where it lay.
    pub fn remove(&mut self, node: NodeId) -> Option<Place> {
        self.places.remove(&node)
    }

    /// All nodes and where they lie, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Place)> {
        self.places.iter().map(|(node, place)| (*node, place))
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many bytes [`encode`](Self::encode) gives for so many nodes at most, if they have [few pieces](FEW_PIECES) each.
    pub fn most_bytes(nodes: usize) -> u64 {
        let in_chunk = (SUM_AT - HEADER) / (ENTRY + FEW_PIECES * PIECE);
        (nodes.div_ceil(in_chunk).max(1) * BLOCK) as u64
    }

    /// The map in whole chunks, one at least, as the superblock `generation` is to name it.
    pub fn encode(&self, generation: u64) -> Vec<u8> {
        let mut chunks = Vec::new();
        let mut chunk = Vec::with_capacity(BLOCK);
        let (mut number, mut entries) = (0_u32, 0_u32);
        let mut close = |chunk: &mut Vec<u8>, entries: &mut u32| {
            chunk.resize(BLOCK, 0);
            put_at(chunk, 0, &MAGIC.to_le_bytes());
            put_at(chunk, 4, &number.to_le_bytes());
            put_at(chunk, 8, &generation.to_le_bytes());
            put_at(chunk, 16, &entries.to_le_bytes());
            let sum = xxh3_64(&chunk[..SUM_AT]);
            put_at(chunk, SUM_AT, &sum.to_le_bytes());
            chunks.append(chunk);
            chunk.resize(HEADER, 0);
            (number, *entries) = (number + 1, 0);
        };
        chunk.resize(HEADER, 0);
        for (node, place) in &self.places {
            if chunk.len() + ENTRY + PIECE * place.extents.len() > SUM_AT {
                close(&mut chunk, &mut entries);
            }
            chunk.extend_from_slice(&node.0.to_le_bytes());
            chunk.extend_from_slice(&place.header_sum.to_le_bytes());
            chunk.extend_from_slice(&place.bytes.to_le_bytes());
            chunk.extend_from_slice(&(place.extents.len() as u32).to_le_bytes());
            for extent in place.extents.iter() {
                chunk.extend_from_slice(&extent.first.to_le_bytes());
                chunk.extend_from_slice(&extent.count.to_le_bytes());
            }
            entries += 1;
        }
        close(&mut chunk, &mut entries);
        chunks
    }

    /// Reads what [`encode`](Self::encode) gave. Errors: the first field that is not as it must be, with the number of its chunk or node.
    pub fn decode(bytes: &[u8], generation: u64, geometry: &Geometry) -> Decoded<Self> {
        let mut map = Self::default();
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK) {
            return Err(Damage::new(STRUCTURE, "length", bytes.len(), format!("a multiple of {BLOCK}")));
        }
        for (number, chunk) in bytes.chunks_exact(BLOCK).enumerate() {
            for (node, place) in decode_chunk(chunk, number, generation, geometry)? {
                if let Some((&last, _)) = map.places.last_key_value()
                    && node <= last
                {
                    return Err(Damage::new(STRUCTURE, "node", node, format!("more than {last}, the one before")));
                }
                map.places.insert(node, place);
            }
        }
        Ok(map)
    }

    /// The checksum of the encoded map, which the superblock holds.
    pub fn sum(encoded: &[u8]) -> u64 {
        xxh3_64(encoded)
    }

    /// Reads the map that a superblock names. Errors: `Device`; `Damaged`.
    pub fn load(area: &Area, superblock: &Superblock) -> Result<Self> {
        let at = || format!("{}, superblock {}", area.device().name(), superblock.generation);
        let bytes = area.read(&superblock.map.extents, 0, superblock.map.bytes as usize)?;
        let map = Self::decode(&bytes, superblock.generation, area.geometry())
            .map_err(|damage| Error::damaged(at(), &damage))?;
        let (found, expected) = (Self::sum(&bytes), superblock.map.sum);
        if found != expected {
            let (found, expected) = (format!("{found:#018x}"), format!("{expected:#018x}"));
            return Err(Error::damaged(at(), &Damage::new(STRUCTURE, "checksum of all", found, expected)));
        }
        Ok(map)
    }
}

/// An entry of a chunk that may belong to any map: the node, its header's checksum, and its extents as they stand there.
pub(crate) type LooseEntry = (NodeId, u64, Vec<Extent>);

/// The entries of a block that is a whole chunk of some map, for who looks for nodes whose map is lost. `None`: it is none.
pub(crate) fn loose_entries(chunk: &[u8]) -> Option<Vec<LooseEntry>> {
    if u32_at(chunk, 0) != MAGIC || u64_at(chunk, SUM_AT) != xxh3_64(&chunk[..SUM_AT]) {
        return None;
    }
    let (mut at, mut entries) = (HEADER, Vec::new());
    for _ in 0..u32_at(chunk, 16) {
        let pieces = if at + ENTRY <= SUM_AT { u32_at(chunk, at + 20) as usize } else { 0 };
        let end = at + ENTRY + PIECE * pieces.min(MAX_PIECES);
        if pieces == 0 || end > SUM_AT {
            return None;
        }
        let extent = |at| Extent { first: u32_at(chunk, at), count: u32_at(chunk, at + 4) };
        let extents = (at + ENTRY..end).step_by(PIECE).map(extent).collect();
        entries.push((NodeId(u64_at(chunk, at)), u64_at(chunk, at + 8), extents));
        at = end;
    }
    Some(entries)
}

/// The entries of one chunk.
fn decode_chunk(chunk: &[u8], number: usize, generation: u64, geometry: &Geometry) -> Decoded<Vec<(NodeId, Place)>> {
    let damage = |field, found: String, expected: String| {
        Err(Damage::new(STRUCTURE, field, format!("{found} (chunk {number})"), expected))
    };
    let (found, sum) = (u64_at(chunk, SUM_AT), xxh3_64(&chunk[..SUM_AT]));
    if found != sum {
        return damage("checksum", format!("{found:#018x}"), format!("{sum:#018x}"));
    }
    if u32_at(chunk, 0) != MAGIC {
        return damage("magic", format!("{:#010x}", u32_at(chunk, 0)), format!("{MAGIC:#010x}"));
    }
    if u32_at(chunk, 4) as usize != number {
        return damage("chunk number", u32_at(chunk, 4).to_string(), number.to_string());
    }
    if u64_at(chunk, 8) != generation {
        return damage("generation", u64_at(chunk, 8).to_string(), generation.to_string());
    }
    let (mut at, mut entries) = (HEADER, Vec::new());
    for _ in 0..u32_at(chunk, 16) {
        let pieces = if at + ENTRY <= SUM_AT { u32_at(chunk, at + 20) as usize } else { 0 };
        let end = at + ENTRY + PIECE * pieces.min(MAX_PIECES);
        if end > SUM_AT {
            return damage("entries", u32_at(chunk, 16).to_string(), format!("{} at most", entries.len()));
        }
        let node = NodeId(u64_at(chunk, at));
        let extent = |at| Extent { first: u32_at(chunk, at), count: u32_at(chunk, at + 4) };
        let extents: Vec<Extent> = (at + ENTRY..end).step_by(PIECE).map(extent).collect();
        let all = Extents::new(&extents).filter(|_| (1..=MAX_PIECES).contains(&pieces));
        let Some(all) = all else {
            return damage("pieces", format!("{pieces} of node {node}"), format!("1 to {MAX_PIECES}"));
        };
        let inside = |extent: &Extent| extent.first.checked_add(extent.count).is_some_and(|end| end <= geometry.units);
        if let Some(extent) = extents.iter().find(|extent| extent.count == 0 || !inside(extent)) {
            let found = format!("{} units from {} of node {node}", extent.count, extent.first);
            return damage("extent", found, format!("some of {} units", geometry.units));
        }
        let bytes = u32_at(chunk, at + 16);
        if geometry.units_for(u64::from(bytes)) as u64 != all.units() || bytes == 0 {
            return damage(
                "bytes",
                format!("{bytes} of node {node}"),
                format!("as many as {} units take", all.units()),
            );
        }
        if node.0 == 0 {
            return damage("node", "0".to_owned(), "a number that nodes have".to_owned());
        }
        entries.push((node, Place { extents: all, bytes, header_sum: u64_at(chunk, at + 8) }));
        at = end;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn geometry() -> Geometry {
        Geometry::plan(64 << 20, 4096, Some(1 << 20)).unwrap()
    }

    fn place(pieces: u32, at: u32) -> Place {
        let pieces: Vec<Extent> = (0..pieces).map(|piece| Extent { first: at + 5 * piece, count: 1 + piece }).collect();
        let extents = Extents::new(&pieces).unwrap();
        let bytes = extents.units() as u32 * 4096 - at % 4096;
        Place { extents, bytes, header_sum: u64::from(at) << 20 }
    }

    fn example() -> NodeMap {
        let mut map = NodeMap::new();
        for node in 1..200_u32 {
            map.insert(NodeId(u64::from(node) * 3), place(node % 4 + 1, node * 40));
        }
        map
    }

    #[test]
    fn golden() {
        let bytes = example().encode(7);
        assert_eq!((bytes.len(), NodeMap::sum(&bytes)), (12_288, 14_720_035_027_648_694_284));
        assert_eq!(NodeMap::decode(&bytes, 7, &geometry()).unwrap(), example());
        assert!(bytes.len() as u64 <= NodeMap::most_bytes(example().len()));
        let none = NodeMap::new().encode(1);
        assert_eq!(none.len(), BLOCK);
        assert!(NodeMap::decode(&none, 1, &geometry()).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let cases: &[(usize, u32, &str)] = &[
            (0, 1, "magic"),
            (4, 1, "chunk number"),
            (8, 8, "generation"),
            (16, 500, "entries"),
            (24, 0, "node"),
            (24, 7, "node"),
            (40, 0, "bytes"),
            (40, 1 << 20, "bytes"),
            (44, 0, "pieces"),
            (44, 501, "pieces"),
            (48, 1 << 30, "extent"),
            (52, 0, "extent"),
            (52, u32::MAX, "extent"),
        ];
        for &(at, value, field) in cases {
            let mut bytes = example().encode(7);
            put_at(&mut bytes, at, &value.to_le_bytes());
            assert_eq!(NodeMap::decode(&bytes, 7, &geometry()).unwrap_err().field, "checksum");
            let sum = xxh3_64(&bytes[..SUM_AT]);
            put_at(&mut bytes, SUM_AT, &sum.to_le_bytes());
            let damage = NodeMap::decode(&bytes, 7, &geometry()).unwrap_err();
            assert_eq!(damage.field, field, "{value} at {at}: {damage}");
        }
        assert_eq!(NodeMap::decode(&[0; 5], 7, &geometry()).unwrap_err().field, "length");
    }

    proptest! {
        #[test]
        fn maps_come_back(places in proptest::collection::btree_map(1u64.., (1u32..5, 0u32..15_000), 0..300)) {
            let mut map = NodeMap::new();
            for (node, (pieces, at)) in places {
                map.insert(NodeId(node), place(pieces, at));
            }
            let bytes = map.encode(9);
            prop_assert!(bytes.len() as u64 <= NodeMap::most_bytes(map.len()));
            prop_assert_eq!(NodeMap::decode(&bytes, 9, &geometry()).unwrap(), map);
        }

        #[test]
        fn any_bytes_are_refused_or_read(mut bytes in proptest::collection::vec(any::<u8>(), BLOCK)) {
            put_at(&mut bytes, 0, &MAGIC.to_le_bytes());
            put_at(&mut bytes, 4, &[0; 4]);
            put_at(&mut bytes, 8, &7u64.to_le_bytes());
            let sum = xxh3_64(&bytes[..SUM_AT]);
            put_at(&mut bytes, SUM_AT, &sum.to_le_bytes());
            prop_assert!(NodeMap::decode(&bytes, 7, &geometry()).is_err());
        }
    }
}
