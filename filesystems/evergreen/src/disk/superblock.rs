//! The superblock: the block that names all other structures.

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, Copies, Damage, Decoded, Extent, FORMAT_VERSION, Geometry, KeyOrder, NodeId, OLDEST_VERSION, Shape,
    bytes::{array_at, put_at, u32_at, u64_at},
};
use crate::log::LogStart;

pub(super) const MAGIC: &[u8; 8] = b"SNSCevrg";
const SUM_AT: usize = 4088;
/// The limit of all counters. No device lives long enough to reach it.
pub(crate) const MOST_COUNTED: u64 = 1 << 62;
const MAP_AT: usize = 256;
const SECOND_MAP_AT: usize = MAP_AT + 8 * MAX_MAP_PIECES;

/// The most pieces of the map of nodes.
pub const MAX_MAP_PIECES: usize = 256;

/// The most pieces of the second copy of the map.
pub const MAX_SECOND_MAP_PIECES: usize = 220;

/// A durable state of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The format version, set when the file system was made.
    pub version: u32,
    /// The UUID of the file system.
    pub uuid: [u8; 16],
    /// The layout of the device.
    pub geometry: Geometry,
    /// The shape of the tree.
    pub shape: Shape,
    /// The number of copies of inner nodes and of the map.
    pub copies: Copies,
    /// The number of this superblock. The valid one with the higher number is the current state.
    pub generation: u64,
    /// The place of the map of nodes.
    pub map: MapPlace,
    /// The root of the tree.
    pub root: NodeId,
    /// The number of the next new node.
    pub next_node: u64,
    /// The bytes of live keys and values.
    pub live_bytes: u64,
    /// The start of the replay of the log; the tree has all earlier changes.
    pub replay: LogStart,
}

/// The place of the map of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapPlace {
    /// The extents, at most [`MAX_MAP_PIECES`].
    pub extents: Vec<Extent>,
    /// The extents of the second copy, at most [`MAX_SECOND_MAP_PIECES`]; empty if there is one
    /// copy.
    pub second: Vec<Extent>,
    /// The length in bytes: whole chunks.
    pub bytes: u64,
    /// The checksum of the encoded map.
    pub sum: u64,
    /// The checksum of the nodes in the map, independent of their places. Format version 1 has
    /// none.
    pub node_sum: Option<u64>,
}

impl MapPlace {
    /// The extents of all copies.
    pub fn all(&self) -> impl Iterator<Item = Extent> + '_ {
        self.extents.iter().chain(&self.second).copied()
    }

    /// Each copy with its name.
    pub(crate) fn copies(&self) -> impl Iterator<Item = (&'static str, &[Extent])> {
        let second = (!self.second.is_empty()).then_some(("the second copy of the map of nodes", &self.second[..]));
        [("the map of nodes", &self.extents[..])].into_iter().chain(second)
    }
}

impl Superblock {
    /// The UUID that nodes and maps carry; none in format version 1.
    pub(crate) fn identity(&self) -> Option<&[u8; 16]> {
        (self.version > OLDEST_VERSION).then_some(&self.uuid)
    }

    /// Encodes the block.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        debug_assert!(self.map.extents.len() <= MAX_MAP_PIECES, "the map has at most this number of pieces");
        let mut out = Box::new([0; BLOCK]);
        let (geometry, shape) = (&self.geometry, &self.shape);
        put_at(&mut out[..], 0, MAGIC);
        put_at(&mut out[..], 8, &self.version.to_le_bytes());
        put_at(&mut out[..], 12, &geometry.unit_bytes.to_le_bytes());
        put_at(&mut out[..], 16, &self.uuid);
        put_at(&mut out[..], 32, &self.generation.to_le_bytes());
        put_at(&mut out[..], 40, &geometry.device_bytes.to_le_bytes());
        put_at(&mut out[..], 48, &geometry.log_at.to_le_bytes());
        put_at(&mut out[..], 56, &geometry.log_bytes.to_le_bytes());
        put_at(&mut out[..], 64, &geometry.data_at.to_le_bytes());
        put_at(&mut out[..], 72, &geometry.units.to_le_bytes());
        put_at(&mut out[..], 76, &shape.node_bytes.to_le_bytes());
        put_at(&mut out[..], 80, &shape.basement_bytes.to_le_bytes());
        put_at(&mut out[..], 84, &shape.fanout.to_le_bytes());
        put_at(&mut out[..], 88, &shape.key_order.code().to_le_bytes());
        put_at(&mut out[..], 92, &(self.map.extents.len() as u32).to_le_bytes());
        put_at(&mut out[..], 96, &self.map.bytes.to_le_bytes());
        put_at(&mut out[..], 104, &self.map.sum.to_le_bytes());
        put_at(&mut out[..], 112, &self.root.0.to_le_bytes());
        put_at(&mut out[..], 120, &self.next_node.to_le_bytes());
        put_at(&mut out[..], 128, &self.live_bytes.to_le_bytes());
        put_at(&mut out[..], 136, &self.replay.position.to_le_bytes());
        put_at(&mut out[..], 144, &self.replay.sequence.to_le_bytes());
        put_at(&mut out[..], 152, &self.replay.chain.to_le_bytes());
        if self.version > OLDEST_VERSION {
            put_at(&mut out[..], 160, &self.copies.code().to_le_bytes());
            put_at(&mut out[..], 164, &(self.map.second.len() as u32).to_le_bytes());
            put_at(&mut out[..], 168, &self.map.node_sum.unwrap_or(0).to_le_bytes());
        }
        for (at, extents) in [(MAP_AT, &self.map.extents), (SECOND_MAP_AT, &self.map.second)] {
            for (index, extent) in extents.iter().enumerate() {
                put_at(&mut out[..], at + 8 * index, &extent.first.to_le_bytes());
                put_at(&mut out[..], at + 8 * index + 4, &extent.count.to_le_bytes());
            }
        }
        let sum = xxh3_64(&out[..SUM_AT]);
        put_at(&mut out[..], SUM_AT, &sum.to_le_bytes());
        out
    }

    /// Decodes a block. Errors: the first wrong field; `magic` if the block is no superblock,
    /// `version` for another format.
    pub fn decode(block: &[u8; BLOCK]) -> Decoded<Self> {
        let damage = |field, found: &dyn ToString, expected: &dyn ToString| {
            Err(Damage::new("superblock", field, found.to_string(), expected.to_string()))
        };
        if block[..8] != MAGIC[..] {
            return damage("magic", &block[..8].escape_ascii(), &MAGIC.escape_ascii());
        }
        // Magic, version and checksum have the same offsets in every version.
        let (found, sum) = (u64_at(block, SUM_AT), xxh3_64(&block[..SUM_AT]));
        if found != sum {
            return damage("checksum", &format!("{found:#018x}"), &format!("{sum:#018x}"));
        }
        let version = u32_at(block, 8);
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
            return damage("version", &version, &format!("{OLDEST_VERSION} to {FORMAT_VERSION}"));
        }
        Self::decode_fields(block)
    }

    /// Decodes the fields without a check of the checksum, for a repair that has no better
    /// superblock. Errors: the first wrong field.
    pub(crate) fn decode_fields(block: &[u8; BLOCK]) -> Decoded<Self> {
        let damage = |field, found: &dyn ToString, expected: &dyn ToString| {
            Err(Damage::new("superblock", field, found.to_string(), expected.to_string()))
        };
        let geometry = Geometry {
            device_bytes: u64_at(block, 40),
            log_at: u64_at(block, 48),
            log_bytes: u64_at(block, 56),
            data_at: u64_at(block, 64),
            unit_bytes: u32_at(block, 12),
            units: u32_at(block, 72),
        };
        geometry.validate()?;
        let shape = Shape {
            node_bytes: u32_at(block, 76),
            basement_bytes: u32_at(block, 80),
            fanout: u32_at(block, 84),
            key_order: KeyOrder::from_code(u32_at(block, 88))?,
        };
        shape.validate()?;
        let version = u32_at(block, 8);
        let is_old = version == OLDEST_VERSION;
        let read_extents = |field, at: usize, pieces: usize, most: usize| {
            if pieces > most {
                return Err(Damage::new("superblock", field, pieces, format!("at most {most}")));
            }
            let number = |at| u32_at(block, at);
            let piece = |index| Extent { first: number(at + 8 * index), count: number(at + 8 * index + 4) };
            let extents: Vec<Extent> = (0..pieces).map(piece).collect();
            let outside = |extent: &&Extent| {
                extent.count == 0 || extent.first.checked_add(extent.count).is_none_or(|end| end > geometry.units)
            };
            match extents.iter().find(outside) {
                Some(extent) => {
                    let found = format!("{} units from {}", extent.count, extent.first);
                    Err(Damage::new("superblock", "map extent", found, "units of the area"))
                }
                None => Ok(extents),
            }
        };
        let extents = read_extents("map pieces", MAP_AT, u32_at(block, 92) as usize, MAX_MAP_PIECES)?;
        let second = match u32_at(block, 164) as usize {
            _ if is_old => Vec::new(),
            pieces => read_extents("second map pieces", SECOND_MAP_AT, pieces, MAX_SECOND_MAP_PIECES)?,
        };
        let copies = if is_old { Copies::One } else { Copies::from_code(u32_at(block, 160))? };
        let node_sum = (!is_old).then(|| u64_at(block, 168));
        let map = MapPlace { extents, second, bytes: u64_at(block, 96), sum: u64_at(block, 104), node_sum };
        let capacity =
            map.copies().map(|(_, extents)| extents.iter().map(|extent| u64::from(extent.count)).sum::<u64>());
        let capacity = capacity.min().unwrap_or(0) * u64::from(geometry.unit_bytes);
        if map.bytes > capacity || !map.bytes.is_multiple_of(BLOCK as u64) {
            return damage("map bytes", &map.bytes, &format!("a multiple of {BLOCK}, at most {capacity}"));
        }
        let (root, next_node) = (NodeId(u64_at(block, 112)), u64_at(block, 120));
        if root.0 == 0 || root.0 >= next_node {
            return damage("root", &root, &format!("a node below {next_node}"));
        }
        let replay = LogStart { position: u64_at(block, 136), sequence: u64_at(block, 144), chain: u64_at(block, 152) };
        if !replay.position.is_multiple_of(BLOCK as u64) {
            return damage("replay position", &replay.position, &format!("a multiple of {BLOCK}"));
        }
        let (generation, live_bytes) = (u64_at(block, 32), u64_at(block, 128));
        for (field, number) in [
            ("generation", generation),
            ("next node", next_node),
            ("live bytes", live_bytes),
            ("replay position", replay.position),
            ("replay sequence", replay.sequence),
        ] {
            if number > MOST_COUNTED {
                return damage(field, &number, &format!("at most {MOST_COUNTED}"));
            }
        }
        let uuid = array_at(block, 16);
        Ok(Self { version, uuid, geometry, shape, copies, generation, map, root, next_node, live_bytes, replay })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> Superblock {
        Superblock {
            version: FORMAT_VERSION,
            uuid: *b"evergreen golden",
            geometry: Geometry::plan(64 << 20, 64 << 10, Some(1 << 20)).unwrap(),
            shape: Shape { key_order: KeyOrder::InodeNumber, ..Shape::default() },
            copies: Copies::Two,
            generation: 17,
            map: MapPlace {
                extents: vec![Extent { first: 3, count: 1 }, Extent { first: 90, count: 2 }],
                second: vec![Extent { first: 600, count: 3 }],
                bytes: 3 << 16,
                sum: 5,
                node_sum: Some(6),
            },
            root: NodeId(40),
            next_node: 42,
            live_bytes: 1_000_000,
            replay: LogStart { position: 77 * 4096, sequence: 900, chain: 12 },
        }
    }

    /// The example with another number at an offset, with a correct checksum.
    pub(crate) fn forged(at: usize, value: u32) -> Box<[u8; BLOCK]> {
        let mut bytes = example().encode();
        put_at(&mut bytes[..], at, &value.to_le_bytes());
        let sum = xxh3_64(&bytes[..SUM_AT]);
        put_at(&mut bytes[..], SUM_AT, &sum.to_le_bytes());
        bytes
    }

    #[test]
    fn golden() {
        let bytes = example().encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), example());
        assert_eq!(xxh3_64(&bytes[..]), 18_141_336_353_754_165_873);
    }

    /// A superblock of format version 1, as a program of that time wrote it.
    #[test]
    fn version_1_is_read_and_written() {
        let mut old = Superblock { version: OLDEST_VERSION, copies: Copies::One, ..example() };
        (old.map.second, old.map.node_sum) = (Vec::new(), None);
        let bytes = old.encode();
        assert_eq!(xxh3_64(&bytes[..]), 29_920_152_158_174_126);
        assert_eq!(Superblock::decode(&bytes).unwrap(), old);
    }

    #[test]
    fn every_bit_flip_is_detected() {
        let bytes = example().encode();
        for bit in 0..BLOCK * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let field = Superblock::decode(&other).unwrap_err().field;
            assert_eq!(field, if bit < 64 { "magic" } else { "checksum" }, "bit {bit}");
        }
    }

    /// Each field in turn has an impossible value, with a correct checksum.
    #[test]
    fn wrong_fields_are_named() {
        let cases: &[(usize, u32, &str)] = &[
            (8, 3, "version"),
            (8, 0, "version"),
            (12, 3000, "unit bytes"),
            (40, 5, "device bytes"),
            (48, 0, "log at"),
            (56, 5, "log bytes"),
            (64, 0, "data at"),
            (72, 1, "device bytes"),
            (76, 100, "node bytes"),
            (80, 0, "basement bytes"),
            (84, 1, "fanout"),
            (88, 9, "key order"),
            (92, 1000, "map pieces"),
            (96, 1 << 30, "map bytes"),
            (112, 0, "root"),
            (120, 40, "root"),
            (136, 1, "replay position"),
            (36, u32::MAX, "generation"),
            (124, u32::MAX, "next node"),
            (132, u32::MAX, "live bytes"),
            (140, u32::MAX, "replay position"),
            (148, u32::MAX, "replay sequence"),
            (160, 3, "copies"),
            (164, 221, "second map pieces"),
            (256, 1 << 30, "map extent"),
            (260, 0, "map extent"),
            (2304, 1 << 30, "map extent"),
            (2308, 0, "map extent"),
            (2308, 2, "map bytes"),
        ];
        for (at, value, field) in cases {
            let bytes = forged(*at, *value);
            assert_eq!(Superblock::decode(&bytes).unwrap_err().field, *field, "at {at}");
        }
    }
}
