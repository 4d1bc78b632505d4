//! Compares two sets of repeated figures: the ratio of their medians, and whether chance explains
//! it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spread::{Spread, compute_median, compute_quantile, compute_spread};
use crate::{Rng, Seed};

/// The largest product of the sets' sizes for an exact Mann-Whitney test.
const EXACT_UP_TO: usize = 400;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;
/// Tukey's fences, in interquartile ranges.
const FENCE: f64 = 1.5;

/// The Mann-Whitney test of two sets of figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MannWhitney {
    /// Pairs in which the figure of the first set is the larger one; ties count half.
    pub u: f64,
    /// The probability of a `u` at least this far from the middle, if both sets come from one
    /// distribution (two-sided).
    pub p: f64,
    /// Whether `p` is exact. Otherwise it comes from the normal distribution (large sets, ties).
    pub is_exact: bool,
}

/// The comparison of two sets of figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The first set.
    pub a: Spread,
    /// The second set.
    pub b: Spread,
    /// The median of the second set divided by the median of the first.
    pub ratio: f64,
    /// Lower end of the bootstrap 95% interval of the ratio.
    pub ratio_low: f64,
    /// Upper end of the bootstrap 95% interval of the ratio.
    pub ratio_high: f64,
    /// The test whether chance explains the difference. `None` if no result of so few figures can
    /// have a `p` below 5%.
    pub test: Option<MannWhitney>,
    /// Outliers of the first set. They count like other figures.
    pub outliers_a: Vec<f64>,
    /// Outliers of the second set. They count like other figures.
    pub outliers_b: Vec<f64>,
}

impl Comparison {
    /// Whether both sets have [`ENOUGH_FIGURES`](super::ENOUGH_FIGURES).
    pub fn is_enough(&self) -> bool {
        self.a.count.min(self.b.count) >= super::ENOUGH_FIGURES
    }

    /// The probability of such a difference by chance. `None` with fewer than
    /// [`ENOUGH_FIGURES`](super::ENOUGH_FIGURES).
    pub fn p(&self) -> Option<f64> {
        self.test.filter(|_| self.is_enough()).map(|test| test.p)
    }
}

/// Compares two sets of positive figures.
///
/// Out: `None` if a set is empty or has a figure that is not finite, or the first median is zero.
/// The same seed has the same result.
pub fn compute_comparison(a: &[f64], b: &[f64], seed: Seed) -> Option<Comparison> {
    let (spread_a, spread_b) = (compute_spread(a, seed)?, compute_spread(b, seed)?);
    if spread_a.median == 0.0 {
        return None;
    }
    let mut rng = Rng::for_purpose(seed, "bootstrap-ratio");
    let mut resampled = |figures: &[f64]| {
        let sample: Vec<f64> = figures.iter().map(|_| figures[rng.below(figures.len() as u64) as usize]).collect();
        compute_median(&sample)
    };
    let ratios: Vec<f64> =
        (0..RESAMPLES).filter_map(|_| Some(resampled(b)? / resampled(a)?)).filter(|ratio| ratio.is_finite()).collect();
    let ratio = spread_b.median / spread_a.median;
    Some(Comparison {
        a: spread_a,
        b: spread_b,
        ratio,
        ratio_low: compute_quantile(&ratios, 0.025).unwrap_or(ratio),
        ratio_high: compute_quantile(&ratios, 0.975).unwrap_or(ratio),
        test: compute_mann_whitney(a, b),
        outliers_a: compute_outliers(a),
        outliers_b: compute_outliers(b),
    })
}

/// The figures beyond Tukey's fences: one and a half interquartile ranges outside of the quartiles.
/// Sorted.
pub fn compute_outliers(figures: &[f64]) -> Vec<f64> {
    let (Some(low), Some(high)) = (compute_quantile(figures, 0.25), compute_quantile(figures, 0.75)) else {
        return Vec::new();
    };
    let range = FENCE * (high - low);
    let mut outliers: Vec<f64> =
        figures.iter().copied().filter(|&figure| figure < low - range || figure > high + range).collect();
    outliers.sort_unstable_by(f64::total_cmp);
    outliers
}

/// The Mann-Whitney test: exact for small sets without ties, otherwise with the normal distribution
/// and corrections for ties and for continuity.
///
/// Out: `None` for an empty set, a figure that is not finite, or sets so small that no result could
/// have p < 5%. Source: H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18, 1947.
pub fn compute_mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    if a.is_empty() || b.is_empty() || !a.iter().chain(b).all(|figure| figure.is_finite()) {
        return None;
    }
    let (n, m) = (a.len(), b.len());
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|&figure| (figure, true)).chain(b.iter().map(|&figure| (figure, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let mut rank_sum = 0.0;
    let mut ties = 0.0;
    for group in all.chunk_by(|x, y| x.0 == y.0) {
        let before = all.partition_point(|figure| figure.0 < group[0].0);
        let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        rank_sum += rank * group.iter().filter(|figure| figure.1).count() as f64;
        let size = group.len() as f64;
        ties += size * size * size - size;
    }
    let u = rank_sum - (n * (n + 1)) as f64 / 2.0;
    let extreme = u.max((n * m) as f64 - u);
    let is_exact = ties == 0.0 && n * m <= EXACT_UP_TO;
    let p = match is_exact {
        true => {
            let counts = counts_of_u(n, m);
            let total: i128 = counts.iter().sum();
            if 2 * 20 > total {
                return None; // even the most extreme result is more probable than 5%
            }
            let at_least: i128 = counts[extreme as usize..].iter().sum();
            (2.0 * at_least as f64 / total as f64).min(1.0)
        }
        false => {
            let (n, m) = (n as f64, m as f64);
            let count = n + m;
            let variance = n * m / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
            match variance > 0.0 {
                true => (2.0 * upper_tail((extreme - n * m / 2.0 - 0.5).max(0.0) / variance.sqrt())).min(1.0),
                false => 1.0, // all figures are equal
            }
        }
    };
    Some(MannWhitney { u, p, is_exact })
}

/// The number of orders of `n` and `m` figures in which `u` is 0, 1, … n·m: the coefficients of the
/// Gaussian binomial.
fn counts_of_u(n: usize, m: usize) -> Vec<i128> {
    let length = n * m + 1;
    let mut counts = vec![0i128; length];
    counts[0] = 1;
    for i in 1..=n {
        // Times (1 - q^(m+i)), divided by (1 - q^i).
        for at in (m + i..length).rev() {
            counts[at] -= counts[at - m - i];
        }
        for at in i..length {
            counts[at] += counts[at - i];
        }
    }
    counts
}

/// The probability that a standard normal figure is above `z` (at least 0).
///
/// The continued fraction of the tail for large `z`, the series around 0 for small `z`, both to
/// full precision. Source: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.2.10
/// and 26.2.14.
fn upper_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 3.0 {
        let (mut term, mut sum, mut divisor) = (z, z, 1.0);
        while term.abs() > 1e-18 * sum.abs() && divisor < 400.0 {
            divisor += 2.0;
            term *= z * z / divisor;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let mut fraction = z;
    for step in (1..100).rev() {
        fraction = z + f64::from(step) / fraction;
    }
    density / fraction
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn test_matches_tables_and_other_programs() {
        // The example of SciPy's documentation: U = 17, exact p = 0.111. With the normal
        // distribution: 0.11134688653314041.
        let (males, females) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        let test = compute_mann_whitney(&males, &females).unwrap();
        assert_eq!((test.u, test.is_exact), (17.0, true));
        assert!((test.p - 14.0 / 126.0).abs() < 1e-12, "{}", test.p);
        assert!(
            (upper_tail((17.0 - 10.0 - 0.5) / (5.0f64 * 4.0 * 10.0 / 12.0).sqrt()) * 2.0 - 0.111_346_886_533_140_41)
                .abs()
                < 1e-12
        );
        // Tables: for two sets of five, U = 2 (or 23) has p = 0.032 two-sided, U = 0 has 0.0079.
        let five = |from: f64| -> Vec<f64> { (0..5).map(|n| from + f64::from(n)).collect() };
        assert!((compute_mann_whitney(&five(0.0), &five(10.5)).unwrap().p - 2.0 / 252.0).abs() < 1e-12);
        // Three against three cannot have a p below 10%.
        assert_eq!(compute_mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), None);
    }

    #[test]
    fn normal_tail_matches_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (3.0, 0.001_349_898_031_630_09),
            (6.0, 9.865_876_450_376_98e-10),
        ] {
            assert!((upper_tail(z) / p - 1.0).abs() < 1e-9, "{z}: {}", upper_tail(z));
        }
    }

    #[test]
    fn counts_match_all_orders() {
        assert_eq!(counts_of_u(2, 2), [1, 1, 2, 1, 1]);
        assert_eq!(counts_of_u(5, 4).iter().sum::<i128>(), 126);
        assert_eq!(counts_of_u(20, 20).iter().sum::<i128>(), 137_846_528_820);
    }

    #[test]
    fn outliers_are_listed_and_keep_the_median() {
        let mut figures: Vec<f64> = (0..20).map(|n| 10.0 + f64::from(n) / 10.0).collect();
        let calm = compute_comparison(&figures, &figures, Seed(1)).unwrap();
        assert_eq!((calm.ratio, calm.outliers_a.len()), (1.0, 0));
        figures[3] = 99.0;
        let wild = compute_comparison(&figures, &figures, Seed(1)).unwrap();
        assert_eq!((wild.ratio, wild.outliers_b), (1.0, vec![99.0]));
        assert_eq!(wild.a.count, 20, "nothing was dropped");
    }

    proptest! {
        #[test]
        fn result_ignores_order_and_units_and_swapping_mirrors(
            a in prop::collection::vec(0.1f64..100.0, 4..12),
            b in prop::collection::vec(0.1f64..100.0, 4..12),
        ) {
            let test = compute_mann_whitney(&a, &b).unwrap();
            let swapped = compute_mann_whitney(&b, &a).unwrap();
            prop_assert!((test.p - swapped.p).abs() < 1e-12);
            prop_assert!((test.u + swapped.u - (a.len() * b.len()) as f64).abs() < 1e-9);
            let backwards: Vec<f64> = a.iter().rev().map(|figure| figure * 8.0).collect();
            let scaled: Vec<f64> = b.iter().map(|figure| figure * 8.0).collect();
            prop_assert_eq!(compute_mann_whitney(&backwards, &scaled).unwrap(), test);
            let compared = compute_comparison(&a, &b, Seed(3)).unwrap();
            prop_assert!(compared.ratio_low <= compared.ratio_high);
        }
    }
}
