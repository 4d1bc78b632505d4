//! Rapid aging: only births, until the volume has the requested fullness.

use senesce_oplog::Op;

use super::{
    aging::{Engine, Phase, ProfileAging, STEP_OPS},
    batch::Deed,
    classic::Classic,
    options::Schedule,
    population::FileId,
    virtual_time::VirtualTime,
};

impl ProfileAging {
    /// Makes a step of the filling; false when the volume has the requested fullness.
    pub(super) fn fill(&mut self) -> bool {
        if self.used >= self.target {
            if self.synced {
                return false;
            }
            // Some file systems (XFS, Btrfs) reserve more space for delayed allocations than they
            // use later.
            self.batch.push(Op::SyncFs, Deed::Duty);
            self.synced = true;
            return true;
        }
        // Some file systems count written data only after a commit; others store small files
        // elsewhere.
        let believed = self.used_at_start + self.live_bytes;
        let missing = self.target - self.used;
        let near = believed.max(self.used) + 3 * (self.target / 100) >= self.target;
        let unseen = self.target.saturating_sub(believed.max(self.used)).max(missing / 8);
        let files = (unseen / self.mean_bytes() / 2).clamp(1, STEP_OPS as u64);
        for _ in 0..files {
            let bins = match (self.deck.0.pop(), self.deck.1.pop()) {
                (Some(size), Some(depth)) => (size, depth),
                _ => {
                    self.population.retarget(self.population.live + 1);
                    self.population.draw_bins(&mut self.draws)
                }
            };
            self.add_file(bins, 0);
        }
        if near {
            self.batch.push(Op::SyncFs, Deed::Duty);
        }
        self.synced = near;
        true
    }

    /// Ends the filling: the current number of files becomes the target.
    pub(super) fn end_fill(&mut self) {
        let files = self.population.live;
        self.filled = files;
        self.deck = (Vec::new(), Vec::new());
        self.population.retarget(files);
        self.phase = Phase::Stable;
        let ids: Vec<FileId> = self.population.iter().map(|(id, _)| id).collect();
        let (upper, weights) = (&self.profile.age.upper_relative, self.profile.age_weights());
        match self.options.schedule {
            Schedule::Classic => {
                let mut classic = Classic::new(upper, &weights, files.max(1));
                for id in ids {
                    let age_bin = classic.add(id);
                    self.population.get_mut(id).expect("it was just listed").age_bin = age_bin;
                }
                self.moves_planned = classic.life;
                self.engine = Some(Engine::Classic(classic));
            }
            Schedule::Virtual => {
                let (schedule, born) = VirtualTime::new(upper, &weights, ids, self.options.churn);
                for (id, birth) in born {
                    let file = self.population.get_mut(id).expect("it was just listed");
                    (file.born, file.age_bin) = (birth.born, birth.window);
                }
                self.moves_planned = schedule.births_left();
                self.engine = Some(Engine::Virtual(schedule));
            }
        }
        self.moved = 0;
        self.schedule_end = self.moves_planned;
    }
}
