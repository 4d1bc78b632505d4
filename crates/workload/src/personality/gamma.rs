//! The gamma distribution in integer arithmetic: the draws are the same on every machine, with any
//! mathematical library.

use senesce_core::Rng;

/// Fractional bits of the numbers here.
const POINT: u32 = 32;
/// ln 2, with [`POINT`] fractional bits.
const LN_2: u64 = 2_977_044_472;

/// Draws from the gamma distribution with a shape of `halves` / 2 and the given mean. With 0 halves
/// it returns the mean.
///
/// The integer part of the shape is a sum of exponential draws. A half is half the square of a
/// normal draw, which is an exponential draw times the squared cosine of a random angle. Source: L.
/// Devroye, Non-Uniform Random Variate Generation, 1986, chapter IX.3.
pub(super) fn draw_gamma(rng: &mut Rng, mean: u64, halves: u32) -> u64 {
    if halves == 0 {
        return mean;
    }
    let mut sum: u128 = (0..halves / 2).map(|_| u128::from(draw_exponential(rng))).sum();
    if halves % 2 == 1 {
        let (part, whole) = draw_squared_cosine(rng);
        sum += u128::from(draw_exponential(rng)) * part / whole;
    }
    let scaled = u128::from(mean) * sum * 2 / u128::from(halves);
    u64::try_from((scaled + (1 << (POINT - 1))) >> POINT).unwrap_or(u64::MAX)
}

/// An exponential draw of mean 1, with [`POINT`] fractional bits: −ln of a uniform draw.
fn draw_exponential(rng: &mut Rng) -> u64 {
    // From 1 to 2^53, as a fraction of 2^53.
    let uniform = (rng.next_u64() >> 11) + 1;
    let log = (53 << POINT) - log2(uniform);
    ((u128::from(log) * u128::from(LN_2)) >> POINT) as u64
}

/// The binary logarithm of a number above 0, with [`POINT`] fractional bits, by repeated squaring.
fn log2(number: u64) -> u64 {
    let whole = number.ilog2();
    // Between 1 and 2, with 63 fractional bits.
    let mut rest = number << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..POINT {
        let square = u128::from(rest) * u128::from(rest);
        let is_above = square >> 127 == 1;
        log = log << 1 | u64::from(is_above);
        rest = (square >> if is_above { 64 } else { 63 }) as u64;
    }
    log
}

/// The squared cosine of a uniform angle, as numerator and denominator. It comes from a random
/// point in a quarter of a circle.
fn draw_squared_cosine(rng: &mut Rng) -> (u128, u128) {
    const RADIUS: u64 = 1 << 32;
    loop {
        let (x, y) = (u128::from(rng.below(RADIUS)), u128::from(rng.below(RADIUS)));
        let whole = x * x + y * y;
        if whole > 0 && whole < u128::from(RADIUS) * u128::from(RADIUS) {
            return (x * x, whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{Rng, Seed};

    use super::*;

    fn draws(halves: u32, count: usize) -> Vec<u64> {
        let mut rng = Rng::for_purpose(Seed(1), "gamma");
        (0..count).map(|_| draw_gamma(&mut rng, 1_000_000, halves)).collect()
    }

    #[test]
    fn draws_of_a_seed_never_change() {
        assert_eq!(draws(3, 4), GOLDEN);
        assert_eq!(draws(0, 2), [1_000_000; 2]);
    }
    const GOLDEN: [u64; 4] = [32061, 579687, 1194215, 674818];

    #[test]
    fn quantiles_and_moments_match_tables() {
        // Quantiles of chi-square with k degrees of freedom, divided by k, from tables
        // (NIST/SEMATECH e-Handbook 1.3.6.7.4).
        for (halves, tenth, half, nine_tenths) in [
            (1, 0.01579, 0.45494, 2.70554),
            (2, -0.9f64.ln(), std::f64::consts::LN_2, std::f64::consts::LN_10),
            (3, 0.19479, 0.78866, 2.08380),
            (10, 0.48652, 0.93418, 1.59872),
        ] {
            let mut draws = draws(halves, 200_000);
            draws.sort_unstable();
            for (share, wanted) in [(0.1, tenth), (0.5, half), (0.9, nine_tenths)] {
                let below = draws.iter().filter(|draw| (**draw as f64) < wanted * 1e6).count() as f64 / 200_000.0;
                // Four standard deviations of the share.
                assert!((below - share).abs() < 0.0045, "{halves}: {below} of {share}");
            }
            let mean = draws.iter().sum::<u64>() as f64 / 200_000.0;
            let variance = draws.iter().map(|draw| (*draw as f64 - mean).powi(2)).sum::<f64>() / 200_000.0;
            assert!((mean / 1e6 - 1.0).abs() < 0.013, "{halves}: mean {mean}");
            assert!((variance / 1e12 * f64::from(halves) / 2.0 - 1.0).abs() < 0.06, "{halves}: variance {variance}");
        }
    }

    proptest! {
        #[test]
        fn the_logarithm_matches_floating_point(number in 1u64..) {
            prop_assert!((log2(number) as f64 / (1u64 << POINT) as f64 - (number as f64).log2()).abs() < 1e-9);
        }
    }
}
