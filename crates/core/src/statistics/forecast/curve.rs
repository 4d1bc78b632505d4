//! The curves that can continue a history, and the choice between them.

use schemars::JsonSchema;
use serde::Serialize;

use super::{LEAST_VALUES, Point};

/// A curve that continues a history. None of them falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Curve {
    /// The last value stays.
    NoChange,
    /// The same growth for the same time.
    Straight,
    /// Growth with the time to the power of 3/4.
    Power,
    /// Growth with the square root of the time: slower and slower, without a limit.
    Root,
    /// Growth towards a limit. A quarter of the history divides the rest by *e*.
    Saturating,
}

impl Curve {
    /// All of them. The simpler one of two equally good ones comes first.
    pub const ALL: [Curve; 5] = [Curve::NoChange, Curve::Straight, Curve::Power, Curve::Root, Curve::Saturating];

    /// The curve in words.
    pub fn words(self) -> &'static str {
        match self {
            Curve::NoChange => "no change",
            Curve::Straight => "a straight line",
            Curve::Power => "the power 3/4 of time",
            Curve::Root => "the square root of time",
            Curve::Saturating => "growth towards a limit",
        }
    }

    /// The shape over the time since the start, in lengths of the history.
    pub(super) fn shape(self, time: f64) -> f64 {
        let time = time.max(0.0);
        match self {
            Curve::NoChange => 0.0,
            Curve::Straight => time,
            Curve::Power => time.powf(0.75),
            Curve::Root => time.sqrt(),
            Curve::Saturating => -(-4.0 * time).exp_m1(),
        }
    }

    /// Continues a history to a later time: the curve is fitted by least squares, and moved so that
    /// it starts at the last value. A curve that would fall stays at the last value.
    ///
    /// In: at least one value, in ascending order of time.
    pub fn extrapolate(self, points: &[Point], at: f64) -> f64 {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return f64::NAN };
        self.extrapolate_part(points, last.at - first.at, at)
    }

    /// The same for the start of a longer history of this length. The length is the scale of shapes
    /// that have one.
    fn extrapolate_part(self, points: &[Point], length: f64, at: f64) -> f64 {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return f64::NAN };
        let shape = |at: f64| self.shape((at - first.at) / length);
        // Relative to the last value, so that sums of large values stay finite.
        let value = |point: &Point| point.value / last.value;
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| of(point) / count).sum::<f64>();
        let (mean_shape, mean_value) = (mean(&|point| shape(point.at)), mean(&value));
        let spread = mean(&|point| (shape(point.at) - mean_shape).powi(2));
        let slope = mean(&|point| (shape(point.at) - mean_shape) * (value(point) - mean_value)) / spread;
        let growth = slope * (shape(at) - shape(last.at));
        // Also for a slope that is not a number, as that of no change.
        if growth > 0.0 { (last.value * (1.0 + growth)).min(f64::MAX) } else { last.value }
    }

    /// The mean of the absolute natural logarithms of predicted over actual value, over all values
    /// of a history from the fourth on. Each is predicted from those before it.
    fn error_one_step_ahead(self, points: &[Point]) -> f64 {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return f64::NAN };
        let errors = (LEAST_VALUES - 1..points.len()).map(|known| {
            let Point { at, value } = points[known];
            (self.extrapolate_part(&points[..known], last.at - first.at, at).ln() - value.ln()).abs()
        });
        errors.clone().sum::<f64>() / errors.len().max(1) as f64
    }
}

/// The best curve of a history of at least [`LEAST_VALUES`] values, and its mean error one step
/// ahead.
pub(super) fn choose(points: &[Point]) -> (Curve, f64) {
    let errors = Curve::ALL.map(|curve| (curve, curve.error_one_step_ahead(points)));
    errors.into_iter().reduce(|best, next| if next.1 < best.1 { next } else { best }).unwrap_or((Curve::NoChange, 0.0))
}
