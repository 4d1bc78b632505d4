//! The device of a Btrfs: the positions of its logical address space, and the leaf for each key.

use std::path::Path;

use super::{
    super::device::Device,
    node::{Chunk, Key, Node, parse_first_chunks, u32_at, u64_at},
};

/// Position of the superblock, bytes.
const SUPERBLOCK_AT: u64 = 64 << 10;
/// Attempts to read trees that are written at the same time.
const TRIES: u32 = 5;
/// A tree with more leaves (80 GiB at 16 KiB each) is not read.
const MAX_LEAVES: usize = 5_000_000;
const ROOT_ITEM: u8 = 132;
const CHUNK_ITEM: u8 = 228;

/// A leaf of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The smallest key that may be in it.
    pub first: Key,
    /// Its logical position.
    pub logical: u64,
    /// The index of its path in [`Tree::parents`].
    pub parent: u32,
}

/// A tree: its leaves in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// The logical position of its root.
    pub root: Option<u64>,
    pub leaves: Vec<Leaf>,
    /// Paths of nodes from the root to leaves, as logical positions with the root first. Each leaf
    /// has the index of its path.
    pub parents: Vec<Vec<u64>>,
}

impl Tree {
    /// The index of the leaf that holds a key, if any leaf does.
    pub fn find(&self, key: Key) -> usize {
        self.leaves.partition_point(|leaf| leaf.first <= key).saturating_sub(1)
    }
}

/// An open Btrfs on one device.
#[derive(Debug)]
pub(super) struct Volume {
    device: Device,
    node_bytes: u64,
    chunks: Vec<Chunk>,
}

/// The positions in the superblock where the trees start.
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
            return Err(format!("{} holds no Btrfs superblock", path.display()));
        }
        if number(136) != 1 {
            return Err(format!("it is on {} devices, and only one can be read", number(136)));
        }
        let node_bytes = u64::from(u32_at(&superblock, 148).unwrap_or(0));
        if !(4096..=65536).contains(&node_bytes) {
            return Err(format!("its superblock has an invalid node size: {node_bytes} bytes"));
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

    /// Bytes of the largest chunk for contents only. `None` if there is no such chunk.
    pub fn data_chunk_bytes(&self) -> Option<u64> {
        self.chunks.iter().filter(|chunk| chunk.is_data).map(|chunk| chunk.length).max()
    }

    /// The position of a logical address on the device. `None` if no chunk contains it.
    pub fn locate(&self, logical: u64) -> Option<u64> {
        let behind = self.chunks.partition_point(|chunk| chunk.logical <= logical);
        let chunk = self.chunks.get(behind.checked_sub(1)?)?;
        let within = logical - chunk.logical;
        (within < chunk.length).then(|| chunk.physical + within)
    }

    /// The leaves of a tree.
    ///
    /// Errors: no such tree exists; the tree is written faster than it can be read.
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
        .ok_or_else(|| format!("it has no tree with number {number}"))
    }

    /// Retries `attempt` while the trees are replaced.
    fn retry<T>(&mut self, mut attempt: impl FnMut(&mut Self) -> Option<T>) -> Result<T, String> {
        (0..TRIES)
            .find_map(|_| attempt(self))
            .ok_or_else(|| "its trees are damaged, or change faster than they can be read".to_owned())
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

    /// Passes items to `visit`, from the leaf that can hold key `from`. If `from` is not the zero
    /// key, it stops after the leaves of that object. `None` if a node was replaced.
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

    /// Checks that a child is one level below. Otherwise damage could cause an endless walk.
    fn check_level(&self, child: u64, above: u8) -> Option<()> {
        let bytes = self.read_node(child)?;
        (Node::parse(&bytes, child)?.level + 1 == above).then_some(())
    }

    /// Adds the leaves below a node without reading them. `above` has the nodes above this one.
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
