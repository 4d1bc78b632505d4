//! The device of a Btrfs: where its logical space lies on it, and which leaf of a tree holds which key.

use std::path::Path;

use super::{
    super::device::Device,
    node::{Chunk, Key, Node, parse_first_chunks, u32_at, u64_at},
};

/// Where the superblock lies, bytes.
const SUPERBLOCK_AT: u64 = 64 << 10;
/// How often trees are read again that were written meanwhile.
const TRIES: u32 = 5;
/// A tree of more leaves (of 16 KiB, 80 GiB) is not read.
const MAX_LEAVES: usize = 5_000_000;
const ROOT_ITEM: u8 = 132;
const CHUNK_ITEM: u8 = 228;

/// A leaf of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The smallest key that may be in it.
    pub first: Key,
    /// Where it lies, logical.
    pub logical: u64,
    /// The number of the row of nodes above it.
    pub parent: u32,
}

/// A tree: its leaves in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Its root, logical.
    pub root: Option<u64>,
    pub leaves: Vec<Leaf>,
    /// The nodes on the way from the root to leaves, logical, the root first; each leaf knows its row.
    pub parents: Vec<Vec<u64>>,
}

impl Tree {
    /// The number of the leaf that holds a key if any does.
    pub fn find(&self, key: Key) -> usize {
        self.leaves.partition_point(|leaf| leaf.first <= key).saturating_sub(1)
    }
}

/// An opened Btrfs on one device.
#[derive(Debug)]
pub(super) struct Volume {
    device: Device,
    node_bytes: u64,
    chunks: Vec<Chunk>,
}

/// What the superblock says of where the trees begin.
struct Roots {
    root_tree: u64,
    chunk_tree: u64,
    first_chunks: Vec<Chunk>,
}

impl Volume {
    pub fn open(path: &Path) -> Result<Self, String> {
        let error = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
        let device = Device::open(path).map_err(error)?;
        let superblock = device.read(SUPERBLOCK_AT, 4096).map_err(error)?;
        let number = |at| u64_at(&superblock, at).unwrap_or(0);
        if superblock.get(64..72) != Some(b"_BHRfS_M") {
            return Err(format!("{} holds no Btrfs", path.display()));
        }
        if number(136) != 1 {
            return Err(format!("it lies on {} devices, and only one is looked into", number(136)));
        }
        let node_bytes = u64::from(u32_at(&superblock, 148).unwrap_or(0));
        if !(4096..=65536).contains(&node_bytes) {
            return Err(format!("nodes of {node_bytes} bytes are not possible"));
        }
        let mut volume = Self { device, node_bytes, chunks: Vec::new() };
        volume.retry(|volume| {
            let roots = volume.roots()?;
            volume.chunks = roots.first_chunks;
            let mut chunks = Vec::new();
            volume.each_item(roots.chunk_tree, Key::default(), &mut |key, data| {
                if key.kind == CHUNK_ITEM {
                    chunks.extend(Chunk::parse(key, data).map(|(chunk, _)| chunk));
                }
            })?;
            chunks.sort_by_key(|chunk: &Chunk| chunk.logical);
            volume.chunks = chunks;
            Some(())
        })?;
        Ok(volume)
    }

    pub fn node_bytes(&self) -> u64 {
        self.node_bytes
    }

    /// Bytes of the largest chunk for contents; none if there is none for them alone.
    pub fn data_chunk_bytes(&self) -> Option<u64> {
        self.chunks.iter().filter(|chunk| chunk.is_data).map(|chunk| chunk.length).max()
    }

    /// Where a logical position lies on the device; none if no chunk has it.
    pub fn locate(&self, logical: u64) -> Option<u64> {
        let behind = self.chunks.partition_point(|chunk| chunk.logical <= logical);
        let chunk = self.chunks.get(behind.checked_sub(1)?)?;
        let within = logical - chunk.logical;
        (within < chunk.length).then(|| chunk.physical + within)
    }

    /// The leaves of the tree with this number.
    ///
    /// Errors: there is no such tree; it is written faster than it can be read.
    pub fn tree(&mut self, number: u64) -> Result<Tree, String> {
        self.retry(|volume| {
            let mut found = None;
            let key = Key { object: number, kind: ROOT_ITEM, offset: 0 };
            volume.each_item(volume.roots()?.root_tree, key, &mut |key, data| {
                if (key.object, key.kind) == (number, ROOT_ITEM) {
                    found = u64_at(data, 176).or(found);
                }
            })?;
            let Some(root) = found else { return Some(None) };
            let mut tree = Tree { root: Some(root), ..Tree::default() };
            volume.add_leaves(root, Key::default(), &mut Vec::new(), &mut tree)?;
            Some(Some(tree))
        })?
        .ok_or_else(|| format!("it has no tree {number}"))
    }

    /// Does it again if the trees were replaced meanwhile.
    fn retry<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Option<T>) -> Result<T, String> {
        (0..TRIES)
            .find_map(|_| attempt(self))
            .ok_or_else(|| "its trees are damaged, or written faster than they can be read".to_owned())
    }

    fn roots(&self) -> Option<Roots> {
        let superblock = self.device.read(SUPERBLOCK_AT, 4096).ok()?;
        Some(Roots {
            root_tree: u64_at(&superblock, 80)?,
            chunk_tree: u64_at(&superblock, 88)?,
            first_chunks: parse_first_chunks(&superblock),
        })
    }

    fn read_node(&self, logical: u64) -> Option<Vec<u8>> {
        self.device.read(self.locate(logical)?, self.node_bytes as usize).ok()
    }

    /// Hands over the items of the leaves below a node from the one that holds key `from` on, until the object changes if
    /// one was asked for. None if a node is not there any more.
    fn each_item(&self, logical: u64, from: Key, visit: &mut dyn FnMut(Key, &[u8])) -> Option<()> {
        let bytes = self.read_node(logical)?;
        let node = Node::parse(&bytes, logical)?;
        if node.level == 0 {
            node.items().for_each(|(key, data)| visit(key, data));
            return Some(());
        }
        let children: Vec<(Key, u64)> = node.children().collect();
        let first = children.partition_point(|(key, _)| *key <= from).saturating_sub(1);
        let is_one_object = from != Key::default();
        for &(key, child) in &children[first..] {
            if is_one_object && key.object > from.object {
                break;
            }
            self.check_level(child, node.level)?;
            self.each_item(child, from, visit)?;
        }
        Some(())
    }

    /// Whether a child is one level below: else damage could lead around in circles.
    fn check_level(&self, child: u64, above: u8) -> Option<()> {
        let bytes = self.read_node(child)?;
        (Node::parse(&bytes, child)?.level + 1 == above).then_some(())
    }

    /// Adds the leaves below a node. Leaves are not read; `above` are the nodes above this one.
    fn add_leaves(&self, logical: u64, first: Key, above: &mut Vec<u64>, tree: &mut Tree) -> Option<()> {
        let bytes = self.read_node(logical)?;
        let node = Node::parse(&bytes, logical)?;
        if node.level == 0 {
            tree.parents.push(above.clone());
            tree.leaves.push(Leaf { first, logical, parent: tree.parents.len() as u32 - 1 });
            return Some(());
        }
        above.push(logical);
        if node.level == 1 {
            tree.parents.push(above.clone());
        }
        let parent = tree.parents.len().wrapping_sub(1) as u32;
        for (key, child) in node.children() {
            if tree.leaves.len() >= MAX_LEAVES {
                return None;
            }
            if node.level == 1 {
                tree.leaves.push(Leaf { first: key, logical: child, parent });
            } else {
                self.check_level(child, node.level)?;
                self.add_leaves(child, key, above, tree)?;
            }
        }
        above.pop();
        Some(())
    }
}
