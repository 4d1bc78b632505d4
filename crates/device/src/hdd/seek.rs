//! How long the arm moves.
//!
//! Up to a third of the stroke the time grows with the square root of the distance (the arm speeds up and brakes), from
//! there linearly (it coasts):
//!
//! ```text
//! t(0) = 0
//! t(d) = t1 + (ta - t1) sqrt((d - 1) / (C/3 - 1))      1 <= d <= C/3
//! t(d) = ta + (tf - ta) (d - C/3) / (C - 1 - C/3)      d > C/3
//! ```
//!
//! `t1` (track to track) and `tf` (full stroke) are the datasheet's. `ta` is solved so that the mean over all ordered
//! pairs of different cylinders is the datasheet's average seek: makers define it as this weighted average (for example
//! the Hitachi Deskstar 7K1000.C specification, 4.5.2.1). The mean is linear in `ta`, so one division solves it.

use senesce_core::Nanos;

/// Seek times by distance, for reads or for writes.
#[derive(Clone, Copy, Debug)]
pub struct SeekCurve {
    cylinders: u64,
    t1_ms: f64,
    ta_ms: f64,
    tf_ms: f64,
}

/// Why there is no such curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoCurve {
    /// The full stroke is shorter than track to track.
    FullStroke,
    /// The mean is not between these two, milliseconds.
    Mean {
        /// The mean if the square root part were flat.
        at_least_ms: f64,
        /// The mean if the linear part were flat.
        at_most_ms: f64,
    },
}

impl SeekCurve {
    /// The curve with this mean. Cost: two passes over the cylinders.
    pub fn solve(cylinders: u64, t1_ms: f64, mean_ms: f64, tf_ms: f64) -> Result<Self, NoCurve> {
        if tf_ms < t1_ms {
            return Err(NoCurve::FullStroke);
        }
        let with = |ta_ms| Self { cylinders, t1_ms, ta_ms, tf_ms };
        let (lowest, highest) = (with(t1_ms).mean_ms(), with(tf_ms).mean_ms());
        if !(lowest..=highest).contains(&mean_ms) {
            return Err(NoCurve::Mean { at_least_ms: lowest, at_most_ms: highest });
        }
        if highest == lowest {
            return Ok(with(t1_ms));
        }
        Ok(with(t1_ms + (tf_ms - t1_ms) * (mean_ms - lowest) / (highest - lowest)))
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

    /// The mean over all ordered pairs of different cylinders: sum of (C - d) t(d) over sum of (C - d), d = 1..C-1.
    pub fn mean_ms(&self) -> f64 {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for distance in 1..self.cylinders {
            let weight = (self.cylinders - distance) as f64;
            sum += weight * self.ms(distance);
            pairs += weight;
        }
        sum / pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_meets_its_three_given_points() {
        let curve = SeekCurve::solve(90_000, 0.6, 8.2, 16.0).unwrap();
        assert_eq!(curve.ms(0), 0.0);
        assert_eq!(curve.ms(1), 0.6);
        assert!((curve.ms(89_999) - 16.0).abs() < 1e-9);
        assert!((curve.mean_ms() - 8.2).abs() < 1e-9);
    }

    #[test]
    fn a_curve_of_four_cylinders_is_what_a_hand_computes() {
        // C = 4, third = 1.33: t(1) = t1 = 1; t(2) and t(3) lie on the line from (1.33, ta) to (3, 4).
        // Weights 3, 2, 1: mean = (3 + 2 t(2) + t(3)) / 6 = 2 gives t(2) = 2.5, so ta = 4 - 1.5 * 1.667 = 1.5.
        let curve = SeekCurve::solve(4, 1.0, 2.0, 4.0).unwrap();
        assert!((curve.ms(2) - 2.5).abs() < 1e-12, "{}", curve.ms(2));
        assert!((curve.ta_ms - 1.5).abs() < 1e-12, "{}", curve.ta_ms);
    }

    #[test]
    fn a_mean_outside_of_what_the_ends_allow_is_refused_with_the_range() {
        let Err(NoCurve::Mean { at_least_ms, at_most_ms }) = SeekCurve::solve(90_000, 0.6, 0.5, 16.0) else { panic!() };
        assert!(0.6 < at_least_ms && at_least_ms < at_most_ms && at_most_ms < 16.0);
        assert_eq!(SeekCurve::solve(90_000, 9.0, 8.2, 8.0).unwrap_err(), NoCurve::FullStroke);
    }

    proptest::proptest! {
        #[test]
        fn a_longer_way_never_takes_less_time(cylinders in 10u64..5000, share in 0.0f64..1.0, d in 1u64..4999) {
            let ends = [SeekCurve { cylinders, t1_ms: 0.5, ta_ms: 0.5, tf_ms: 15.0 }.mean_ms(),
                        SeekCurve { cylinders, t1_ms: 0.5, ta_ms: 15.0, tf_ms: 15.0 }.mean_ms()];
            let curve = SeekCurve::solve(cylinders, 0.5, ends[0] + share * (ends[1] - ends[0]), 15.0).unwrap();
            let d = d % (cylinders - 1) + 1;
            proptest::prop_assert!(curve.ms(d) >= curve.ms(d - 1));
        }
    }
}
