//! Distances between consecutive files, as a histogram by powers of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gaps from `at_least_blocks` to below twice that. The first bucket has the gap of zero: adjacent
/// files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DistanceBucket {
    /// The smallest gap of the bucket, blocks: 0 or a power of two.
    pub at_least_blocks: u64,
    /// Pairs whose second file starts after the end of the first (in the bucket of zero: all
    /// pairs).
    pub forward: u64,
    /// Pairs whose second file starts before the end of the first.
    pub backward: u64,
}

/// Counts gaps.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    /// Forward and backward; first zero, then one for each power of two.
    counts: [[u64; 2]; 65],
    /// Sum of the gaps, blocks; saturates.
    sum: u64,
}

impl Default for Distances {
    fn default() -> Self {
        Self { counts: [[0; 2]; 65], sum: 0 }
    }
}

impl Distances {
    /// Counts the gap from the end of one file to the start of the next, rounded up to whole
    /// blocks.
    pub(super) fn add(&mut self, end_bytes: u64, next_start_bytes: u64, block_bytes: u64) {
        let blocks = next_start_bytes.abs_diff(end_bytes).div_ceil(block_bytes);
        let bucket = blocks.checked_ilog2().map_or(0, |power| power as usize + 1);
        self.counts[bucket][usize::from(next_start_bytes < end_bytes)] += 1;
        self.sum = self.sum.saturating_add(blocks);
    }

    /// Pairs whose second file starts exactly where the first ends.
    pub(super) fn adjacent(&self) -> u64 {
        self.counts[0][0]
    }

    /// The sum of all gaps, blocks.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// The buckets from zero to the last one with a pair; empty if there is none.
    pub(super) fn buckets(&self) -> Vec<DistanceBucket> {
        let end = self.counts.iter().rposition(|count| *count != [0, 0]).map_or(0, |last| last + 1);
        (0..end)
            .map(|bucket| DistanceBucket {
                at_least_blocks: if bucket == 0 { 0 } else { 1 << (bucket - 1) },
                forward: self.counts[bucket][0],
                backward: self.counts[bucket][1],
            })
            .collect()
    }
}
