//! A synthetic trace, for tests and for the effect of a single parameter.

use senesce_core::{Rng, Seed};
use serde::{Deserialize, Serialize};

use super::trace::{Chain, Operation, PointTrace, Trace};
use crate::{CpuEvents, Error};

/// Operations of one size on a group of drives with one parity drive; chains of one length at
/// random positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntheticTrace {
    /// Drives of the only group.
    pub drives: u32,
    /// Blocks of each.
    pub drive_blocks: u64,
    /// Consistency points.
    pub points: u32,
    /// Operations of each.
    pub operations: u32,
    /// Reads, of 1000 operations.
    pub reads_per_mille: u32,
    /// Blocks of an operation.
    pub blocks: u32,
    /// Reads that find all blocks in the cache, of 1000 reads.
    pub hits_per_mille: u32,
    /// Blocks of each chain that an operation reads; the last one may be shorter.
    pub read_chain: u32,
    /// Blocks of each chain that a consistency point writes; chains are aligned to this.
    pub write_chain: u32,
    /// Blocks read for parity, for each 1000 written.
    pub parity_reads_per_mille: u32,
    /// The seed of the positions.
    pub seed: Seed,
}

impl SyntheticTrace {
    /// Generates the trace. Errors: invalid parameters.
    pub fn make(&self) -> Result<Trace, Error> {
        let longest = u64::from(self.read_chain.max(self.write_chain));
        if self.drives < 2
            || longest == 0
            || self.read_chain == 0
            || self.write_chain == 0
            || self.drive_blocks < longest
        {
            let problem = format!(
                "{self:?} gives no trace; use at least 2 drives of at least a chain, and chains of at least 1 block"
            );
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
        // Drive 0 is parity: it gets an equal share of the writes.
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

    /// `blocks` blocks in chains of `length` on the data drives.
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
