//! Decoder of Btrfs tree nodes and of the few items that inspections read. Without I/O. Source:
//! `linux/btrfs_tree.h`.

/// The key of an item. Items are sorted by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub object: u64,
    pub kind: u8,
    pub offset: u64,
}

impl Key {
    /// Size of a key, bytes.
    const BYTES: usize = 17;

    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { object: u64_at(bytes, 0)?, kind: *bytes.get(8)?, offset: u64_at(bytes, 9)? })
    }
}

/// Bytes before the items or pointers of a node.
const HEADER_BYTES: usize = 101;

/// A node in the format of the device.
pub(super) struct Node<'a> {
    bytes: &'a [u8],
    /// 0 for leaves.
    pub level: u8,
    count: usize,
}

impl<'a> Node<'a> {
    /// Parses the header. `None` if the node does not belong at position `logical`.
    pub fn parse(bytes: &'a [u8], logical: u64) -> Option<Self> {
        let (count, level) = (u32_at(bytes, 96)? as usize, *bytes.get(100)?);
        (u64_at(bytes, 48)? == logical && level < 8).then_some(Self { bytes, level, count })
    }

    /// The keys and positions of the child nodes; empty for a leaf.
    pub fn children(&self) -> impl Iterator<Item = (Key, u64)> + '_ {
        let pointers = self.bytes.get(HEADER_BYTES..).unwrap_or(&[]).chunks_exact(33);
        let count = if self.level > 0 { self.count } else { 0 };
        pointers.take(count).filter_map(|pointer| Some((Key::parse(pointer)?, u64_at(pointer, Key::BYTES)?)))
    }

    /// The keys and data of a leaf's items; empty for another node.
    pub fn items(&self) -> impl Iterator<Item = (Key, &'a [u8])> + '_ {
        let all = self.bytes.get(HEADER_BYTES..).unwrap_or(&[]);
        let count = if self.level == 0 { self.count } else { 0 };
        all.chunks_exact(25).take(count).filter_map(move |item| {
            let (at, length) = (u32_at(item, 17)? as usize, u32_at(item, 21)? as usize);
            Some((Key::parse(item)?, all.get(at..at.checked_add(length)?)?))
        })
    }
}

/// A chunk: a range of the logical address space, and its position on the first of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub logical: u64,
    pub length: u64,
    pub physical: u64,
    /// Whether it holds contents of files only.
    pub is_data: bool,
}

impl Chunk {
    /// Parses the item after a key. Also returns the size of the item in bytes. `None` if the item
    /// is truncated, or the chunk is striped.
    pub fn parse(key: Key, data: &[u8]) -> Option<(Self, usize)> {
        const STRIPED: u64 = 0x8 | 0x40 | 0x80 | 0x100; // RAID0, 10, 5, 6
        let stripes = usize::from(u16::from_le_bytes(data.get(44..46)?.try_into().ok()?));
        const PURPOSES: u64 = 0x1 | 0x2 | 0x4; // data, system, metadata
        let kind = u64_at(data, 24)?;
        let (length, physical) = (u64_at(data, 0)?, u64_at(data, 56)?);
        let chunk = Self { logical: key.offset, length, physical, is_data: kind & PURPOSES == 0x1 };
        (stripes > 0 && kind & STRIPED == 0).then_some((chunk, 48 + 32 * stripes))
    }
}

/// The chunks that the superblock holds, through which the others can be read.
pub(super) fn parse_first_chunks(superblock: &[u8]) -> Vec<Chunk> {
    let length = u32_at(superblock, 160).unwrap_or(0) as usize;
    let mut rest = superblock.get(811..811 + length.min(2048)).unwrap_or(&[]);
    let mut chunks = Vec::new();
    while let Some(key) = Key::parse(rest) {
        let Some((chunk, bytes)) = rest.get(Key::BYTES..).and_then(|data| Chunk::parse(key, data)) else { break };
        chunks.push(chunk);
        rest = rest.get(Key::BYTES + bytes..).unwrap_or(&[]);
    }
    chunks
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key_bytes(object: u64, kind: u8, offset: u64) -> Vec<u8> {
        [&object.to_le_bytes()[..], &[kind], &offset.to_le_bytes()].concat()
    }

    fn node(logical: u64, level: u8, count: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[48..56].copy_from_slice(&logical.to_le_bytes());
        bytes[96..100].copy_from_slice(&count.to_le_bytes());
        bytes[100] = level;
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn pointers_and_items_are_parsed() {
        let mut rest = Vec::new();
        for n in 0..3u64 {
            rest.extend(key_bytes(256 + n, 1, n));
            rest.extend((4096 * n).to_le_bytes());
            rest.extend(7u64.to_le_bytes()); // the generation
        }
        let bytes = node(1 << 20, 1, 2, &rest);
        let parsed = Node::parse(&bytes, 1 << 20).unwrap();
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(parsed.children().collect::<Vec<_>>(), [(key(256, 1, 0), 0), (key(257, 1, 1), 4096)]);
        assert_eq!(parsed.items().count(), 0);
        assert!(Node::parse(&bytes, 4096).is_none(), "it belongs elsewhere");

        let mut rest = key_bytes(5, 132, 0);
        rest.extend([25u32, 3].map(u32::to_le_bytes).concat());
        rest.extend(b"abc");
        let bytes = node(4096, 0, 1, &rest);
        let leaf = Node::parse(&bytes, 4096).unwrap();
        assert_eq!(leaf.items().collect::<Vec<_>>(), [(key(5, 132, 0), &b"abc"[..])]);
    }

    #[test]
    fn striped_chunks_of_the_superblock_are_skipped() {
        let chunk = |logical: u64, profile: u64, devices: u16| {
            let mut item = vec![0; 48 + 32 * usize::from(devices)];
            item[0..8].copy_from_slice(&(8u64 << 20).to_le_bytes());
            item[24..32].copy_from_slice(&profile.to_le_bytes());
            item[44..46].copy_from_slice(&devices.to_le_bytes());
            item[56..64].copy_from_slice(&(logical / 2).to_le_bytes());
            [key_bytes(256, 228, logical), item].concat()
        };
        let mut superblock = vec![0; 4096];
        let chunks = [chunk(1 << 20, 0x22, 2), chunk(32 << 20, 2, 1)].concat();
        superblock[160..164].copy_from_slice(&(chunks.len() as u32).to_le_bytes());
        superblock[811..811 + chunks.len()].copy_from_slice(&chunks);
        let found = |logical| Chunk { logical, length: 8 << 20, physical: logical / 2, is_data: false };
        assert_eq!(parse_first_chunks(&superblock), [found(1 << 20), found(32 << 20)]);
        let striped = chunk(0, 0x8, 2);
        assert_eq!(Chunk::parse(Key::default(), &striped[17..]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), length: u32) {
            let logical = u64_at(&bytes, 48).unwrap_or(0);
            if let Some(node) = Node::parse(&bytes, logical) {
                prop_assert!(node.children().count() + node.items().count() <= bytes.len() / 25);
            }
            let mut superblock = bytes.repeat(12);
            if superblock.len() > 200 {
                superblock[160..164].copy_from_slice(&length.to_le_bytes());
            }
            parse_first_chunks(&superblock);
        }
    }
}
