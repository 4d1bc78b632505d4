//! The published schedule: time advances by one tick per operation, and the age bin with the
//! largest surplus loses a file.
//!
//! A life has `2 · files · max(f_i / w_i)` ticks, with the share `f_i` of files and the share `w_i`
//! of the life of bin *i*. Half of the coin tosses are births, so that even the most crowded age
//! bin has enough of them. A file's bin is that of its age at the end of the life. The files of the
//! filling have the largest age. Source: Kadekodi, Nagarajan, Ganger: Geriatrix, USENIX ATC 2018,
//! and the operation counts of their program.

use senesce_core::Rng;

use super::population::{FileId, Population};

/// The schedule.
pub(super) struct Classic {
    /// Ticks of a life.
    pub life: u64,
    /// The current tick.
    pub now: u64,
    /// The last tick of this life.
    end: u64,
    /// The oldest age of each bin, ticks. Older files count in the last bin.
    bounds: Vec<u64>,
    /// The share of the life that the most crowded bin covers.
    narrowest: f64,
    shares: Vec<f64>,
    /// Files by age bin, including some that were removed.
    bins: Vec<Vec<FileId>>,
    live: Vec<u64>,
}

impl Classic {
    /// A schedule for `files` files. Add the existing ones with [`Classic::add`].
    pub fn new(upper_relative: &[f64], age_weights: &[u64], files: u64) -> Self {
        let sum: f64 = age_weights.iter().map(|&weight| weight as f64).sum();
        let shares: Vec<f64> = age_weights.iter().map(|&weight| weight as f64 / sum).collect();
        let (life, narrowest) = compute_life(upper_relative, &shares, files);
        let bounds = upper_relative.iter().map(|upper| (upper * life as f64) as u64).collect();
        let bins = shares.len();
        Self { life, now: 0, end: life, narrowest, bounds, live: vec![0; bins], bins: vec![Vec::new(); bins], shares }
    }

    /// Records a birth at the current tick and returns its age bin.
    pub fn add(&mut self, id: FileId) -> u16 {
        let age = self.end - self.now.min(self.end);
        let bin = self.bounds.partition_point(|&bound| bound < age).min(self.bounds.len() - 1);
        self.bins[bin].push(id);
        self.live[bin] += 1;
        bin as u16
    }

    /// Records the removal of a file of this age bin.
    pub fn forget(&mut self, age_bin: u16) {
        self.live[usize::from(age_bin)] -= 1;
    }

    /// Advances by one tick.
    pub fn advance(&mut self) {
        self.now += 1;
    }

    /// The share of the survivors that are not born yet.
    pub fn share_to_come(&self) -> f64 {
        let left = self.end.saturating_sub(self.now);
        let mut before = 0;
        let mut share = 0.0;
        for (&bound, of_bin) in self.bounds.iter().zip(&self.shares) {
            if left >= bound {
                share += of_bin;
            } else if left > before {
                share += of_bin * (left - before) as f64 / (bound - before) as f64;
            }
            before = bound;
        }
        share
    }

    /// Starts another life, in which all existing files have the largest age. Returns its ticks.
    ///
    /// In a published life, the most crowded bin has exactly the births it needs *if* the coin
    /// falls evenly. This life has enough births unless the coin deviates by more than three
    /// standard deviations.
    pub fn lengthen(&mut self, population: &mut Population) -> u64 {
        let needed = (self.life as f64 / 2.0 * self.narrowest).max(1.0);
        let longer = (self.life as f64 * (1.0 + 3.0 / needed.sqrt())).ceil();
        for bound in &mut self.bounds {
            *bound = (*bound as f64 * longer / self.life as f64) as u64;
        }
        self.life = longer as u64;
        self.end = self.now + self.life;
        let last = self.bins.len() - 1;
        let all: Vec<FileId> = self.bins.iter_mut().flat_map(std::mem::take).collect();
        self.live = vec![0; last + 1];
        for id in all {
            if let Some(file) = population.get_mut(id) {
                file.age_bin = last as u16;
                self.bins[last].push(id);
                self.live[last] += 1;
            }
        }
        self.life
    }

    /// A random file of the age bin with the largest surplus.
    pub fn victim(&mut self, rng: &mut Rng, population: &Population) -> Option<FileId> {
        let excess = |bin: usize| self.live[bin] as f64 - self.shares[bin] * population.wanted as f64;
        let candidates = (0..self.live.len()).filter(|&bin| self.live[bin] > 0);
        let bin = candidates.max_by(|&a, &b| excess(a).total_cmp(&excess(b)))?;
        let files = &mut self.bins[bin];
        while !files.is_empty() {
            let index = rng.below(files.len() as u64) as usize;
            let id = files.swap_remove(index);
            if population.get(id).is_some() {
                return Some(id);
            }
        }
        None
    }
}

/// Ticks of a life of `files` files, and the share of the life that the most crowded bin covers.
fn compute_life(upper_relative: &[f64], shares: &[f64], files: u64) -> (u64, f64) {
    let mut before = 0.0;
    let (mut densest, mut width) = (0.0f64, 1.0);
    for (&upper, &share) in upper_relative.iter().zip(shares) {
        if share / (upper - before) > densest {
            (densest, width) = (share / (upper - before), upper - before);
        }
        before = upper;
    }
    ((2.0 * files as f64 * densest).ceil() as u64, width)
}

#[cfg(test)]
mod tests {
    use super::{super::find_builtin, *};

    #[test]
    fn lives_have_published_lengths() {
        for name in ["agrawal", "wang_os", "douceur", "dabre"] {
            let profile = find_builtin(name).unwrap();
            let weights = profile.age_weights();
            let classic = Classic::new(&profile.age.upper_relative, &weights, 1000);
            let published = profile.summary["geriatrix_ops_per_initial_file"] * 1000.0;
            assert!((classic.life as f64 / published - 1.0).abs() < 0.01, "{name}: {} {published}", classic.life);
        }
    }
}
