//! Births and deaths in virtual time: who lives to the end is known at birth.
//!
//! The life of the file system is cut at the profile's bounds into windows. In window *i* the profile wants `f_i` of all
//! files to survive. The published schedule makes as many births per time everywhere, `m_i` for each survivor of window
//! *i*, where the most crowded window has `m = 1`; nearly all of its births lie in windows of which nothing remains. Here
//! a window has `min(m_i, cap)` births a survivor: the recent past is as published, the distant past thinned, and `cap`
//! follows from the births a file that were asked for (`churn`).
//!
//! At birth a file is told whether it is one of its window's survivors. Whoever is not dies at a random moment: the next
//! victim is any of them with the same chance. At the end none of them is left, and the survivors of every window are as
//! many as the profile has.

use senesce_core::Rng;

use super::{
    distribution::apportion,
    population::{FileId, Population},
};

/// The whole life, in ticks of virtual time.
pub(super) const LIFE: u64 = 1 << 40;

/// Births a survivor at least.
const SLACK: f64 = 1.05;

/// A part of the life, from one bound of the profile's ages to the next.
#[derive(Clone, Debug)]
struct Window {
    from: u64,
    to: u64,
    /// Births in it, those of the filling included.
    births: u64,
    /// How many are done.
    done: u64,
    /// Survivors among those to come.
    keep: u64,
}

/// A file that is to be born.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    pub born: u64,
    /// The window it falls into.
    pub window: u16,
    pub keeps: bool,
}

/// The schedule.
pub(super) struct VirtualTime {
    /// Oldest first.
    windows: Vec<Window>,
    at: usize,
    now: u64,
    doomed: Vec<FileId>,
    left: u64,
}

impl VirtualTime {
    /// A schedule for `files` files that exist already.
    pub fn new(upper_relative: &[f64], age_weights: &[u64], files: u64, churn: f64) -> Self {
        let survivors = apportion(age_weights, files);
        let births = compute_births(upper_relative, &survivors, churn * files as f64);
        let mut windows = Vec::new();
        let mut to = LIFE;
        for (bin, (&upper, &keep)) in upper_relative.iter().zip(&survivors).enumerate() {
            // The oldest window begins with the life; bounds are rounded to ticks.
            let is_oldest = bin + 1 == survivors.len();
            let from = if is_oldest { 0 } else { LIFE - (upper * LIFE as f64) as u64 };
            let births = births[bin] + if is_oldest { files } else { 0 };
            windows.push(Window { from, to, births, done: 0, keep });
            to = from;
        }
        windows.reverse();
        let left = births.iter().sum::<u64>() + files;
        Self { windows, at: 0, now: 0, doomed: Vec::new(), left }
    }

    /// Births that are still to come.
    pub fn births_left(&self) -> u64 {
        self.left
    }

    /// The time of the last birth; the end of the life once there is none left.
    pub fn now(&self) -> u64 {
        if self.left == 0 { LIFE } else { self.now }
    }

    /// The next birth; none at the end.
    pub fn next_birth(&mut self, rng: &mut Rng) -> Option<Birth> {
        let window = loop {
            let window = self.windows.get_mut(self.at)?;
            if window.done < window.births {
                break window;
            }
            self.at += 1;
        };
        let span = u128::from(window.to - window.from);
        // In the middle of its share of the window, so that no rounding moves it into a neighbour.
        let offset = span * (2 * u128::from(window.done) + 1) / (2 * u128::from(window.births));
        let keeps = rng.below(window.births - window.done) < window.keep;
        window.keep -= u64::from(keeps);
        window.done += 1;
        self.left -= 1;
        self.now = window.from + offset as u64;
        Some(Birth { born: self.now, window: self.at as u16, keeps })
    }

    /// As many survivors in every window as the profile wants of `population.wanted` files: of those that were born
    /// some change their lot, of those to come others survive.
    ///
    /// Cost: one look at every file.
    pub fn rebalance(&mut self, age_weights: &[u64], population: &mut Population, rng: &mut Rng) {
        let mut wanted = apportion(age_weights, population.wanted);
        wanted.reverse();
        // By window: those that survive, and those that do not.
        let mut lots: Vec<[Vec<FileId>; 2]> = vec![Default::default(); self.windows.len()];
        for (id, file) in population.iter() {
            lots[usize::from(file.age_bin)][usize::from(!file.keeps)].push(id);
        }
        self.doomed.clear();
        for ((window, mut wanted), [mut keeping, mut doomed]) in self.windows.iter_mut().zip(wanted).zip(lots) {
            let to_come = window.births - window.done;
            if to_come > 0 {
                window.keep = wanted.saturating_sub(keeping.len() as u64).min(to_come);
                wanted -= window.keep.min(wanted);
            }
            let (from, to, keeps) = match (keeping.len() as u64) < wanted {
                true => (&mut doomed, &mut keeping, true),
                false => (&mut keeping, &mut doomed, false),
            };
            let mut change = if keeps { wanted - to.len() as u64 } else { from.len() as u64 - wanted };
            while change > 0 && !from.is_empty() {
                let id = from.swap_remove(rng.below(from.len() as u64) as usize);
                population.get_mut(id).expect("it was just listed").keeps = keeps;
                to.push(id);
                change -= 1;
            }
            self.doomed.extend(doomed);
        }
    }

    /// A file that does not survive was born.
    pub fn doom(&mut self, id: FileId) {
        self.doomed.push(id);
    }

    /// Any of those that do not survive.
    pub fn victim(&mut self, rng: &mut Rng, population: &Population) -> Option<FileId> {
        while !self.doomed.is_empty() {
            let index = rng.below(self.doomed.len() as u64) as usize;
            let id = self.doomed.swap_remove(index);
            if population.get(id).is_some() {
                return Some(id);
            }
        }
        None
    }

    /// Whether anybody is left to die.
    pub fn has_victims(&self) -> bool {
        !self.doomed.is_empty()
    }
}

/// Births of each window, youngest first: as many a survivor as published, up to a cap under which there are `wanted` in
/// all.
fn compute_births(upper_relative: &[f64], survivors: &[u64], wanted: f64) -> Vec<u64> {
    let mut before = 0.0;
    let densities: Vec<f64> = upper_relative
        .iter()
        .zip(survivors)
        .map(|(&upper, &survivors)| {
            let density = survivors as f64 / (upper - before);
            before = upper;
            density
        })
        .collect();
    let densest = densities.iter().copied().fold(0.0, f64::max);
    // Births a survivor, as published: 1 in the most crowded window (and a little more, should there come to be more
    // files), and beyond everything where nobody survives.
    let published: Vec<f64> = densities.iter().map(|&density| (densest / density).max(SLACK)).collect();
    let total = |cap: f64| -> f64 {
        survivors.iter().zip(&published).map(|(&survivors, m)| survivors as f64 * m.min(cap)).sum::<f64>()
    };
    let uncapped = total(f64::MAX / 1e20);
    let (cap, scale) = if wanted >= uncapped {
        // More than published: everything in proportion.
        (f64::MAX / 1e20, wanted / uncapped.max(1.0))
    } else {
        let (mut low, mut high) = (1.0, 1e9);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if total(middle) < wanted { low = middle } else { high = middle }
        }
        (high, 1.0)
    };
    let births = |(&survivors, m): (&u64, &f64)| {
        if survivors == 0 { 0 } else { ((survivors as f64 * m.min(cap) * scale).round() as u64).max(survivors) }
    };
    survivors.iter().zip(&published).map(births).collect()
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;

    #[test]
    fn births_are_as_published_up_to_the_cap() {
        // Windows of 0.1, 0.4 and 0.5 of the life with 100 survivors each: densities 1000, 250, 200.
        let survivors = [100, 100, 100];
        let upper = [0.1, 0.5, 1.0];
        // m = 1.05, 4, 5: 1,005 births in all as published.
        assert_eq!(compute_births(&upper, &survivors, 2010.0), [210, 800, 1000]);
        assert_eq!(compute_births(&upper, &survivors, 1005.0), [105, 400, 500]);
        // 705 births: cap 3.
        assert_eq!(compute_births(&upper, &survivors, 705.0), [105, 300, 300]);
        assert_eq!(compute_births(&upper, &survivors, 0.0), [100, 100, 100]);
    }

    proptest::proptest! {
        #[test]
        fn the_survivors_of_every_window_are_the_profiles(
            seed: u64, weights in proptest::collection::vec(0u64..50, 1..12), files in 1u64..400, churn in 1.0f64..9.0
        ) {
            proptest::prop_assume!(weights.iter().sum::<u64>() > 0);
            let upper: Vec<f64> = (1..=weights.len()).map(|i| i as f64 / weights.len() as f64).collect();
            let mut schedule = VirtualTime::new(&upper, &weights, files, churn);
            let mut rng = Rng::for_purpose(Seed(seed), "t");
            let mut kept = vec![0u64; weights.len()];
            let mut before = 0;
            while let Some(Birth { born, keeps, .. }) = schedule.next_birth(&mut rng) {
                proptest::prop_assert!(born >= before && born < LIFE);
                before = born;
                let age = (LIFE - born) as f64 / LIFE as f64;
                let bin = upper.iter().position(|&upper| age <= upper).unwrap();
                kept[bin] += u64::from(keeps);
            }
            proptest::prop_assert_eq!(kept, apportion(&weights, files));
        }
    }
}
