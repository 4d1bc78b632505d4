//! Objects that hold cold blocks, and their records in a file of the aggregate.
//!
//! An object is a head, a list of its blocks, and the blocks. Each block has its trailer as on a
//! drive, so a block that is read alone is checked like one of a drive. Its own PVBN there is the
//! place in the object.

use super::{
    Damage, Decoded, INNER_VERSION, SLOT,
    bytes::{array, put, u16_at, u32_at, u64_at},
    slot::{self, Slot},
};

const MAGIC: &[u8; 8] = b"SNSCobjt";
const LIST_AT: usize = 64;
const ENTRY: usize = 16;
/// Bytes before the first block.
pub(crate) const HEAD: usize = 16 << 10;
/// Blocks of a full object, which is slightly smaller than 4 MiB.
pub(crate) const SLOTS: usize = ((4 << 20) - HEAD) / SLOT;

/// Numbers of objects are below this.
pub(crate) const MAX_OBJECTS: u64 = 1 << 30;

const _: () = assert!(LIST_AT + SLOTS * ENTRY <= HEAD - 4 && SLOTS < 1 << 10);

/// The offset of a block in an object, in bytes.
pub(crate) fn slot_at(slot: u64) -> u64 {
    HEAD as u64 + slot * SLOT as u64
}

/// The key of an object in the store: the UUID of the aggregate and the number.
pub(crate) fn key(uuid: [u8; 16], object: u64) -> String {
    format!("{}/{object:010}", folder(uuid))
}

/// The prefix of all keys of an aggregate.
pub(crate) fn folder(uuid: [u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("garden-{digits}")
}

/// The number of the object with this key; `None` for any other key.
pub(crate) fn number(uuid: [u8; 16], key: &str) -> Option<u64> {
    let digits = key.strip_prefix(&folder(uuid))?.strip_prefix('/')?;
    let is_whole = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_whole && *number < MAX_OBJECTS)
}

/// The head of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectHead {
    pub uuid: [u8; 16],
    pub object: u64,
    /// The container file and the VVBN of each block.
    pub blocks: Vec<(u64, u64)>,
}

impl ObjectHead {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD];
        put(&mut out, 0, MAGIC);
        put(&mut out, 8, &INNER_VERSION.to_le_bytes());
        put(&mut out, 12, &(self.blocks.len() as u32).to_le_bytes());
        put(&mut out, 16, &self.uuid);
        put(&mut out, 32, &self.object.to_le_bytes());
        for (at, (owner, vvbn)) in (LIST_AT..).step_by(ENTRY).zip(&self.blocks) {
            put(&mut out, at, &owner.to_le_bytes());
            put(&mut out, at + 8, &vvbn.to_le_bytes());
        }
        let sum = crc32c::crc32c(&out[..HEAD - 4]);
        put(&mut out, HEAD - 4, &sum.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        if bytes.len() < HEAD {
            return Err(Damage::new("object", "bytes", bytes.len(), format!("{HEAD} at least")));
        }
        if bytes[..8] != MAGIC[..] {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return Err(Damage::new("object", "magic", text(&bytes[..8]), text(MAGIC)));
        }
        if u32_at(bytes, 8) != INNER_VERSION {
            return Err(Damage::new("object", "version", u32_at(bytes, 8), INNER_VERSION));
        }
        let (found, sum) = (u32_at(bytes, HEAD - 4), crc32c::crc32c(&bytes[..HEAD - 4]));
        if found != sum {
            return Err(Damage::new("object", "checksum", format!("{found:#010x}"), format!("{sum:#010x}")));
        }
        let count = u32_at(bytes, 12) as usize;
        if count == 0 || count > SLOTS {
            return Err(Damage::new("object", "blocks", count, format!("1 to {SLOTS}")));
        }
        let entry = |at| (u64_at(bytes, at), u64_at(bytes, at + 8));
        let blocks = (LIST_AT..).step_by(ENTRY).take(count).map(entry).collect();
        Ok(Self { uuid: array(bytes, 16), object: u64_at(bytes, 32), blocks })
    }

    /// The whole object: the head and these blocks.
    pub fn with(&self, slots: &[Slot]) -> Vec<u8> {
        let mut out = self.encode();
        slots.iter().for_each(|slot| out.extend_from_slice(&slot[..]));
        out
    }
}

/// The block in a range of bytes from an object.
///
/// Errors: the range is shorter than a slot.
pub(crate) fn slot_of(bytes: &[u8]) -> Decoded<Slot> {
    match bytes.first_chunk::<SLOT>() {
        Some(slot) => Ok(Slot::from(slot)),
        None => Err(Damage::new("object", "bytes of the block", bytes.len(), SLOT)),
    }
}

/// Encodes a block with its trailer for another place.
pub(crate) fn placed(data: &super::Block, context: &slot::Context, pvbn: u64) -> Slot {
    slot::encode(data, &slot::Context { pvbn, ..*context })
}

/// Bytes of a record.
pub(crate) const RECORD: usize = 16;
/// Records in a block.
pub(crate) const PER_BLOCK: u64 = (super::BLOCK / RECORD) as u64;

/// The aggregate's record of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectRecord {
    /// Blocks that container maps name.
    pub live: u16,
    /// Blocks that the object holds.
    pub blocks: u16,
    /// The consistency point that named the object first.
    pub cp: u64,
}

impl ObjectRecord {
    pub fn encode(record: Option<Self>) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        if let Some(Self { live, blocks, cp }) = record {
            put(&mut out, 0, &live.to_le_bytes());
            put(&mut out, 2, &blocks.to_le_bytes());
            put(&mut out, 8, &cp.to_le_bytes());
        }
        out
    }

    /// `None` if no object has this number.
    pub fn decode(bytes: &[u8; RECORD]) -> Decoded<Option<Self>> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let record = Self { live: u16_at(bytes, 0), blocks: u16_at(bytes, 2), cp: u64_at(bytes, 8) };
        let is_right = record.blocks > 0 && usize::from(record.blocks) <= SLOTS && record.live <= record.blocks;
        let found = || format!("{} of {} blocks", record.live, record.blocks);
        if is_right && u32_at(bytes, 4) == 0 {
            Ok(Some(record))
        } else {
            Err(Damage::new("object record", "blocks", found(), format!("some of 1 to {SLOTS}, then zeros")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let head = ObjectHead { uuid: [9; 16], object: 77, blocks: vec![(16, 1000), (17, 3)] };
        let bytes = head.encode();
        assert_eq!(ObjectHead::decode(&bytes).unwrap(), head);
        assert_eq!(crc32c::crc32c(&bytes[..HEAD - 4]), GOLDEN);
        let mut bad = bytes.clone();
        bad[70] ^= 1;
        assert_eq!(ObjectHead::decode(&bad).unwrap_err().field, "checksum");
        assert_eq!(ObjectHead::decode(&bytes[1..]).unwrap_err().field, "bytes");
        assert_eq!((slot_at(1), SLOTS), (20_544, 1004));
    }
    const GOLDEN: u32 = 3626142774;

    #[test]
    fn records_are_decoded_as_encoded() {
        let record = ObjectRecord { live: 3, blocks: 1004, cp: 0x0102_0304 };
        let bytes = ObjectRecord::encode(Some(record));
        assert_eq!(bytes, [3, 0, 0xec, 3, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(ObjectRecord::decode(&bytes).unwrap(), Some(record));
        assert_eq!(ObjectRecord::decode(&ObjectRecord::encode(None)).unwrap(), None);
        // More live blocks than blocks, more blocks than fit, a byte that must be zero.
        for (at, value) in [(1, 4), (3, 9), (5, 1)] {
            let mut bad = bytes;
            bad[at] = value;
            ObjectRecord::decode(&bad).unwrap_err();
        }
    }

    #[test]
    fn keys_name_their_objects() {
        let uuid = *b"senesce garden 1";
        assert_eq!(key(uuid, 42), "garden-73656e657363652067617264656e2031/0000000042");
        assert_eq!(number(uuid, &key(uuid, 42)), Some(42));
        for other in ["garden-73656e657363652067617264656e2031/42", "garden-00/0000000042", "0000000042"] {
            assert_eq!(number(uuid, other), None, "{other}");
        }
    }
}
