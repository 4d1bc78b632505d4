//! The end of an aging: last corrections, the verdict, and the times of the files.

use senesce_oplog::Op;

use super::{
    aging::{Engine, Phase, ProfileAging, STEP_OPS},
    batch::Deed,
    convergence::Bound,
    options::Schedule,
    population::{FileId, Quota},
};

impl ProfileAging {
    /// Makes the last corrections: surplus files are removed, no bin has too many or too few files,
    /// and the fullness is met. False when nothing is left to correct.
    pub(super) fn settle(&mut self, round: u32) -> bool {
        if round == 0 {
            while let Some(Engine::Virtual(schedule)) = &mut self.engine
                && let Some(victim) = schedule.victim(&mut self.moves, &self.population)
            {
                self.remove_file(victim);
            }
        } else {
            // The file system was synced since, so its figures are exact.
            let tolerance = (0.9 * self.options.accuracy * self.capacity as f64).max(self.mean_bytes() as f64);
            let error = self.target as f64 - self.used as f64;
            if error.abs() > tolerance {
                self.correct_fullness(error);
            }
        }
        let before = self.batch.len();
        self.correct_bins();
        if self.batch.len() == before && round > 0 {
            return false;
        }
        self.batch.push(Op::SyncFs, Deed::Duty);
        true
    }

    /// Removes the surplus of each bin, and creates missing files.
    fn correct_bins(&mut self) {
        let surplus = |quota: &Quota| -> Vec<u64> {
            quota.count.iter().zip(&quota.target).map(|(count, target)| count.saturating_sub(*target)).collect()
        };
        let (mut sizes, mut depths) = (surplus(&self.population.size), surplus(&self.population.depth));
        if sizes.iter().chain(&depths).any(|&surplus| surplus > 0) {
            let mut ids: Vec<(FileId, u16, u16)> =
                self.population.iter().map(|(id, file)| (id, file.size_bin, file.depth_bin)).collect();
            self.moves.shuffle(&mut ids);
            for (id, size, depth) in ids {
                let (size, depth) = (&mut sizes[usize::from(size)], &mut depths[usize::from(depth)]);
                if *size > 0 || *depth > 0 {
                    *size = size.saturating_sub(1);
                    *depth = depth.saturating_sub(1);
                    self.remove_file(id);
                }
            }
        }
        let (now, _) = self.time();
        for _ in 0..self.population.missing() {
            let bins = self.population.draw_bins(&mut self.draws);
            let id = self.add_file(bins, now);
            let age_bin = match &mut self.engine {
                Some(Engine::Classic(classic)) => classic.add(id),
                other => {
                    // The youngest window is the last one.
                    let youngest = self.profile.age.upper.len() as u16 - 1;
                    if let Some(Engine::Virtual(schedule)) = other {
                        schedule.add(id, youngest);
                    }
                    youngest
                }
            };
            self.population.get_mut(id).expect("it was just born").age_bin = age_bin;
        }
    }

    /// Decides after the last correction whether the aging ends, and why.
    pub(super) fn conclude(&mut self) {
        let reached = self.convergence();
        self.lives += 1;
        let lives_left = self.lives < self.options.most_lives;
        let by_rounding = reached.whole_files > self.options.accuracy;
        if self.options.schedule == Schedule::Classic && !reached.is_reached() && lives_left && !by_rounding {
            if let Some(Engine::Classic(classic)) = &mut self.engine {
                self.schedule_end = self.moved + classic.lengthen(&mut self.population);
            }
            self.phase = Phase::Stable;
            return;
        }
        self.ended_by = Some(match self.options.schedule {
            _ if reached.is_reached() => Bound::Accuracy,
            _ if self.no_space > 0 => Bound::NoSpace,
            _ if by_rounding => Bound::WholeFiles,
            Schedule::Classic => Bound::MostLives,
            Schedule::Virtual => Bound::EndOfSchedule,
        });
        self.stamps = self.population.iter().map(|(id, _)| id).collect();
        self.phase = Phase::Stamp(0);
    }

    /// Sets the times of some files; false when all are set.
    pub(super) fn stamp(&mut self, from: usize) -> bool {
        let (now, life) = self.time();
        let seconds = u128::from(self.profile.life_seconds());
        let to = (from + 4 * STEP_OPS).min(self.stamps.len());
        for at in from..to {
            let Some(file) = self.population.get(self.stamps[at]) else { continue };
            let age = (u128::from(now - file.born.min(now)) * seconds / u128::from(life)).min(seconds);
            let path = self.directories.file_path(file.directory, file.serial);
            let unix_seconds = self.options.ends_unix_seconds.saturating_sub(age as u64);
            self.batch.push(Op::SetModified { path, unix_seconds }, Deed::Duty);
        }
        self.phase = Phase::Stamp(to);
        to < self.stamps.len()
    }
}
