//! The noise band of a run, and the measured ratios that are outside it.
//!
//! Fresh copies do not age. Their costs at two checkpoints differ only by noise, and by the growth of the tree. So the
//! spread of an arm's own fresh copies over its checkpoints limits what a measurement can show: a ratio inside this
//! band is not a finding.

use std::collections::BTreeMap;

use senesce_store::Role;

use crate::format::number;
use crate::model::{Line, Lines, Spread};

/// The spread of an arm's fresh copies over its checkpoints, seconds per GiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    /// The smallest lower end of an interval of their medians.
    pub low: f64,
    /// The largest upper end.
    pub high: f64,
}

impl Noise {
    /// The spread of the costs of fresh copies; none if there is a single measurement, which shows no spread.
    pub(crate) fn compute(fresh: &Line) -> Option<Self> {
        let is_enough = fresh.len() > 1 || fresh.values().any(|cost| cost.count > 1);
        let low = fresh.values().map(|cost| cost.low).fold(f64::INFINITY, f64::min);
        let high = fresh.values().map(|cost| cost.high).fold(0.0, f64::max);
        (is_enough && low > 0.0 && high.is_finite()).then_some(Self { low, high })
    }

    /// The factor by which the fresh copies vary, at least 1.
    pub(crate) fn factor(self) -> f64 {
        (self.high / self.low).max(1.0)
    }

    /// The ratios that noise alone can show.
    pub(crate) fn ratios(self) -> (f64, f64) {
        (1.0 / self.factor(), self.factor())
    }

    fn holds(self, ratio: f64) -> bool {
        let (low, high) = self.ratios();
        (low..=high).contains(&ratio)
    }
}

/// The finding of a measured ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A difference beyond chance and beyond the noise band.
    Difference,
    /// No difference that can be distinguished from chance or noise.
    Noise,
    /// Unknown: a single measurement in a run without a noise band.
    Unknown,
}

impl Finding {
    /// Judges the ratio of an aged volume to its fresh copy by its interval and by the noise band of its arm.
    pub(crate) fn of(ratio: &Spread, noise: Option<Noise>) -> Self {
        let is_by_chance = ratio.count > 1 && ratio.low <= 1.0 && ratio.high >= 1.0;
        match noise {
            _ if is_by_chance => Self::Noise,
            Some(noise) if noise.holds(ratio.median) => Self::Noise,
            None if ratio.count < 2 => Self::Unknown,
            _ => Self::Difference,
        }
    }
}

/// The noise bands of arms, from the grep costs of a run.
pub(crate) fn noise_bands(grep: &Lines) -> BTreeMap<String, Noise> {
    let fresh = grep.iter().filter(|((_, role), _)| *role == Role::Unaged);
    fresh.filter_map(|((arm, _), line)| Some((arm.clone(), Noise::compute(line)?))).collect()
}

/// The band as text: `0.36–2.80×`.
pub(crate) fn band_text(noise: Option<Noise>) -> String {
    noise.map_or_else(
        || "–".to_owned(),
        |noise| {
            let (low, high) = noise.ratios();
            format!("{}–{}×", number(low), number(high))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(costs: &[&[f64]]) -> Line {
        let spread = |values: &&[f64]| Spread::compute(values.iter().copied()).unwrap();
        costs.iter().enumerate().map(|(at, values)| (at as u64, spread(values))).collect()
    }

    fn ratio(median: f64, low: f64, high: f64, count: usize) -> Spread {
        Spread { count, median, low, high, ..Spread::default() }
    }

    #[test]
    fn fresh_copies_of_several_checkpoints_make_a_band() {
        let noise = Noise::compute(&line(&[&[4.0], &[11.2], &[5.0]])).unwrap();
        assert_eq!((noise.low, noise.high, noise.factor()), (4.0, 11.2, 2.8));
        assert_eq!(band_text(Some(noise)), "0.357–2.8×");
        // Repetitions of one checkpoint show a spread, too; one measurement does not.
        assert_eq!(Noise::compute(&line(&[&[4.0, 5.0]])).map(Noise::factor), Some(1.25));
        assert_eq!(Noise::compute(&line(&[&[4.0]])), None);
        assert_eq!(Noise::compute(&Line::new()), None);
    }

    #[test]
    fn a_ratio_inside_the_band_is_noise() {
        let noise = Noise { low: 4.0, high: 11.2 };
        for (ratio, finding) in [
            (ratio(0.589, 0.589, 0.589, 1), Finding::Noise),
            (ratio(2.7, 2.6, 2.8, 5), Finding::Noise),
            (ratio(2.9, 2.8, 3.0, 5), Finding::Difference),
            (ratio(2.9, 2.9, 2.9, 1), Finding::Difference),
            (ratio(0.3, 0.3, 0.3, 1), Finding::Difference),
            (ratio(9.0, 0.9, 12.0, 5), Finding::Noise),
        ] {
            assert_eq!(Finding::of(&ratio, Some(noise)), finding, "{ratio:?}");
        }
        assert_eq!(Finding::of(&ratio(9.0, 9.0, 9.0, 1), None), Finding::Unknown);
        assert_eq!(Finding::of(&ratio(9.0, 8.0, 9.5, 2), None), Finding::Difference);
    }
}
