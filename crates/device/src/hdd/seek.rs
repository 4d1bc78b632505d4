//! The time of a seek.
//!
//! Up to a third of the stroke, the time grows with the square root of the distance, because the
//! arm accelerates and brakes. From there on it grows linearly, because the arm coasts:
//!
//! ```text
//! t(0) = 0
//! t(d) = t1 + (ta - t1) sqrt((d - 1) / (C/3 - 1))      1 <= d <= C/3
//! t(d) = ta + (tf - ta) (d - C/3) / (C - 1 - C/3)      d > C/3
//! ```
//!
//! `t1` (track to track) and `tf` (full stroke) are those of the datasheet. `ta` is solved so that
//! the mean over all ordered pairs of different cylinders is the average seek of the datasheet.
//! Makers define it as this weighted average (for example the Hitachi Deskstar 7K1000.C
//! specification, 4.5.2.1). The mean is linear in `ta`, so one division solves it.

use senesce_core::Nanos;

/// Seek times by distance, for reads or for writes.
#[derive(Clone, Copy, Debug)]
pub struct SeekCurve {
    cylinders: u64,
    t1_ms: f64,
    ta_ms: f64,
    tf_ms: f64,
}

/// The reason why there is no such curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoCurve {
    /// The full stroke is shorter than track to track.
    FullStroke,
    /// The mean is not between these two limits, milliseconds.
    Mean {
        /// The mean if the square root part were flat.
        at_least_ms: f64,
        /// The mean if the linear part were flat.
        at_most_ms: f64,
    },
}

impl SeekCurve {
    /// The curve with this mean. Cost: constant for many cylinders, one pass over them for few.
    pub fn solve(cylinders: u64, t1_ms: f64, mean_ms: f64, tf_ms: f64) -> Result<Self, NoCurve> {
        if tf_ms < t1_ms {
            return Err(NoCurve::FullStroke);
        }
        let shares = Shares::compute(cylinders);
        let (lowest, highest) = (shares.mean_ms(t1_ms, t1_ms, tf_ms), shares.mean_ms(t1_ms, tf_ms, tf_ms));
        if !(lowest..=highest).contains(&mean_ms) {
            return Err(NoCurve::Mean { at_least_ms: lowest, at_most_ms: highest });
        }
        let share = if highest > lowest { (mean_ms - lowest) / (highest - lowest) } else { 0.0 };
        Ok(Self { cylinders, t1_ms, ta_ms: t1_ms + (tf_ms - t1_ms) * share, tf_ms })
    }

    /// The time at a third of the stroke, milliseconds: the solved value.
    pub fn third_ms(&self) -> f64 {
        self.ta_ms
    }

    /// The time for a distance, milliseconds.
    pub fn ms(&self, distance: u64) -> f64 {
        let third = self.cylinders as f64 / 3.0;
        let d = distance as f64;
        if distance == 0 {
            0.0
        } else if d <= third {
            self.t1_ms + (self.ta_ms - self.t1_ms) * ((d - 1.0) / (third - 1.0)).sqrt()
        } else {
            self.ta_ms + (self.tf_ms - self.ta_ms) * (d - third) / (self.cylinders as f64 - 1.0 - third)
        }
    }

    /// The time for a distance.
    pub fn time(&self, distance: u64) -> Nanos {
        Nanos((self.ms(distance) * 1e6).round() as u64)
    }
}

/// The weights of `t1`, `ta` and `tf` in the mean over all ordered pairs of different cylinders,
/// which is the sum of (C - d) t(d) over the sum of (C - d), d = 1..C-1.
#[derive(Clone, Copy, Debug)]
struct Shares {
    t1: f64,
    ta: f64,
    tf: f64,
}

impl Shares {
    /// Up to this number of cylinders, the sums are computed term by term.
    const FEW: u64 = 4096;

    fn mean_ms(&self, t1_ms: f64, ta_ms: f64, tf_ms: f64) -> f64 {
        self.t1 * t1_ms + self.ta * ta_ms + self.tf * tf_ms
    }

    fn compute(cylinders: u64) -> Self {
        // `near` is the sum of (C - d) up to the third, and `root` that of (C - d) times the root
        // there. `far` is the sum of (C - d) after the third, and `line` that of (C - d) times the
        // line there.
        let (near, root, far, line) =
            if cylinders <= Self::FEW { Self::sums_by_term(cylinders) } else { Self::sums_in_closed_form(cylinders) };
        let all = near + far;
        Self { t1: (near - root) / all, ta: (root + far - line) / all, tf: line / all }
    }

    fn sums_by_term(cylinders: u64) -> (f64, f64, f64, f64) {
        let c = cylinders as f64;
        let third = c / 3.0;
        let (mut near, mut root, mut far, mut line) = (0.0, 0.0, 0.0, 0.0);
        for d in (1..cylinders).map(|d| d as f64) {
            if d <= third {
                near += c - d;
                root += (c - d) * ((d - 1.0) / (third - 1.0)).sqrt();
            } else {
                far += c - d;
                line += (c - d) * (d - third) / (c - 1.0 - third);
            }
        }
        (near, root, far, line)
    }

    /// The sums by formulas for sums of powers. Those of roots use the Euler-Maclaurin formula,
    /// whose next terms are below 1e-12 of the sums.
    fn sums_in_closed_form(cylinders: u64) -> (f64, f64, f64, f64) {
        let c = cylinders as f64;
        let third = c / 3.0;
        let m = third.floor();
        let first = |n: f64| n * (n + 1.0) / 2.0;
        let second = |n: f64| n * (n + 1.0) * (2.0 * n + 1.0) / 6.0;
        let near = c * m - first(m);
        // With k = d - 1: the sum of (C - 1 - k) sqrt(k), k = 0..m-1. The constants are zeta(-1/2)
        // and zeta(-3/2).
        let n = m - 1.0;
        let halves = 2.0 / 3.0 * n.powf(1.5) + 0.5 * n.sqrt() - 0.207_886_224_977_354_57 + 1.0 / (24.0 * n.sqrt());
        let three_halves = 0.4 * n.powf(2.5) + 0.5 * n.powf(1.5) + 0.125 * n.sqrt() - 0.025_485_201_889_833_036;
        let root = ((c - 1.0) * halves - three_halves) / (third - 1.0).sqrt();
        let last = c - 1.0;
        let far = c * (last - m) - (first(last) - first(m));
        // (C - d)(d - third) = -d^2 + (C + third) d - C third
        let products = -(second(last) - second(m)) + (c + third) * (first(last) - first(m)) - c * third * (last - m);
        (near, root, far, products / (c - 1.0 - third))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, term by term.
    fn mean_ms(curve: &SeekCurve) -> f64 {
        let weight = |d: u64| (curve.cylinders - d) as f64;
        let sum: f64 = (1..curve.cylinders).map(|d| weight(d) * curve.ms(d)).sum();
        sum / (1..curve.cylinders).map(weight).sum::<f64>()
    }

    #[test]
    fn mean_matches_definition_for_few_and_many_cylinders() {
        for cylinders in [10, 11, 12, 4096, 4097, 4098, 4099, 50_000, 394_001] {
            let curve = SeekCurve::solve(cylinders, 0.6, 8.2, 16.0).unwrap();
            assert!((mean_ms(&curve) - 8.2).abs() < 1e-9, "{cylinders}: {}", mean_ms(&curve));
        }
    }

    #[test]
    fn curve_meets_its_three_given_points() {
        let curve = SeekCurve::solve(90_000, 0.6, 8.2, 16.0).unwrap();
        assert_eq!(curve.ms(0), 0.0);
        assert_eq!(curve.ms(1), 0.6);
        assert!((curve.ms(89_999) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn curve_of_four_cylinders_matches_hand_computation() {
        // C = 4, third = 1.33: t(1) = t1 = 1; t(2) and t(3) are on the line from (1.33, ta) to (3,
        // 4). Weights 3, 2, 1: mean = (3 + 2 t(2) + t(3)) / 6 = 2 has t(2) = 2.5, so ta = 4 - 1.5 *
        // 1.667 = 1.5.
        let curve = SeekCurve::solve(4, 1.0, 2.0, 4.0).unwrap();
        assert!((curve.ms(2) - 2.5).abs() < 1e-12, "{}", curve.ms(2));
        assert!((curve.ta_ms - 1.5).abs() < 1e-12, "{}", curve.ta_ms);
    }

    #[test]
    fn impossible_mean_is_refused_with_the_range() {
        let Err(NoCurve::Mean { at_least_ms, at_most_ms }) = SeekCurve::solve(90_000, 0.6, 0.5, 16.0) else { panic!() };
        assert!(0.6 < at_least_ms && at_least_ms < at_most_ms && at_most_ms < 16.0);
        assert_eq!(SeekCurve::solve(90_000, 9.0, 8.2, 8.0).unwrap_err(), NoCurve::FullStroke);
    }

    proptest::proptest! {
        #[test]
        fn longer_seek_never_takes_less_time(cylinders in 10u64..5000, share in 0.0f64..1.0, d in 1u64..4999) {
            let shares = Shares::compute(cylinders);
            let (low, high) = (shares.mean_ms(0.5, 0.5, 15.0), shares.mean_ms(0.5, 15.0, 15.0));
            let mean_ms = (low + share * (high - low)).clamp(low, high);
            let curve = SeekCurve::solve(cylinders, 0.5, mean_ms, 15.0).unwrap();
            let d = d % (cylinders - 1) + 1;
            proptest::prop_assert!(curve.ms(d) >= curve.ms(d - 1));
        }
    }
}
