//! Forecasts of a cost that grows with age: the cost at a later point, and the point at which it
//! reaches a threshold.
//!
//! Five curves can continue a history: no change, straight, two powers, and growth towards a limit.
//! Each is fitted by least squares, and moved so that it starts at the last value. The history
//! itself chooses: the curve that would have predicted each of its values best from those before.
//!
//! The interval is a split conformal one, so it does not assume a distribution. Its width is the
//! history's own error of those predictions, times a factor. The factor is the 95% quantile of the
//! same ratio over other histories, whose later values are known, at the same horizon.
//! docs/results/forecast.md has these histories and the errors.

mod curve;

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

pub use curve::Curve;

/// The least number of values of a history.
pub const LEAST_VALUES: usize = 4;
/// A forecast reaches this many times as far as the history is long.
pub const FARTHEST: f64 = 2.0;
/// Is added to the error of a history, so that a lucky or short history has no interval of width 0.
/// As a natural logarithm: 3%.
pub const LEAST_ERROR: f64 = 0.03;
/// Horizons in lengths of the history. A factor holds up to each of them.
pub const HORIZONS: [f64; 4] = [0.25, 0.5, 1.0, FARTHEST];
/// The factors of the interval, by horizon: the 95% quantile, over other histories, of the error of
/// a forecast over the history's own error. The example `forecast_errors` computes them from
/// docs/results/kept, and a test compares them.
pub const FACTORS: [f64; 4] = [1.9, 3.1, 4.9, 7.4];
/// Points at which the interval of a crossing is sought, for each length of the history.
const STEPS: u32 = 2048;

/// A value of a history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The time, or any other measure of use: pulls, operations.
    pub at: f64,
    /// The cost: seconds, or a ratio.
    pub value: f64,
}

/// The reason why a history has no forecast.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum NoForecast {
    /// There are fewer than [`LEAST_VALUES`] values.
    #[error("there are {count} values, and a forecast needs at least {LEAST_VALUES}")]
    TooFew {
        /// Their number.
        count: usize,
    },
    /// A value is not after the one before it.
    #[error("value {number} is not after the one before it")]
    NotAscending {
        /// The number of the value, from 1.
        number: usize,
    },
    /// A value, or its time, is not finite; or the value is not above 0.
    #[error("value {number} is no finite number above 0")]
    Impossible {
        /// The number of the value, from 1.
        number: usize,
    },
}

/// A value that is expected, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// The lower end of the interval.
    pub low: f64,
    /// The expected value.
    pub value: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The time at which a threshold is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// The history has reached it.
    Reached {
        /// The first value from which on all values are at or above the threshold.
        at: f64,
    },
    /// It is reached after the history.
    Ahead {
        /// The lower end of the 95% interval. `None`: the upper end of the cost stays below the
        /// threshold as far as the forecast reaches.
        earliest: Option<f64>,
        /// The expected time. `None`: after the end of the forecast.
        at: Option<f64>,
        /// The upper end of the 95% interval. `None`: after the end of the forecast, or never.
        latest: Option<f64>,
    },
}

/// The forecast of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    points: Vec<Point>,
    curve: Curve,
    error: f64,
    factors: [f64; HORIZONS.len()],
}

impl Forecast {
    /// Chooses a curve for a history.
    ///
    /// In: the values in ascending order of time. Errors: see [`NoForecast`].
    /// Cost: quadratic in the values.
    pub fn compute(points: &[Point]) -> Result<Self, NoForecast> {
        for (index, point) in points.iter().enumerate() {
            let number = index + 1;
            if !point.at.is_finite() || !point.value.is_finite() || point.value < f64::MIN_POSITIVE {
                return Err(NoForecast::Impossible { number });
            }
            // The length of the history is finite, too.
            let is_after = |before: &Point| point.at > before.at && (point.at - points[0].at).is_finite();
            if index > 0 && !is_after(&points[index - 1]) {
                return Err(NoForecast::NotAscending { number });
            }
        }
        if points.len() < LEAST_VALUES {
            return Err(NoForecast::TooFew { count: points.len() });
        }
        let (curve, error) = curve::choose(points);
        Ok(Self { points: points.to_vec(), curve, error, factors: FACTORS })
    }

    /// The same forecast with other factors of the interval, for studies of its errors.
    pub fn with_factors(self, factors: [f64; HORIZONS.len()]) -> Self {
        Self { factors, ..self }
    }

    /// The chosen curve.
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// The mean error with which the curve predicts each value of the history from the values
    /// before it: the absolute natural logarithm of predicted over actual, so 0.05 is about 5%.
    pub fn own_error(&self) -> f64 {
        self.error
    }

    /// The last time of which the forecast says something.
    pub fn farthest(&self) -> f64 {
        self.last().at + FARTHEST * self.length()
    }

    /// The expected value at a time after the history. `None` before its last value, and after
    /// [`Self::farthest`].
    pub fn at(&self, at: f64) -> Option<Expected> {
        let horizon = (at - self.last().at) / self.length();
        let index = find_horizon(horizon)?;
        let value = self.curve.extrapolate(&self.points, at);
        let width = (self.factors[index] * (self.error + LEAST_ERROR)).exp();
        let bounded = |value: f64| value.clamp(f64::MIN_POSITIVE, f64::MAX);
        Some(Expected { low: bounded(value / width), value: bounded(value), high: bounded(value * width) })
    }

    /// The time at which the value reaches `threshold`.
    pub fn crossing(&self, threshold: f64) -> Crossing {
        let below = self.points.iter().rposition(|point| point.value < threshold);
        let reached = below.map_or(Some(0), |below| Some(below + 1).filter(|next| *next < self.points.len()));
        if let Some(first) = reached {
            return Crossing::Reached { at: self.points[first].at };
        }
        let step = self.length() / f64::from(STEPS);
        let steps = (FARTHEST * f64::from(STEPS)) as u32;
        let times = (0..=steps).map(|n| self.last().at + f64::from(n) * step);
        let found: Vec<(f64, Expected)> = times.filter_map(|at| Some((at, self.at(at)?))).collect();
        let first = |of: fn(&Expected) -> f64| found.iter().find(|(_, at)| of(at) >= threshold).map(|(at, _)| *at);
        // The lower end falls where the factor rises.
        let last_below = found.iter().rposition(|(_, at)| at.low < threshold);
        let latest = found.get(last_below.map_or(0, |last| last + 1)).map(|(at, _)| *at);
        Crossing::Ahead { earliest: first(|at| at.high), at: first(|at| at.value), latest }
    }

    fn last(&self) -> Point {
        self.points[self.points.len() - 1]
    }

    fn length(&self) -> f64 {
        self.last().at - self.points[0].at
    }
}

/// The index in [`HORIZONS`] of a horizon in lengths of the history. `None` if no forecast reaches
/// it.
pub fn find_horizon(horizon: f64) -> Option<usize> {
    HORIZONS.iter().position(|most| horizon <= *most).filter(|_| horizon >= 0.0)
}

#[cfg(test)]
mod tests;
