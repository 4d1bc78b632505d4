//! Repeated figures: median, quartiles, and the confidence interval of the median.

use crate::{Rng, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spread of a repeated figure, in the figure's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// The number of figures.
    pub count: u64,
    /// The smallest figure.
    pub min: f64,
    /// A quarter of the figures is below this.
    pub lower_quartile: f64,
    /// Half of the figures is below this.
    pub median: f64,
    /// Three quarters of the figures are below this.
    pub upper_quartile: f64,
    /// The largest figure.
    pub max: f64,
    /// Lower end of the bootstrap 95% interval of the median.
    pub interval_low: f64,
    /// Upper end of the bootstrap 95% interval of the median.
    pub interval_high: f64,
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;

/// The median: the middle figure, or the mean of the two in the middle. `None` for no figures, or
/// for one that is not finite.
pub fn compute_median(figures: &[f64]) -> Option<f64> {
    compute_quantile(figures, 0.5)
}

/// The value below which the share `quantile` (0..=1) of the figures is, linear between neighbours
/// (Hyndman and Fan's type 7, the default of R and NumPy). `None` for no figures, for one that is
/// not finite, or a share out of range.
pub fn compute_quantile(figures: &[f64], quantile: f64) -> Option<f64> {
    let sorted = sorted(figures)?;
    (0.0..=1.0).contains(&quantile).then(|| quantile_of_sorted(&sorted, quantile))
}

/// Median, quartiles, extremes, and the percentile bootstrap 95% interval of the median from 2,000
/// resamples.
///
/// In: figures in any order. The resamples follow from `seed`. With fewer than five figures the
/// interval has little meaning: it cannot leave the range of the figures. Out: `None` for no
/// figures, or for one that is not finite. Cost: 2,000 sorts. Source: B. Efron, Bootstrap methods:
/// another look at the jackknife, 1979.
pub fn compute_spread(figures: &[f64], seed: Seed) -> Option<Spread> {
    let sorted = sorted(figures)?;
    let mut rng = Rng::for_purpose(seed, "bootstrap-median");
    let mut sample = sorted.clone();
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            sample.fill_with(|| sorted[rng.below(sorted.len() as u64) as usize]);
            sample.sort_unstable_by(f64::total_cmp);
            quantile_of_sorted(&sample, 0.5)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    Some(Spread {
        count: sorted.len() as u64,
        min: sorted[0],
        lower_quartile: quantile_of_sorted(&sorted, 0.25),
        median: quantile_of_sorted(&sorted, 0.5),
        upper_quartile: quantile_of_sorted(&sorted, 0.75),
        max: sorted[sorted.len() - 1],
        interval_low: quantile_of_sorted(&medians, 0.025),
        interval_high: quantile_of_sorted(&medians, 0.975),
    })
}

fn sorted(figures: &[f64]) -> Option<Vec<f64>> {
    if figures.is_empty() || !figures.iter().all(|figure| figure.is_finite()) {
        return None;
    }
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

fn quantile_of_sorted(sorted: &[f64], quantile: f64) -> f64 {
    let at = quantile * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    // Not low + share * (high - low), which can leave low..high by rounding.
    let share = at.fract();
    if low == high { low } else { (low * (1.0 - share) + high * share).clamp(low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use proptest::prelude::*;

    #[test]
    fn quantiles_by_hand() {
        // The values of R for quantile(c(1, 2, 4, 8), c(.25, .5, .75)).
        let figures = [8.0, 1.0, 4.0, 2.0];
        assert_eq!(compute_quantile(&figures, 0.25), Some(1.75));
        assert_eq!(compute_median(&figures), Some(3.0));
        assert_eq!(compute_quantile(&figures, 0.75), Some(5.0));
        assert_eq!(compute_median(&[7.0]), Some(7.0));
        assert_eq!(compute_median(&[3.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn empty_and_infinite_figures_have_no_median() {
        assert_eq!(compute_median(&[]), None);
        assert_eq!(compute_spread(&[1.0, f64::NAN], Seed(1)), None);
        assert_eq!(compute_quantile(&[1.0], 1.5), None);
    }

    #[test]
    fn interval_covers_the_true_median_at_its_rate() {
        // 400 samples of 25 uniform figures: the true median is 0.5. The percentile bootstrap
        // covers a little less than 95%; below 90% or at 100% it would be wrong (chances below 1 in
        // 10,000).
        let mut rng = Rng::for_purpose(Seed(5), "coverage");
        let covered = (0..400)
            .filter(|&round| {
                let sample: Vec<f64> = (0..25).map(|_| rng.below(1 << 53) as f64 / (1u64 << 53) as f64).collect();
                let spread = compute_spread(&sample, Seed(round)).unwrap();
                (spread.interval_low..=spread.interval_high).contains(&0.5)
            })
            .count();
        assert!((360..400).contains(&covered), "{covered} of 400");
    }

    proptest! {
        #[test]
        fn spread_is_in_order(figures in prop::collection::vec(-1e9f64..1e9, 1..12), seed: u64) {
            let s = compute_spread(&figures, Seed(seed)).unwrap();
            prop_assert!(s.min <= s.lower_quartile && s.lower_quartile <= s.median);
            prop_assert!(s.median <= s.upper_quartile && s.upper_quartile <= s.max);
            prop_assert!(s.min <= s.interval_low && s.interval_low <= s.interval_high && s.interval_high <= s.max);
            prop_assert_eq!(Some(s), compute_spread(&figures, Seed(seed)));
        }
    }
}
