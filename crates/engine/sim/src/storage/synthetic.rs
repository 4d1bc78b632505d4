//! A made-up trace, for tests and to see what one number changes.

use senesce_core::{Rng, Seed};
use serde::{Deserialize, Serialize};

use super::trace::{Chain, Operation, PointTrace, Trace};
use crate::{CpuEvents, Error};

/// Operations of one size on drives of which one of each group is parity; chains of one length at random places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntheticTrace {
    /// Drives of the one group.
    pub drives: u32,
    /// Blocks of each.
    pub drive_blocks: u64,
    /// Consistency points.
    pub points: u32,
    /// Operations of each.
    pub operations: u32,
    /// How many of 1000 read.
    pub reads_per_mille: u32,
    /// Blocks of an operation.
    pub blocks: u32,
    /// How many of 1000 reads find all in the cache.
    pub hits_per_mille: u32,
    /// Blocks of each chain an operation reads; the last one may be shorter.
    pub read_chain: u32,
    /// Blocks of each chain a consistency point writes; aligned to that.
    pub write_chain: u32,
    /// Blocks read for parity, of 1000 that are written.
    pub parity_reads_per_mille: u32,
    /// From which places are drawn.
    pub seed: Seed,
}

impl SyntheticTrace {
    /// Makes the trace. Errors: numbers that make none.
    pub fn make(&self) -> Result<Trace, Error> {
        let longest = u64::from(self.read_chain.max(self.write_chain));
        if self.drives < 2
            || longest == 0
            || self.read_chain == 0
            || self.write_chain == 0
            || self.drive_blocks < longest
        {
            let problem = format!("{self:?} makes none; 2 drives of at least a chain, and chains of 1 block would");
            return Err(Error::absurd("synthetic trace", problem));
        }
        let mut rng = Rng::for_purpose(self.seed, "synthetic trace");
        let trace = Trace { points: (0..self.points).map(|_| self.point(&mut rng)).collect(), before: Vec::new() };
        trace.check(self.drives)?;
        Ok(trace)
    }

    fn point(&self, rng: &mut Rng) -> PointTrace {
        let operations: Vec<Operation> = (0..self.operations).map(|_| self.operation(rng)).collect();
        let dirty: u64 =
            operations.iter().filter(|operation| operation.write).map(|operation| u64::from(operation.blocks)).sum();
        // Drive 0 is parity: it is written as the longest of the others is.
        let mut writes = self.chains(rng, dirty, self.write_chain);
        let parity = dirty.div_ceil(u64::from(self.drives) - 1);
        writes.extend(self.chains(rng, parity, self.write_chain).into_iter().map(|chain| Chain { drive: 0, ..chain }));
        let reads = self.chains(rng, dirty * u64::from(self.parity_reads_per_mille) / 1000, self.write_chain);
        let events = CpuEvents { block_clean: dirty, xor: dirty, ..CpuEvents::default() };
        PointTrace { operations, reads, writes, events, ..PointTrace::default() }
    }

    fn operation(&self, rng: &mut Rng) -> Operation {
        let write = !rng.chance(u64::from(self.reads_per_mille), 1000);
        let hit = rng.chance(u64::from(self.hits_per_mille), 1000);
        let blocks = self.blocks;
        match (write, hit) {
            (true, _) => Operation { write, blocks, ..Operation::default() },
            (_, true) => Operation { blocks, cache_hits: blocks, ..Operation::default() },
            _ => Operation {
                blocks,
                reads: self.chains(rng, u64::from(blocks), self.read_chain),
                ..Operation::default()
            },
        }
    }

    /// So many blocks in chains of one length on the drives that hold data.
    fn chains(&self, rng: &mut Rng, blocks: u64, length: u32) -> Vec<Chain> {
        let (mut left, mut chains) = (blocks, Vec::new());
        while left > 0 {
            let drive = 1 + rng.below(u64::from(self.drives) - 1) as u32;
            let block = rng.below(self.drive_blocks / u64::from(length)) * u64::from(length);
            let blocks = left.min(u64::from(length));
            chains.push(Chain { drive, block, blocks: blocks as u32 });
            left -= blocks;
        }
        chains
    }
}
