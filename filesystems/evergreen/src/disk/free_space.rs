//! Free space: the units that neither the map of nodes nor a needed superblock names.

use std::collections::{BTreeMap, BTreeSet};

use super::{Damage, Decoded, Extent, Extents, MAX_PIECES};

/// The free units of the area.
///
/// Units are allocated in one piece if possible: at the hint or after it, else from the start of
/// the area. If no extent is large enough, the largest free extents are used, so that the pieces
/// are few.
#[derive(Clone, Debug)]
pub struct Space {
    units: u32,
    /// The first unit and the length of each free extent. No two extents touch.
    free: BTreeMap<u32, u32>,
    /// The same extents, ordered by length.
    sizes: BTreeSet<(u32, u32)>,
    free_units: u64,
    /// Units that never become free, in order and not adjacent.
    kept: Vec<Extent>,
}

/// The choice of a free extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The smallest that is large enough: larger ones stay whole.
    Smallest,
    /// The largest: later units can follow in it.
    Largest,
}

/// Statistics of the free space, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceStatistics {
    /// All units of the area.
    pub units: u64,
    /// The free units.
    pub free: u64,
    /// The number of free extents.
    pub free_extents: u64,
    /// The length of the largest free extent.
    pub largest: u64,
}

impl Space {
    /// An area whose units are all free.
    pub fn new(units: u32) -> Self {
        let mut space = Self { units, free: BTreeMap::new(), sizes: BTreeSet::new(), free_units: 0, kept: Vec::new() };
        space.insert(Extent { first: 0, count: units });
        space
    }

    /// An area with these units in use. Errors: extents that overlap or exceed the area.
    pub fn complement(units: u32, used: impl IntoIterator<Item = Extent>) -> Decoded<Self> {
        let mut used: Vec<Extent> = used.into_iter().filter(|extent| extent.count > 0).collect();
        used.sort_unstable();
        let mut space = Self::new(0);
        space.units = units;
        let mut end = 0;
        for extent in used {
            if extent.first < end {
                let found = format!("{} units from {}", extent.count, extent.first);
                return Err(Damage::new(
                    "node map",
                    "extent",
                    found,
                    format!("units from {end} on: earlier ones are in use"),
                ));
            }
            if extent.first.checked_add(extent.count).is_none_or(|end| end > units) {
                let found = format!("{} units from {}", extent.count, extent.first);
                return Err(Damage::new("node map", "extent", found, format!("some of {units} units")));
            }
            space.insert(Extent { first: end, count: extent.first - end });
            end = extent.end();
        }
        space.insert(Extent { first: end, count: units - end });
        Ok(space)
    }

    /// Keeps these units from becoming free, now and later. They may overlap, and may be in use.
    pub fn keep(&mut self, mut extents: Vec<Extent>) {
        extents.retain(|extent| extent.count > 0);
        extents.sort_unstable();
        for extent in extents {
            match self.kept.last_mut().filter(|last| extent.first <= last.end()) {
                Some(last) => last.count = last.count.max(extent.end() - last.first),
                None => self.kept.push(extent),
            }
        }
        let free: Vec<Extent> = self.free_extents().collect();
        free.iter().for_each(|extent| self.remove(*extent));
        free.into_iter().for_each(|extent| self.insert(extent));
    }

    /// Allocates units for a node near `near`, the end of the node before it. Returns `None` if the
    /// free units do not suffice, or are in too many pieces.
    pub fn take(&mut self, units: u32, near: u32) -> Option<Extents> {
        Extents::new(&self.take_pieces(units, near, MAX_PIECES)?)
    }

    /// Like [`take`](Self::take), in at most `most` pieces, in ascending order.
    pub fn take_pieces(&mut self, units: u32, near: u32, most: usize) -> Option<Vec<Extent>> {
        if units == 0 {
            return Some(Vec::new());
        }
        let taken = match self.find_whole(units, near) {
            Some(first) => vec![Extent { first, count: units }],
            None => self.find_pieces(units, most)?,
        };
        for extent in &taken {
            self.remove(*extent);
        }
        Some(taken)
    }

    /// Allocates adjacent units for nodes in sequence: at `near` if they are free there, else from
    /// the extent that `fit` selects. Returns `None` if no free extent is large enough.
    pub fn take_run(&mut self, units: u32, near: u32, fit: Fit) -> Option<Extent> {
        let is_at_near =
            self.free.range(..=near).next_back().is_some_and(|(&first, &count)| near + units <= first + count);
        let mut large_enough = self.sizes.range((units, 0)..);
        let first = match fit {
            _ if is_at_near => near,
            Fit::Smallest => large_enough.next()?.1,
            Fit::Largest => large_enough.next_back()?.1,
        };
        let run = Extent { first, count: units };
        self.remove(run);
        Some(run)
    }

    /// Allocates units for a second copy of the data in `apart_from`. It prefers one piece, as near
    /// as possible to the end of the other half of the area. Else it uses at most `most` pieces, in
    /// ascending order. Returns `None` if the free units do not suffice, or are in too many pieces.
    pub fn take_far(&mut self, units: u32, apart_from: &[Extent], most: usize) -> Option<Vec<Extent>> {
        if units == 0 {
            return Some(Vec::new());
        }
        let half = self.units / 2;
        let is_upper = apart_from.first().is_none_or(|extent| extent.first < half);
        let has_all = |(first, count): (&u32, &u32)| (*count >= units).then_some((*first, *count));
        let last = |(first, count)| first + count - units;
        let found = if is_upper {
            self.free.iter().rev().find_map(has_all).map(last)
        } else {
            self.free.iter().find_map(has_all).map(|(first, _)| first)
        };
        let taken = match found {
            Some(first) => vec![Extent { first, count: units }],
            None => self.find_pieces(units, most)?,
        };
        taken.iter().for_each(|extent| self.remove(*extent));
        Some(taken)
    }

    /// Allocates exactly these units, which must be free.
    pub fn take_exactly(&mut self, extent: Extent) {
        self.remove(extent);
    }

    /// Frees units. No superblock that is durable, or will be, may name them.
    pub fn give_back(&mut self, extents: &[Extent]) {
        for extent in extents {
            self.insert(*extent);
        }
    }

    /// Like [`give_back`](Self::give_back), for any iterator.
    pub fn give_back_all(&mut self, extents: impl IntoIterator<Item = Extent>) {
        extents.into_iter().for_each(|extent| self.insert(extent));
    }

    /// Statistics of the free space. Cost: constant.
    pub fn statistics(&self) -> SpaceStatistics {
        SpaceStatistics {
            units: u64::from(self.units),
            free: self.free_units,
            free_extents: self.free.len() as u64,
            largest: self.sizes.last().map_or(0, |(count, _)| u64::from(*count)),
        }
    }

    /// The free extents, in order.
    pub fn free_extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.free.iter().map(|(&first, &count)| Extent { first, count })
    }

    /// The start of the first free run of `units`, searched from `near` on, then from the start of
    /// the area.
    fn find_whole(&self, units: u32, near: u32) -> Option<u32> {
        if self.sizes.last()?.0 < units {
            return None;
        }
        // Of the extent around the hint only the part from the hint on is used.
        let before = self.free.range(..near).next_back().map(|(&first, &count)| Extent { first, count });
        if let Some(around) = before.filter(|extent| extent.end() > near && extent.end() - near >= units) {
            debug_assert!(around.first < near, "the hint is in it");
            return Some(near);
        }
        let fits = |(&first, &count): (&u32, &u32)| (count >= units).then_some(first);
        self.free.range(near..).find_map(fits).or_else(|| self.free.range(..near).find_map(fits))
    }

    /// Selects units from the largest free extents; the last piece may be a part of one.
    fn find_pieces(&self, units: u32, most: usize) -> Option<Vec<Extent>> {
        let (mut pieces, mut left) = (Vec::new(), units);
        for &(count, first) in self.sizes.iter().rev().take(most) {
            if count < left {
                pieces.push(Extent { first, count });
                left -= count;
                continue;
            }
            // Take the rest from the smallest extent that holds it, and keep larger ones whole.
            let &(_, first) = self.sizes.range((left, 0)..).next()?;
            pieces.push(Extent { first, count: left });
            pieces.sort_unstable();
            return Some(pieces);
        }
        None
    }

    /// Frees units, except the kept ones.
    fn insert(&mut self, extent: Extent) {
        let mut first = extent.first;
        for index in self.kept.partition_point(|kept| kept.end() <= first)..self.kept.len() {
            let kept = self.kept[index];
            if kept.first >= extent.end() {
                break;
            }
            self.insert_all(Extent { first, count: kept.first.saturating_sub(first) });
            first = kept.end();
        }
        self.insert_all(Extent { first, count: extent.end().saturating_sub(first) });
    }

    /// Frees units of which none is kept.
    fn insert_all(&mut self, extent: Extent) {
        if extent.count == 0 {
            return;
        }
        let mut whole = extent;
        if let Some((&first, &count)) = self.free.range(..=extent.first).next_back() {
            assert!(first + count <= extent.first, "units {extent} are free already");
            if first + count == extent.first {
                self.forget(first, count);
                whole = Extent { first, count: count + extent.count };
            }
        }
        if let Some((&first, &count)) = self.free.range(extent.first..).next() {
            assert!(extent.end() <= first, "units {extent} are free already");
            if extent.end() == first {
                self.forget(first, count);
                whole.count += count;
            }
        }
        self.free.insert(whole.first, whole.count);
        self.sizes.insert((whole.count, whole.first));
        self.free_units += u64::from(extent.count);
    }

    /// Allocates units, which must be free.
    fn remove(&mut self, extent: Extent) {
        let around = self.free.range(..=extent.first).next_back().map(|(&first, &count)| Extent { first, count });
        let around = around.filter(|around| around.end() >= extent.end());
        let Some(around) = around else { unreachable!("units {extent} are not free") };
        self.forget(around.first, around.count);
        self.free_units -= u64::from(extent.count);
        let (before, behind) = (extent.first - around.first, around.end() - extent.end());
        for (first, count) in [(around.first, before), (extent.end(), behind)] {
            if count > 0 {
                self.free.insert(first, count);
                self.sizes.insert((count, first));
            }
        }
    }

    fn forget(&mut self, first: u32, count: u32) {
        self.free.remove(&first);
        self.sizes.remove(&(count, first));
    }
}

#[cfg(test)]
mod tests;
