//! Blocks of directories: a tree in the order of cookies, with names in leaves and index blocks
//! above them.
//!
//! A cookie is a hash of the name (46 bits) and a number (16 bits) that distinguishes equal hashes.
//! It never changes while the name exists, so a listing can continue after any cookie. Block 0 is
//! the root. Blocks that became empty are kept in a list.

use senesce_fsapi::FileKind;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    BLOCK, Block, Damage, Decoded,
    bytes::{put, u16_at, u32_at, u64_at},
    inode::{kind_number, number_kind},
};

const MAGIC: u16 = 0x4744;
const HEADER: usize = 16;
const FREE: u8 = 0xff;
/// Bytes of an entry besides its name.
const ENTRY: usize = 18;
/// Bytes of a child in an index block.
const CHILD: usize = 12;
/// Children of an index block, at most.
pub(crate) const MAX_CHILDREN: usize = (BLOCK - HEADER) / CHILD;
/// The highest level of a tree. A level multiplies the number of leaves by up to 340.
pub(crate) const MAX_LEVEL: u8 = 6;

/// A name in a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub cookie: u64,
    pub ino: u64,
    pub kind: FileKind,
    pub name: Vec<u8>,
}

impl Entry {
    pub fn bytes(&self) -> usize {
        ENTRY + self.name.len()
    }
}

/// A block below an index block. Its cookies are at least `first`, and less than `first` of the
/// next child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub first: u64,
    pub block: u32,
}

/// A block of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Leaf(Vec<Entry>),
    /// `level` is one more than the level of the children, so at least 1.
    Index {
        level: u8,
        children: Vec<Child>,
    },
    /// A block outside the tree. `next` is the next free block, 0 if there is none.
    Free {
        next: u32,
    },
}

/// The first free block of a directory, 0 if there is none. Only block 0 has this field.
pub(crate) fn free_head(block: &Block) -> u32 {
    u32_at(block, 8)
}

pub(crate) fn set_free_head(block: &mut Block, head: u32) {
    put(block, 8, &head.to_le_bytes());
}

/// The lowest cookie of names with this hash.
pub(crate) fn first_cookie(seed: u64, name: &[u8]) -> u64 {
    // 46 bits, because cookies of the trait are below 2^62
    let hash = xxh3_64_with_seed(name, seed) >> 18;
    hash.max(1) << 16
}

/// The highest cookie of names with the same hash.
pub(crate) fn last_cookie(first: u64) -> u64 {
    first | 0xffff
}

impl Node {
    /// The level in the tree; `None` for a free block.
    pub fn level(&self) -> Option<u8> {
        match self {
            Self::Leaf(_) => Some(0),
            Self::Index { level, .. } => Some(*level),
            Self::Free { .. } => None,
        }
    }

    /// Whether the node fits into one block.
    pub fn fits(&self) -> bool {
        match self {
            Self::Leaf(entries) => entries.iter().map(Entry::bytes).sum::<usize>() <= BLOCK - HEADER,
            Self::Index { children, .. } => children.len() <= MAX_CHILDREN,
            Self::Free { .. } => true,
        }
    }

    /// Encodes the node. Keeps the free-list head of the header ([`free_head`]).
    pub fn encode(&self, out: &mut Block) {
        out[HEADER..].fill(0);
        put(out, 0, &MAGIC.to_le_bytes());
        let mut at = HEADER;
        let (level, count) = match self {
            Self::Leaf(entries) => {
                for entry in entries {
                    put(out, at, &entry.cookie.to_le_bytes());
                    put(out, at + 8, &entry.ino.to_le_bytes());
                    out[at + 16] = kind_number(entry.kind);
                    out[at + 17] = entry.name.len() as u8;
                    put(out, at + ENTRY, &entry.name);
                    at += entry.bytes();
                }
                (0, entries.len())
            }
            Self::Index { level, children } => {
                for child in children {
                    put(out, at, &child.first.to_le_bytes());
                    put(out, at + 8, &child.block.to_le_bytes());
                    at += CHILD;
                }
                (*level, children.len())
            }
            Self::Free { next } => {
                put(out, 8, &next.to_le_bytes());
                (FREE, 0)
            }
        };
        out[2] = level;
        put(out, 4, &(count as u16).to_le_bytes());
    }

    /// Decodes a node. Checks the order of cookies, the lengths of names, and that entries end
    /// within the block.
    pub fn decode(block: &Block) -> Decoded<Self> {
        let damage = |field, found: String, expected: &str| Err(Damage::new("directory block", field, found, expected));
        if u16_at(block, 0) != MAGIC {
            return damage("magic", format!("{:#06x}", u16_at(block, 0)), "0x4744");
        }
        let count = usize::from(u16_at(block, 4));
        match block[2] {
            FREE => Ok(Self::Free { next: u32_at(block, 8) }),
            0 => Ok(Self::Leaf(decode_entries(block, count)?)),
            level if level > MAX_LEVEL => damage("level", level.to_string(), "at most 6, or 255"),
            level => {
                if count > MAX_CHILDREN || count == 0 {
                    return damage("count", count.to_string(), "1 to 340");
                }
                let child = |index| {
                    let at = HEADER + index * CHILD;
                    Child { first: u64_at(block, at), block: u32_at(block, at + 8) }
                };
                let children: Vec<Child> = (0..count).map(child).collect();
                if children.windows(2).any(|pair| pair[0].first >= pair[1].first) {
                    return damage("first cookie", "out of order".to_owned(), "ascending");
                }
                Ok(Self::Index { level, children })
            }
        }
    }
}

fn decode_entries(block: &Block, count: usize) -> Decoded<Vec<Entry>> {
    let damage = |field, found: String, expected: &str| Damage::new("directory block", field, found, expected);
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    let mut at = HEADER;
    for _ in 0..count {
        let end = at + ENTRY;
        if end > BLOCK || end + usize::from(block[at + 17]) > BLOCK {
            return Err(damage("name length", format!("an entry at {at} that ends after the block"), "within it"));
        }
        let name = block[end..end + usize::from(block[at + 17])].to_vec();
        let cookie = u64_at(block, at);
        if entries.last().is_some_and(|last| last.cookie >= cookie) {
            return Err(damage("cookie", cookie.to_string(), "more than the one before"));
        }
        if name.is_empty() {
            return Err(damage("name length", "0".to_owned(), "1 to 255"));
        }
        let kind = number_kind(block[at + 16]).ok_or_else(|| damage("kind", block[at + 16].to_string(), "1 to 7"))?;
        entries.push(Entry { cookie, ino: u64_at(block, at + 8), kind, name });
        at = end + usize::from(block[at + 17]);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cookie: u64, name: &[u8]) -> Entry {
        Entry { cookie, ino: 16, kind: FileKind::File, name: name.to_vec() }
    }

    #[test]
    fn golden() {
        let mut block = super::super::zero_block();
        Node::Leaf(vec![entry(0x0102, b"ab"), entry(0x0103, b"c")]).encode(&mut block);
        set_free_head(&mut block, 9);
        let bytes: String = block[..56].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            bytes,
            "4447000002000000090000000000000002010000000000001000000000000000010261620301000000000000100000000000000001016300"
        );
        assert_eq!(free_head(&block), 9);
        assert_eq!(first_cookie(1, b"name"), GOLDEN_COOKIE);
    }
    const GOLDEN_COOKIE: u64 = 28158453283422208;

    #[test]
    fn unordered_cookies_are_refused() {
        let mut block = super::super::zero_block();
        assert_eq!(Node::decode(&block).unwrap_err().field, "magic");
        Node::Leaf(vec![entry(5, b"a"), entry(5, b"b")]).encode(&mut block);
        assert_eq!(Node::decode(&block).unwrap_err().field, "cookie");
        let children = vec![Child { first: 2, block: 1 }, Child { first: 1, block: 2 }];
        Node::Index { level: 1, children }.encode(&mut block);
        assert_eq!(Node::decode(&block).unwrap_err().field, "first cookie");
    }

    proptest::proptest! {
        #[test]
        fn nodes_round_trip(names in proptest::collection::vec(proptest::collection::vec(1u8.., 1..256), 0..14)) {
            let entries = names.iter().enumerate().map(|(at, name)| entry(at as u64 * 3, name)).collect();
            let node = Node::Leaf(entries);
            let mut block = super::super::zero_block();
            proptest::prop_assert!(node.fits());
            node.encode(&mut block);
            proptest::prop_assert_eq!(Node::decode(&block).unwrap(), node);
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(seed: u64, level in 0u8..8, count: u16) {
            let mut block = super::super::zero_block();
            senesce_core::Rng::for_purpose(senesce_core::Seed(seed), "bytes").fill(&mut block[..]);
            put(&mut block[..], 0, &MAGIC.to_le_bytes());
            block[2] = level;
            put(&mut block[..], 4, &count.to_le_bytes());
            let _ = Node::decode(&block);
        }
    }
}
