//! Time spans counted in buckets whose width grows with the span.

use senesce_core::Nanos;
use serde::{Deserialize, Serialize};

/// Buckets of each octave, as a power of two.
const BITS: u32 = 6;

/// Counts of spans: exact below 64 ns; above that, 64 buckets for each octave.
///
/// A quantile is the middle of its bucket, with an error of at most 1/128 (0.8%). Sum, number and
/// maximum are exact. Memory: 512 bytes for each octave up to the longest span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// A summary of a distribution of spans, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spans {
    /// Number of spans.
    pub count: u64,
    /// Mean, exact.
    pub mean: f64,
    /// The median; like the next two, with an error of at most 0.8%.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The longest, exact.
    pub max: u64,
}

impl Histogram {
    /// Counts a span.
    pub fn add(&mut self, span: Nanos) {
        let bucket = bucket_of(span.0);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(span.0);
        self.max = self.max.max(span.0);
    }

    /// Adds all spans of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The number of spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their mean, ns; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The smallest span that `per_mille` thousandths do not exceed, with an error of at most 0.8%;
    /// 0 if there are none.
    pub fn quantile(&self, per_mille: u64) -> Nanos {
        let wanted = (u128::from(self.count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1) as u64;
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= wanted {
                return Nanos(middle_of(bucket).min(self.max));
            }
        }
        Nanos(0)
    }

    /// The summary for reports.
    pub fn spans(&self) -> Spans {
        let quantile = |per_mille| self.quantile(per_mille).0;
        let (p50, p95, p99) = (quantile(500), quantile(950), quantile(990));
        Spans { count: self.count, mean: self.mean(), p50, p95, p99, max: self.max }
    }
}

fn bucket_of(span: u64) -> usize {
    let octave = span.max(1).ilog2().saturating_sub(BITS);
    // Within an octave the leading bits run from 64 to 127, so the buckets are contiguous.
    ((octave << BITS) + (span >> octave) as u32) as usize
}

fn middle_of(bucket: usize) -> u64 {
    let octave = (bucket as u32 >> BITS).saturating_sub(1);
    let first = (bucket as u64 - (u64::from(octave) << BITS)) << octave;
    first + ((1 << octave) - 1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_match_sorted_spans_within_a_128th(
            spans in prop::collection::vec((0u64..64, any::<u64>()).prop_map(|(shift, span)| span >> shift), 1..200),
            per_mille in 0u64..=1000,
        ) {
            let mut histogram = Histogram::default();
            spans.iter().for_each(|&span| histogram.add(Nanos(span)));
            let mut sorted = spans.clone();
            sorted.sort_unstable();
            let at = (spans.len() as u64 * per_mille).div_ceil(1000).max(1) as usize - 1;
            let (got, want) = (histogram.quantile(per_mille).0, sorted[at]);
            prop_assert!(got.abs_diff(want) <= want / 128, "{} {}", got, want);
            prop_assert_eq!(histogram.sum(), spans.iter().map(|&span| u128::from(span)).sum::<u128>());
        }

        #[test]
        fn merging_equals_counting_all(
            a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(0u64..1000, 0..50),
        ) {
            let of = |spans: &[u64]| {
                let mut histogram = Histogram::default();
                spans.iter().for_each(|&span| histogram.add(Nanos(span)));
                histogram
            };
            let (mut ab, mut ba) = (of(&a), of(&b));
            ab.merge(&of(&b));
            ba.merge(&of(&a));
            prop_assert_eq!(&ab, &of(&[a, b].concat()));
            prop_assert_eq!(ab.spans(), ba.spans());
        }
    }
}
