//! A walk over a region: requests that stay near each other for a while, at every scale.

use senesce_core::Rng;

/// Blocks of a leaf.
const LEAF_BLOCKS: u64 = 8;
/// Leaves of the smallest subtree.
const SUBTREE_LEAVES: u64 = 1 << 6;

/// The region is divided into leaves of 8 blocks. From the current leaf, the aligned subtree of 64 leaves around it is
/// doubled with probability 0.44, again and again up to the whole; the next leaf is uniform in it.
///
/// A read takes the block at the leaf's cursor, which advances. A write goes to the leaf rounded down to a multiple of 8:
/// half of them to a random block there, half to the one that was read last (the block before its cursor). With
/// probability 0.15 the next write rewrites the same block.
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
    /// A walk over whole leaves from `first_block` on; there is at least one.
    pub fn new(first_block: u64, blocks: u64) -> Self {
        let leaves = (blocks / LEAF_BLOCKS).max(1);
        Self { first_block, leaves, leaf: 0, cursors: vec![0; leaves as usize], rewrite: None }
    }

    /// The next block.
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
