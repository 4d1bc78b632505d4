//! A compacted block: chunks of several blocks of one volume, whose other bytes are zeros.
//!
//! The tuples come first, one for each chunk: its VVBN, offset and length. The chunks follow, in
//! any order and of any length. A chunk of a block that was moved or freed stays in place until no
//! chunk of the compacted block is in use. The container map decides which chunks are in use.

use super::{
    BLOCK, Block, Damage, Decoded,
    bytes::{put, u16_at, u64_at},
    pointer::VVBN_END,
    zero_block,
};

const MAGIC: u16 = 0x4b43;
const HEAD: usize = 4;
const TUPLE: usize = 8;
/// The longest chunk, in bytes. A longer one would leave less than a quarter of the block to
/// others.
pub(crate) const MAX_CHUNK: usize = BLOCK / 4 * 3;
/// Chunks of a block, at most: file 5 of the aggregate counts them in a byte.
const MAX_CHUNKS: usize = 255;

/// Where the chunk of a VVBN is in a compacted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuple {
    pub vvbn: u64,
    pub offset: u16,
    pub length: u16,
}

/// A compacted block under construction.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    chunks: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

impl Builder {
    /// Bytes that the next chunk may have.
    pub fn room(&self) -> usize {
        let used = HEAD + TUPLE * (self.chunks.len() + 1) + self.bytes;
        if self.chunks.len() < MAX_CHUNKS { BLOCK.saturating_sub(used) } else { 0 }
    }

    /// Adds a chunk. [`Self::room`] limits its size.
    pub fn push(&mut self, vvbn: u64, chunk: &[u8]) {
        debug_assert!(chunk.len() <= self.room(), "{} bytes in {}", chunk.len(), self.room());
        self.bytes += chunk.len();
        self.chunks.push((vvbn, chunk.to_vec()));
    }

    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    pub fn encode(&self) -> Box<Block> {
        let mut out = zero_block();
        put(&mut out[..], 0, &MAGIC.to_le_bytes());
        put(&mut out[..], 2, &(self.chunks.len() as u16).to_le_bytes());
        let mut offset = HEAD + TUPLE * self.chunks.len();
        for (index, (vvbn, chunk)) in self.chunks.iter().enumerate() {
            let word = vvbn | (offset as u64) << 40 | (chunk.len() as u64) << 52;
            put(&mut out[..], HEAD + TUPLE * index, &word.to_le_bytes());
            put(&mut out[..], offset, chunk);
            offset += chunk.len();
        }
        out
    }
}

/// All tuples of a compacted block.
///
/// Errors: chunks that overlap each other or the tuples, chunks that exceed the block, and VVBNs
/// with two tuples.
pub(crate) fn decode(block: &Block) -> Decoded<Vec<Tuple>> {
    let damage = |field, found: String, expected: &str| Err(Damage::new("compacted block", field, found, expected));
    if u16_at(block, 0) != MAGIC {
        return damage("magic", format!("{:#06x}", u16_at(block, 0)), "0x4b43");
    }
    let count = usize::from(u16_at(block, 2));
    if !(1..=MAX_CHUNKS).contains(&count) {
        return damage("chunks", count.to_string(), "1 to 255");
    }
    let tuple = |index| {
        let word = u64_at(block, HEAD + TUPLE * index);
        Tuple { vvbn: word & (VVBN_END - 1), offset: (word >> 40 & 0xfff) as u16, length: (word >> 52) as u16 }
    };
    let tuples: Vec<Tuple> = (0..count).map(tuple).collect();
    let mut sorted = tuples.clone();
    sorted.sort_unstable_by_key(|tuple| (tuple.offset, tuple.length));
    let mut free = HEAD + TUPLE * count;
    for Tuple { vvbn, offset, length } in sorted {
        let (start, end) = (usize::from(offset), usize::from(offset) + usize::from(length));
        if length == 0 || start < free || end > BLOCK {
            let found = format!("{start}..{end} of VVBN {vvbn}");
            return damage("chunk", found, "bytes after the tuples that no other chunk has");
        }
        free = end;
    }
    let mut vvbns: Vec<u64> = tuples.iter().map(|tuple| tuple.vvbn).collect();
    vvbns.sort_unstable();
    match vvbns.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => damage("VVBN", pair[0].to_string(), "one that no other chunk has"),
        None => Ok(tuples),
    }
}

/// Restores the block of a VVBN from its chunk, with zeros after the chunk.
pub(crate) fn extract(block: &Block, vvbn: u64) -> Decoded<Box<Block>> {
    let found = decode(block)?.into_iter().find(|tuple| tuple.vvbn == vvbn);
    let none = || Damage::new("compacted block", "chunk", "none", format!("one of VVBN {vvbn}"));
    found.ok_or_else(none).map(|tuple| tuple.padded(block))
}

/// The bytes before the zeros at the end of a block; at least one byte.
pub(crate) fn trim(block: &Block) -> &[u8] {
    let end = block.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    &block[..=end]
}

impl Tuple {
    /// Bytes that the tuple and its chunk occupy in the block.
    pub fn bytes(&self) -> u64 {
        (TUPLE + usize::from(self.length)) as u64
    }

    /// Restores the block that the chunk stands for. The tuple must be one that [`decode`]
    /// returned.
    pub fn padded(&self, block: &Block) -> Box<Block> {
        let (start, length) = (usize::from(self.offset), usize::from(self.length));
        let mut out = zero_block();
        out[..length].copy_from_slice(&block[start..start + length]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let mut builder = Builder::default();
        assert_eq!(builder.room(), BLOCK - 12);
        builder.push(0x12_3456_789a, b"first");
        builder.push(7, &[0xee; 3000]);
        assert_eq!((builder.len(), builder.room()), (2, BLOCK - 28 - 3005));
        let block = builder.encode();
        let start = [0x43, 0x4b, 2, 0, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x14, 0x50, 0, 7, 0, 0, 0, 0, 0x19, 0x80, 0xbb];
        assert_eq!(block[..20], start);
        assert_eq!(&block[20..26], b"first\xee");
        let first = Tuple { vvbn: 0x12_3456_789a, offset: 20, length: 5 };
        assert_eq!(decode(&block).unwrap(), [first, Tuple { vvbn: 7, offset: 25, length: 3000 }]);
        assert_eq!(trim(&extract(&block, 7).unwrap()), [0xee; 3000]);
        assert_eq!(trim(&extract(&block, 0x12_3456_789a).unwrap()), b"first");
        assert_eq!(extract(&block, 8).unwrap_err().field, "chunk");
        assert_eq!(trim(&zero_block()), [0]);
    }

    #[test]
    fn overlapping_or_overlong_chunks_are_refused() {
        let mut builder = Builder::default();
        builder.push(1, &[1; 100]);
        builder.push(2, &[2; 100]);
        let good = builder.encode();
        let forge = |vvbn: u64, offset: u64, length: u64| {
            let mut block = good.clone();
            put(&mut block[..], HEAD + TUPLE, &(vvbn | offset << 40 | length << 52).to_le_bytes());
            decode(&block).err().map(|damage| damage.field)
        };
        assert_eq!(forge(2, 120, 100), None);
        for (vvbn, offset, length, field) in [
            (2, 119, 100, "chunk"),
            (2, 19, 1, "chunk"),
            (2, 4000, 97, "chunk"),
            (2, 120, 0, "chunk"),
            (1, 120, 100, "VVBN"),
        ] {
            assert_eq!(forge(vvbn, offset, length), Some(field), "{vvbn} {offset} {length}");
        }
        let mut block = good.clone();
        block[2] = 0;
        assert_eq!(decode(&block).unwrap_err().field, "chunks");
        block[0] = 0;
        assert_eq!(decode(&block).unwrap_err().field, "magic");
    }

    #[test]
    fn a_block_holds_at_most_255_chunks() {
        let mut builder = Builder::default();
        while builder.room() > 0 {
            builder.push(builder.len() as u64, &[9]);
        }
        assert_eq!(builder.len(), MAX_CHUNKS);
        assert_eq!(decode(&builder.encode()).unwrap().len(), MAX_CHUNKS);
    }
}
