//! A walk through a range of blocks with mostly short steps, so that recently used blocks are used
//! again.

use std::ops::Range;

use senesce_core::Rng;

/// Blocks of a leaf.
const LEAF: u64 = 8;
/// Leaves of the smallest subtree of a step.
const NEAR: u64 = 1 << 6;
/// The probability of each doubling of the subtree, in hundredths.
const FARTHER: u64 = 44;
/// The probability that the next write repeats the block, in hundredths.
const AGAIN: u64 = 15;

/// The range of a walk, and the next block to read in each of its leaves. Several walkers can share
/// it.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    blocks: Range<u64>,
    cursors: Vec<u8>,
}

/// The position of a walker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walker {
    leaf: u64,
    again: Option<u64>,
}

impl Ground {
    /// Makes a ground of the whole leaves of these blocks. `blocks` must have at least 8 blocks.
    pub fn new(blocks: Range<u64>) -> Self {
        let cursors = vec![0; ((blocks.end - blocks.start) / LEAF).max(1) as usize];
        Self { blocks, cursors }
    }

    /// The next block to read. The cursor of its leaf advances by one.
    pub fn read(&mut self, walker: &mut Walker, rng: &mut Rng) -> u64 {
        let leaf = self.step(walker, rng);
        let cursor = &mut self.cursors[leaf as usize];
        let block = u64::from(*cursor);
        *cursor = (*cursor + 1) % LEAF as u8;
        self.blocks.start + leaf * LEAF + block
    }

    /// The next block to write. Only every eighth leaf is written. The block in it is with equal
    /// probability the last read block or a random one.
    pub fn write(&mut self, walker: &mut Walker, rng: &mut Rng) -> u64 {
        let block = walker.again.take().unwrap_or_else(|| {
            let leaf = self.step(walker, rng) / LEAF * LEAF;
            let last_read = (u64::from(self.cursors[leaf as usize]) + LEAF - 1) % LEAF;
            let within = if rng.chance(1, 2) { rng.below(LEAF) } else { last_read };
            self.blocks.start + leaf * LEAF + within
        });
        walker.again = rng.chance(AGAIN, 100).then_some(block);
        block
    }

    /// Moves to a random leaf of a subtree around the walker.
    fn step(&self, walker: &mut Walker, rng: &mut Rng) -> u64 {
        let leaves = self.cursors.len() as u64;
        let mut near = NEAR;
        while near < leaves && rng.chance(FARTHER, 100) {
            near *= 2;
        }
        let first = walker.leaf / near * near;
        walker.leaf = first + rng.below(near.min(leaves - first));
        walker.leaf
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;

    #[test]
    fn steps_stay_near_and_reach_all() {
        let mut ground = Ground::new(1000..1000 + 1024 * LEAF);
        let (mut walker, mut rng) = (Walker::default(), Rng::for_purpose(Seed(1), "walk"));
        let (mut far, mut seen) = (0, vec![false; 1024]);
        for _ in 0..100_000 {
            let before = walker.leaf;
            let block = ground.read(&mut walker, &mut rng);
            assert!((1000..1000 + 1024 * LEAF).contains(&block));
            far += u64::from(before / NEAR != walker.leaf / NEAR);
            seen[walker.leaf as usize] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
        // A subtree of 64·2^k leaves (16 of 64 are all) is drawn with 0.56·0.44^k, and the whole
        // range with 0.44^4. In each, the step leaves its group of 64 with the probability 1 -
        // 2^-k. The sum is 0.44·0.56/2 + 0.44²·0.56·3/4 + 0.44³·0.56·7/8 + 0.44⁴·15/16.
        let expected = 0.1232 + 0.081_312 + 0.041_742 + 0.035_139;
        assert!((far as f64 / 100_000.0 - expected).abs() < 0.006, "{far}");
    }

    #[test]
    fn leaves_are_read_in_order_every_eighth_written() {
        let mut ground = Ground::new(0..64 * LEAF);
        let (mut walker, mut rng) = (Walker::default(), Rng::for_purpose(Seed(2), "walk"));
        let mut next = [0; 64];
        let (mut again, mut last) = (0, None);
        for _ in 0..20_000 {
            let block = ground.read(&mut walker, &mut rng);
            assert_eq!(block % LEAF, next[(block / LEAF) as usize]);
            next[(block / LEAF) as usize] = (block + 1) % LEAF;
            let block = ground.write(&mut walker, &mut rng);
            assert_eq!(block / LEAF % LEAF, 0);
            again += u64::from(last.replace(block) == Some(block));
        }
        // 15 % by `AGAIN`. Of the others one in 8 is in the same leaf; there the block is equal
        // with 1/4·1/8 + 1/2·1/8 + 1/4·(less than 1).
        assert!((3000..3900).contains(&again), "{again}");
    }

    #[test]
    fn any_range_is_reached_to_its_end() {
        let mut ground = Ground::new(8..8 + 100 * LEAF + 3);
        let (mut walker, mut rng) = (Walker::default(), Rng::for_purpose(Seed(3), "walk"));
        let mut seen = [false; 100];
        for _ in 0..20_000 {
            let block = ground.read(&mut walker, &mut rng);
            seen[((block - 8) / LEAF) as usize] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
    }
}
