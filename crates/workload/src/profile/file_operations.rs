//! Births and deaths as operations, and the reaction to a lack of space.

use senesce_core::RelPath;
use senesce_oplog::{Content, Op};

use super::{
    aging::{BLOCK, Engine, Phase, ProfileAging},
    batch::{Deed, Refused},
    options::FileContent,
    population::{File, FileId},
};
use crate::{Feedback, WorkloadError};

/// Failures in a row after which the aging gives up.
const MOST_REFUSALS: u32 = 40;

impl ProfileAging {
    /// Creates a file.
    pub(super) fn add_file(&mut self, bins: (usize, usize), born: u64) -> FileId {
        let mut missing = Vec::new();
        let depth = self.profile.depth.values[bins.1];
        let directory = self.directories.pick(depth, &mut self.draws, &mut missing);
        for path in missing {
            self.batch.push(Op::Mkdir { path, mode: 0o755 }, Deed::Duty);
        }
        let (low, high) = self.size_bounds(bins.0);
        let bytes = if low == high { low } else { self.draws.between(low, high) };
        let id = self.population.add(File::new(directory, bins, bytes, born));
        let serial = self.births;
        self.births += 1;
        self.live_bytes += allocated(bytes);
        let path = self.directories.file_path(directory, serial);
        let op = match self.options.content {
            FileContent::Allocate => Op::Allocate { path, mode: 0o644, len: bytes },
            FileContent::Write => {
                let content = Content::Seeded { seed: self.options.seed.0 ^ mix(serial), len: bytes };
                Op::Create { path, mode: 0o644, content }
            }
        };
        self.batch.push(op, Deed::Birth(id));
        id
    }

    /// Removes a file.
    pub(super) fn remove_file(&mut self, id: FileId) {
        if let Some(path) = self.forget(id) {
            self.deaths += 1;
            self.batch.push(Op::Unlink { path }, Deed::Duty);
        }
    }

    /// Forgets a file and returns its path.
    fn forget(&mut self, id: FileId) -> Option<RelPath> {
        let file = self.population.remove(id)?;
        self.live_bytes -= allocated(file.bytes);
        match &mut self.engine {
            Some(Engine::Classic(classic)) => classic.forget(file.age_bin),
            Some(Engine::Virtual(schedule)) => schedule.forget(file.age_bin),
            None => {}
        }
        Some(self.directories.file_path(file.directory, file.serial))
    }

    /// Applies the feedback of the file system.
    pub(super) fn hear(&mut self, feedback: &Feedback) -> Result<(), WorkloadError> {
        self.used = feedback.capacity.0.saturating_sub(feedback.free.0);
        if self.phase == Phase::Fill || self.batch.was_synced() {
            self.committed = (self.used, self.live_bytes);
        }
        let refused = self.batch.hear(feedback.last);
        let Some(Refused { op, deed, is_partial }) = refused else {
            self.refusals = 0;
            return Ok(());
        };
        self.no_space += 1;
        self.refusals += 1;
        if self.refusals > MOST_REFUSALS {
            return Err(WorkloadError::VolumeTooSmall {
                label: format!("profile {}", self.profile.name),
                capacity: feedback.capacity,
                problem: format!(
                    "no space for {op}, {MOST_REFUSALS} times in a row, although files were deleted for it"
                ),
            });
        }
        // The requested fullness cannot be reached.
        self.target = self.target.min(self.used - self.used.min(self.capacity / 200));
        match deed {
            Deed::Birth(id) => self.cancel_birth(id, op, is_partial),
            Deed::Duty => self.batch.retry(op, deed),
        }
        if self.phase == Phase::Fill {
            // The pending births are dropped too. Their directories stay, since later files may
            // need them.
            for id in self.batch.drop_births() {
                self.forget(id);
            }
            self.end_fill();
        }
        // Freed space may not be usable before a commit.
        self.batch.retry(Op::SyncFs, Deed::Duty);
        self.make_room();
        Ok(())
    }

    /// Cancels the birth of a file that found no space.
    fn cancel_birth(&mut self, id: FileId, op: Op, is_partial: bool) {
        let (Op::Create { path, .. } | Op::Allocate { path, .. }) = op else { return };
        if self.forget(id).is_none() {
            // The file was to be removed within the same step. That removal is still pending, and
            // must find the file.
            if !is_partial {
                self.batch.drop_unlink(&path);
            }
        } else if is_partial {
            self.batch.retry(Op::Unlink { path }, Deed::Duty);
        }
    }

    /// Lowers the number of files, and removes some at once, so that pending operations find space.
    fn make_room(&mut self) {
        let fewer = (self.population.wanted / 200).max(1);
        self.retarget(self.population.wanted.saturating_sub(fewer).max(1));
        for _ in 0..fewer.min(64) {
            let Some(victim) = self.victim() else { break };
            // A pending birth has no file to remove.
            if self.batch.drop_birth(victim) {
                self.forget(victim);
            } else if let Some(path) = self.forget(victim) {
                self.deaths += 1;
                self.batch.retry(Op::Unlink { path }, Deed::Duty);
            }
        }
    }

    pub(super) fn retarget(&mut self, files: u64) {
        self.population.retarget(files);
        if let Some(Engine::Virtual(schedule)) = &mut self.engine {
            schedule.retarget(&self.profile.age_weights(), files);
        }
    }

    pub(super) fn victim(&mut self) -> Option<FileId> {
        match self.engine.as_mut()? {
            Engine::Virtual(schedule) => schedule.victim(&mut self.moves, &self.population),
            Engine::Classic(classic) => classic.victim(&mut self.moves, &self.population),
        }
    }
}

/// The space that a file of `bytes` bytes occupies.
pub(super) fn allocated(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

/// Mixes the bits of a serial number (the finalizer of SplitMix64), so that adjacent files share no
/// content.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
