//! Stable aging: births and deaths of the schedule, at the requested fullness.

use super::{
    aging::{COUNTED_STEPS, Engine, LEAST_FILES, ProfileAging, STEP_OPS},
    distribution::apportion,
    options::Schedule,
};

impl ProfileAging {
    /// Approximate number of files that wait to be born: a random choice needs several candidates.
    fn pool(&self) -> u64 {
        ((self.population.wanted as f64 * self.options.accuracy) as u64).clamp(4, 1024)
    }

    /// Makes a step of stable aging; false when the schedule is exhausted.
    pub(super) fn stable(&mut self) -> bool {
        let until = (self.moves_planned * (self.counted + 1)).div_ceil(COUNTED_STEPS);
        let end = self.schedule_end;
        while self.batch.len() < STEP_OPS && self.moved < until.min(end) {
            let goes_on = match self.options.schedule {
                Schedule::Virtual => self.move_virtual(),
                Schedule::Classic => self.move_classic(end),
            };
            if !goes_on {
                self.moved = end;
            }
        }
        self.batch.len() > 0 || self.moved < end
    }

    /// Makes one birth, with a random number of deaths before it.
    fn move_virtual(&mut self) -> bool {
        let pool = self.pool();
        loop {
            let missing = self.population.missing();
            let Some(Engine::Virtual(schedule)) = &mut self.engine else { return false };
            // As in the classic schedule: no file may be missing at the end.
            let most = (2 * pool).min(schedule.survivors_to_come() / 2);
            let may_die = missing < most && schedule.has_victims();
            let dies = may_die && (missing == 0 || self.moves.chance(1, 2));
            if dies && let Some(victim) = schedule.victim(&mut self.moves, &self.population) {
                self.remove_file(victim);
                continue;
            }
            let Some(birth) = schedule.next_birth() else { return false };
            self.moved += 1;
            if missing == 0 {
                // No window has a surplus, so no file can be removed for this birth.
                return true;
            }
            let bins = self.population.draw_bins(&mut self.draws);
            let id = self.add_file(bins, birth.born);
            self.population.get_mut(id).expect("it was just born").age_bin = birth.window;
            if let Some(Engine::Virtual(schedule)) = &mut self.engine {
                schedule.add(id, birth.window);
            }
            return true;
        }
    }

    /// Makes one tick: a birth or a death by coin toss. If the coin leads too far from the fullness
    /// it is overruled.
    fn move_classic(&mut self, end: u64) -> bool {
        let missing = self.population.missing();
        // Towards the end no file may be missing.
        let most = (2 * self.pool()).min((end - self.moved) / 4);
        // Fewer files may be missing than survivors are still to be born. Otherwise survivors would
        // have to be removed.
        let to_come = match &self.engine {
            Some(Engine::Classic(classic)) => classic.share_to_come() * self.population.wanted as f64,
            _ => return false,
        };
        let most = most.min((to_come / 2.0) as u64);
        let coin = self.moves.chance(1, 2);
        let is_birth = if missing == 0 { false } else { missing > most || coin };
        self.moved += 1;
        let Some(Engine::Classic(classic)) = &mut self.engine else { return false };
        classic.advance();
        let now = classic.now;
        if is_birth {
            let bins = self.population.draw_bins(&mut self.draws);
            let id = self.add_file(bins, now);
            if let Some(Engine::Classic(classic)) = &mut self.engine {
                let age_bin = classic.add(id);
                self.population.get_mut(id).expect("it was just born").age_bin = age_bin;
            }
        } else if most > 0
            && let Some(victim) = self.victim()
        {
            self.remove_file(victim);
        }
        true
    }

    /// Holds the fullness: changes the number of files according to the file system's figures.
    pub(super) fn hold_fullness(&mut self) {
        let quota = &self.population.size;
        let lacking: Vec<u64> =
            quota.target.iter().zip(&quota.count).map(|(target, count)| target.saturating_sub(*count)).collect();
        // The figures of a file system are exact only when nothing is pending. Until then it counts
        // reserves for delayed allocations, and blocks that are not freed yet (on XFS together a
        // third of a small volume).
        let (used, live_bytes) = self.committed;
        let used = used as f64 + self.live_bytes as f64 - live_bytes as f64;
        let error = self.target as f64 - (used + self.bytes_of(&lacking));
        let tolerance = (self.options.accuracy / 2.0 * self.capacity as f64).max(2.0 * self.mean_bytes() as f64);
        if error.abs() > tolerance {
            self.correct_fullness(error);
        }
    }

    /// The space that `files` of each size occupy, bytes.
    fn bytes_of(&self, files: &[u64]) -> f64 {
        files.iter().enumerate().map(|(bin, &files)| files as f64 * self.mean_allocated(bin)).sum()
    }

    /// Changes the target number of files so that `error` more bytes are used, unless that makes
    /// the error larger.
    pub(super) fn correct_fullness(&mut self, error: f64) {
        // If few files are large, the mean misleads. So every number nearby is tried (in strides,
        // if there are many).
        let (wanted, quota) = (self.population.wanted, &self.population.size);
        let asked = self.bytes_of(&quota.target) + error;
        let most = (wanted / 25).max(1);
        let off = |files: u64| asked - self.bytes_of(&apportion(&quota.weights, files));
        let candidates =
            (wanted.saturating_sub(most).max(LEAST_FILES)..=wanted + most).step_by((most / 256).max(1) as usize);
        let Some(files) = candidates.min_by(|&a, &b| off(a).abs().total_cmp(&off(b).abs())) else { return };
        let mut target = apportion(&quota.weights, files);
        self.exchange(&mut target, off(files));
        if (asked - self.bytes_of(&target)).abs() < 0.7 * error.abs() {
            self.retarget(files);
            self.population.size.target = target;
        }
    }

    /// Exchanges files of the most frequent size for others, until `error` more bytes are used. If
    /// a few files are a large part of a volume, no number of files has the right size. The
    /// exchange may use a quarter of the accuracy.
    fn exchange(&self, target: &mut [u64], mut error: f64) {
        let mut left = (self.options.accuracy / 4.0 * self.population.wanted as f64) as u64;
        let Some(common) = (0..target.len()).max_by_key(|&bin| target[bin]) else { return };
        for bin in (0..target.len()).rev() {
            let each = self.mean_allocated(bin) - self.mean_allocated(common);
            if self.population.size.weights[bin] == 0 || each <= 0.0 {
                continue;
            }
            let (from, to) = if error > 0.0 { (common, bin) } else { (bin, common) };
            let files = ((error.abs() / each) as u64).min(left).min(target[from]);
            target[from] -= files;
            target[to] += files;
            left -= files;
            error -= error.signum() * files as f64 * each;
        }
    }
}
