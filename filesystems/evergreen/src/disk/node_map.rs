//! The map of nodes, with the place of each node. Every checkpoint writes the whole map, so a node
//! can move without a write of its parent.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, Damage, Decoded, FEW_PIECES, Geometry, NodeId, Place,
    bytes::put_at,
    node_map_chunk::{ENTRY, HEADER, MAGIC, OLD_HEADER, OLD_MAGIC, PIECE, STRUCTURE, SUM_AT, UUID_AT, decode_chunk},
};

/// The places of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMap {
    places: BTreeMap<NodeId, Place>,
}

impl NodeMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// The place of a node.
    pub fn get(&self, node: NodeId) -> Option<&Place> {
        self.places.get(&node)
    }

    /// Sets the place of a node; returns its old one.
    pub fn insert(&mut self, node: NodeId, place: Place) -> Option<Place> {
        self.places.insert(node, place)
    }

    /// Removes a node; returns its place.
    pub fn remove(&mut self, node: NodeId) -> Option<Place> {
        self.places.remove(&node)
    }

    /// All nodes and their places, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Place)> {
        self.places.iter().map(|(node, place)| (*node, place))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The checksum of the numbers, header checksums and lengths of all nodes, independent of their
    /// places. If a repair by scan finds nodes with the same sum, it has found all of them.
    pub fn node_sum(&self) -> u64 {
        node_sum(self.iter().map(|(node, place)| (node, place.header_sum, place.bytes)))
    }

    /// The most bytes that [`encode`](Self::encode) returns for `nodes` nodes, if each copy has
    /// [few pieces](FEW_PIECES).
    pub fn most_bytes(nodes: usize) -> u64 {
        let in_chunk = (SUM_AT - HEADER) / (ENTRY + 2 * FEW_PIECES * PIECE);
        (nodes.div_ceil(in_chunk).max(1) * BLOCK) as u64
    }

    /// Encodes the map in whole chunks, at least one, for the superblock `generation`. Without a
    /// UUID it uses format version 1; then all nodes must have one copy.
    pub fn encode(&self, uuid: Option<&[u8; 16]>, generation: u64) -> Vec<u8> {
        let (magic, header) = if uuid.is_some() { (MAGIC, HEADER) } else { (OLD_MAGIC, OLD_HEADER) };
        let mut chunks = Vec::new();
        let mut chunk = Vec::with_capacity(BLOCK);
        let (mut number, mut entries) = (0_u32, 0_u32);
        let mut close = |chunk: &mut Vec<u8>, entries: &mut u32| {
            chunk.resize(BLOCK, 0);
            put_at(chunk, 0, &magic.to_le_bytes());
            put_at(chunk, 4, &number.to_le_bytes());
            put_at(chunk, 8, &generation.to_le_bytes());
            put_at(chunk, 16, &entries.to_le_bytes());
            if let Some(uuid) = uuid {
                put_at(chunk, UUID_AT, uuid);
            }
            let sum = xxh3_64(&chunk[..SUM_AT]);
            put_at(chunk, SUM_AT, &sum.to_le_bytes());
            chunks.append(chunk);
            chunk.resize(header, 0);
            (number, *entries) = (number + 1, 0);
        };
        chunk.resize(header, 0);
        for (node, place) in &self.places {
            if chunk.len() + ENTRY + PIECE * (place.extents.len() + place.second.len()) > SUM_AT {
                close(&mut chunk, &mut entries);
            }
            chunk.extend_from_slice(&node.0.to_le_bytes());
            chunk.extend_from_slice(&place.header_sum.to_le_bytes());
            chunk.extend_from_slice(&place.bytes.to_le_bytes());
            // In version 1 both counts are one larger number; its upper half is 0.
            chunk.extend_from_slice(&(place.extents.len() as u16).to_le_bytes());
            chunk.extend_from_slice(&(place.second.len() as u16).to_le_bytes());
            for extent in place.all() {
                chunk.extend_from_slice(&extent.first.to_le_bytes());
                chunk.extend_from_slice(&extent.count.to_le_bytes());
            }
            entries += 1;
        }
        close(&mut chunk, &mut entries);
        chunks
    }

    /// Decodes a map, also of format version 1. Errors: the first wrong field, with the number of
    /// its chunk or node.
    pub fn decode(bytes: &[u8], uuid: &[u8; 16], generation: u64, geometry: &Geometry) -> Decoded<Self> {
        let mut map = Self::default();
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK) {
            return Err(Damage::new(STRUCTURE, "length", bytes.len(), format!("a multiple of {BLOCK}")));
        }
        for (number, chunk) in bytes.chunks_exact(BLOCK).enumerate() {
            for (node, place) in decode_chunk(chunk, number, uuid, generation, geometry)? {
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

    /// The checksum of the encoded map, for the superblock.
    pub fn sum(encoded: &[u8]) -> u64 {
        xxh3_64(encoded)
    }
}

/// [`NodeMap::node_sum`] of nodes in the order of their numbers. Each has a number, a header
/// checksum and a length.
pub(crate) fn node_sum(nodes: impl Iterator<Item = (NodeId, u64, u32)>) -> u64 {
    let mut bytes = Vec::new();
    for (node, header_sum, len) in nodes {
        bytes.extend_from_slice(&node.0.to_le_bytes());
        bytes.extend_from_slice(&header_sum.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
    }
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::node_map_chunk::loose_entries, *};
    use crate::disk::{Extent, Extents};

    const UUID: &[u8; 16] = b"evergreen golden";

    fn decode(bytes: &[u8], generation: u64) -> Decoded<NodeMap> {
        NodeMap::decode(bytes, UUID, generation, &geometry())
    }

    fn geometry() -> Geometry {
        Geometry::plan(64 << 20, 4096, Some(1 << 20)).unwrap()
    }

    fn place(pieces: u32, at: u32) -> Place {
        let pieces: Vec<Extent> = (0..pieces).map(|piece| Extent { first: at + 5 * piece, count: 1 + piece }).collect();
        let extents = Extents::new(&pieces).unwrap();
        let bytes = extents.units() as u32 * 4096 - at % 4096;
        let apart = [Extent { first: 15_800 - extents.units() as u32, count: extents.units() as u32 }];
        let second = Extents::new(&apart[..usize::from(at.is_multiple_of(3))]).unwrap();
        Place { extents, second, bytes, header_sum: u64::from(at) << 20 }
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
        let bytes = example().encode(Some(UUID), 7);
        assert_eq!((bytes.len(), NodeMap::sum(&bytes)), (12_288, 9_941_521_626_996_622_593));
        assert_eq!(decode(&bytes, 7).unwrap(), example());
        assert!(bytes.len() as u64 <= NodeMap::most_bytes(example().len()));
        let none = NodeMap::new().encode(Some(UUID), 1);
        assert_eq!(none.len(), BLOCK);
        assert!(decode(&none, 1).unwrap().is_empty());
        assert_eq!(NodeMap::decode(&bytes, &[8; 16], 7, &geometry()).unwrap_err().field, "identity");
    }

    /// The expected bytes were written by a program for version 1.
    #[test]
    fn version_1_is_read() {
        let mut map = NodeMap::new();
        for (node, place) in example().iter() {
            map.insert(node, Place { second: Extents::default(), ..place.clone() });
        }
        let bytes = map.encode(None, 7);
        assert_eq!((bytes.len(), NodeMap::sum(&bytes)), (12_288, 14_720_035_027_648_694_284));
        assert_eq!(decode(&bytes, 7).unwrap(), map);
    }

    #[test]
    fn wrong_fields_are_named() {
        let cases: &[(usize, u32, &str)] = &[
            (0, 1, "magic"),
            (4, 1, "chunk number"),
            (8, 8, "generation"),
            // After the last entry all bytes are zero.
            (16, 500, "pieces"),
            (24, 0, "identity"),
            (40, 0, "node"),
            (40, 7, "node"),
            (56, 0, "bytes"),
            (56, 1 << 20, "bytes"),
            (60, 0, "pieces"),
            (60, 501, "pieces"),
            (60, 1 << 16, "pieces"),
            (60, 1 | 500 << 16, "pieces"),
            (60, 10 | 500 << 16, "entries"),
            (64, 1 << 30, "extent"),
            (68, 0, "extent"),
            (68, u32::MAX, "extent"),
        ];
        for &(at, value, field) in cases {
            let mut bytes = example().encode(Some(UUID), 7);
            put_at(&mut bytes, at, &value.to_le_bytes());
            assert_eq!(decode(&bytes, 7).unwrap_err().field, "checksum");
            let sum = xxh3_64(&bytes[..SUM_AT]);
            put_at(&mut bytes, SUM_AT, &sum.to_le_bytes());
            let damage = decode(&bytes, 7).unwrap_err();
            assert_eq!(damage.field, field, "{value} at {at}: {damage}");
        }
        assert_eq!(decode(&[0; 5], 7).unwrap_err().field, "length");
    }

    proptest! {
        #[test]
        fn maps_round_trip(places in proptest::collection::btree_map(1u64.., (1u32..5, 0u32..15_000), 0..300)) {
            let mut map = NodeMap::new();
            for (node, (pieces, at)) in places {
                map.insert(NodeId(node), place(pieces, at));
            }
            let bytes = map.encode(Some(UUID), 9);
            prop_assert!(bytes.len() as u64 <= NodeMap::most_bytes(map.len()));
            let again = decode(&bytes, 9).unwrap();
            prop_assert_eq!(again.node_sum(), map.node_sum());
            prop_assert_eq!(again, map);
        }

        #[test]
        fn arbitrary_chunks_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), BLOCK), is_old: bool) {
            put_at(&mut bytes, 0, &if is_old { OLD_MAGIC } else { MAGIC }.to_le_bytes());
            put_at(&mut bytes, 4, &[0; 4]);
            put_at(&mut bytes, 8, &7u64.to_le_bytes());
            put_at(&mut bytes, UUID_AT, &UUID[..if is_old { 0 } else { 16 }]);
            let sum = xxh3_64(&bytes[..SUM_AT]);
            put_at(&mut bytes, SUM_AT, &sum.to_le_bytes());
            prop_assert!(decode(&bytes, 7).is_err());
            loose_entries(&bytes);
        }
    }
}
