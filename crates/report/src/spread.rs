//! Repetitions of one figure: the median, its interval, and outliers.

use senesce_core::{
    Seed,
    statistics::{compute_comparison, compute_outliers, compute_spread},
};

/// From this number of figures on, the interval comes from their ranks: a bootstrap of thousands is
/// slow and has the same result.
const MANY: usize = 100;
/// The most outliers that are drawn one by one; a reader could not distinguish more.
const OUTLIERS_SHOWN: usize = 20;

/// Repetitions of one figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// Repetitions.
    pub count: usize,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Lower end of the 95% interval of the median; the median itself if there is one figure only.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Figures beyond Tukey's fences, if they are few. They count like all others.
    pub outliers: Vec<f64>,
    /// All figures, sorted; none of a ratio.
    pub values: Vec<f64>,
}

impl Spread {
    /// The spread of the numbers among `values`; none if there is no number.
    pub(crate) fn compute(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let count = values.len();
        let median = (values[(count - 1) / 2] + values[count / 2]) / 2.0;
        let (low, high) = match count {
            1 => (median, median),
            2..MANY => {
                let spread = compute_spread(&values, Seed(1))?;
                (spread.interval_low, spread.interval_high)
            }
            _ => {
                // The number of figures below the median is binomial: 1.96 standard deviations of
                // half the root of n to each side.
                let (middle, reach) = (count as f64 / 2.0, 0.98 * (count as f64).sqrt());
                (values[(middle - reach).floor() as usize], values[((middle + reach).ceil() as usize).min(count - 1)])
            }
        };
        let outliers = match compute_outliers(&values) {
            many if many.len() > OUTLIERS_SHOWN => Vec::new(),
            few => few,
        };
        Some(Self { count, median, min, max, low, high, outliers, values })
    }

    /// The ratio of the medians of this and `other`, with its bootstrap interval; none if the other
    /// is 0.
    pub(crate) fn over(&self, other: &Self) -> Option<Self> {
        let comparison = compute_comparison(&other.values, &self.values, Seed(1))?;
        Some(Self {
            count: self.count.min(other.count),
            median: comparison.ratio,
            min: self.min / other.max,
            max: self.max / other.min,
            low: comparison.ratio_low,
            high: comparison.ratio_high,
            ..Self::default()
        })
    }

    /// Whether a ratio has an interval that includes 1. A single repetition has no interval.
    pub(crate) fn includes_one(&self) -> bool {
        self.count > 1 && self.low <= 1.0 && self.high >= 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_odd_even_and_nothing() {
        let spread = Spread::compute([3.0, 1.0, f64::NAN, 2.0]).unwrap();
        assert_eq!((spread.count, spread.median, spread.min, spread.max), (3, 2.0, 1.0, 3.0));
        assert_eq!((spread.low, spread.high), (1.0, 3.0), "three figures say no more");
        assert_eq!(Spread::compute([1.0, 2.0]).unwrap().median, 1.5);
        let one = Spread::compute([7.0]).unwrap();
        assert_eq!((one.low, one.median, one.high), (7.0, 7.0, 7.0));
        assert_eq!(Spread::compute([f64::NAN]), None);
    }

    #[test]
    fn what_lies_far_off_is_named_and_counted() {
        let spread = Spread::compute([10.0, 10.1, 10.2, 10.3, 10.4, 99.0]).unwrap();
        assert_eq!((spread.outliers.as_slice(), spread.count, spread.max), (&[99.0][..], 6, 99.0));
        assert!((spread.median - 10.25).abs() < 1e-9);
    }

    #[test]
    fn interval_by_ranks_is_close_to_bootstrap() {
        // 400 figures 0, 1, … 399: ranks 200 - 19.6 and 200 + 19.6.
        let spread = Spread::compute((0..400).map(f64::from)).unwrap();
        assert_eq!((spread.low, spread.high), (180.0, 220.0));
        let bootstrap = compute_spread(&spread.values, Seed(1)).unwrap();
        assert!(
            (bootstrap.interval_low - spread.low).abs() < 4.0 && (bootstrap.interval_high - spread.high).abs() < 4.0
        );
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        let spread = |value: f64| Spread::compute([value]).unwrap();
        assert_eq!(spread(3.0).over(&spread(0.0)), None);
        assert_eq!(spread(3.0).over(&spread(1.5)).map(|ratio| (ratio.median, ratio.count)), Some((2.0, 1)));
    }
}
