//! Cleaning: areas are emptied before they are written to, so that whole stripes are written to them.
//!
//! Continuous segment cleaning runs within each consistency point, when the volumes' blocks have their places: of the areas
//! that are not empty the emptiest are made to move, as many as the next consistency points are expected to take. What
//! moves is paid for by what volumes write: a cleaner without a limit could follow its own blocks for ever. When it falls
//! behind, or when there is little space, areas are written to as they are.
//!
//! The older method is a scan over all areas that cleans those worth it.

use super::{
    Demotion, Store, WriteAfterRead, areas::AreaId, demote::Hand, media::PerMedium, relocate::AreaMoves, worth::Worth,
};
use crate::{
    Medium,
    error::{Error, Result},
    raid::Geometry,
};

use super::fixup::{FixUp, Fixing};

/// What is done for the aggregate besides what its users ask for. Nothing, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gardening {
    /// Continuous cleaning of areas, just before they are wanted.
    pub cleaning: Option<Cleaning>,
    /// What becomes of pointers that name old places.
    pub fix_up: FixUp,
    /// Moving what is cold from flash to disks, where there are both.
    pub demotion: Option<Demotion>,
    /// Writing together again what is read in order and lies apart.
    pub write_after_read: Option<WriteAfterRead>,
}

impl Gardening {
    /// What an aggregate does by itself when it is opened: nothing on one medium; with disks and flash, cold blocks leave the flash and its
    /// areas are cleaned.
    pub(crate) fn of(geometry: &Geometry) -> Self {
        if !geometry.is_mixed() {
            return Self::default();
        }
        let (cleaning, demotion) = (Some(Cleaning::default()), Some(Demotion::default()));
        Self { cleaning, demotion, fix_up: FixUp::OnRead, ..Self::default() }
    }
}

/// How much is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Blocks that may be moved, in hundredths of the blocks that volumes write. What a consistency point does not use
    /// lapses, but for what one area can need.
    ///
    /// The default is twice what volumes write. The dearest load is overwriting at random: if a part *f* of all blocks is in use, the
    /// emptiest of many areas has a part *u* in use with *f* = (*u* - 1) / ln *u*, and each block gained costs *u* / (1 - *u*) moves (the
    /// cleaning cost of log-structured file systems: Rosenblum and Ousterhout, 1992). An aggregate of 85 %, a tenth of which is a
    /// reserve, has *f* = 0.765, so *u* = 0.57 and 1.3 moves for each block that volumes or maps take. With what maps take that is
    /// 1.4 to 1.8 for each block of volumes. Above *u* = 0.7, 2.3 moves, no area is worth it any more.
    pub quota_percent: u64,
    /// An area is worth cleaning if each block that is moved saves as many hundredths of a request at the next writing.
    pub worth_percent: u64,
    /// Of an aggregate with disks and flash the areas of both are cleaned; else those of flash only.
    pub disks_too: bool,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { quota_percent: 200, worth_percent: WORTH_PERCENT, disks_too: false }
    }
}

/// What a block moved has to save if nobody says: it is read with others in one request, and written in a chain.
const WORTH_PERCENT: u64 = 50;

/// Areas that are ready are to be as many as are expected to be taken, times this over two.
pub(super) const READY_HALVES: u64 = 3;
/// The part of the expectation that each consistency point changes is one in so many.
const EXPECTED_OVER: i64 = 4;
/// Areas whose blocks in use are counted for each that is cleaned.
const CANDIDATES: usize = 8;

/// What the gardener knows from one consistency point to the next.
#[derive(Debug, Default)]
pub(crate) struct Gardener {
    pub gardening: Gardening,
    /// Blocks that a consistency point takes of each medium, moving means. Not areas: those that are not empty give less than one.
    pub(super) expected: PerMedium<i64>,
    /// Blocks that may still be moved.
    credit: u64,
    /// Areas that the running scan has done.
    scanned: u64,
    pub fixing: Fixing,
    pub(super) hand: Hand,
}

impl Gardener {
    /// Sets the number of areas that the scan has done. Returns the number until now.
    pub fn exchange_scanned(&mut self, areas: u64) -> u64 {
        std::mem::replace(&mut self.scanned, areas)
    }
}

/// What a step of the scan over all areas did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStep {
    /// Areas of this pass that are done, over all RAID groups that are gone over.
    pub done: u64,
    /// All areas: with as many done the pass has ended, and the next step begins another one.
    pub of: u64,
    /// Areas that were worth cleaning, and whose blocks move at the next consistency point.
    pub cleaned: u64,
    /// Their blocks.
    pub moves: AreaMoves,
    /// Areas that were worth it, but for whose blocks there is no space now. They wait for the next pass.
    pub no_space: u64,
}

impl Store {
    /// Cleans areas for the consistency points to come. The running one has placed `written` blocks of volumes.
    pub(super) fn clean_ahead(&mut self, written: u64) -> Result<()> {
        self.counts.volume_writes += written;
        let Some(cleaning) = self.gardener.gardening.cleaning else { return Ok(()) };
        let media = self.cleaned_media(cleaning);
        let groups: Vec<Vec<usize>> = media.iter().map(|&medium| self.raid.geometry.groups_of(medium)).collect();
        let largest = groups.iter().flatten().map(|&group| self.area_size(group, 0)).max().unwrap_or(0);
        let earned = written.saturating_mul(cleaning.quota_percent) / 100;
        self.gardener.credit = self.gardener.credit.min(largest).saturating_add(earned);
        for (medium, groups) in media.into_iter().zip(groups) {
            self.clean_groups(&groups, self.gardener.expected[medium] as u64, cleaning)?;
        }
        Ok(())
    }

    /// The media whose areas are cleaned.
    fn cleaned_media(&self, cleaning: Cleaning) -> Vec<Medium> {
        let geometry = &self.raid.geometry;
        match geometry.is_mixed() {
            false => vec![geometry.pool(Medium::Ssd)],
            true if cleaning.disks_too => vec![Medium::Ssd, Medium::Hdd],
            true => vec![Medium::Ssd],
        }
    }

    /// Cleans areas of groups of one medium, of which consistency points are expected to take so many blocks.
    fn clean_groups(&mut self, groups: &[usize], expected: u64, cleaning: Cleaning) -> Result<()> {
        let largest = groups.iter().map(|&group| self.area_size(group, 0)).max().unwrap_or(0);
        let wanted = (expected * READY_HALVES).div_ceil(2 * largest.max(1)).max(1) as usize;
        let (mut ready, candidates) = self.list_emptiest(groups, wanted)?;
        ready += self.alloc.states.cleaning.iter().filter(|(group, _)| groups.contains(group)).count();
        for (used, area) in candidates {
            if ready >= wanted {
                break;
            }
            // What is in use was freed by this consistency point, or there is nothing.
            if used > 0 {
                let worth = self.sum_worth(area)?;
                let affordable = used <= self.gardener.credit && self.reserve(None, used, false).is_ok();
                if !affordable || !worth.is_worth(cleaning.worth_percent) {
                    break;
                }
                let moves = self.move_area(area)?;
                self.gardener.credit -= moves.blocks + moves.metadata;
            }
            ready += 1;
        }
        Ok(())
    }

    /// How many areas of groups are empty, `wanted` at most, and if it is less, others with their blocks in use, the emptiest first.
    /// Those that are being cleaned or taken from are not among them.
    fn list_emptiest(&mut self, groups: &[usize], wanted: usize) -> Result<(usize, Vec<(u64, AreaId)>)> {
        let states = &self.alloc.states;
        let passed = states.cleaning.len() + states.taken.len() + states.stuck.len() + 1;
        let (mut ready, mut candidates) = (0, Vec::new());
        for &group in groups {
            let first = loop {
                let first = self.alloc.groups[group].first(CANDIDATES * wanted + passed);
                match first.iter().find(|area| !area.counted) {
                    Some(area) => self.count_area(group, area.number)?,
                    None => break first,
                }
            };
            for area in first {
                let id = (group, area.number);
                let states = &self.alloc.states;
                let is_busy = states.cleaning.contains(&id) || states.taken.contains(&id);
                if is_busy || self.is_stuck(id)? {
                    continue;
                }
                match area.free == self.area_size(group, area.number) {
                    true => ready += 1,
                    false => candidates.push((self.count_used(id)?, id)),
                }
            }
        }
        candidates.sort_unstable();
        Ok((ready.min(wanted), candidates))
    }

    fn sum_worth(&mut self, (group, area): AreaId) -> Result<Worth> {
        Ok(self.area_worth(group, area)?.into_iter().fold(Worth::default(), |sum, stripe| sum + stripe))
    }

    /// A consistency point has all its blocks: what it cleaned is ready, what it took is to be expected again.
    pub(super) fn end_areas(&mut self) {
        let states = &mut self.alloc.states;
        let taken = std::mem::take(&mut states.blocks_taken);
        for medium in Medium::ALL {
            let expected = &mut self.gardener.expected[medium];
            *expected += (taken[medium] as i64 - *expected) / EXPECTED_OVER;
        }
        states.cleaning.clear();
        states.taken.clear();
        // The next point goes on in the area that this one ended in.
        self.alloc.run = None;
        self.leave_other_media();
        self.alloc.states.taken.extend(self.alloc.current.iter().map(|at| at.area_id()));
    }

    /// The areas that a scan goes over: groups, with their numbers of areas.
    fn scanned_areas(&self, cleaning: Cleaning) -> Vec<(usize, u64)> {
        let geometry = &self.raid.geometry;
        let groups = self.cleaned_media(cleaning).into_iter().flat_map(|medium| geometry.groups_of(medium));
        groups.map(|group| (group, geometry.areas(group))).collect()
    }

    /// The next step of the scan begins behind so many areas. Errors: `Invalid` if there are none behind them.
    pub fn scan_from(&mut self, areas: u64, cleaning: Cleaning) -> Result<()> {
        let of: u64 = self.scanned_areas(cleaning).iter().map(|(_, areas)| areas).sum();
        if areas >= of {
            return Err(Error::invalid(format!("there is no allocation area behind {areas}; {of} are gone over")));
        }
        self.gardener.scanned = areas;
        Ok(())
    }

    /// Looks at as many areas at most, going on where the last step ended, and cleans those worth it.
    ///
    /// Errors: `NoSpace` before anything was done with an area, if a consistency point may make some.
    pub fn scan_step(&mut self, areas: u64, cleaning: Cleaning, step: &mut ScanStep) -> Result<()> {
        self.check_running()?;
        let all = self.scanned_areas(cleaning);
        step.of = all.iter().map(|(_, areas)| areas).sum();
        self.gardener.scanned %= step.of;
        for _ in 0..areas.min(step.of - self.gardener.scanned) {
            let (mut at, mut area) = (0, self.gardener.scanned);
            while area >= all[at].1 {
                (at, area) = (at + 1, area - all[at].1);
            }
            let id = (all[at].0, area as u32);
            let is_busy = self.alloc.states.cleaning.contains(&id) || self.is_current(id);
            if !is_busy && self.sum_worth(id)?.is_worth(cleaning.worth_percent) {
                match self.move_whole(id) {
                    Ok(moves) => {
                        step.cleaned += 1;
                        step.moves += moves;
                    }
                    Err(Error::NoSpace { .. }) if !self.is_waiting() => step.no_space += 1,
                    Err(error) => return Err(error),
                }
            }
            self.gardener.scanned += 1;
            step.done = self.gardener.scanned;
        }
        Ok(())
    }

    /// Makes all blocks of an area move, if there is space for them.
    ///
    /// Errors: `NoSpace`; if [`waiting`](Self::is_waiting), a consistency point may make some.
    pub fn move_whole(&mut self, area: AreaId) -> Result<AreaMoves> {
        let used = self.count_used(area)?;
        self.reserve(None, used, false)?;
        self.move_area(area)
    }
}
