//! Free extents as a histogram by powers of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Free extents from `bucket_bytes` to below twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FreeSpaceBucket {
    /// The smallest extent of the bucket, bytes; a power of two.
    pub bucket_bytes: u64,
    /// Free extents in it.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The free space of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FreeSpaceFigures {
    /// Free extents.
    pub extents: u64,
    /// Free bytes.
    pub bytes: u64,
    /// The largest free extent, bytes; 0 if there is none.
    pub largest_bytes: u64,
    /// Mean length of a free extent, bytes; `None` if there is no free extent.
    pub mean_bytes: Option<f64>,
    /// The histogram, smallest first, from the first bucket with an extent to the last, including
    /// empty ones between.
    pub buckets: Vec<FreeSpaceBucket>,
}

/// Counts free extents by power of two, with the buckets of `e2freefrag`.
///
/// In: lengths in bytes, in any order; lengths of zero are ignored. Cost: one pass, at most 64
/// buckets.
pub fn compute_free_space(lengths_bytes: impl IntoIterator<Item = u64>) -> FreeSpaceFigures {
    let mut by_power = [(0u64, 0u64); 64];
    let mut figures = FreeSpaceFigures::default();
    for length in lengths_bytes {
        let Some(power) = length.checked_ilog2() else { continue };
        by_power[power as usize].0 += 1;
        by_power[power as usize].1 += length;
        figures.extents += 1;
        figures.bytes += length;
        figures.largest_bytes = figures.largest_bytes.max(length);
    }
    figures.mean_bytes = (figures.extents > 0).then(|| figures.bytes as f64 / figures.extents as f64);
    let first = by_power.iter().position(|bucket| bucket.0 > 0).unwrap_or(64);
    let end = by_power.iter().rposition(|bucket| bucket.0 > 0).map_or(first, |last| last + 1);
    figures.buckets = (first..end)
        .map(|power| FreeSpaceBucket { bucket_bytes: 1 << power, extents: by_power[power].0, bytes: by_power[power].1 })
        .collect();
    figures
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_counted_by_power_of_two() {
        let figures = compute_free_space([4096, 8191, 4096, 16384, 0, 40960]);
        let bucket = |bucket_bytes, extents, bytes| FreeSpaceBucket { bucket_bytes, extents, bytes };
        assert_eq!(
            figures.buckets,
            [bucket(4096, 3, 16383), bucket(8192, 0, 0), bucket(16384, 1, 16384), bucket(32768, 1, 40960)]
        );
        assert_eq!((figures.extents, figures.bytes, figures.largest_bytes), (5, 73727, 40960));
        assert_eq!(figures.mean_bytes, Some(73727.0 / 5.0));
    }

    #[test]
    fn no_free_space_has_no_mean() {
        assert_eq!(compute_free_space([]), FreeSpaceFigures::default());
    }

    proptest! {
        #[test]
        fn every_extent_is_in_its_bucket(lengths in prop::collection::vec(1u64..1 << 50, 0..100)) {
            let figures = compute_free_space(lengths.iter().copied());
            prop_assert_eq!(figures.extents, lengths.len() as u64);
            prop_assert_eq!(figures.buckets.iter().map(|b| b.bytes).sum::<u64>(), lengths.iter().sum::<u64>());
            for bucket in &figures.buckets {
                let within = |length: &&u64| (bucket.bucket_bytes..2 * bucket.bucket_bytes).contains(length);
                prop_assert_eq!(bucket.extents, lengths.iter().filter(within).count() as u64);
            }
        }
    }
}
