//! A walk over a region: consecutive requests stay close together, at every scale.

use senesce_core::Rng;

/// Blocks of a leaf.
const LEAF_BLOCKS: u64 = 8;
/// Leaves of the smallest subtree.
const SUBTREE_LEAVES: u64 = 1 << 6;

/// The region is divided into leaves of 8 blocks. The walk starts with the aligned subtree of 64
/// leaves around the current leaf. With probability 0.44 it doubles the subtree, repeatedly, up to
/// the whole region. The next leaf is uniform in the subtree.
///
/// A read returns the block at the leaf's cursor, which advances. A write uses the leaf rounded
/// down to a multiple of 8. Half of the writes hit a random block there, half the block that was
/// read last (the one before its cursor). With probability 0.15 the next write rewrites the same
/// block.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    first_block: u64,
    leaves: u64,
    leaf: u64,
    /// By leaf.
    cursors: Vec<u8>,
    rewrite: Option<u64>,
}

impl Walk {
    /// A walk over whole leaves from `first_block` on; at least one leaf.
    pub fn new(first_block: u64, blocks: u64) -> Self {
        let leaves = (blocks / LEAF_BLOCKS).max(1);
        Self { first_block, leaves, leaf: 0, cursors: vec![0; leaves as usize], rewrite: None }
    }

    /// Returns the next block.
    pub fn next(&mut self, reads: bool, rng: &mut Rng) -> u64 {
        if !reads && let Some(block) = self.rewrite.take() {
            return block;
        }
        self.leaf = self.step(rng);
        if reads {
            let cursor = &mut self.cursors[self.leaf as usize];
            let block = u64::from(*cursor);
            *cursor = (*cursor + 1) % LEAF_BLOCKS as u8;
            return self.at(self.leaf, block);
        }
        let leaf = self.leaf / 8 * 8;
        let within = if rng.chance(1, 2) {
            rng.below(LEAF_BLOCKS)
        } else {
            (u64::from(self.cursors[leaf as usize]) + LEAF_BLOCKS - 1) % LEAF_BLOCKS
        };
        let block = self.at(leaf, within);
        if rng.chance(15, 100) {
            self.rewrite = Some(block);
        }
        block
    }

    fn step(&self, rng: &mut Rng) -> u64 {
        let mut subtree = SUBTREE_LEAVES;
        while subtree < self.leaves && rng.chance(44, 100) {
            subtree *= 2;
        }
        let start = self.leaf / subtree * subtree;
        start + rng.below(subtree.min(self.leaves - start))
    }

    fn at(&self, leaf: u64, block: u64) -> u64 {
        self.first_block + leaf * LEAF_BLOCKS + block
    }
}
