//! The walk through many trees at once. All blocks of one level are read before the next level,
//! sorted by position. So neighbours on the device are read together, even of different files.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    MAX_FILE_BLOCKS, Run, compute_merged,
    extent_tree::{self, Bounds, Child},
    indirect::{self, AddressBlock, Limits},
};
use crate::{
    Damage, Error, FileSystem, Problem, ReadAt, Structure, Superblock,
    features::ro_compat,
    inode::{Inode, InodeFlags},
    sorted_read::visit_blocks,
};

/// The number of blocks that a whole scan may visit. In a sound file system every block belongs to
/// one file. A scan that visits more blocks than exist follows the same blocks again and again. The
/// budget bounds the time that a damaged file system can cost.
#[derive(Debug)]
pub(crate) struct Budget {
    structure_blocks: AtomicU64,
    mapped_blocks: AtomicU64,
}

impl Budget {
    /// Twice the number of blocks: files may move while a mounted device is read.
    pub(crate) fn new(superblock: &Superblock) -> Self {
        let twice = superblock.blocks.saturating_mul(2);
        let shared = superblock.has_ro_compat(ro_compat::SHARED_BLOCKS);
        Self {
            structure_blocks: AtomicU64::new(twice),
            mapped_blocks: AtomicU64::new(if shared { u64::MAX } else { twice }),
        }
    }

    fn take(from: &AtomicU64, blocks: u64) -> bool {
        from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(blocks)).is_ok()
    }

    /// Counts one block of a tree or directory. Returns `false` if too many were read.
    pub(crate) fn take_structure_block(&self) -> bool {
        Self::take(&self.structure_blocks, 1)
    }
}

/// The text of the damage if a budget is used up.
pub(crate) const USED_UP: &str = "files and directories together refer to more blocks than the file system has";

/// An inode whose map is being read.
#[derive(Debug)]
pub(crate) struct MapJob {
    pub(crate) number: u32,
    /// The position of the inode on the device, bytes.
    pub(crate) position_bytes: u64,
    /// The block of the inode.
    pub(crate) own_block: u64,
    pub(crate) inode: Inode,
    /// The value of its extended attribute for data; empty without inline data.
    pub(crate) inline_value: Vec<u8>,
    /// Its blocks. When the jobs are done, they are in the order of the file, and merged.
    pub(crate) runs: Vec<Run>,
    /// The blocks of its tree.
    pub(crate) tree_blocks: Vec<u64>,
    /// The first damage; the other fields have no meaning then. It is boxed because it is rare, and
    /// jobs are moved.
    pub(crate) damage: Option<Box<Damage>>,
    mapped_blocks: u64,
}

impl MapJob {
    pub(crate) fn new(number: u32, position_bytes: u64, own_block: u64, inode: Inode) -> Self {
        Self {
            number,
            position_bytes,
            own_block,
            inode,
            inline_value: Vec::new(),
            runs: Vec::new(),
            tree_blocks: Vec::new(),
            damage: None,
            mapped_blocks: 0,
        }
    }

    /// Records damage, unless the job has damage already.
    pub(crate) fn set_damage(&mut self, block: u64, structure: Structure, problem: Problem) {
        if self.damage.is_none() {
            self.damage = Some(Box::new(Damage::of_inode(block, structure, self.number, problem)));
        }
    }
}

/// The largest number of nodes that may wait because of one batch of nodes above them. Larger
/// levels are read in several batches, so that a damaged file system cannot make the lists endless.
const MAX_WAITING_NODES: usize = 1 << 20;

/// A block to read, with its kind.
#[derive(Clone, Copy, Debug)]
enum Node {
    Extents(Child),
    Addresses(AddressBlock),
}

impl Node {
    fn block(&self) -> u64 {
        match self {
            Self::Extents(child) => child.block,
            Self::Addresses(own) => own.block,
        }
    }

    fn structure(&self) -> Structure {
        match self {
            Self::Extents(_) => Structure::ExtentBlock,
            Self::Addresses(_) => Structure::IndirectBlock,
        }
    }
}

/// Reads the maps of all jobs. Jobs record their damage.
///
/// Errors: a block cannot be read. Cost: each block of a tree is read once; 32 bytes for each run,
/// and at most 56 MiB for each level of trees.
pub(crate) fn collect_maps<D: ReadAt>(
    fs: &FileSystem<D>,
    budget: &Budget,
    jobs: &mut [MapJob],
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    let walk = Walk { fs, budget };
    let mut nodes: Vec<(u32, Node)> = Vec::new();
    for (index, job) in (0..).zip(jobs.iter_mut()) {
        walk.begin(job, index, &mut nodes);
    }
    // Waiting nodes are in levels. Each level is sorted, with the lowest block at the end.
    let most = (MAX_WAITING_NODES / (fs.superblock.block_bytes as usize / 4)).max(1);
    let mut levels = vec![nodes];
    while let Some(mut waiting) = levels.pop() {
        waiting.sort_unstable_by_key(|(index, node)| Reverse((node.block(), *index)));
        let mut now = waiting.split_off(waiting.len().saturating_sub(most));
        now.reverse();
        if !waiting.is_empty() {
            levels.push(waiting);
        }
        let mut next = Vec::new();
        visit_blocks(fs, now.iter().map(|(_, node)| node.block()), buffer, |place, bytes| {
            let (index, node) = now[place];
            walk.go_on(&mut jobs[index as usize], index, node, bytes, &mut next);
        })?;
        if !next.is_empty() {
            levels.push(next);
        }
    }
    for job in jobs {
        job.runs = if job.damage.is_none() { compute_merged(std::mem::take(&mut job.runs)) } else { Vec::new() };
        job.tree_blocks.sort_unstable();
    }
    Ok(())
}

struct Walk<'a, D> {
    fs: &'a FileSystem<D>,
    budget: &'a Budget,
}

impl<D: ReadAt> Walk<'_, D> {
    fn limits(&self) -> Limits {
        let superblock = &self.fs.superblock;
        Limits {
            first_block: superblock.own_block() + 1,
            blocks: superblock.blocks,
            addresses: superblock.block_bytes / 4,
        }
    }

    /// Parses the root of the map in the inode.
    fn begin(&self, job: &mut MapJob, index: u32, level: &mut Vec<(u32, Node)>) {
        let superblock = &self.fs.superblock;
        if job.inode.flags.contains(InodeFlags::INLINE_DATA) || job.inode.is_fast_symlink(superblock) {
            return;
        }
        let before = job.runs.len();
        let result = if job.inode.flags.contains(InodeFlags::EXTENTS) {
            let Limits { first_block, blocks, .. } = self.limits();
            let bounds = Bounds { depth: None, from: 0, to: MAX_FILE_BLOCKS, blocks, first_block };
            let mut children = Vec::new();
            let result = extent_tree::parse_node(&job.inode.content, &bounds, &mut job.runs, &mut children);
            result.map(|()| level.extend(children.into_iter().map(|child| (index, Node::Extents(child)))))
        } else {
            let mut below = Vec::new();
            let result = indirect::parse_root(&job.inode.content, &self.limits(), &mut job.runs, &mut below);
            result.map(|()| level.extend(below.into_iter().map(|own| (index, Node::Addresses(own)))))
        };
        let result = result.and_then(|()| self.count(job, before));
        if let Err(problem) = result {
            job.set_damage(job.own_block, Structure::Inode, problem);
        }
    }

    /// Parses a block of a tree.
    fn go_on(&self, job: &mut MapJob, index: u32, node: Node, bytes: &[u8], next: &mut Vec<(u32, Node)>) {
        if job.damage.is_some() {
            return;
        }
        let before = job.runs.len();
        job.tree_blocks.push(node.block());
        let result = if !self.budget.take_structure_block() {
            Err(USED_UP.into())
        } else {
            match node {
                Node::Extents(child) => {
                    let mut children = Vec::new();
                    let verified = match self.fs.verifies() {
                        true => extent_tree::verify_checksum(bytes, job.inode.checksum_seed),
                        false => Ok(()),
                    };
                    let result = verified
                        .and_then(|()| extent_tree::parse_node(bytes, &child.bounds, &mut job.runs, &mut children));
                    result.map(|()| next.extend(children.into_iter().map(|child| (index, Node::Extents(child)))))
                }
                Node::Addresses(own) => {
                    let mut below = Vec::new();
                    let result = indirect::parse_block(bytes, &own, &self.limits(), &mut job.runs, &mut below);
                    result.map(|()| next.extend(below.into_iter().map(|own| (index, Node::Addresses(own)))))
                }
            }
        };
        if let Err(problem) = result.and_then(|()| self.count(job, before)) {
            job.set_damage(node.block(), node.structure(), problem);
        }
    }

    /// Counts the blocks that were mapped since there were `before` runs.
    fn count(&self, job: &mut MapJob, before: usize) -> Result<(), Problem> {
        let added: u64 = job.runs[before..].iter().map(|run| run.blocks).sum();
        job.mapped_blocks += added;
        let blocks = self.fs.superblock.blocks;
        if job.mapped_blocks > blocks {
            return Err(format!("the file would have more than the {blocks} blocks of the file system").into());
        }
        if !Budget::take(&self.budget.mapped_blocks, added) {
            return Err(USED_UP.into());
        }
        Ok(())
    }
}
