//! Choice of allocation areas: the scores of all areas, and the blocks that store the best ones for
//! the next opening.
//!
//! The score of an area is the number of its blocks that can be allocated: free in the bitmap, and
//! not used by the last consistency point. An opening knows the scores of the listed areas and an
//! upper bound for the others. These are counted when one of them may be the best, or by steps of a
//! scan ([`Store::count_areas`]).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    AGGREGATE, Key, Store, aggregate,
    area_heap::{Area, AreaHeap},
    cleaning_worth::{Worth, compute_worth},
    media::PerMedium,
    volumes::fixed_file,
};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        BLOCK, Block,
        top_areas::{MAX_LISTED, TopAreas},
    },
    raid::Place,
};

/// The least length of a list. If fewer areas are known to be the best, more are counted first.
const LEAST_LISTED: usize = 64;

/// A RAID group, and the number of an allocation area in it.
pub(super) type AreaId = (usize, u32);

/// The states of areas. An area is cleaned within one consistency point, and ready after it. Blocks
/// are then allocated from it until its end, and it may be cleaned again. An area is ready if none
/// of its blocks is in use, for whatever reason.
#[derive(Debug, Default)]
pub(super) struct AreaStates {
    /// Areas whose blocks move at the next consistency point. Nothing is allocated there before it
    /// is durable.
    pub cleaning: BTreeSet<AreaId>,
    /// Areas with blocks that were allocated since the last consistency point, or that are next in
    /// line.
    pub taken: BTreeSet<AreaId>,
    /// Blocks allocated since the last consistency point, by medium.
    pub blocks_taken: PerMedium<u64>,
    /// Areas with blocks that could not be moved, and the number of their blocks in use. A changed
    /// number allows another try.
    pub stuck: BTreeMap<AreaId, u64>,
}

impl Store {
    /// Initializes the scores for an empty bitmap.
    pub(super) fn new_areas(&mut self) {
        let geometry = &self.raid.geometry;
        let size = |group, area| {
            let stripes = geometry.area_stripes(group, area);
            (stripes.end - stripes.start) * u64::from(geometry.groups[group].data_drives)
        };
        let heap = |group| AreaHeap::new((0..geometry.areas(group)).map(|area| (size(group, area), true)));
        self.alloc.groups = (0..geometry.groups.len()).map(heap).collect();
    }

    /// Loads the scores that the last consistency point listed.
    ///
    /// Cost: reads one block for each group. If it is damaged or absent, all areas of the group are
    /// counted.
    pub(super) fn load_areas(&mut self) -> Result<()> {
        for group in 0..self.raid.geometry.groups.len() {
            let areas = self.raid.geometry.areas(group);
            let Some(top) = self.load_top_areas(group) else {
                self.alloc.groups.push(AreaHeap::new((0..areas).map(|_| (0, false))));
                for area in 0..areas as u32 {
                    self.count_area(group, area)?;
                }
                continue;
            };
            let mut known = vec![(u64::from(top.rest), false); areas as usize];
            for (area, free) in top.listed {
                known[area as usize] = (free.into(), true);
            }
            self.alloc.groups.push(AreaHeap::new(known.into_iter()));
        }
        Ok(())
    }

    /// The list of a group at the last consistency point; `None` if it is damaged, because the
    /// bitmap has the same information.
    fn load_top_areas(&mut self, group: usize) -> Option<TopAreas> {
        self.try_inode(AGGREGATE, aggregate::TOP_AREAS).ok()??;
        let top = TopAreas::decode(self.get(top_key(group)).ok()?).ok()?;
        let areas = self.raid.geometry.areas(group);
        let fits = (u64::from(top.group), top.cp, u64::from(top.areas)) == (group as u64, self.durable.point, areas);
        fits.then_some(top)
    }

    /// The scores of all areas, group by group.
    pub fn areas(&self) -> impl Iterator<Item = &AreaHeap> {
        self.alloc.groups.iter()
    }

    /// Counts up to `most` uncounted areas, those with the highest bounds first. Returns the number
    /// that remains.
    ///
    /// Cost: reads the bits of each area.
    pub fn count_areas(&mut self, most: u64) -> Result<u64> {
        let mut unknown = Vec::new();
        for (group, heap) in self.alloc.groups.iter().enumerate() {
            unknown
                .extend(heap.areas().filter(|area| !area.counted).map(|area| (Reverse(area.free), group, area.number)));
        }
        unknown.sort_unstable();
        let now = unknown.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        for &(_, group, area) in &unknown[..now] {
            self.count_area(group, area)?;
        }
        Ok((unknown.len() - now) as u64)
    }

    /// The group and area with the most allocatable blocks, of the `wanted` medium if it has any.
    /// Counts areas that might have more.
    pub(super) fn best_area(&mut self, wanted: Medium) -> Result<(usize, u64)> {
        loop {
            let tops = self.alloc.groups.iter().enumerate().filter_map(|(group, heap)| {
                let is_cleaned = |area: &Area| self.alloc.states.cleaning.contains(&(group, area.number));
                let top = heap.top().filter(|area| !is_cleaned(area));
                let next =
                    || heap.first(self.alloc.states.cleaning.len() + 1).into_iter().find(|area| !is_cleaned(area));
                Some((group, top.or_else(next)?))
            });
            let is_wanted = |group: usize| self.raid.geometry.groups[group].medium == wanted;
            let best = tops.max_by_key(|(group, top)| (top.free > 0 && is_wanted(*group), top.free, Reverse(*group)));
            match best.filter(|(_, top)| top.free > 0) {
                // A damaged list may have given a bound that was too low.
                None if self.areas().any(|heap| heap.areas().any(|area| !area.counted)) => {
                    self.count_areas(u64::MAX)?;
                }
                // A block of an area that is being cleaned is better than none.
                None if !self.alloc.states.cleaning.is_empty() => self.alloc.states.cleaning.clear(),
                None => return Err(Error::NoSpace { wanted: 1, free: self.allocatable() }),
                Some((group, Area { number, counted: true, .. })) => return Ok((group, number.into())),
                Some((group, Area { number, .. })) => self.count_area(group, number)?,
            }
        }
    }

    /// Notes that blocks are allocated from an area from now on.
    pub(super) fn note_taken(&mut self, group: usize, area: u32) {
        let free = self.alloc.groups[group].get(area).map_or(0, |area| area.free);
        match free == self.area_size(group, area) {
            true => self.counts.ready_areas_taken += 1,
            false => self.counts.other_areas_taken += 1,
        }
        self.alloc.states.taken.insert((group, area));
    }

    /// Stops allocations from an area whose blocks are to move.
    pub(super) fn begin_cleaning(&mut self, area: AreaId) {
        self.alloc.states.cleaning.insert(area);
        self.alloc.current.leave(|at| at.area_id() == area);
    }

    /// Whether some blocks of an area are known to be immovable.
    pub(super) fn is_stuck(&mut self, area: AreaId) -> Result<bool> {
        let Some(&used) = self.alloc.states.stuck.get(&area) else { return Ok(false) };
        let is_stuck = self.count_used(area)? == used;
        if !is_stuck {
            self.alloc.states.stuck.remove(&area);
        }
        Ok(is_stuck)
    }

    /// Whether the next blocks are allocated from this area.
    pub(super) fn is_current(&self, area: AreaId) -> bool {
        self.alloc.current.iter().any(|at| at.area_id() == area)
    }

    /// The number of blocks of an area.
    pub(super) fn area_size(&self, group: usize, area: u32) -> u64 {
        let stripes = self.raid.geometry.area_stripes(group, area.into());
        (stripes.end - stripes.start) * u64::from(self.raid.geometry.groups[group].data_drives)
    }

    /// The number of blocks of an area in use, in the state in memory.
    pub(super) fn count_used(&mut self, (group, area): AreaId) -> Result<u64> {
        let mut used = 0;
        for range in self.area_blocks(group, area) {
            used += self.count_bits(AGGREGATE, aggregate::BITMAP, range)?;
        }
        Ok(used)
    }

    /// The blocks of a range in use, in the state in memory.
    pub(super) fn used_in(&mut self, range: Range<u64>) -> Result<Vec<u64>> {
        let (mut used, mut next) = (Vec::new(), range.start);
        while let Some(pvbn) = self.find_bit(AGGREGATE, aggregate::BITMAP, next..range.end, true)? {
            used.push(pvbn);
            next = pvbn + 1;
        }
        Ok(used)
    }

    /// Notes that a block was allocated. If its area had no free block by its score, the score was
    /// wrong, and the area is counted.
    pub(super) fn score_taken(&mut self, pvbn: u64) -> Result<()> {
        match self.raid.geometry.area_of(pvbn) {
            Some((group, area)) if !self.alloc.groups[group].remove(area) => self.count_area(group, area),
            _ => Ok(()),
        }
    }

    /// Notes that a block can be allocated again.
    pub(super) fn score_given(&mut self, pvbn: u64) {
        if let Some((group, area)) = self.raid.geometry.area_of(pvbn) {
            self.alloc.groups[group].add(area);
        }
    }

    pub(super) fn count_area(&mut self, group: usize, area: u32) -> Result<()> {
        let mut free = 0;
        for range in self.area_blocks(group, area) {
            let used = self.count_bits(AGGREGATE, aggregate::BITMAP, range.clone())?;
            let pending = range.clone().filter(|pvbn| self.pending.contains_key(pvbn)).count() as u64;
            free += (range.end - range.start).saturating_sub(used + pending);
        }
        self.alloc.groups[group].set(area, free);
        self.counts.areas_counted += 1;
        Ok(())
    }

    /// The PVBNs of an area, drive by drive.
    pub(super) fn area_blocks(&self, group: usize, area: u32) -> Vec<Range<u64>> {
        let geometry = &self.raid.geometry;
        let stripes = geometry.area_stripes(group, area.into());
        let blocks = |drive| {
            let start = geometry.pvbn(Place { group, drive, stripe: stripes.start });
            start..start + (stripes.end - stripes.start)
        };
        (0..usize::from(geometry.groups[group].data_drives)).map(blocks).collect()
    }

    /// The cost and the savings of cleaning each stripe of an area.
    ///
    /// Cost: reads its bits.
    pub fn area_worth(&mut self, group: usize, area: u32) -> Result<Vec<Worth>> {
        let shape = self.raid.geometry.groups[group];
        let stripes = self.raid.geometry.area_stripes(group, area.into());
        let mut used = vec![0; (stripes.end - stripes.start) as usize];
        for (drive, range) in self.area_blocks(group, area).into_iter().enumerate() {
            let mut next = range.start;
            while let Some(pvbn) = self.find_bit(AGGREGATE, aggregate::BITMAP, next..range.end, true)? {
                used[(pvbn - range.start) as usize] |= 1 << drive;
                next = pvbn + 1;
            }
        }
        Ok(compute_worth(&used, shape.data_drives.into(), shape.parity))
    }

    /// Makes the running consistency point allocate places for the lists. Does not read their old
    /// contents, which are overwritten.
    pub(super) fn dirty_top_areas(&mut self) -> Result<()> {
        let groups = self.raid.geometry.groups.len();
        if self.try_inode(AGGREGATE, aggregate::TOP_AREAS)?.is_none() {
            let file = fixed_file(AGGREGATE, (groups * BLOCK) as u64);
            self.put_inode(AGGREGATE, aggregate::TOP_AREAS, &file)?;
        }
        for key in (0..groups).map(top_key) {
            self.replace(key)?;
        }
        Ok(())
    }

    /// Fills the lists, after all blocks have places and freed blocks count. Nothing more is
    /// allocated before the consistency point is durable.
    pub(super) fn fill_top_areas(&mut self) -> Result<()> {
        for group in 0..self.raid.geometry.groups.len() {
            let block = self.list_top_areas(group)?;
            if let Some(place) = self.cache.get_mut(top_key(group)) {
                *place = *block;
            }
        }
        Ok(())
    }

    fn list_top_areas(&mut self, group: usize) -> Result<Box<Block>> {
        let (first, listed) = loop {
            let first = self.alloc.groups[group].first(MAX_LISTED + 1);
            match first.iter().position(|area| !area.counted) {
                Some(at) if at < LEAST_LISTED => self.count_area(group, first[at].number)?,
                at => break (first.clone(), at.unwrap_or(first.len()).min(MAX_LISTED)),
            }
        };
        let top = TopAreas {
            group: group as u32,
            cp: self.sb.cp,
            areas: self.alloc.groups[group].len() as u32,
            rest: first.get(listed).map_or(0, |area| area.free as u32),
            listed: first[..listed].iter().map(|area| (area.number, area.free as u32)).collect(),
        };
        Ok(top.encode())
    }
}

fn top_key(group: usize) -> Key {
    Key::new(AGGREGATE, aggregate::TOP_AREAS, 0, group as u64)
}
