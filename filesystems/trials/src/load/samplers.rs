//! Samplers with integers: the same draws on every machine.

use senesce_core::Rng;

/// An exponentially distributed time with this mean, in the mean's unit.
///
/// This is von Neumann's method by comparisons. A run of uniform draws, each below the one before
/// it, has an odd length with the probability e^-x for a first draw of x. There is no logarithm, so
/// no library rounds the result. Cost: about six draws.
pub fn exponential(rng: &mut Rng, mean: u64) -> u64 {
    let mut whole = 0_u128;
    loop {
        let first = rng.next_u64();
        let (mut last, mut length) = (first, 1_u32);
        loop {
            let next = rng.next_u64();
            if next >= last {
                break;
            }
            (last, length) = (next, length + 1);
        }
        if length % 2 == 1 {
            let units = (whole << 64) + u128::from(first);
            return (units.saturating_mul(mean.into()) >> 64) as u64;
        }
        whole += 1;
    }
}

/// The blocks of an operation of a sequential stream: 1, 2, 4, 8 or 16, with the weights 10, 6, 5,
/// 2, 2.
pub fn mixed_size(rng: &mut Rng) -> u64 {
    1 << rng.weighted(&[10, 6, 5, 2, 2])
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;

    #[test]
    fn times_are_exponential() {
        let mut rng = Rng::for_purpose(Seed(1), "exponential");
        const MEAN: u64 = 1_000_000;
        const DRAWS: u64 = 200_000;
        let times: Vec<u64> = (0..DRAWS).map(|_| exponential(&mut rng, MEAN)).collect();
        let mean = times.iter().sum::<u64>() as f64 / DRAWS as f64;
        // The standard error of the mean is 0.22 %.
        assert!((mean / MEAN as f64 - 1.0).abs() < 0.01, "{mean}");
        // Shares above 0.5, 1, 2 and 4 means; the standard error is 0.11 % at most.
        for (halves, share) in [(1, 0.606_531), (2, 0.367_879), (4, 0.135_335), (8, 0.018_316)] {
            let above = times.iter().filter(|&&time| time > halves * MEAN / 2).count() as f64 / DRAWS as f64;
            assert!((above - share).abs() < 0.005, "{above} of the draws are above {halves} half means, not {share}");
        }
    }

    #[test]
    fn sizes_are_mixed() {
        let mut rng = Rng::for_purpose(Seed(2), "sizes");
        let sum: u64 = (0..100_000).map(|_| mixed_size(&mut rng)).sum();
        // (10 + 12 + 20 + 16 + 32) / 25
        assert!((sum as f64 / 100_000.0 - 3.6).abs() < 0.05, "{sum}");
    }
}
