//! Random time spans, drawn with integers alone: the same on every machine.
//!
//! The logarithm of a math library differs in its last bits between machines, so none is used.
//! Exponential spans use algorithm S (J. H. Ahrens and U. Dieter, Communications of the ACM 15,
//! 1972; D. E. Knuth, The Art of Computer Programming 2, 3.4.1). It counts the number of halvings
//! in bits; the rest is the minimum of a few uniform numbers. Pareto spans are powers of two with
//! an exponential exponent.

use senesce_core::{Nanos, Rng};
use serde::{Deserialize, Serialize};

/// The natural logarithm of 2, in units of 2^-64.
const LN_2: u128 = 0xB172_17F7_D1CF_79AB;

/// Its reciprocal, in units of 2^-32.
const LOG2_E: u128 = 0x1_7154_7652;

/// Terms of the series of algorithm S. With this number the sum is 1 in 64 bits.
const TERMS: usize = 24;

/// The sums of (ln 2)^i / i! for i = 1, 2, …, in units of 2^-64.
const SUMS: [u128; TERMS] = sums();

/// 2^(1/2), 2^(1/4), …, in units of 2^-63.
const ROOTS: [u64; 32] = roots();

const fn sums() -> [u128; TERMS] {
    let mut sums = [0; TERMS];
    let (mut term, mut sum, mut index) = (1u128 << 64, 0, 0);
    while index < TERMS {
        term = term * LN_2 / (1 << 64) / (index as u128 + 1);
        sum += term;
        sums[index] = sum;
        index += 1;
    }
    sums[TERMS - 1] = 1 << 64; // the rest is below the last bit
    sums
}

const fn roots() -> [u64; 32] {
    let mut roots = [0; 32];
    let (mut root, mut index) = (1u128 << 64, 0);
    while index < 32 {
        root = (root << 63).isqrt();
        roots[index] = root as u64;
        index += 1;
    }
    roots
}

/// The distribution of a duration, or of the time between two arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Always the same.
    Exact(Nanos),
    /// Exponential with this mean, below 2^56 ns: between arrivals of a Poisson process.
    Exponential(Nanos),
    /// One of two exponentials: the first with a probability in thousandths. Its variance is larger
    /// than that of one exponential.
    HyperExponential {
        /// The probability of the first, in thousandths.
        first_per_mille: u32,
        /// Mean of the first.
        first: Nanos,
        /// Mean of the second.
        second: Nanos,
    },
    /// The probability of a span longer than x falls with x^-alpha between two bounds: a few spans
    /// are very long.
    Pareto {
        /// Alpha in thousandths, above 0.
        alpha_per_mille: u32,
        /// The shortest, above 0.
        least: Nanos,
        /// The longest, above the shortest and below 2^56 ns.
        most: Nanos,
    },
}

impl Distribution {
    /// Draws a span, rounded to nanoseconds.
    pub fn draw(&self, rng: &mut Rng) -> Nanos {
        match *self {
            Distribution::Exact(span) => span,
            Distribution::Exponential(mean) => draw_exponential(mean, rng),
            Distribution::HyperExponential { first_per_mille, first, second } => {
                let mean = if rng.chance(u64::from(first_per_mille), 1000) { first } else { second };
                draw_exponential(mean, rng)
            }
            Distribution::Pareto { alpha_per_mille, least, most } => loop {
                let span = draw_pareto(alpha_per_mille, least, rng);
                if span <= u128::from(most.0) {
                    break Nanos(span as u64);
                }
            },
        }
    }

    /// The mean, ns. For formulas and reports: no draw depends on it.
    pub fn mean(&self) -> f64 {
        self.moments().0
    }

    /// The mean (ns) and the mean square (ns²).
    pub fn moments(&self) -> (f64, f64) {
        let exponential = |mean: Nanos| (mean.0 as f64, 2.0 * (mean.0 as f64).powi(2));
        match *self {
            Distribution::Exact(span) => (span.0 as f64, (span.0 as f64).powi(2)),
            Distribution::Exponential(mean) => exponential(mean),
            Distribution::HyperExponential { first_per_mille, first, second } => {
                let share = f64::from(first_per_mille) / 1000.0;
                let ((m1, s1), (m2, s2)) = (exponential(first), exponential(second));
                (share * m1 + (1.0 - share) * m2, share * s1 + (1.0 - share) * s2)
            }
            Distribution::Pareto { alpha_per_mille, least, most } => {
                let (a, l, h) = (f64::from(alpha_per_mille) / 1000.0, least.0 as f64, most.0 as f64);
                let moment = |n: f64| {
                    let integral = match a == n {
                        true => (h / l).ln(),
                        false => (l.powf(n - a) - h.powf(n - a)) / (a - n),
                    };
                    a * l.powf(a) / (1.0 - (l / h).powf(a)) * integral
                };
                (moment(1.0), moment(2.0))
            }
        }
    }
}

/// An exponential number with mean 1, in units of 2^-64.
fn draw_unit(rng: &mut Rng) -> u128 {
    let mut halves = 0u128;
    loop {
        let ones = rng.next_u64().leading_ones();
        halves += u128::from(ones);
        if ones < u64::BITS {
            break;
        }
    }
    let rest = u128::from(rng.next_u64());
    if rest < LN_2 {
        return halves * LN_2 + rest;
    }
    let more = SUMS.partition_point(|&sum| sum <= rest);
    let least = (0..=more).map(|_| rng.next_u64()).fold(u64::MAX, u64::min);
    halves * LN_2 + ((u128::from(least) * LN_2) >> 64)
}

fn draw_exponential(mean: Nanos, rng: &mut Rng) -> Nanos {
    Nanos(((draw_unit(rng) * u128::from(mean.0) + (1 << 63)) >> 64) as u64)
}

/// A Pareto number without an upper bound, rounded to whole nanoseconds; `u128::MAX` for values
/// above 2^120.
fn draw_pareto(alpha_per_mille: u32, least: Nanos, rng: &mut Rng) -> u128 {
    let exponent = (draw_unit(rng) >> 32) * 1000 / u128::from(alpha_per_mille.max(1)) * LOG2_E; // in parts of 2^64
    let (doublings, mut bits) = ((exponent >> 64) as u32, (exponent >> 32) as u32);
    let mut factor = 1u128 << 63;
    for root in ROOTS {
        if bits >> 31 == 1 {
            factor = (factor * u128::from(root)) >> 63;
        }
        bits <<= 1;
    }
    let span = (u128::from(least.0) * factor + (1 << 62)) >> 63;
    if doublings > span.leading_zeros().saturating_sub(8) { u128::MAX } else { span << doublings }
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;

    const MS: Nanos = Nanos(1_000_000);

    fn all() -> [Distribution; 6] {
        [
            Distribution::Exact(MS),
            Distribution::Exponential(MS),
            Distribution::HyperExponential { first_per_mille: 900, first: Nanos(500_000), second: Nanos(5_500_000) },
            Distribution::Pareto { alpha_per_mille: 1500, least: Nanos(100_000), most: Nanos(10_000_000) },
            Distribution::Pareto { alpha_per_mille: 1000, least: Nanos(100_000), most: Nanos(10_000_000) },
            Distribution::Pareto { alpha_per_mille: 2000, least: Nanos(100_000), most: Nanos(10_000_000) },
        ]
    }

    #[test]
    fn draws_of_a_seed_never_change() {
        let mut rng = Rng::for_purpose(Seed(1), "golden");
        let got: Vec<u64> = all().iter().flat_map(|kind| [kind.draw(&mut rng).0, kind.draw(&mut rng).0]).collect();
        assert_eq!(got, GOLDEN);
    }
    const GOLDEN: [u64; 12] =
        [1000000, 1000000, 35955, 364414, 1182585, 576109, 151421, 197532, 113143, 453996, 141796, 104243];

    #[test]
    fn draws_have_the_moments_of_their_distribution() {
        let count = 1_000_000;
        for kind in all() {
            let mut rng = Rng::for_purpose(Seed(2), "moments");
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..count {
                let span = kind.draw(&mut rng).0 as f64;
                sum += span;
                squares += span * span;
            }
            let (mean, square) = kind.moments();
            let (mean_error, square_error) = (sum / count as f64 / mean - 1.0, squares / count as f64 / square - 1.0);
            assert!(mean_error.abs() < 0.005 && square_error.abs() < 0.02, "{kind:?}: {mean_error} {square_error}");
        }
    }

    #[test]
    fn exponential_draws_have_their_distribution() {
        // Kolmogorov and Smirnov: above 1.95 / sqrt(n) once in 1,000 seeds; this seed is fixed.
        let count = 200_000;
        let mut rng = Rng::for_purpose(Seed(3), "distribution");
        let mut spans: Vec<u64> = (0..count).map(|_| Distribution::Exponential(MS).draw(&mut rng).0).collect();
        spans.sort_unstable();
        let farthest = spans.iter().enumerate().map(|(index, &span)| {
            let want = 1.0 - (-(span as f64) / 1e6).exp();
            (index as f64 / f64::from(count) - want).abs()
        });
        let farthest = farthest.fold(0.0, f64::max);
        assert!(farthest < 1.95 / f64::from(count).sqrt(), "{farthest}");
    }

    #[test]
    fn pareto_draws_have_their_bounded_distribution() {
        let count = 200_000;
        let kind = Distribution::Pareto { alpha_per_mille: 1200, least: Nanos(100_000), most: Nanos(100_000_000) };
        let mut rng = Rng::for_purpose(Seed(4), "distribution");
        let mut spans: Vec<u64> = (0..count).map(|_| kind.draw(&mut rng).0).collect();
        spans.sort_unstable();
        assert!(spans[0] >= 100_000 && spans[count as usize - 1] <= 100_000_000);
        let farthest = spans.iter().enumerate().map(|(index, &span)| {
            let want = (1.0 - (1e5 / span as f64).powf(1.2)) / (1.0 - 1e-3f64.powf(1.2));
            (index as f64 / f64::from(count) - want).abs()
        });
        let farthest = farthest.fold(0.0, f64::max);
        assert!(farthest < 1.95 / f64::from(count).sqrt(), "{farthest}");
    }

    #[test]
    fn the_series_ends_at_one() {
        assert_eq!(SUMS[0], LN_2);
        assert!(SUMS.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!((1u128 << 64) - SUMS[TERMS - 2] < 64, "{:?}", SUMS);
    }
}
