//! The noise band of a run, and the measured ratios that are outside it.
//!
//! Fresh copies do not age. Their costs at two checkpoints differ only by noise, and by the growth
//! of the tree. So the spread of an arm's own fresh copies over its checkpoints limits what a
//! measurement can show: a ratio inside this band is not a finding.

use std::collections::BTreeMap;

use senesce_core::statistics::ENOUGH_FIGURES;
use senesce_store::Role;

use crate::format::number;
use crate::model::{Line, Lines, Spread};

/// A band with a larger factor is too noisy to judge: many effects of age are smaller.
const TOO_WIDE: f64 = 3.0;

/// The spread of an arm's fresh copies over its checkpoints, seconds per GiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Noise {
    /// The smallest lower end of an interval of their medians.
    pub low: f64,
    /// The largest upper end.
    pub high: f64,
    /// Measurements of fresh copies, all checkpoints together.
    pub figures: usize,
}

impl Noise {
    /// The spread of the costs of fresh copies; none if there is a single measurement, which shows
    /// no spread.
    pub(crate) fn compute(fresh: &Line) -> Option<Self> {
        let figures = fresh.values().map(|cost| cost.count).sum();
        let low = fresh.values().map(|cost| cost.low).fold(f64::INFINITY, f64::min);
        let high = fresh.values().map(|cost| cost.high).fold(0.0, f64::max);
        (figures > 1 && low > 0.0 && high.is_finite()).then_some(Self { low, high, figures })
    }

    /// The factor by which the fresh copies vary, at least 1.
    pub(crate) fn factor(self) -> f64 {
        (self.high / self.low).max(1.0)
    }

    /// The ratios that noise alone can show.
    pub(crate) fn ratios(self) -> (f64, f64) {
        (1.0 / self.factor(), self.factor())
    }

    /// Whether the fresh copies vary by too large a factor for a run to show the age.
    pub(crate) fn is_too_wide(self) -> bool {
        is_too_wide(self.factor())
    }

    /// Whether noise explains a ratio of `count` repetitions.
    ///
    /// Few repetitions have no useful interval. With few fresh copies, the next one is often
    /// outside the band: of four equal ones in 19% of cases, of eleven in 4%. So their ratio must
    /// be outside the square of the band. Then it is 3% of four, and less than 0.1% of eleven
    /// (log-normal noise, simulated).
    fn explains(self, ratio: f64, count: usize) -> bool {
        let factor = if is_few(count) { self.factor() * self.factor() } else { self.factor() };
        (1.0 / factor..=factor).contains(&ratio)
    }
}

/// Whether figures that vary by this factor are too uncertain to judge the age.
pub(crate) fn is_too_wide(factor: f64) -> bool {
    factor > TOO_WIDE
}

/// The finding of a measured ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A difference beyond chance and beyond the noise band.
    Difference,
    /// No difference that can be distinguished from chance or noise.
    Noise,
    /// Unknown: few repetitions, in a run with too few fresh copies for a noise band.
    Unknown,
}

fn is_few(figures: usize) -> bool {
    (figures as u64) < ENOUGH_FIGURES
}

impl Finding {
    /// Judges the ratio of an aged volume to its fresh copy by its interval and by the noise band
    /// of its arm.
    pub(crate) fn of(ratio: &Spread, noise: Option<Noise>) -> Self {
        match noise {
            _ if ratio.includes_one() => Self::Noise,
            Some(noise) if noise.explains(ratio.median, ratio.count) => Self::Noise,
            _ if is_few(ratio.count) && noise.is_none_or(|noise| is_few(noise.figures)) => Self::Unknown,
            _ => Self::Difference,
        }
    }
}

/// The factors by which modelled costs of aged volumes and of fresh copies differ, at most, between
/// two runs of one plan whose volumes do not settle. Source: 24 runs (docs/results/gate.md). Aged
/// volumes differ most on XFS, fresh copies on Btrfs.
const UNSETTLED_AGED: f64 = 1.22;
const UNSETTLED_FRESH: f64 = 1.33;

/// The ratios of two costs that are no difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alike {
    /// The smallest one.
    pub low: f64,
    /// The largest one.
    pub high: f64,
}

impl Alike {
    /// Modelled costs of two aged volumes.
    ///
    /// Volumes that settle are equal in two runs, or nearly so. Other volumes differ, and
    /// repetitions on one volume do not show that. So the number of repetitions does not count.
    pub(crate) fn aged(settles: bool) -> Self {
        if settles { Self::near_one() } else { Self::within(UNSETTLED_AGED) }
    }

    /// Modelled costs of which one or both are of a fresh copy, see [`Self::aged`].
    pub(crate) fn fresh(settles: bool) -> Self {
        if settles { Self::near_one() } else { Self::within(UNSETTLED_FRESH) }
    }

    /// Slowdowns of two runs: the aged volumes and the fresh copies may both differ.
    pub(crate) fn slowdowns(settles: bool) -> Self {
        Self::within(Self::aged(settles).high * Self::fresh(settles).high)
    }

    /// Measured costs of an arm with this noise band.
    pub(crate) fn measured(noise: Noise) -> Self {
        Self::within(noise.factor())
    }

    /// Costs of two arms, each with its own limit.
    pub(crate) fn and(self, other: Self) -> Self {
        Self::within(self.high * other.high)
    }

    /// Costs that must be nearly equal.
    pub(crate) fn near_one() -> Self {
        Self { low: 0.95, high: 1.05 }
    }

    fn within(factor: f64) -> Self {
        Self { low: 1.0 / factor, high: factor }
    }

    pub(crate) fn contains(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Whether a ratio is a difference beyond chance.
    pub(crate) fn is_difference(self, ratio: &Spread) -> bool {
        !ratio.includes_one() && !self.contains(ratio.median)
    }

    /// The limit of a rise, for a text.
    pub(crate) fn percent(self) -> String {
        format!("{:.0}%", (self.high - 1.0) * 100.0)
    }
}

/// The noise bands of arms, from the grep costs of a run.
pub(crate) fn noise_bands(grep: &Lines) -> BTreeMap<String, Noise> {
    let fresh = grep.iter().filter(|((_, role), _)| *role == Role::Unaged);
    fresh.filter_map(|((arm, _), line)| Some((arm.clone(), Noise::compute(line)?))).collect()
}

/// The band as text: `0.36–2.80×`, or `too noisy (23.6×)`.
pub(crate) fn band_text(noise: Option<Noise>) -> String {
    noise.map_or_else(
        || "–".to_owned(),
        |noise| {
            if noise.is_too_wide() {
                return format!("too noisy ({}×)", number(noise.factor()));
            }
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
        assert_eq!((noise.low, noise.high, noise.factor(), noise.figures), (4.0, 11.2, 2.8, 3));
        assert_eq!(band_text(Some(noise)), "0.357–2.8×");
        let wide = Noise::compute(&line(&[&[1.0], &[23.6]])).unwrap();
        assert_eq!((wide.is_too_wide(), band_text(Some(wide)).as_str()), (true, "too noisy (23.6×)"));
        // Repetitions of one checkpoint show a spread, too; one measurement does not.
        assert_eq!(Noise::compute(&line(&[&[4.0, 5.0]])).map(Noise::factor), Some(1.25));
        assert_eq!(Noise::compute(&line(&[&[4.0]])), None);
        assert_eq!(Noise::compute(&Line::new()), None);
    }

    #[test]
    fn a_ratio_inside_the_band_is_noise() {
        let noise = Noise { low: 4.0, high: 11.2, figures: 10 };
        for (ratio, finding) in [
            (ratio(0.589, 0.589, 0.589, 1), Finding::Noise),
            (ratio(2.7, 2.6, 2.8, 5), Finding::Noise),
            (ratio(2.9, 2.8, 3.0, 5), Finding::Difference),
            // One measurement must be outside the square of the band, 7.84.
            (ratio(2.9, 2.9, 2.9, 1), Finding::Noise),
            (ratio(7.7, 7.6, 7.8, 3), Finding::Noise),
            (ratio(7.9, 7.9, 7.9, 1), Finding::Difference),
            (ratio(0.12, 0.12, 0.12, 1), Finding::Difference),
            (ratio(9.0, 0.9, 12.0, 5), Finding::Noise),
        ] {
            assert_eq!(Finding::of(&ratio, Some(noise)), finding, "{ratio:?}");
        }
        assert_eq!(Finding::of(&ratio(9.0, 9.0, 9.0, 1), None), Finding::Unknown);
        assert_eq!(Finding::of(&ratio(9.0, 8.0, 9.5, 4), None), Finding::Difference);
        // Two fresh copies show no spread to speak of: of three equal measurements one is outside
        // the other two in half of all runs.
        let two = Some(Noise { low: 4.0, high: 4.1, figures: 2 });
        assert_eq!(Finding::of(&ratio(9.0, 9.0, 9.0, 1), two), Finding::Unknown);
        assert_eq!(Finding::of(&ratio(1.05, 1.05, 1.05, 1), two), Finding::Noise);
        assert_eq!(Finding::of(&ratio(9.0, 8.0, 9.5, 5), two), Finding::Difference);
    }

    #[test]
    fn unsettled_volume_must_differ_by_more_than_two_runs() {
        for (ratio, is_settled_difference, is_aged_difference, is_fresh_difference) in [
            (ratio(1.02, 1.02, 1.02, 1), false, false, false),
            (ratio(1.07, 1.07, 1.07, 1), true, false, false),
            (ratio(0.85, 0.85, 0.85, 1), true, false, false),
            (ratio(1.21, 1.21, 1.21, 1), true, false, false),
            (ratio(1.23, 1.23, 1.23, 1), true, true, false),
            (ratio(0.81, 0.81, 0.81, 1), true, true, false),
            (ratio(1.34, 1.34, 1.34, 1), true, true, true),
            (ratio(0.74, 0.74, 0.74, 1), true, true, true),
            // Repetitions read the same volume.
            (ratio(1.07, 1.06, 1.08, 5), true, false, false),
            (ratio(1.5, 0.9, 1.8, 5), false, false, false),
            (ratio(1.02, 1.01, 1.03, 5), false, false, false),
        ] {
            assert_eq!(Alike::aged(true).is_difference(&ratio), is_settled_difference, "{ratio:?}");
            assert_eq!(Alike::fresh(true).is_difference(&ratio), is_settled_difference, "{ratio:?}");
            assert_eq!(Alike::aged(false).is_difference(&ratio), is_aged_difference, "{ratio:?}");
            assert_eq!(Alike::fresh(false).is_difference(&ratio), is_fresh_difference, "{ratio:?}");
        }
        let limits = [Alike::aged(true), Alike::fresh(true), Alike::aged(false), Alike::fresh(false)];
        assert_eq!(limits.map(Alike::percent), ["5%", "5%", "22%", "33%"]);
    }

    #[test]
    fn limits_cover_the_measured_runs() {
        let runs = include_str!("../../../docs/results/kept/gate-null/differences.tsv");
        let line = runs.lines().find(|line| line.starts_with("modelled seconds")).unwrap();
        let percents = line.split('\t').skip(1).take(3).map(|cell| cell.trim_end_matches('%').parse::<f64>().unwrap());
        assert!(percents.fold(0.0, f64::max) <= (UNSETTLED_AGED * 100.0 - 100.0).round(), "{line}");
        // The table has no fresh copies: their figures are in the recorded runs.
        let recorded: serde_json::Value = serde_json::from_str(include_str!("../../../golden/gate-null.json")).unwrap();
        let is_modelled_cost = |name: &str| name.starts_with("model: ") && name.ends_with(" s/GiB");
        let factors: Vec<f64> = recorded["figures"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|figure| figure["volume"] == "unaged" && is_modelled_cost(figure["name"].as_str().unwrap()))
            .map(|figure| {
                let runs = figure["runs"].as_array().unwrap().iter().map(|run| run.as_f64().unwrap());
                runs.clone().fold(0.0, f64::max) / runs.fold(f64::INFINITY, f64::min)
            })
            .collect();
        let most = factors.iter().copied().fold(0.0, f64::max);
        assert!(factors.len() >= 3 && most <= UNSETTLED_FRESH && most > UNSETTLED_AGED, "{factors:?}");
    }

    #[test]
    fn equal_volumes_rarely_make_a_finding() {
        const RUNS: usize = 4000;
        // Sums of twelve shares are near enough to a normal distribution.
        let mut rng = senesce_core::Rng::for_purpose(senesce_core::Seed(3), "noise bands");
        let mut draw = || {
            let normal = (0..12).map(|_| rng.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
            (0.3 * normal).exp()
        };
        for (checkpoints, most) in [(2, 0.0), (3, 0.0), (4, 0.05), (11, 0.005)] {
            let mut findings = 0;
            for _ in 0..RUNS {
                let fresh: Vec<f64> = (0..checkpoints).map(|_| draw()).collect();
                let costs: Vec<&[f64]> = fresh.iter().map(std::slice::from_ref).collect();
                let found = draw() / fresh[checkpoints - 1];
                let noise = Noise::compute(&line(&costs));
                findings += usize::from(Finding::of(&ratio(found, found, found, 1), noise) == Finding::Difference);
            }
            assert!(findings as f64 <= RUNS as f64 * most, "{findings} of {RUNS} with {checkpoints} checkpoints");
        }
    }
}
