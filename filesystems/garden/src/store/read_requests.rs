//! The layout of files: the requests to read them, and the predicted requests if they were written
//! now.
//!
//! The unit is a window of as many blocks as a block of pointers names, which is also the largest
//! read-ahead. One request reads adjacent blocks of a drive, in any order of the file.

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

/// A block of a file that equals the drives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lying {
    pub key: Key,
    pub vvbn: u64,
    /// The place in its pointer.
    pub told: Physical,
    /// Its actual place.
    pub at: Physical,
}

/// The next places to be allocated, if nothing else is written or freed.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    at: Option<Cursor>,
    /// The areas after that, the best one first.
    areas: Arc<[AreaId]>,
    next: usize,
}

impl Store {
    /// The blocks of contents in a range of a file that have not changed since the last consistency
    /// point.
    ///
    /// Cost: reads blocks of pointers, and the container map for each.
    pub(super) fn look_at_places(&mut self, space: u32, file: u64, blocks: Range<u64>) -> Result<Vec<Lying>> {
        let mut found = Vec::new();
        for key in blocks.map(|block| Key::new(space, file, 0, block)) {
            if self.is_dirty(key) {
                continue;
            }
            // Blocks that share a place with others are not moved for the sake of one.
            let Some(pointer) = self.pointer(key)?.filter(Pointer::is_plain) else { continue };
            let Some(vvbn) = pointer.vvbn else { continue };
            let none = || Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
            let at = self.container(space, vvbn)?.ok_or_else(|| Error::damaged(super::tree::place(key), none()))?;
            // Cold blocks stay in place.
            if at.form == Form::Block {
                found.push(Lying { key, vvbn, told: pointer.at, at });
            }
        }
        Ok(found)
    }

    /// The number of requests that read blocks at these places.
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

    /// The number of leading blocks that one request reads, of blocks in ascending order; at least
    /// one.
    pub(super) fn chain_of(&self, mut pvbns: impl Iterator<Item = u64>) -> usize {
        let Some(first) = pvbns.next() else { return 0 };
        let behind = match ObjectPlace::of(first) {
            Some(place) => SLOTS as u64 - place.slot.min(SLOTS as u64),
            None => self.raid.geometry.stripes_behind(first),
        };
        let most = behind.clamp(1, CHAIN_SLOTS as u64);
        1 + pvbns.zip(first + 1..first + most).take_while(|(pvbn, next)| pvbn == next).count()
    }

    /// The number of requests that would read `blocks` blocks if they got the next places, and the
    /// forecast after that. `None` if there are not enough places.
    pub(super) fn predict(&mut self, blocks: u64) -> Result<Option<(u64, Forecast)>> {
        let mut forecast = match self.forecast.take() {
            Some(forecast) => forecast,
            None => {
                let mut forecast = self.make_forecast()?;
                // Dirty blocks get their places earlier or soon after. With disks and flash, they
                // go to flash.
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
                // Freed blocks may be available after the next consistency point, so the next
                // forecast starts again.
                self.forecast = None;
                return Ok(None);
            };
            places.push(pvbn);
        }
        Ok(Some((self.count_requests(places.into_iter()), forecast)))
    }

    /// Leaves the area that blocks are allocated from, as an opening does. Then the best area is
    /// next, and the forecast uses it.
    pub fn begin_in_best_area(&mut self) {
        self.alloc.current = Cursors::default();
        self.forecast = None;
    }

    fn make_forecast(&mut self) -> Result<Forecast> {
        let mut areas: Vec<(u64, AreaId)> = Vec::new();
        // Rewritten blocks go to disks, if there are any.
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
