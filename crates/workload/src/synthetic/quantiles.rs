//! Quantile tables with integer interpolation: the draws are the same on every machine.

use std::borrow::Cow;

use schemars::JsonSchema;
use senesce_core::Rng;
use serde::{Deserialize, Serialize};

/// Parts in the whole of a [`Quantiles`] table.
pub(super) const MILLION: u64 = 1_000_000;

/// The quantiles of a distribution: (parts per million, value), both ascending, from 0 to
/// 1,000,000.
///
/// Between two quantiles the value is interpolated linearly and rounded down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles(Cow<'static, [(u64, u64)]>);

impl Quantiles {
    pub(super) const fn new(points: &'static [(u64, u64)]) -> Self {
        Self(Cow::Borrowed(points))
    }

    /// The quantiles of `sorted` values, which must not be empty.
    ///
    /// Values up to [`LARGEST_EXACT`] have their exact shares. Larger values are interpolated
    /// between the parts of [`GRID`].
    pub(super) fn of(sorted: &[u64]) -> Self {
        let count = sorted.len() as u64;
        let part = |rank: usize| (rank as u64 * MILLION) / count;
        let mut points = vec![(0, sorted[0])];
        let mut push = |ppm: u64, value: u64| {
            let &(last, before) = points.last().expect("there is a first point");
            if ppm > last {
                points.push((ppm, value.max(before)));
            }
        };
        let mut rank = 0;
        while let Some(&value) = sorted.get(rank).filter(|&&value| value <= LARGEST_EXACT) {
            push(part(rank), value);
            rank = sorted.partition_point(|&other| other <= value);
            push(part(rank).saturating_sub(1), value);
        }
        for &ppm in GRID.iter().filter(|&&ppm| ppm > part(rank)) {
            push(ppm, sorted[((u128::from(ppm) * u128::from(count - 1)) / u128::from(MILLION)) as usize]);
        }
        push(MILLION, sorted[sorted.len() - 1]);
        Self(points.into())
    }

    /// Errors: fewer than two points, or too many; parts that do not go from 0 to 1,000,000; an
    /// order that is not ascending; or a value above `most`.
    pub(super) fn check(&self, most: u64) -> Result<(), &'static str> {
        let points = &self.0;
        if points.len() < 2 || points.len() > MOST_POINTS {
            return Err("needs 2 to 1,000 points");
        }
        if points[0].0 != 0 || points[points.len() - 1].0 != MILLION {
            return Err("must go from 0 to 1,000,000 parts per million");
        }
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1) {
            return Err("must be ascending");
        }
        if points[points.len() - 1].1 > most { Err("has a value that is too large") } else { Ok(()) }
    }

    /// Raises the ratio between each value and the median to the power of `exponent`.
    pub(super) fn spread(&self, exponent: f64) -> Self {
        let middle = self.at(MILLION / 2).max(1) as f64;
        let spread =
            |value: u64| (middle * (value as f64 / middle).powf(exponent)).round().clamp(1.0, MOST_HEAT as f64) as u64;
        Self(self.0.iter().map(|&(ppm, value)| (ppm, spread(value))).collect())
    }

    pub(super) fn sample(&self, rng: &mut Rng) -> u64 {
        self.at(rng.below(MILLION))
    }

    /// The quantile at `ppm`, which is below 1,000,000.
    pub(super) fn at(&self, ppm: u64) -> u64 {
        let above = self.0.partition_point(|&(p, _)| p <= ppm).clamp(1, self.0.len() - 1);
        let ((p0, v0), (p1, v1)) = (self.0[above - 1], self.0[above]);
        v0 + (v1 - v0) * (ppm - p0) / (p1 - p0)
    }
}

/// The largest value of which [`Quantiles::of`] keeps the exact share.
const LARGEST_EXACT: u64 = 16;
/// The most points of a table.
const MOST_POINTS: usize = 1_000;
/// The parts per million at which [`Quantiles::of`] keeps large values: 5% apart, and closer at
/// both ends.
const GRID: [u64; 31] = [
    1_000, 10_000, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 350_000, 400_000, 450_000, 500_000, 550_000,
    600_000, 650_000, 700_000, 750_000, 800_000, 850_000, 900_000, 930_000, 950_000, 970_000, 980_000, 990_000,
    993_000, 996_000, 998_000, 999_000, 999_600, 999_900,
];

/// Files touched by a plain commit. Documented: p50 1, p75 2, p90 4, p95 7, p99 23, p99.9 89, max
/// 556, mean 2.6. The points between are chosen to match the mean.
pub(super) const TOUCHED_PLAIN: Quantiles = Quantiles::new(&[
    (0, 1),
    (560_000, 1),
    (560_001, 2),
    (780_000, 2),
    (840_000, 3),
    (900_000, 4),
    (950_000, 7),
    (975_000, 12),
    (990_000, 23),
    (996_000, 42),
    (999_000, 89),
    (999_600, 160),
    (1_000_000, 556),
]);

/// Files touched by a merge. Documented: p50 8, p75 24, p90 63, p95 119, p99 412, p99.9 1,852, max
/// 5,669, mean 33.6.
pub(super) const TOUCHED_MERGE: Quantiles = Quantiles::new(&[
    (0, 1),
    (170_000, 1),
    (300_000, 3),
    (400_000, 5),
    (500_000, 8),
    (650_000, 15),
    (750_000, 24),
    (840_000, 42),
    (900_000, 63),
    (950_000, 119),
    (975_000, 195),
    (990_000, 400),
    (996_000, 700),
    (999_000, 1_700),
    (999_600, 2_500),
    (1_000_000, 5_669),
]);

/// Size of a file of the starting tree, bytes: lognormal, mu 8.23, sigma 1.65 (documented:
/// 8.21..8.26, 1.62..1.68).
pub(super) const START_SIZE: Quantiles = Quantiles::new(&[
    (0, 0),
    (1_000, 23),
    (10_000, 81),
    (50_000, 249),
    (100_000, 453),
    (150_000, 679),
    (200_000, 936),
    (250_000, 1_233),
    (300_000, 1_579),
    (350_000, 1_987),
    (400_000, 2_470),
    (450_000, 3_049),
    (500_000, 3_752),
    (550_000, 4_616),
    (600_000, 5_699),
    (650_000, 7_085),
    (700_000, 8_913),
    (750_000, 11_418),
    (800_000, 15_043),
    (850_000, 20_746),
    (900_000, 31_087),
    (930_000, 42_833),
    (950_000, 56_614),
    (970_000, 83_559),
    (980_000, 111_156),
    (990_000, 174_290),
    (995_000, 263_055),
    (998_000, 433_205),
    (999_000, 614_696),
    (999_900, 1_300_000),
    (1_000_000, 1_734_756),
]);

/// Size of an added file, bytes: lognormal, mu 8.11, sigma 1.69 (documented).
pub(super) const ADDED_SIZE: Quantiles = Quantiles::new(&[
    (0, 0),
    (1_000, 18),
    (10_000, 65),
    (50_000, 206),
    (100_000, 382),
    (150_000, 577),
    (200_000, 802),
    (250_000, 1_064),
    (300_000, 1_372),
    (350_000, 1_735),
    (400_000, 2_169),
    (450_000, 2_691),
    (500_000, 3_328),
    (550_000, 4_115),
    (600_000, 5_106),
    (650_000, 6_382),
    (700_000, 8_073),
    (750_000, 10_403),
    (800_000, 13_799),
    (850_000, 19_179),
    (900_000, 29_022),
    (930_000, 40_299),
    (950_000, 53_627),
    (970_000, 79_901),
    (980_000, 107_027),
    (990_000, 169_656),
    (995_000, 258_629),
    (998_000, 431_099),
    (999_000, 616_919),
    (999_900, 1_300_000),
    (1_000_000, 1_785_373),
]);

/// Absolute change of a modified file's size, bytes, without unchanged sizes: lognormal, mu 4.17,
/// sigma 1.95 (documented).
pub(super) const SIZE_CHANGE: Quantiles = Quantiles::new(&[
    (0, 1),
    (20_000, 1),
    (50_000, 3),
    (100_000, 5),
    (150_000, 9),
    (200_000, 13),
    (250_000, 17),
    (300_000, 23),
    (350_000, 31),
    (400_000, 39),
    (450_000, 51),
    (500_000, 65),
    (550_000, 83),
    (600_000, 106),
    (650_000, 137),
    (700_000, 180),
    (750_000, 241),
    (800_000, 334),
    (850_000, 488),
    (900_000, 788),
    (930_000, 1_150),
    (950_000, 1_600),
    (970_000, 2_534),
    (980_000, 3_550),
    (990_000, 6_041),
    (995_000, 9_827),
    (998_000, 17_719),
    (999_000, 26_795),
    (1_000_000, 91_316),
]);

/// Bytes that a modification rewrites in addition to the change of size. Not documented; our
/// choice: one or a few lines.
pub(super) const REWRITTEN: Quantiles = Quantiles::new(&[
    (0, 4),
    (250_000, 20),
    (500_000, 60),
    (750_000, 200),
    (900_000, 600),
    (990_000, 3_000),
    (1_000_000, 9_000),
]);

/// Files in a non-empty directory. Documented: mean 15..16, p50 6..8, p90 32..36, p99 136..170, max
/// 636..2,541.
pub(super) const FILES_PER_DIRECTORY: Quantiles = Quantiles::new(&[
    (0, 1),
    (120_000, 1),
    (250_000, 3),
    (500_000, 7),
    (750_000, 15),
    (900_000, 33),
    (950_000, 54),
    (990_000, 140),
    (999_000, 300),
    (1_000_000, 640),
]);

/// Parts per thousand of a commit's files that are added, for commits with adds. Chosen to meet the
/// documented counts.
pub(super) const ADDED_SHARE: Quantiles =
    Quantiles::new(&[(0, 10), (500_000, 100), (900_000, 370), (990_000, 800), (1_000_000, 950)]);

/// The same for deleted files.
pub(super) const DELETED_SHARE: Quantiles =
    Quantiles::new(&[(0, 5), (500_000, 60), (900_000, 260), (990_000, 600), (1_000_000, 900)]);

/// The same for renamed files: rare, but with large shares.
pub(super) const RENAMED_SHARE: Quantiles =
    Quantiles::new(&[(0, 10), (500_000, 210), (900_000, 600), (1_000_000, 950)]);

/// The tendency of a file to be modified, besides its size, relative to 1,000. Chosen to meet the
/// documented skew.
pub(super) const HEAT: Quantiles = Quantiles::new(&[
    (0, 60),
    (100_000, 250),
    (250_000, 460),
    (500_000, 960),
    (750_000, 1_950),
    (900_000, 3_590),
    (950_000, 4_910),
    (990_000, 9_420),
    (999_000, 18_010),
    (1_000_000, 130_000),
]);

/// The largest distance in commits of the main line between the start of a side branch and its
/// merge. Not documented; our choice.
pub(super) const BRANCH_AGE: Quantiles = Quantiles::new(&[(0, 0), (500_000, 15), (900_000, 80), (1_000_000, 300)]);

/// Above this size, the weight of a size falls again.
pub(super) const LARGE_BYTES: u64 = 48 << 10;

/// The largest heat of a file. With [`MOST_SIZE_WEIGHT`], the sum over ten million files fits in
/// 64 bits.
pub(super) const MOST_HEAT: u64 = 200_000;
/// The largest weight of a size.
pub(super) const MOST_SIZE_WEIGHT: u64 = 1 << 28;

/// [`size_weights`] of the documented exponent 0.59 (P(modify) ~ size^0.59).
pub(super) const LINUX_SIZE_WEIGHTS: [u64; 17] = [
    1_024, 1_541, 2_320, 3_492, 5_257, 7_913, 11_911, 17_929, 26_987, 40_623, 61_147, 92_042, 138_545, 208_545,
    313_912, 472_515, 711_251,
];

/// The weights of sizes: `size^exponent` times 1,024 at the powers of two, from 1 to 64 KiB.
pub(super) fn size_weights(exponent: f64) -> Vec<u64> {
    (0..17).map(|power| (1_024.0 * (exponent * f64::from(power)).exp2()).round() as u64).collect()
}

/// The weight of a file of `size` bytes for the choice of a file to modify. Linear between the
/// powers of two.
///
/// Above [`LARGE_BYTES`] it falls with 1/size. With the power law alone the modified files of Linux
/// would have mu 9.84 and sigma 1.65, but 9.44 and 1.36 are documented. Very large files are
/// therefore modified less often than the law predicts.
pub(super) fn size_weight(at_powers: &[u64], size: u64) -> u64 {
    let within = size.clamp(1, LARGE_BYTES);
    let power = within.ilog2();
    let (low, high) = (at_powers[power as usize], at_powers[power as usize + 1]);
    let weight = low + (((high - low) * (within - (1 << power))) >> power);
    if size > LARGE_BYTES { weight * LARGE_BYTES / size } else { weight }
}
