//! Cleaning: areas are emptied before they are written, so that whole stripes can be written.
//!
//! Continuous cleaning runs within each consistency point, after the volumes' blocks have places.
//! It moves the blocks of the emptiest areas that are not empty. The number of areas covers the
//! next consistency points. Writes of volumes set a quota for the moves, because a cleaner without
//! a limit could chase its own blocks for ever. If cleaning falls back, or space is short, areas
//! are written as they are.
//!
//! The older method is a scan over all areas that cleans those worth it.

use super::{
    Demotion, Store, WriteAfterRead, areas::AreaId, cleaning_worth::Worth, demote::Hand, media::PerMedium,
    relocate::AreaMoves,
};
use crate::{
    Medium,
    error::{Error, Result},
    raid::Geometry,
};

use super::pointer_fixup::{FixUp, Fixing};

/// The maintenance of an aggregate beside client operations. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gardening {
    /// Continuous cleaning of areas, just before they are needed.
    pub cleaning: Option<Cleaning>,
    /// The handling of pointers that name old places.
    pub fix_up: FixUp,
    /// Moving cold blocks from flash to disks, if the aggregate has both.
    pub demotion: Option<Demotion>,
    /// Rewriting blocks that are read in order and are apart.
    pub write_after_read: Option<WriteAfterRead>,
}

impl Gardening {
    /// The maintenance after an opening: none on one medium. With disks and flash, cold blocks move
    /// off the flash and its areas are cleaned.
    pub(crate) fn of(geometry: &Geometry) -> Self {
        if !geometry.is_mixed() {
            return Self::default();
        }
        let (cleaning, demotion) = (Some(Cleaning::default()), Some(Demotion::default()));
        Self { cleaning, demotion, fix_up: FixUp::OnRead, ..Self::default() }
    }
}

/// The limits of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Blocks that may be moved, in percent of the blocks that volumes write. The unused part of a
    /// consistency point lapses, except for the size of one area.
    ///
    /// The default is twice what volumes write. Random overwriting is the most expensive load. If a
    /// part *f* of all blocks is in use, the emptiest of many areas has a part *u* in use with *f*
    /// = (*u* - 1) / ln *u*. Each gained block costs *u* / (1 - *u*) moves (cleaning cost of
    /// log-structured file systems: Rosenblum and Ousterhout, 1992). An aggregate that is 85 %
    /// full, a tenth of which is a reserve, has *f* = 0.765. So *u* = 0.57, which is 1.3 moves for
    /// each block that volumes or maps allocate. Including the blocks of maps, this is 1.4 to 1.8
    /// moves for each block of volumes. Above *u* = 0.7, which is 2.3 moves, no area is worth
    /// cleaning.
    pub quota_percent: u64,
    /// The least worth of an area: the percentage of a request that each moved block saves at the
    /// next write.
    pub worth_percent: u64,
    /// Whether to clean disks beside flash too. Otherwise only flash is cleaned in an aggregate
    /// with both.
    pub disks_too: bool,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { quota_percent: 200, worth_percent: WORTH_PERCENT, disks_too: false }
    }
}

/// The default worth of a move: the block is read with others in one request, and written in a
/// chain.
const WORTH_PERCENT: u64 = 50;

/// The wanted number of ready areas is the expected number times this, divided by two.
pub(super) const READY_HALVES: u64 = 3;
/// Each consistency point changes the expectation by this fraction of the difference.
const EXPECTED_OVER: i64 = 4;
/// Areas whose blocks in use are counted, for each cleaned area.
const CANDIDATES: usize = 8;

/// The state of maintenance between consistency points.
#[derive(Debug, Default)]
pub(crate) struct Gardener {
    pub gardening: Gardening,
    /// Blocks that a consistency point allocates on each medium, as moving averages. Areas would be
    /// inexact, because partly used ones have fewer blocks.
    pub(super) expected: PerMedium<i64>,
    /// Blocks that may still be moved.
    credit: u64,
    /// Areas that the current scan has finished.
    scanned: u64,
    pub fixing: Fixing,
    pub(super) hand: Hand,
}

impl Gardener {
    /// Sets the number of areas that the scan has finished. Returns the previous number.
    pub fn exchange_scanned(&mut self, areas: u64) -> u64 {
        std::mem::replace(&mut self.scanned, areas)
    }
}

/// The result of a step of the scan over all areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStep {
    /// Finished areas of this pass, over all scanned RAID groups.
    pub done: u64,
    /// All areas of the pass. When `done` equals this, the pass has ended, and the next step starts
    /// another one.
    pub of: u64,
    /// Areas that were worth cleaning. Their blocks move at the next consistency point.
    pub cleaned: u64,
    /// The blocks of these areas.
    pub moves: AreaMoves,
    /// Areas that were worth it, but without space for their blocks now. They wait for the next
    /// pass.
    pub no_space: u64,
}

impl Store {
    /// Cleans areas for later consistency points. The running one has placed `written` blocks of
    /// volumes.
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

    /// Cleans areas of groups of one medium, from which consistency points are expected to allocate
    /// `expected` blocks.
    fn clean_groups(&mut self, groups: &[usize], expected: u64, cleaning: Cleaning) -> Result<()> {
        let largest = groups.iter().map(|&group| self.area_size(group, 0)).max().unwrap_or(0);
        let wanted = (expected * READY_HALVES).div_ceil(2 * largest.max(1)).max(1) as usize;
        let (mut ready, candidates) = self.list_emptiest(groups, wanted)?;
        ready += self.alloc.states.cleaning.iter().filter(|(group, _)| groups.contains(group)).count();
        for (used, area) in candidates {
            if ready >= wanted {
                break;
            }
            // Without blocks in use, this consistency point freed the last ones, and the area
            // becomes ready.
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

    /// Counts up to `wanted` empty areas of the groups. Also returns other areas with their blocks
    /// in use, the emptiest first. Areas that are being cleaned or allocated from do not count.
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

    /// Ends the area states of a consistency point that has allocated all its blocks, and updates
    /// the expectation.
    pub(super) fn end_areas(&mut self) {
        let states = &mut self.alloc.states;
        let taken = std::mem::take(&mut states.blocks_taken);
        for medium in Medium::ALL {
            let expected = &mut self.gardener.expected[medium];
            *expected += (taken[medium] as i64 - *expected) / EXPECTED_OVER;
        }
        states.cleaning.clear();
        states.taken.clear();
        // The next point continues in the area in which this one ended.
        self.alloc.run = None;
        self.leave_other_media();
        self.alloc.states.taken.extend(self.alloc.current.iter().map(|at| at.area_id()));
    }

    /// The areas of a scan: groups, with their numbers of areas.
    fn scanned_areas(&self, cleaning: Cleaning) -> Vec<(usize, u64)> {
        let geometry = &self.raid.geometry;
        let groups = self.cleaned_media(cleaning).into_iter().flat_map(|medium| geometry.groups_of(medium));
        groups.map(|group| (group, geometry.areas(group))).collect()
    }

    /// Sets the scan to start after `areas` areas. Errors: `Invalid` if none follows.
    pub fn scan_from(&mut self, areas: u64, cleaning: Cleaning) -> Result<()> {
        let of: u64 = self.scanned_areas(cleaning).iter().map(|(_, areas)| areas).sum();
        if areas >= of {
            return Err(Error::invalid(format!("cannot start the scan after allocation area {areas}: there are {of}")));
        }
        self.gardener.scanned = areas;
        Ok(())
    }

    /// Scans up to `areas` areas from the position of the last step, and cleans those worth it.
    ///
    /// Errors: `NoSpace` before any change to an area, if a consistency point may free some.
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
    /// Errors: `NoSpace`. If [`is_waiting`](Self::is_waiting), a consistency point may free some.
    pub fn move_whole(&mut self, area: AreaId) -> Result<AreaMoves> {
        let used = self.count_used(area)?;
        self.reserve(None, used, false)?;
        self.move_area(area)
    }
}
