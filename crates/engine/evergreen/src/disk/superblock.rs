//! The superblock: the one block from which all is reached.

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, Damage, Decoded, Extent, FORMAT_VERSION, Geometry, KeyOrder, NodeId, Shape,
    bytes::{array_at, put_at, u32_at, u64_at},
};
use crate::log::LogStart;

pub(super) const MAGIC: &[u8; 8] = b"SNSCevrg";
const SUM_AT: usize = 4088;
/// What is counted on and on is never more: no device lasts so long.
pub(crate) const MOST_COUNTED: u64 = 1 << 62;
const MAP_AT: usize = 256;

/// Pieces of the map of nodes at most.
pub const MAX_MAP_PIECES: usize = 256;

/// A state of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Which file system it is.
    pub uuid: [u8; 16],
    /// Where the parts of the device are.
    pub geometry: Geometry,
    /// How the tree is shaped.
    pub shape: Shape,
    /// Counts superblocks; the higher valid one is the file system.
    pub generation: u64,
    /// Where the map of nodes lies.
    pub map: MapPlace,
    /// The root of the tree.
    pub root: NodeId,
    /// The number of the next node that is made.
    pub next_node: u64,
    /// Bytes of keys and values that are live.
    pub live_bytes: u64,
    /// Where replaying the log begins; all before is in the tree.
    pub replay: LogStart,
}

/// Where the map of nodes lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapPlace {
    /// Its units, [`MAX_MAP_PIECES`] pieces at most.
    pub extents: Vec<Extent>,
    /// Its length: whole chunks.
    pub bytes: u64,
    /// The checksum of all of it.
    pub sum: u64,
}

impl Superblock {
    /// The block as it is written.
    pub fn encode(&self) -> Box<[u8; BLOCK]> {
        debug_assert!(self.map.extents.len() <= MAX_MAP_PIECES, "the map was written in so many pieces");
        let mut out = Box::new([0; BLOCK]);
        let (geometry, shape) = (&self.geometry, &self.shape);
        put_at(&mut out[..], 0, MAGIC);
        put_at(&mut out[..], 8, &FORMAT_VERSION.to_le_bytes());
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
        for (index, extent) in self.map.extents.iter().enumerate() {
            put_at(&mut out[..], MAP_AT + 8 * index, &extent.first.to_le_bytes());
            put_at(&mut out[..], MAP_AT + 8 * index + 4, &extent.count.to_le_bytes());
        }
        let sum = xxh3_64(&out[..SUM_AT]);
        put_at(&mut out[..], SUM_AT, &sum.to_le_bytes());
        out
    }

    /// Reads what [`encode`](Self::encode) wrote. Errors: the first field that is not as it must be; `magic` for what is no
    /// superblock, `version` for one of another format.
    pub fn decode(block: &[u8; BLOCK]) -> Decoded<Self> {
        let damage = |field, found: &dyn ToString, expected: &dyn ToString| {
            Err(Damage::new("superblock", field, found.to_string(), expected.to_string()))
        };
        if block[..8] != MAGIC[..] {
            return damage("magic", &block[..8].escape_ascii(), &MAGIC.escape_ascii());
        }
        // Magic, version and checksum stay where they are in every version.
        let (found, sum) = (u64_at(block, SUM_AT), xxh3_64(&block[..SUM_AT]));
        if found != sum {
            return damage("checksum", &format!("{found:#018x}"), &format!("{sum:#018x}"));
        }
        let version = u32_at(block, 8);
        if version != FORMAT_VERSION {
            return damage("version", &version, &FORMAT_VERSION);
        }
        Self::decode_fields(block)
    }

    /// What the numbers of a block say, whatever its checksum is: for who has nothing better, and tries what they lead to. Errors: the first
    /// field that cannot be.
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
        let pieces = u32_at(block, 92) as usize;
        if pieces > MAX_MAP_PIECES {
            return damage("map pieces", &pieces, &format!("at most {MAX_MAP_PIECES}"));
        }
        let piece =
            |index| Extent { first: u32_at(block, MAP_AT + 8 * index), count: u32_at(block, MAP_AT + 8 * index + 4) };
        let extents: Vec<Extent> = (0..pieces).map(piece).collect();
        let outside = |extent: &&Extent| {
            extent.count == 0 || extent.first.checked_add(extent.count).is_none_or(|end| end > geometry.units)
        };
        if let Some(extent) = extents.iter().find(outside) {
            return damage(
                "map extent",
                &format!("{} units from {}", extent.count, extent.first),
                &"units of the area",
            );
        }
        let map = MapPlace { extents, bytes: u64_at(block, 96), sum: u64_at(block, 104) };
        let room =
            map.extents.iter().map(|extent| u64::from(extent.count)).sum::<u64>() * u64::from(geometry.unit_bytes);
        if map.bytes > room || !map.bytes.is_multiple_of(BLOCK as u64) {
            return damage("map bytes", &map.bytes, &format!("a multiple of {BLOCK}, at most {room}"));
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
        Ok(Self { uuid: array_at(block, 16), geometry, shape, generation, map, root, next_node, live_bytes, replay })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> Superblock {
        Superblock {
            uuid: *b"evergreen golden",
            geometry: Geometry::plan(64 << 20, 64 << 10, Some(1 << 20)).unwrap(),
            shape: Shape { key_order: KeyOrder::InodeNumber, ..Shape::default() },
            generation: 17,
            map: MapPlace {
                extents: vec![Extent { first: 3, count: 1 }, Extent { first: 90, count: 2 }],
                bytes: 3 << 16,
                sum: 5,
            },
            root: NodeId(40),
            next_node: 42,
            live_bytes: 1_000_000,
            replay: LogStart { position: 77 * 4096, sequence: 900, chain: 12 },
        }
    }

    /// The example with another number at a place, under a right checksum.
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
        assert_eq!(xxh3_64(&bytes[..]), 29_920_152_158_174_126);
    }

    #[test]
    fn no_bit_is_changed_unseen() {
        let bytes = example().encode();
        for bit in 0..BLOCK * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let field = Superblock::decode(&other).unwrap_err().field;
            assert_eq!(field, if bit < 64 { "magic" } else { "checksum" }, "bit {bit}");
        }
    }

    /// Each field in turn holds what cannot be, under a right checksum.
    #[test]
    fn what_cannot_be_is_named() {
        let cases: &[(usize, u32, &str)] = &[
            (8, 2, "version"),
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
            (256, 1 << 30, "map extent"),
            (260, 0, "map extent"),
        ];
        for (at, value, field) in cases {
            let bytes = forged(*at, *value);
            assert_eq!(Superblock::decode(&bytes).unwrap_err().field, *field, "at {at}");
        }
    }
}
