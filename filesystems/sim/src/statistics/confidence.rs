//! Confidence intervals of the mean of correlated figures.

use serde::{Deserialize, Serialize};

/// The largest number of batches. When it is reached, pairs of batches are merged.
const MOST: usize = 64;

/// The smallest number of batches with an interval.
const LEAST: usize = 10;

/// The mean of a long sequence of figures, from batches of equal size that are nearly independent.
///
/// Source: batch means with a number of batches between 32 and 64, as in A. Law and W. Kelton,
/// Simulation Modeling and Analysis. The sequence must be much longer than the distance over which
/// its figures are correlated.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    full: Vec<u128>,
    size: u64,
    open: u128,
    open_count: u64,
    sum: u128,
    count: u64,
}

/// A mean and its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean of all figures.
    pub mean: f64,
    /// Half of the width of the interval; none if the sequence is too short.
    pub half_width: Option<f64>,
}

impl BatchMeans {
    /// An empty sequence.
    pub fn new() -> Self {
        Self { full: Vec::with_capacity(MOST), size: 1, open: 0, open_count: 0, sum: 0, count: 0 }
    }

    /// Adds the next figure.
    pub fn add(&mut self, figure: u64) {
        self.sum += u128::from(figure);
        self.count += 1;
        self.open += u128::from(figure);
        self.open_count += 1;
        if self.open_count < self.size {
            return;
        }
        self.full.push(std::mem::take(&mut self.open));
        self.open_count = 0;
        if self.full.len() == MOST {
            self.full = self.full.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            self.size *= 2;
        }
    }

    /// The mean so far, with its interval.
    pub fn interval(&self) -> Interval {
        let mean = if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 };
        let batches = self.full.len();
        if batches < LEAST || self.size < 2 {
            return Interval { mean, half_width: None };
        }
        let means: Vec<f64> = self.full.iter().map(|&sum| sum as f64 / self.size as f64).collect();
        let middle = means.iter().sum::<f64>() / batches as f64;
        let freedom = batches as f64 - 1.0;
        let variance = means.iter().map(|mean| (mean - middle) * (mean - middle)).sum::<f64>() / freedom;
        // Student's t at 97.5%, within 0.5% of the tables from 9 degrees of freedom on.
        let t = 1.96 + 2.37 / freedom + 2.8 / (freedom * freedom);
        Interval { mean, half_width: Some(t * (variance / batches as f64).sqrt()) }
    }
}

impl Default for BatchMeans {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{Rng, Seed};

    use super::*;

    #[test]
    fn intervals_have_their_nominal_coverage() {
        let mut held = 0;
        for seed in 0..400 {
            let mut rng = Rng::for_purpose(Seed(seed), "batches");
            let mut batches = BatchMeans::new();
            let mut level = 500;
            for _ in 0..20_000 {
                // Each figure depends on the previous one.
                level = (3 * level + rng.below(1001)) / 4;
                batches.add(level * 1000);
            }
            let interval = batches.interval();
            // Each step rounds down, which lowers the mean by 3/8 of a unit on average. The step
            // keeps 3/4 of the deviation, so the level is 1.5 lower in total.
            held += u32::from((interval.mean - 498_500.0).abs() < interval.half_width.unwrap());
        }
        assert!((360..=396).contains(&held), "{held} of 400 intervals of 95%");
    }

    #[test]
    fn few_figures_have_a_mean_without_an_interval() {
        let mut batches = BatchMeans::new();
        assert_eq!(batches.interval(), Interval { mean: 0.0, half_width: None });
        (0..9).for_each(|figure| batches.add(figure));
        assert_eq!(batches.interval(), Interval { mean: 4.0, half_width: None });
    }
}
