//! An OLTP load that examples share.

use std::ops::Range;

use senesce_core::{Rng, Seed};

/// The writes of an OLTP load in eight streams over three parts of the file (45, 45 and 10 %), one
/// of them sequential.
pub struct Oltp {
    rng: Rng,
    blocks: u64,
    walks: [Walk; 3],
    /// The remaining part of the current sequential run.
    sequential: Range<u64>,
}

impl Oltp {
    pub fn new(blocks: u64) -> Self {
        let part = |from: u64, to: u64| blocks * from / 10_000..blocks * to / 10_000;
        // 15 to 20 % and 70 to 75 % of the first part, 47 to 52 % of the second.
        let walks = [part(675, 900), part(3150, 3375), part(6615, 6840)].map(Walk::new);
        Self { rng: Rng::for_purpose(Seed(2), "OLTP"), blocks, walks, sequential: 0..0 }
    }

    /// The first block and the number of blocks of the next write.
    pub fn next(&mut self) -> (u64, u64) {
        loop {
            // Streams by their operations in thousandths: two uniform ones, three walks, the
            // sequential one.
            let stream = self.rng.weighted(&[35, 18, 281, 210, 70, 281]);
            let is_read = self.rng.chance([50, 30, 50, 50, 30, 0][stream], 100);
            let part = self.blocks * 45 / 100;
            match stream {
                0 | 1 if is_read => {}
                0 => return (self.rng.below(part), 1),
                1 => return (part + self.rng.below(part), 1),
                2..5 => {
                    let walk = &mut self.walks[stream - 2];
                    if let Some(block) = walk.step(&mut self.rng, is_read) {
                        return (block, 1);
                    }
                }
                _ => {
                    let count = [1, 2, 4, 8, 16][self.rng.weighted(&[10, 6, 5, 2, 2])];
                    let part = self.blocks * 9 / 10..self.blocks;
                    let len = part.end - part.start;
                    if self.sequential.start + count > self.sequential.end {
                        let start = part.start + self.rng.below(len * 7 / 10);
                        self.sequential = start..start + (len * 3 / 10).max(16);
                    }
                    let first = self.sequential.start;
                    self.sequential.start += count;
                    return (first, count);
                }
            }
        }
    }
}

/// A walk in leaves of eight blocks, mostly over short distances.
struct Walk {
    blocks: Range<u64>,
    leaf: u64,
    read: u64,
    again: Option<u64>,
    cursors: Vec<u8>,
}

impl Walk {
    fn new(blocks: Range<u64>) -> Self {
        let cursors = vec![0; ((blocks.end - blocks.start) / 8).max(1) as usize];
        Self { read: blocks.start, blocks, leaf: 0, again: None, cursors }
    }

    /// One operation. Returns the block if it is a write.
    fn step(&mut self, rng: &mut Rng, is_read: bool) -> Option<u64> {
        let leaves = self.cursors.len() as u64;
        let mut near = 64;
        while near < leaves && rng.chance(44, 100) {
            near *= 2;
        }
        let first = self.leaf / near * near;
        self.leaf = first + rng.below(near.min(leaves - first));
        let start = self.blocks.start + self.leaf * 8;
        if is_read {
            let cursor = &mut self.cursors[self.leaf as usize];
            self.read = start + u64::from(*cursor);
            *cursor = (*cursor + 1) % 8;
            return None;
        }
        let block =
            self.again.take().unwrap_or_else(|| if rng.chance(1, 2) { start + rng.below(8) } else { self.read });
        self.again = rng.chance(15, 100).then_some(block);
        Some(block)
    }
}
