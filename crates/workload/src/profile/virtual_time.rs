//! Births and deaths in virtual time: the published rule, with fewer births in periods of which
//! almost nothing survives.
//!
//! The bounds of the profile divide the life of the file system into windows. In window *i* the
//! profile wants `f_i` of all files to survive. The published schedule has the same rate of births
//! everywhere, so that the most crowded window has enough. Most of these births are in the long
//! windows of the distant past, of which almost nothing remains. Here a window has the published
//! number of births, up to a cap. The cap is chosen so that all windows together have `churn`
//! births a file. The recent past is as published; the distant past has fewer births.
//!
//! The file to remove is chosen as published: a random file of the window with the largest surplus.
//! Windows end by births, not by coin tosses, so each has exactly the survivors of the profile in
//! the end. In the oldest window the files of the filling are removed first, so that their original
//! layout disappears soonest.

use senesce_core::Rng;

use super::{
    distribution::apportion,
    population::{FileId, Population},
};

/// The whole life, in ticks of virtual time.
pub(super) const LIFE: u64 = 1 << 40;

/// The smallest number of births per survivor.
const SLACK: f64 = 1.05;

/// A part of the life, from one bound of the profile's ages to the next.
#[derive(Clone, Debug)]
struct Window {
    from: u64,
    to: u64,
    /// Births in it, including those of the filling.
    births: u64,
    /// Births that are done.
    done: u64,
    /// Files that are to survive.
    keep: u64,
    /// Existing files.
    live: u64,
    /// Files born in it, including some that were removed.
    files: Vec<FileId>,
}

impl Window {
    fn excess(&self) -> i64 {
        self.live as i64 - self.keep as i64
    }
}

/// A file that is to be born.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    pub born: u64,
    /// The window of its birth.
    pub window: u16,
}

/// The schedule.
pub(super) struct VirtualTime {
    /// Oldest first.
    windows: Vec<Window>,
    at: usize,
    now: u64,
    left: u64,
    /// Files of the filling, including some that were removed.
    filling: Vec<FileId>,
}

impl VirtualTime {
    /// A schedule for the files of the filling. They are born at once. Returns the schedule and one
    /// birth for each file.
    pub fn new(
        upper_relative: &[f64],
        age_weights: &[u64],
        filling: Vec<FileId>,
        churn: f64,
    ) -> (Self, Vec<(FileId, Birth)>) {
        let files = filling.len() as u64;
        let survivors = apportion(age_weights, files);
        let births = compute_births(upper_relative, &survivors, churn * files as f64);
        let mut windows = Vec::new();
        let mut to = LIFE;
        for (bin, (&upper, &keep)) in upper_relative.iter().zip(&survivors).enumerate() {
            // The oldest window begins with the life; bounds are rounded to ticks.
            let is_oldest = bin + 1 == survivors.len();
            let from = if is_oldest { 0 } else { LIFE - (upper * LIFE as f64) as u64 };
            let births = births[bin] + if is_oldest { files } else { 0 };
            windows.push(Window { from, to, births, done: 0, keep, live: 0, files: Vec::new() });
            to = from;
        }
        windows.reverse();
        let left = births.iter().sum::<u64>() + files;
        let mut schedule = Self { windows, at: 0, now: 0, left, filling: Vec::new() };
        let born = filling.iter().filter_map(|&id| Some((id, schedule.next_birth()?))).collect();
        schedule.windows[0].live = files;
        schedule.filling = filling;
        (schedule, born)
    }

    /// Births that are still to come.
    pub fn births_left(&self) -> u64 {
        self.left
    }

    /// The time of the last birth; the end of the life when none is left.
    pub fn now(&self) -> u64 {
        if self.left == 0 { LIFE } else { self.now }
    }

    /// The next birth; none at the end.
    pub fn next_birth(&mut self) -> Option<Birth> {
        let window = loop {
            let window = self.windows.get_mut(self.at)?;
            if window.done < window.births {
                break window;
            }
            self.at += 1;
        };
        let span = u128::from(window.to - window.from);
        // The birth is in the middle of its share of the window, so that no rounding moves it into
        // a neighbour.
        let offset = span * (2 * u128::from(window.done) + 1) / (2 * u128::from(window.births));
        window.done += 1;
        self.left -= 1;
        self.now = window.from + offset as u64;
        Some(Birth { born: self.now, window: self.at as u16 })
    }

    /// Records a birth in this window.
    pub fn add(&mut self, id: FileId, window: u16) {
        let window = &mut self.windows[usize::from(window)];
        window.live += 1;
        window.files.push(id);
    }

    /// Records the removal of a file of this window.
    pub fn forget(&mut self, window: u16) {
        self.windows[usize::from(window)].live -= 1;
    }

    /// Sets the survivors of every window to the profile's shares of `files`.
    pub fn retarget(&mut self, age_weights: &[u64], files: u64) {
        let wanted = apportion(age_weights, files);
        for (window, keep) in self.windows.iter_mut().zip(wanted.into_iter().rev()) {
            window.keep = keep;
        }
    }

    /// A random file of the window with the largest surplus; none if no window has a surplus.
    pub fn victim(&mut self, rng: &mut Rng, population: &Population) -> Option<FileId> {
        let (at, window) = self.windows.iter_mut().enumerate().max_by_key(|(_, window)| window.excess())?;
        if window.excess() <= 0 {
            return None;
        }
        let mut draw = |files: &mut Vec<FileId>| {
            while !files.is_empty() {
                let id = files.swap_remove(rng.below(files.len() as u64) as usize);
                if population.get(id).is_some() {
                    return Some(id);
                }
            }
            None
        };
        let of_filling = if at == 0 { draw(&mut self.filling) } else { None };
        of_filling.or_else(|| draw(&mut window.files))
    }

    /// Approximate number of survivors that are not born yet.
    pub fn survivors_to_come(&self) -> u64 {
        let to_come = |window: &Window| window.keep * (window.births - window.done) / window.births.max(1);
        self.windows[self.at.min(self.windows.len())..].iter().map(to_come).sum()
    }

    /// Whether any window has a surplus.
    pub fn has_victims(&self) -> bool {
        self.windows.iter().any(|window| window.excess() > 0)
    }
}

/// Births of each window, youngest first: the published number, up to a cap with which they sum to
/// `wanted`.
fn compute_births(upper_relative: &[f64], survivors: &[u64], wanted: f64) -> Vec<u64> {
    let mut before = 0.0;
    let widths: Vec<f64> = upper_relative.iter().map(|&upper| upper - std::mem::replace(&mut before, upper)).collect();
    let density = |(&survivors, &width): (&u64, &f64)| survivors as f64 / width;
    let densest = survivors.iter().zip(&widths).map(density).fold(0.0, f64::max);
    // A window needs its survivors, and a little more in case the number of files grows.
    let least: Vec<f64> = survivors.iter().map(|&survivors| survivors as f64 * SLACK).collect();
    let published: Vec<f64> = widths.iter().zip(&least).map(|(width, least)| (width * densest).max(*least)).collect();
    let capped = |cap: f64| published.iter().zip(&least).map(move |(births, least)| births.min(cap).max(*least));
    let most: f64 = published.iter().sum();
    let (mut cap, mut scale) = (most, 1.0);
    if wanted >= most {
        // More than published: everything grows in proportion.
        scale = wanted / most.max(1.0);
    } else {
        let mut low = 0.0;
        for _ in 0..100 {
            let middle = (low + cap) / 2.0;
            if capped(middle).sum::<f64>() < wanted { low = middle } else { cap = middle }
        }
    }
    let whole = |(births, &survivors): (f64, &u64)| ((births * scale).round() as u64).max(survivors);
    capped(cap).zip(survivors).map(whole).collect()
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;
    use crate::profile::population::File;

    #[test]
    fn births_follow_the_publication_up_to_a_cap() {
        // Windows of 0.1, 0.4 and 0.5 of the life with 100 survivors each: 1,000 births a life as
        // published.
        let survivors = [100, 100, 100];
        let upper = [0.1, 0.5, 1.0];
        assert_eq!(compute_births(&upper, &survivors, 2010.0), [210, 800, 1000]);
        assert_eq!(compute_births(&upper, &survivors, 1005.0), [105, 400, 500]);
        assert_eq!(compute_births(&upper, &survivors, 705.0), [105, 300, 300]);
        assert_eq!(compute_births(&upper, &survivors, 0.0), [105, 105, 105]);
        // In a window without survivors, births only mix the layout.
        assert_eq!(compute_births(&upper, &[100, 100, 0], 505.0), [105, 200, 200]);
    }

    proptest::proptest! {
        #[test]
        fn window_survivors_match_the_profile(
            seed: u64, weights in proptest::collection::vec(0u64..50, 1..12), files in 1u64..400, churn in 1.0f64..9.0
        ) {
            proptest::prop_assume!(weights.iter().sum::<u64>() > 0);
            let upper: Vec<f64> = (1..=weights.len()).map(|i| i as f64 / weights.len() as f64).collect();
            let mut rng = Rng::for_purpose(Seed(seed), "t");
            let mut population = Population::new(vec![1], vec![1]);
            population.retarget(files);
            let filling: Vec<FileId> = (0..files).map(|_| population.add(File::new(0, (0, 0), 1, 0))).collect();
            let (mut schedule, born) = VirtualTime::new(&upper, &weights, filling, churn);
            for (id, birth) in born {
                population.get_mut(id).unwrap().age_bin = birth.window;
            }
            let mut before = 0;
            let mut die = |schedule: &mut VirtualTime, population: &mut Population| {
                let Some(victim) = schedule.victim(&mut rng, population) else { return false };
                let file = population.remove(victim).unwrap();
                schedule.forget(file.age_bin);
                true
            };
            while let Some(Birth { born, window }) = schedule.next_birth() {
                proptest::prop_assert!(born >= before && born < LIFE);
                before = born;
                let age = (LIFE - born) as f64 / LIFE as f64;
                let bin = upper.iter().position(|&upper| age <= upper).unwrap();
                proptest::prop_assert_eq!(bin, weights.len() - 1 - usize::from(window));
                if population.missing() > 0 || die(&mut schedule, &mut population) {
                    let id = population.add(File::new(0, (0, 0), 1, born));
                    population.get_mut(id).unwrap().age_bin = window;
                    schedule.add(id, window);
                }
            }
            while die(&mut schedule, &mut population) {}
            let mut kept: Vec<u64> = schedule.windows.iter().map(|window| window.live).collect();
            kept.reverse();
            proptest::prop_assert_eq!(kept, apportion(&weights, files));
        }
    }
}
