//! What is done for an aggregate besides what its users ask for, as they start it: cleaning, and putting pointers right.

use std::ops::AddAssign;

use crate::{
    Garden,
    error::{Error, Result},
    store::{AreaMoves, Cleaning, DedupStep, FixUpStep, Gardening, Headroom, RecompactStep, ScanStep, Store},
};

/// Pointers that are looked at before others may use the aggregate.
const POINTERS_AT_ONCE: u64 = 256;

impl Garden {
    /// Says what gardening is done from now on. It is not kept on the drives: an aggregate that is opened does none, but for one with
    /// disks and flash, which takes cold blocks away from its flash and cleans that.
    pub fn set_gardening(&self, gardening: Gardening) {
        self.shared().lock().gardener.gardening = gardening;
    }

    /// What gardening is done.
    pub fn gardening(&self) -> Gardening {
        self.shared().lock().gardener.gardening
    }

    /// Says how much time processors and drives have left; what is done after reading goes by it. The engine has no clock, so it
    /// is as it was said last.
    pub fn set_headroom(&self, headroom: Headroom) {
        self.shared().lock().reading.headroom = headroom;
    }

    /// Says how many blocks are read ahead at once at most for somebody who reads a file in order; 256 by default, 0 for none. An eighth
    /// of the blocks that are kept in memory is the most in any case.
    pub fn set_read_ahead(&self, blocks: u64) {
        self.shared().lock().reading.most = blocks;
    }

    /// Makes all blocks of an allocation area move at the next consistency point, whatever that is worth. Nothing is taken
    /// from the area before that has ended; then it is free.
    ///
    /// Errors: `Invalid` if there is no such area, `NoSpace`. Cost: reads the area, and maps.
    pub fn move_area(&self, group: usize, area: u64) -> Result<AreaMoves> {
        self.with_space(|store| {
            let geometry = &store.raid.geometry;
            let number = u32::try_from(area).ok();
            match number.filter(|_| group < geometry.groups.len() && area < geometry.areas(group)) {
                Some(area) => store.move_whole((group, area)),
                None => Err(Error::invalid(format!("RAID group {group} has no allocation area {area}"))),
            }
        })
    }

    /// Looks at as many allocation areas at most, going on where the last step ended, and cleans those that are worth it:
    /// the older method, for an aggregate that no continuous cleaning kept in order. Their blocks move at the next
    /// consistency point; there is one in between if too much waits.
    ///
    /// `cleaning` says what is worth it, and whether disks beside flash are gone over, too; its quota does not count here.
    ///
    /// Errors: those of a consistency point. Cost: reads bits, and areas that are cleaned.
    pub fn scan_step(&self, areas: u64, cleaning: Cleaning) -> Result<ScanStep> {
        let mut step = ScanStep::default();
        for _ in 0..areas.max(1) {
            self.with_space(|store| store.scan_step(1, cleaning, &mut step))?;
            if self.shared().lock().is_due() {
                self.consistency_point()?;
            }
            if step.done == step.of {
                break;
            }
        }
        Ok(step)
    }

    /// The next step of the scan begins behind so many areas, counted over all RAID groups that are gone over: where a pass ended that
    /// was interrupted. Errors: `Invalid` if there are none behind them.
    pub fn scan_from(&self, areas: u64, cleaning: Cleaning) -> Result<()> {
        self.shared().lock().scan_from(areas, cleaning)
    }

    /// Looks at as many pointers of a volume at most, going on where the last step ended, and puts right those that name
    /// the place that a block had before it moved; durable with the next consistency point.
    ///
    /// Errors: `Invalid` if there is no such volume, those of a consistency point. Cost: reads pointers, and the container map.
    pub fn fix_up_step(&self, volume: &[u8], pointers: u64) -> Result<FixUpStep> {
        let (mut all, mut fresh) = (FixUpStep::default(), false);
        while all.looked < pointers.max(1) && !all.ended && !all.no_space {
            let mut store = self.shared().lock();
            let space = store.find_volume(volume)?;
            let step = store.fix_up_step(space, POINTERS_AT_ONCE.min(pointers.max(1) - all.looked))?;
            store.shrink_cache();
            let is_full = step.no_space && step.fixed == 0 && store.is_waiting() && !fresh;
            let is_due = store.is_due();
            drop(store);
            if is_full || is_due {
                self.consistency_point()?;
            }
            fresh = is_full;
            all.looked += step.looked;
            all.fixed += step.fixed;
            (all.ended, all.no_space) = (step.ended, step.no_space && !is_full);
        }
        Ok(all)
    }

    /// Takes steps of a pass, `at_once` at most under one lock, until `most` were looked at or it has ended; with consistency points
    /// where one is due or space is wanted. Errors: those of `step`; `NoSpace` if one makes no room.
    pub(crate) fn take_steps<T: PassStep>(
        &self,
        most: u64,
        at_once: u64,
        mut step: impl FnMut(&mut Store, u64) -> (T, Result<()>),
    ) -> Result<T> {
        let (mut all, mut fresh) = (T::default(), false);
        while all.looked_at() < most && !all.is_done() {
            let mut store = self.shared().lock();
            store.check_running()?;
            let (now, done) = step(&mut store, at_once.min(most - all.looked_at()));
            store.shrink_cache();
            let (waits, due) = (store.is_waiting(), store.is_due());
            drop(store);
            all += now;
            let is_stuck = fresh && now.looked_at() == 0;
            match done {
                Err(Error::NoSpace { .. }) if waits && !is_stuck => {}
                Err(error) => return Err(error),
                Ok(()) if due => {}
                Ok(()) => {
                    fresh = false;
                    continue;
                }
            }
            self.consistency_point()?;
            fresh = true;
        }
        Ok(all)
    }

    /// Does something that may lack space, a second time after a consistency point.
    pub(crate) fn with_space<T>(&self, mut act: impl FnMut(&mut Store) -> Result<T>) -> Result<T> {
        let mut fresh = false;
        loop {
            let mut store = self.shared().lock();
            store.check_running()?;
            let done = act(&mut store);
            store.shrink_cache();
            if fresh || !matches!(done, Err(Error::NoSpace { .. })) || !store.is_waiting() {
                return done;
            }
            drop(store);
            self.consistency_point()?;
            fresh = true;
        }
    }
}

/// What a step of a pass over a volume did.
pub(crate) trait PassStep: AddAssign + Copy + Default {
    fn looked_at(&self) -> u64;
    fn is_done(&self) -> bool;
}

impl PassStep for DedupStep {
    fn looked_at(&self) -> u64 {
        self.looked_at
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

impl PassStep for RecompactStep {
    fn looked_at(&self) -> u64 {
        self.looked_at
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
