//! Maintenance of an aggregate beside client operations, as its users start it: cleaning and
//! fix-ups.

use std::ops::AddAssign;

use crate::{
    Garden,
    error::{Error, Result},
    store::{AreaMoves, Cleaning, DedupStep, FixUpStep, Gardening, Headroom, RecompactStep, ScanStep, Store},
};

/// Pointers that are scanned under one lock.
const POINTERS_AT_ONCE: u64 = 256;

impl Garden {
    /// Sets the gardening from now on. The drives do not record it. After an opening, an aggregate
    /// does none, except one with disks and flash, which demotes cold blocks from flash and cleans
    /// the flash.
    pub fn set_gardening(&self, gardening: Gardening) {
        self.shared().lock().gardener.gardening = gardening;
    }

    /// The current gardening.
    pub fn gardening(&self) -> Gardening {
        self.shared().lock().gardener.gardening
    }

    /// Sets the time that processors and drives have left, which limits the work after reads. The
    /// engine has no clock, so the value stays until the next call.
    pub fn set_headroom(&self, headroom: Headroom) {
        self.shared().lock().reading.headroom = headroom;
    }

    /// Sets the most blocks that one read-ahead reads for a sequential reader. The default is 256;
    /// 0 disables read-ahead. An eighth of the cached blocks is the limit in any case.
    pub fn set_read_ahead(&self, blocks: u64) {
        self.shared().lock().reading.most = blocks;
    }

    /// Moves all blocks of an allocation area at the next consistency point, whatever the benefit.
    /// Nothing is allocated in the area until the move ends; then it is free.
    ///
    /// Errors: `Invalid` if the area does not exist, `NoSpace`.
    ///
    /// Cost: reads the area and maps.
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

    /// Scans up to `areas` allocation areas from the position of the last step, and cleans those
    /// that are worth it. This method serves aggregates without continuous cleaning. The blocks
    /// move at the next consistency point; the step makes one itself if too much waits.
    ///
    /// `cleaning` decides which areas are worth it, and whether disks beside flash are scanned too.
    /// Its quota does not count here.
    ///
    /// Errors: those of a consistency point.
    ///
    /// Cost: reads bits, and the areas that it cleans.
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

    /// Sets the position of the scan to the end of an interrupted pass: after `areas` areas,
    /// counted over all scanned RAID groups.
    ///
    /// Errors: `Invalid` if no area follows.
    pub fn scan_from(&self, areas: u64, cleaning: Cleaning) -> Result<()> {
        self.shared().lock().scan_from(areas, cleaning)
    }

    /// Scans up to `pointers` pointers of a volume from the position of the last step, and fixes
    /// those that name a block's place before a move. Fixes are durable with the next consistency
    /// point.
    ///
    /// Errors: `Invalid` if the volume does not exist; those of a consistency point.
    ///
    /// Cost: reads pointers and the container map.
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

    /// Runs steps of a pass, each with up to `at_once` items under one lock, until `most` items are
    /// scanned or the pass ends. Makes consistency points when one is due or space is short.
    ///
    /// Errors: those of `step`; `NoSpace` if a consistency point frees nothing.
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

    /// Runs `act`, and again after a consistency point if it lacked space.
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

/// The result of one step of a pass over a volume.
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
