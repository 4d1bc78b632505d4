//! The workload: filling, stable aging, settling, and the setting of times.

use senesce_core::{Bytes, Rng};
use senesce_oplog::{Op, Outcome, Step};

use super::{
    batch::Batch,
    classic::Classic,
    convergence::{Bound, Convergence},
    directories::Directories,
    distribution::{Deviation, apportion},
    file_operations::allocated,
    format::{AgingProfile, SizeMeaning},
    options::{ProfileOptions, Sizes},
    population::{FileId, Population},
    virtual_time::{LIFE, VirtualTime},
};
use crate::{Feedback, Workload, WorkloadError};

/// Counted steps of an aging, with checkpoints between them.
pub(super) const COUNTED_STEPS: u64 = 100;
/// Approximate number of operations of a step. The file system reports its space between steps.
pub(super) const STEP_OPS: usize = 256;
/// The unit of space allocation, bytes.
pub(super) const BLOCK: u64 = 4096;
/// Sizes above the space for files divided by this are left out.
const LARGEST_PART: u64 = 4;
/// The smallest number of files that can follow a distribution.
pub(super) const LEAST_FILES: u64 = 64;
/// Attempts to reach the requested fullness at the end.
const SETTLE_ROUNDS: u32 = 12;

/// The current phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fill,
    Stable,
    Settle(u32),
    Stamp(usize),
    Done,
}

/// The schedule of stable aging.
pub(super) enum Engine {
    Classic(Classic),
    Virtual(VirtualTime),
}

/// Ages a volume by a profile. See the documentation of the module.
pub struct ProfileAging {
    pub(super) profile: AgingProfile,
    pub(super) options: ProfileOptions,
    pub(super) phase: Phase,
    pub(super) population: Population,
    pub(super) directories: Directories,
    pub(super) engine: Option<Engine>,
    pub(super) batch: Batch,
    /// Size and depth bins of the files that the filling still creates, last first.
    pub(super) deck: (Vec<usize>, Vec<usize>),
    pub(super) stamps: Vec<FileId>,
    pub(super) moves: Rng,
    pub(super) draws: Rng,
    pub(super) capacity: u64,
    pub(super) used: u64,
    pub(super) used_at_start: u64,
    pub(super) target: u64,
    pub(super) live_bytes: u64,
    /// Bytes used, and bytes of files, when the file system last had nothing pending.
    pub(super) committed: (u64, u64),
    pub(super) births: u64,
    pub(super) deaths: u64,
    pub(super) filled: u64,
    /// Whether nothing was added since the last sync.
    pub(super) synced: bool,
    pub(super) no_space: u64,
    pub(super) refusals: u32,
    pub(super) sizes_left_out: u64,
    /// Moves of the schedule that are done, and counted steps that are finished.
    pub(super) moved: u64,
    pub(super) counted: u64,
    /// Moves of the whole schedule.
    pub(super) moves_planned: u64,
    /// The last move of the schedule or of the current life.
    pub(super) schedule_end: u64,
    /// Finished schedules.
    pub(super) lives: u64,
    pub(super) ended_by: Option<Bound>,
}

impl ProfileAging {
    /// An aging at its start. Errors: an option is out of its range.
    pub fn new(profile: AgingProfile, options: ProfileOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let population = Population::new(profile.size_weights(), profile.depth_weights());
        let directories = Directories::new(&profile.depth);
        let rng = |purpose| Rng::for_purpose(options.seed, purpose);
        Ok(Self {
            moves: rng("profile moves"),
            draws: rng("profile draws"),
            population,
            directories,
            profile,
            options,
            phase: Phase::Fill,
            engine: None,
            batch: Batch::default(),
            deck: (Vec::new(), Vec::new()),
            stamps: Vec::new(),
            capacity: 0,
            used: 0,
            used_at_start: 0,
            target: 0,
            live_bytes: 0,
            committed: (0, 0),
            births: 0,
            deaths: 0,
            filled: 0,
            synced: false,
            no_space: 0,
            refusals: 0,
            sizes_left_out: 0,
            moved: 0,
            counted: 0,
            moves_planned: 0,
            schedule_end: 0,
            lives: 0,
            ended_by: None,
        })
    }

    /// The number of counted steps, with checkpoints between them.
    pub fn counted_steps() -> u64 {
        COUNTED_STEPS
    }

    /// The state that the aging has reached.
    ///
    /// Cost: one pass over all files.
    pub fn convergence(&self) -> Convergence {
        let (sizes, depths) = (self.profile.size_weights(), self.profile.depth_weights());
        let ages = self.profile.age_weights();
        let rounding =
            |weights: &[u64]| Deviation::compute(&apportion(weights, self.population.live), weights).total_variation;
        let files = self.population.live;
        let whole_files = [&sizes, &depths, &ages].map(|weights| rounding(weights)).into_iter().fold(0.0, f64::max);
        Convergence {
            files,
            turnovers: self.births.saturating_sub(self.filled) as f64 / files.max(1) as f64,
            operations: self.births + self.deaths,
            fullness_asked: self.options.fullness,
            fullness: self.used as f64 / self.capacity.max(1) as f64,
            accuracy: self.options.accuracy,
            size: Deviation::compute(&self.population.size.count, &sizes),
            depth: Deviation::compute(&self.population.depth.count, &depths),
            age: Deviation::compute(&self.count_ages(), &ages),
            whole_files,
            no_space: self.no_space,
            sizes_left_out: self.sizes_left_out,
            ended_by: self.ended_by,
        }
    }

    /// The current time and the length of a life, in ticks of the schedule.
    pub(super) fn time(&self) -> (u64, u64) {
        match &self.engine {
            None => (0, LIFE),
            Some(Engine::Virtual(schedule)) => (schedule.now(), LIFE),
            Some(Engine::Classic(classic)) => (classic.now, classic.life),
        }
    }

    fn count_ages(&self) -> Vec<u64> {
        let (now, life) = self.time();
        let upper = &self.profile.age.upper_relative;
        let mut counts = vec![0; upper.len()];
        for (_, file) in self.population.iter() {
            let age = (now - file.born.min(now)) as f64 / life as f64;
            let bin = upper.partition_point(|&upper| upper < age).min(upper.len() - 1);
            counts[bin] += 1;
        }
        counts
    }

    /// For records: every bin's limit (bytes, components, seconds), requested share and reached
    /// share.
    fn shares(&self) -> [(&'static str, String); 3] {
        let (size, depth, age) = (&self.profile.size, &self.profile.depth, &self.profile.age);
        let life = self.profile.life_seconds() as f64;
        let ages: Vec<u64> = age.upper_relative.iter().map(|upper| (upper * life).round() as u64).collect();
        let list = |limits: &[u64], weights: Vec<u64>, counts: &[u64]| {
            let (asked, found) = (weights.iter().sum::<u64>() as f64, counts.iter().sum::<u64>().max(1) as f64);
            let bins = limits.iter().zip(weights).zip(counts);
            let bin = |((limit, weight), count): ((&u64, u64), &u64)| {
                format!("{limit}={:.6}/{:.6}", weight as f64 / asked, *count as f64 / found)
            };
            bins.map(bin).collect::<Vec<_>>().join(" ")
        };
        [
            ("size.shares", list(&size.values, self.profile.size_weights(), &self.population.size.count)),
            ("depth.shares", list(&depth.values, self.profile.depth_weights(), &self.population.depth.count)),
            ("age.shares", list(&ages, self.profile.age_weights(), &self.count_ages())),
        ]
    }

    /// Plans the filling for a volume of this size.
    fn begin(&mut self, feedback: &Feedback) -> Result<(), WorkloadError> {
        self.capacity = feedback.capacity.0;
        self.used_at_start = self.capacity.saturating_sub(feedback.free.0);
        self.target = (self.capacity as f64 * self.options.fullness) as u64;
        let too_small = |problem: String| WorkloadError::VolumeTooSmall {
            label: format!("profile {}", self.profile.name),
            capacity: feedback.capacity,
            problem,
        };
        let room = self.target.saturating_sub(self.used_at_start);
        if room == 0 {
            return Err(too_small(format!(
                "{} of it are already used, more than the requested fullness of {}",
                Bytes(self.used_at_start),
                self.options.fullness
            )));
        }
        let mut weights = self.profile.size_weights();
        for (weight, &value) in weights.iter_mut().zip(&self.profile.size.values) {
            if *weight > 0 && value > room / LARGEST_PART {
                *weight = 0;
                self.sizes_left_out += 1;
            }
        }
        if weights.iter().all(|&weight| weight == 0) {
            return Err(too_small("even the smallest size of the profile is too large for it".into()));
        }
        let files = self.files_within(&weights, room);
        if files < LEAST_FILES {
            return Err(too_small(format!(
                "it would hold {files} files of this profile at the fullness of {}; an aging needs at least {LEAST_FILES}",
                self.options.fullness
            )));
        }
        self.population.size.weights = weights;
        self.population.retarget(files);
        self.deck.0 = deal(&self.population.size.target, &mut self.draws);
        self.deck.1 = deal(&self.population.depth.target, &mut self.draws);
        Ok(())
    }

    /// The number of files with these proportions that occupy `room` bytes.
    fn files_within(&self, weights: &[u64], room: u64) -> u64 {
        let sum: f64 = weights.iter().map(|&weight| weight as f64).sum();
        let mean: f64 =
            weights.iter().enumerate().map(|(bin, &weight)| weight as f64 / sum * self.mean_allocated(bin)).sum();
        (room as f64 / mean.max(1.0)) as u64
    }

    fn is_spread(&self) -> bool {
        match self.options.sizes {
            Sizes::Point => false,
            Sizes::Spread => true,
            Sizes::Profile => self.profile.size.meaning == SizeMeaning::UpperBound,
        }
    }

    /// The smallest and the largest size of a bin.
    pub(super) fn size_bounds(&self, bin: usize) -> (u64, u64) {
        let values = &self.profile.size.values;
        match (self.is_spread(), bin) {
            (false, _) => (values[bin], values[bin]),
            (true, 0) => (values[0].min(1), values[0]),
            (true, _) => (values[bin - 1] + 1, values[bin]),
        }
    }

    /// The mean space that a file of this bin occupies, bytes.
    pub(super) fn mean_allocated(&self, bin: usize) -> f64 {
        let (low, high) = self.size_bounds(bin);
        if low == high { allocated(low) as f64 } else { ((low + high) / 2 + BLOCK / 2).max(BLOCK) as f64 }
    }

    /// The mean space that a file occupies, bytes.
    pub(super) fn mean_bytes(&self) -> u64 {
        (self.live_bytes / self.population.live.max(1)).max(BLOCK)
    }
}

impl Workload for ProfileAging {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if feedback.last.is_none() && self.capacity == 0 {
            self.begin(feedback)?;
        }
        self.hear(feedback)?;
        if self.batch.take_backlog(STEP_OPS) {
            return Ok(Some(self.batch.finish("make room".into(), false)));
        }
        loop {
            match self.phase {
                Phase::Fill => {
                    if self.fill() {
                        return Ok(Some(self.batch.finish("fill".into(), false)));
                    }
                    self.end_fill();
                }
                Phase::Stable => {
                    if self.stable() {
                        let until = (self.moves_planned * (self.counted + 1)).div_ceil(COUNTED_STEPS);
                        let ends_step = self.moved >= until;
                        // The last counted step is the one that sets the times.
                        let is_last = self.moved >= self.schedule_end;
                        let label = format!("age {}", self.counted + 1);
                        if ends_step {
                            self.counted += 1;
                            self.hold_fullness();
                        }
                        if is_last {
                            self.phase = Phase::Settle(0);
                        }
                        return Ok(Some(
                            self.batch.finish(label, ends_step && !is_last && self.counted < COUNTED_STEPS),
                        ));
                    }
                    self.phase = Phase::Settle(0);
                }
                Phase::Settle(round) => {
                    if round < SETTLE_ROUNDS && self.settle(round) {
                        self.phase = Phase::Settle(round + 1);
                        return Ok(Some(self.batch.finish("settle".into(), false)));
                    }
                    self.conclude();
                }
                Phase::Stamp(from) => {
                    let more = self.stamp(from);
                    if !more {
                        self.phase = Phase::Done;
                    }
                    return Ok(Some(self.batch.finish("set times".into(), !more)));
                }
                Phase::Done => return Ok(None),
            }
        }
    }

    fn on_partial_step(&mut self, done: &[Op]) {
        self.batch.reorder(done);
    }

    fn copies(&self) -> u64 {
        u64::from(self.births > 0)
    }

    fn is_set_up(&self) -> bool {
        self.phase != Phase::Fill && self.moved > 0
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        *last == Outcome::Done
    }

    fn reached(&self) -> Vec<(&'static str, String)> {
        let mut figures = self.convergence().figures();
        if self.ended_by.is_some() {
            figures.extend(self.shares());
        }
        figures
    }
}

/// A list with each bin once for each of its files, in random order.
fn deal(counts: &[u64], rng: &mut Rng) -> Vec<usize> {
    let mut deck: Vec<usize> =
        counts.iter().enumerate().flat_map(|(bin, &count)| std::iter::repeat_n(bin, count as usize)).collect();
    rng.shuffle(&mut deck);
    deck
}
