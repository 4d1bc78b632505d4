//! How files lie: how many requests it takes to read them, and how many it would take if they were written now.
//!
//! It is judged by windows of as many blocks as a block of pointers names, which is what is read ahead at once at most. A request reads
//! blocks that lie one behind the other on a drive, in whatever order the file has them.

use std::{cmp::Reverse, ops::Range, sync::Arc};

use super::{
    Key, Store,
    areas::AreaId,
    media::{Cursors, Lane},
    space::Cursor,
};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        Damage,
        object::SLOTS,
        pointer::{Form, ObjectPlace, Physical, Pointer},
    },
    raid::CHAIN_SLOTS,
};

/// Blocks whose layout is judged together.
pub(crate) const WINDOW: u64 = 256;

/// A block of a file that is as the drives have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lying {
    pub key: Key,
    pub vvbn: u64,
    /// Where its pointer says that it lies.
    pub told: Physical,
    /// Where it lies.
    pub at: Physical,
}

/// The places that come next, if nothing else is written or freed.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    at: Option<Cursor>,
    /// The areas behind that, the best one first.
    areas: Arc<[AreaId]>,
    next: usize,
}

impl Store {
    /// The blocks of contents in a range of a file that have not changed since the last consistency point. Cost: reads blocks of
    /// pointers, and the container map for each.
    pub(super) fn look_at_places(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<Vec<Lying>> {
        let mut found = Vec::new();
        for key in blocks.map(|block| Key::new(space, file, 0, block)) {
            if self.is_dirty(key) {
                continue;
            }
            // What shares its place with others is not laid better for one of them.
            let Some(pointer) = self.pointer(key)?.filter(Pointer::is_plain) else { continue };
            let Some(vvbn) = pointer.vvbn else { continue };
            let none = || Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
            let at = self.container(space, vvbn)?.ok_or_else(|| Error::damaged(super::tree::place(key), none()))?;
            // What is cold is left where it is.
            if at.form == Form::Block {
                found.push(Lying { key, vvbn, told: pointer.at, at });
            }
        }
        Ok(found)
    }

    /// How many requests read blocks in these places.
    pub(super) fn count_requests(&self, places: impl Iterator<Item = u64>) -> u64 {
        let mut places: Vec<u64> = places.collect();
        places.sort_unstable();
        places.dedup();
        let (mut rest, mut requests) = (&places[..], 0);
        while !rest.is_empty() {
            rest = &rest[self.chain_of(rest.iter().copied())..];
            requests += 1;
        }
        requests
    }

    /// How many of the first blocks one request reads, of blocks in ascending order; at least one.
    pub(super) fn chain_of(&self, mut pvbns: impl Iterator<Item = u64>) -> usize {
        let Some(first) = pvbns.next() else { return 0 };
        let behind = match ObjectPlace::of(first) {
            Some(place) => SLOTS as u64 - place.slot.min(SLOTS as u64),
            None => self.raid.geometry.stripes_behind(first),
        };
        let most = behind.clamp(1, CHAIN_SLOTS as u64);
        1 + pvbns.zip(first + 1..first + most).take_while(|(pvbn, next)| pvbn == next).count()
    }

    /// How many requests would read as many blocks if they were the next to get places, and what comes behind them then. `None`
    /// if there are not so many.
    pub(super) fn predict(&mut self, blocks: u64) -> Result<Option<(u64, Forecast)>> {
        let mut forecast = match self.forecast.take() {
            Some(forecast) => forecast,
            None => {
                let mut forecast = self.make_forecast()?;
                // What waits already gets its places before, or not long after; where there are disks and flash, on flash.
                let waiting = if self.raid.geometry.is_mixed() { 0 } else { self.dirty_blocks() };
                for _ in 0..waiting {
                    self.foresee(&mut forecast)?;
                }
                forecast
            }
        };
        self.forecast = Some(forecast.clone());
        let mut places = Vec::new();
        while (places.len() as u64) < blocks {
            let Some(pvbn) = self.foresee(&mut forecast)? else {
                // Freed blocks may be taken after the next consistency point: begin anew.
                self.forecast = None;
                return Ok(None);
            };
            places.push(pvbn);
        }
        Ok(Some((self.count_requests(places.into_iter()), forecast)))
    }

    /// Leaves the area that blocks are taken from, as an opening does: the best one is next, and that is what is foreseen.
    pub fn begin_in_best_area(&mut self) {
        self.alloc.current = Cursors::default();
        self.forecast = None;
    }

    fn make_forecast(&mut self) -> Result<Forecast> {
        let mut areas: Vec<(u64, AreaId)> = Vec::new();
        // What is laid better is laid on disks, if there are any.
        let pool = self.raid.geometry.pool(Medium::Hdd);
        let is_of_pool = |group: usize| self.raid.geometry.groups[group].medium == pool;
        for (group, heap) in self.areas().enumerate().filter(|(group, _)| is_of_pool(*group)) {
            areas.extend(heap.areas().map(|area| (area.free, (group, area.number))));
        }
        let at = self.alloc.current[Lane::to(pool)];
        let is_next = |&(free, (group, area)): &(u64, AreaId)| {
            let is_current = at.is_some_and(|at| at.area_id() == (group, area));
            free > 0 && !is_current && !self.alloc.states.cleaning.contains(&(group, area))
        };
        areas.retain(is_next);
        areas.sort_unstable_by_key(|&(free, area)| (Reverse(free), area));
        Ok(Forecast { at, areas: areas.into_iter().map(|(_, area)| area).collect(), next: 0 })
    }

    /// The next place of a forecast.
    fn foresee(&mut self, forecast: &mut Forecast) -> Result<Option<u64>> {
        loop {
            if let Some(at) = forecast.at
                && let Some((pvbn, behind)) = self.next_free(at)?
            {
                forecast.at = Some(behind);
                return Ok(Some(pvbn));
            }
            let Some(&(group, area)) = forecast.areas.get(forecast.next) else { return Ok(None) };
            forecast.next += 1;
            let stripe = self.raid.geometry.area_stripes(group, area.into()).start;
            forecast.at = Some(Cursor::new(group, area.into(), stripe));
        }
    }
}
