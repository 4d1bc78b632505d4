//! Scores of block traces: the number of discontinuities, their distances, and the sizes of
//! requests.

use schemars::JsonSchema;
use senesce_core::{BlockOp, BlockRequest, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use super::jump_distance::{DistanceBucket, Distances};

/// Sectors of a block, the unit of the scores.
const SECTORS_PER_BLOCK: u64 = 8;

/// Requests from `at_least_bytes` to below twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSizeBucket {
    /// The smallest request of the bucket, bytes; a power of two.
    pub at_least_bytes: u64,
    /// Requests of the bucket.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
}

/// The access pattern of reads, writes, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessFigures {
    /// Requests that move data.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Blocks of 4 KiB of the requests: the sum over the requests of sectors / 8, each rounded up.
    pub blocks: u64,
    /// Requests whose first sector is not the end of the previous request. The first request does
    /// not count.
    pub discontinuities: u64,
    /// Dynamic layout score: 1 - discontinuities / blocks; above 0, at most 1; `None` without
    /// blocks.
    /// Source: A. Conway et al., File Systems Fated for Senescence?, FAST 2017.
    pub dynamic_layout_score: Option<f64>,
    /// The sum of the distances from the end of a request to the start of the next, sectors; at
    /// most 2^64 - 1.
    pub seek_sectors: u64,
    /// The distances between requests in blocks of 4 KiB, rounded up, by powers of two. The bucket
    /// of zero has the requests without a seek.
    pub seeks: Vec<DistanceBucket>,
    /// Requests by size, smallest first, from the first bucket with a request to the last.
    pub request_sizes: Vec<RequestSizeBucket>,
    /// Chain length: blocks / requests, the mean number of consecutive blocks in a request;
    /// `None` without requests.
    pub blocks_per_request: Option<f64>,
    /// Chains: maximal sequences of requests in which each starts where the previous one ended,
    /// even if the block layer did not merge them. The number is discontinuities + 1; 0 without
    /// requests.
    pub chains: u64,
    /// Blocks of the chains: the sum over the chains of sectors / 8, each rounded up.
    pub chain_blocks: u64,
    /// Merged chain length: chain_blocks / chains; `None` without requests. For requests of
    /// whole blocks it is at least `blocks_per_request`.
    pub blocks_per_chain: Option<f64>,
}

/// The layout figures of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFigures {
    /// Reads, in issue order among themselves: read chain length, and the dynamic layout score of a
    /// grep test.
    pub reads: AccessFigures,
    /// Writes, in issue order among themselves: write chain length.
    pub writes: AccessFigures,
    /// Reads and writes together, in the order of the device.
    pub both: AccessFigures,
    /// Discards.
    pub discards: u64,
    /// Bytes of the discards.
    pub discarded_bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

/// Scores a trace. In: requests in issue order. Cost: one pass, constant memory.
///
/// The dynamic layout score follows one file system over time well, but compares different file
/// systems badly (pooled r = -0.71 on disks, -0.32 on SSDs, against -0.94..-1.0 within one). Show a
/// modelled cost with it.
///
/// ```
/// use senesce_core::{BlockOp, BlockRequest, Nanos};
/// use senesce_probe::score::compute_trace_figures;
///
/// let read =
///     |sector, sectors| BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector, sectors };
/// // Two adjacent requests of two blocks, and one of four: one discontinuity in eight blocks.
/// let figures = compute_trace_figures([read(0, 16), read(16, 16), read(800, 32)]);
/// assert_eq!(figures.reads.dynamic_layout_score, Some(7.0 / 8.0));
/// assert_eq!(figures.reads.blocks_per_chain, Some(4.0));
/// ```
pub fn compute_trace_figures(requests: impl IntoIterator<Item = BlockRequest>) -> TraceFigures {
    let (mut reads, mut writes, mut both) = (Access::default(), Access::default(), Access::default());
    let mut figures = TraceFigures::default();
    for request in requests {
        match request.op {
            BlockOp::Flush => figures.flushes += 1,
            BlockOp::Discard => {
                figures.discards += 1;
                figures.discarded_bytes += request.bytes();
            }
            BlockOp::Read | BlockOp::Write => {
                if request.op == BlockOp::Read { &mut reads } else { &mut writes }.add(&request);
                both.add(&request);
            }
        }
    }
    figures.reads = reads.finish();
    figures.writes = writes.finish();
    figures.both = both.finish();
    figures
}

/// Sums requests of one kind.
#[derive(Clone, Debug)]
struct Access {
    figures: AccessFigures,
    distances: Distances,
    by_power: [(u64, u64); 64],
    /// The first sector after the previous request.
    end: Option<u64>,
    chain_sectors: u64,
}

impl Default for Access {
    fn default() -> Self {
        let distances = Distances::default();
        Self { figures: AccessFigures::default(), distances, by_power: [(0, 0); 64], end: None, chain_sectors: 0 }
    }
}

impl Access {
    fn add(&mut self, request: &BlockRequest) {
        let sectors = u64::from(request.sectors);
        let bytes = sectors * SECTOR_BYTES;
        // A request without sectors moves nothing and has no position.
        let Some(power) = bytes.checked_ilog2() else { return };
        let figures = &mut self.figures;
        figures.requests += 1;
        figures.bytes += bytes;
        figures.blocks += sectors.div_ceil(SECTORS_PER_BLOCK);
        self.by_power[power as usize].0 += 1;
        self.by_power[power as usize].1 += bytes;
        if let Some(before) = self.end.replace(request.sector.saturating_add(sectors)) {
            self.distances.add(before, request.sector, SECTORS_PER_BLOCK);
            figures.seek_sectors = figures.seek_sectors.saturating_add(request.sector.abs_diff(before));
            if request.sector != before {
                figures.discontinuities += 1;
                figures.chain_blocks += self.chain_sectors.div_ceil(SECTORS_PER_BLOCK);
                self.chain_sectors = 0;
            }
        }
        self.chain_sectors += sectors;
    }

    fn finish(mut self) -> AccessFigures {
        let figures = &mut self.figures;
        if figures.requests > 0 {
            figures.chains = figures.discontinuities + 1;
            figures.chain_blocks += self.chain_sectors.div_ceil(SECTORS_PER_BLOCK);
            let blocks = figures.blocks as f64;
            figures.dynamic_layout_score = Some(1.0 - figures.discontinuities as f64 / blocks);
            figures.blocks_per_request = Some(blocks / figures.requests as f64);
            figures.blocks_per_chain = Some(figures.chain_blocks as f64 / figures.chains as f64);
        }
        figures.seeks = self.distances.buckets();
        let first = self.by_power.iter().position(|bucket| bucket.0 > 0).unwrap_or(64);
        let end = self.by_power.iter().rposition(|bucket| bucket.0 > 0).map_or(first, |last| last + 1);
        figures.request_sizes = (first..end)
            .map(|power| {
                let (requests, bytes) = self.by_power[power];
                RequestSizeBucket { at_least_bytes: 1 << power, requests, bytes }
            })
            .collect();
        self.figures
    }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
