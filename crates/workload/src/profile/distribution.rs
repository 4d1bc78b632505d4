//! Whole files in the proportions of a distribution, and how far counts are from one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `total` in whole parts proportional to `weights`, by the method of Webster (Sainte-Laguë). With
/// it, a larger total never means fewer files in any bin.
///
/// Out: one number a bin, with sum `total`; bins without weight get 0. Weights must not all be 0.
pub fn apportion(weights: &[u64], total: u64) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    assert!(sum > 0, "no bin has a weight");
    let mut parts: Vec<u64> =
        weights.iter().map(|&weight| ((2 * u128::from(weight) * u128::from(total) + sum) / (2 * sum)) as u64).collect();
    // Rounded quotients miss the total by at most half a file a bin. The loops correct this by the
    // quotients of the next and the last seat.
    let mut given: u64 = parts.iter().sum();
    let less = |a: (u64, u64), b: (u64, u64)| u128::from(a.0) * u128::from(b.1) < u128::from(b.0) * u128::from(a.1);
    while given < total {
        let mut best = None;
        for (bin, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let quotient = (weight, 2 * parts[bin] + 1);
            if best.is_none_or(|(_, found)| less(found, quotient)) {
                best = Some((bin, quotient));
            }
        }
        parts[best.expect("a bin has weight").0] += 1;
        given += 1;
    }
    while given > total {
        let mut worst = None;
        for (bin, &weight) in weights.iter().enumerate().filter(|(bin, _)| parts[*bin] > 0) {
            let quotient = (weight, 2 * parts[bin] - 1);
            if worst.is_none_or(|(_, found)| less(quotient, found)) {
                worst = Some((bin, quotient));
            }
        }
        parts[worst.expect("a part is above 0").0] -= 1;
        given -= 1;
    }
    parts
}

/// The deviation of counts from a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deviation {
    /// Pearson's chi-square of the counts, over the bins that have weight.
    pub chi_square: f64,
    /// Bins that have weight, minus one.
    pub degrees_of_freedom: u64,
    /// The largest difference between the two shares of a bin.
    pub largest: f64,
    /// Half the sum of all differences: the share of files that are in a wrong bin.
    pub total_variation: f64,
}

impl Deviation {
    /// The deviation of `counts` from `weights`, bin by bin. Without files it is the largest
    /// possible.
    pub fn compute(counts: &[u64], weights: &[u64]) -> Self {
        let files: u64 = counts.iter().sum();
        let sum: f64 = weights.iter().map(|&weight| weight as f64).sum();
        let bins = weights.iter().filter(|&&weight| weight > 0).count() as u64;
        let degrees_of_freedom = bins.saturating_sub(1);
        if files == 0 {
            return Self { chi_square: 0.0, degrees_of_freedom, largest: 1.0, total_variation: 1.0 };
        }
        let (mut chi_square, mut largest, mut total) = (0.0, 0.0f64, 0.0);
        for (&count, &weight) in counts.iter().zip(weights) {
            let expected = weight as f64 / sum * files as f64;
            let difference = (count as f64 - expected).abs();
            if weight > 0 {
                chi_square += difference * difference / expected;
            }
            largest = largest.max(difference / files as f64);
            total += difference / files as f64;
        }
        Self { chi_square, degrees_of_freedom, largest, total_variation: total / 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_websters_method() {
        // 53, 24 and 23 of 100 in 10: quotients 5.3, 2.4, 2.3 round to 9. The tenth file belongs to
        // 53/11 = 4.82, before 24/5 = 4.8 and 23/5 = 4.6.
        assert_eq!(apportion(&[53, 24, 23], 10), [6, 2, 2]);
        assert_eq!(apportion(&[2, 0, 1], 3), [2, 0, 1]);
        assert_eq!(apportion(&[1, 1], 0), [0, 0]);
    }

    #[test]
    fn deviations_match_hand_computed_values() {
        // Expected 5 and 5, found 8 and 2: chi-square 9/5 + 9/5, every share off by 0.3.
        let deviation = Deviation::compute(&[8, 2], &[1, 1]);
        assert!((deviation.chi_square - 3.6).abs() < 1e-12);
        assert!((deviation.largest - 0.3).abs() < 1e-12 && (deviation.total_variation - 0.3).abs() < 1e-12);
        assert_eq!(deviation.degrees_of_freedom, 1);
    }

    proptest::proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_never_shrink(weights in proptest::collection::vec(0u64..1_000_000, 1..40), total in 0u64..5_000) {
            proptest::prop_assume!(weights.iter().sum::<u64>() > 0);
            let parts = apportion(&weights, total);
            proptest::prop_assert_eq!(parts.iter().sum::<u64>(), total);
            let more = apportion(&weights, total + 1);
            for (bin, (few, many)) in parts.iter().zip(&more).enumerate() {
                proptest::prop_assert!(few <= many, "bin {bin}: {few} of {total}, {many} of one more");
                proptest::prop_assert!(weights[bin] > 0 || *few == 0);
            }
        }
    }
}
