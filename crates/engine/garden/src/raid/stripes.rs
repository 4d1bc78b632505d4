//! Writing stripes: parity with as few reads as can be, runs of blocks as one request.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::IoSlice,
    sync::atomic::Ordering::Relaxed,
};

use super::{CHAIN_SLOTS, Place, Raid, chains::Ahead, counts::Why, slot_offset};
use crate::{
    error::{Error, Result},
    format::{
        SLOT,
        slot::{self, Slot},
    },
    log::{Kept, Unfinished},
};

/// A stripe that is to be written.
pub(crate) struct StripePlan {
    pub group: usize,
    pub stripe: u64,
    parity: Slot,
    /// If it is written in part.
    pub kept: Option<Kept>,
}

/// A place and what is written there; all that is written together, in order of group, stripe, drive.
pub(crate) type Write<'a> = (Place, &'a [u8; SLOT]);

/// A stripe of a drive and what is written there.
type OfDrive<'a> = (u64, &'a [u8; SLOT]);

/// Of stripes that are to be written in part: what stays there.
#[derive(Default)]
pub(crate) struct Old {
    /// Of stripes whose parity is carried over: the sum of the blocks that stay.
    sums: BTreeMap<(usize, u64), Slot>,
    /// Of the others: the blocks that stay, as they lie there. Those that cannot be read are not among them.
    pub stays: BTreeMap<Place, Slot>,
}

/// Places, stripe by stripe.
fn by_stripe(places: &[Place]) -> impl Iterator<Item = (usize, u64, &[Place])> {
    let stripes = places.chunk_by(|one, other| (one.group, one.stripe) == (other.group, other.stripe));
    stripes.map(|new| (new[0].group, new[0].stripe, new))
}

/// Stripes of a group that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeRange {
    pub group: u32,
    pub first: u64,
    pub count: u64,
}

/// Adds a slot to a sum.
pub(crate) fn xor(sum: &mut [u8; SLOT], other: &[u8; SLOT]) {
    for (sum, other) in sum.as_chunks_mut::<8>().0.iter_mut().zip(other.as_chunks::<8>().0) {
        *sum = (u64::from_ne_bytes(*sum) ^ u64::from_ne_bytes(*other)).to_ne_bytes();
    }
}

impl Raid {
    /// The stripes that writes touch, in order.
    pub fn stripes_of<'a>(&self, places: impl Iterator<Item = &'a Place>) -> Vec<StripeRange> {
        let mut ranges: Vec<StripeRange> = Vec::new();
        for place in places {
            let group = place.group as u32;
            match ranges.last_mut() {
                Some(last) if last.group == group && place.stripe < last.first + last.count => {}
                Some(last) if last.group == group && place.stripe == last.first + last.count => last.count += 1,
                _ => ranges.push(StripeRange { group, first: place.stripe, count: 1 }),
            }
        }
        ranges
    }

    /// Reads what the parity of stripes that are to be written needs. The places are in order of group, stripe, drive.
    ///
    /// Cost: for each stripe of n data drives of which w are written, no reads if w = n, else min(n - w, w + 1).
    pub fn read_old(&self, places: &[Place]) -> Old {
        let (mut ahead, mut old) = (self.read_ahead(places), Old::default());
        for (group, stripe, new) in by_stripe(places).filter(|(group, stripe, new)| self.needs(*group, *stripe, new)) {
            let ahead = ahead.entry(group).or_default();
            // What is subtracted from the old parity must be what was added to it: if the old blocks are not whole, or one
            // of them is missing, the others are added up instead.
            if self.is_subtracted(group, stripe, new)
                && let Some(sum) = self.sum_by_parity(ahead, group, stripe, new)
            {
                old.sums.insert((group, stripe), sum);
                continue;
            }
            for drive in self.staying(group, new) {
                if let Ok(slot) = self.slot_for_parity(ahead, group, drive, stripe) {
                    old.stays.insert(Place { group, stripe, drive }, slot);
                }
            }
        }
        old
    }

    /// Computes the parity of all stripes that are to be written, from what [`read_old`](Self::read_old) gave. What stays
    /// and is in use must be what it was when parity was computed before; the caller sees to that.
    /// `add` adds what is written to a place, by its number among them, to a sum, if there is parity; it is asked once for each.
    pub fn plan(
        &mut self,
        places: &[Place],
        mut old: Old,
        mut add: impl FnMut(usize, Option<&mut [u8; SLOT]>),
    ) -> Result<Vec<StripePlan>> {
        let (mut plans, mut done) = (Vec::new(), 0);
        for (group, number, stripe) in by_stripe(places) {
            let kept = self.sum_of_kept(&mut old, group, number, stripe)?;
            let mut parity = self.geometry.groups[group].parity.then(|| kept.clone().unwrap_or_else(slot::zero_slot));
            (done..done + stripe.len()).for_each(|at| add(at, parity.as_deref_mut()));
            done += stripe.len();
            let Some(parity) = parity else { continue };
            let written = stripe.iter().fold(0, |bits, place| bits | 1 << place.drive);
            let kept = kept.map(|sum| Kept { written, sum });
            plans.push(StripePlan { group, stripe: number, parity, kept });
        }
        Ok(plans)
    }

    /// Writes blocks and the parity of their stripes. Not flushed.
    ///
    /// Errors: a drive fails that its group cannot do without; else it is taken out.
    pub fn write(&mut self, writes: &[Write<'_>], plans: &[StripePlan]) -> Result<()> {
        let groups = self.geometry.groups.clone();
        for of_group in writes.chunk_by(|(one, _), (other, _)| one.group == other.group) {
            let group = of_group[0].0.group;
            let mut runs: Vec<Vec<OfDrive<'_>>> = vec![Vec::new(); groups[group].data_drives.into()];
            for (place, slot) in of_group {
                runs[place.drive].push((place.stripe, slot));
            }
            for (drive, slots) in runs.iter().enumerate() {
                self.write_runs(group, drive, slots)?;
            }
        }
        for (group, shape) in groups.into_iter().enumerate().filter(|(_, shape)| shape.parity) {
            let own = plans.iter().filter(|plan| plan.group == group);
            let slots: Vec<_> = own.map(|plan| (plan.stripe, &*plan.parity)).collect();
            self.write_runs(group, usize::from(shape.data_drives), &slots)?;
        }
        Ok(())
    }

    /// Makes parity right in stripes that were being written when power was lost: of those written in part, the sum that the
    /// log has kept and what lies in the places that were written. So what stays may be lost, or damaged and not known to
    /// be. A drive that is missing holds nothing in use where it was being written. Not flushed.
    pub fn recover(&mut self, unfinished: &Unfinished) -> Result<()> {
        for range in &unfinished.stripes {
            for stripe in range.first..range.first + range.count {
                let kept = unfinished.kept.get(&(range.group, stripe));
                self.recover_stripe(range.group as usize, stripe, kept)?;
            }
        }
        Ok(())
    }

    fn recover_stripe(&mut self, group: usize, stripe: u64, kept: Option<&Kept>) -> Result<()> {
        let unknown = || Error::invalid(format!("the log names RAID group {group}, which there is not"));
        let shape = *self.geometry.groups.get(group).ok_or_else(unknown)?;
        let data = usize::from(shape.data_drives);
        if !shape.parity || !self.holds(group, data, stripe) || stripe >= shape.stripes {
            return Ok(());
        }
        let mut sum = kept.map_or_else(slot::zero_slot, |kept| kept.sum.clone());
        for drive in (0..data).filter(|drive| kept.is_none_or(|kept| kept.written >> drive & 1 == 1)) {
            if let Ok(slot) = self.read_slot(group, drive, stripe) {
                xor(&mut sum, &slot);
            }
        }
        self.write_runs(group, data, &[(stripe, &sum)])
    }

    /// Slots of one drive, in order of stripes, in chains, as far as it holds them.
    fn write_runs(&mut self, group: usize, drive: usize, slots: &[OfDrive<'_>]) -> Result<()> {
        let place = self.geometry.first_drive(group) + drive;
        let mut rest = slots;
        while let Some(&(first, _)) = rest.first() {
            let run =
                rest.iter().zip(first..).take(CHAIN_SLOTS).take_while(|((stripe, _), want)| stripe == want).count();
            let (now, later) = rest.split_at(run);
            rest = later;
            // A drive that is being filled holds the beginning of a run, or none of it.
            let Some(device) = self.holder(group, drive, first) else { continue };
            let held = now.iter().take_while(|(at, _)| self.holds(group, drive, *at));
            let parts: Vec<IoSlice<'_>> = held.map(|(_, slot)| IoSlice::new(&slot[..])).collect();
            self.counters.note(place, Why::Write, parts.len());
            if let Err(failure) = device.write_parts_at(slot_offset(first), &parts) {
                self.fail(place, failure.into())?;
            }
        }
        Ok(())
    }

    /// Whether parity is computed from that on the drive, with the old blocks of those that are written; else from the blocks
    /// that stay. It is what reads less, or what is possible.
    fn is_subtracted(&self, group: usize, stripe: u64, new: &[Place]) -> bool {
        let data = usize::from(self.geometry.groups[group].data_drives);
        let missing = (0..data).find(|&drive| !self.holds(group, drive, stripe));
        let stays = |drive| new.iter().all(|place| place.drive != drive);
        data - new.len() > new.len() + 1 || missing.is_some_and(stays)
    }

    /// Whether the parity of a stripe needs more than what is written: there is parity, and something stays.
    fn needs(&self, group: usize, stripe: u64, new: &[Place]) -> bool {
        let shape = self.geometry.groups[group];
        let data = usize::from(shape.data_drives);
        shape.parity && new.len() < data && self.holds(group, data, stripe)
    }

    /// The data drives of a group that are not written.
    fn staying(&self, group: usize, new: &[Place]) -> Vec<usize> {
        let drives = 0..usize::from(self.geometry.groups[group].data_drives);
        drives.filter(|drive| new.iter().all(|place| place.drive != *drive)).collect()
    }

    /// Reads what parity needs of all stripes that are written, in chains.
    fn read_ahead(&self, places: &[Place]) -> BTreeMap<usize, Ahead> {
        let mut wanted: BTreeMap<usize, BTreeSet<(usize, u64)>> = BTreeMap::new();
        for (group, stripe, new) in by_stripe(places) {
            if !self.needs(group, stripe, new) {
                continue;
            }
            let wanted = wanted.entry(group).or_default();
            if self.is_subtracted(group, stripe, new) {
                let parity = usize::from(self.geometry.groups[group].data_drives);
                let drives = new.iter().map(|place| place.drive).chain([parity]);
                wanted.extend(drives.map(|drive| (drive, stripe)));
            } else {
                wanted.extend(self.staying(group, new).into_iter().map(|drive| (drive, stripe)));
            }
        }
        wanted.into_iter().map(|(group, wanted)| (group, self.read_for_parity(group, &wanted))).collect()
    }

    /// The sum of a stripe's data that `new` leaves as they are; `None` if that is nothing, or there is no parity.
    fn sum_of_kept(&mut self, old: &mut Old, group: usize, stripe: u64, new: &[Place]) -> Result<Option<Slot>> {
        let full = new.len() == usize::from(self.geometry.groups[group].data_drives);
        let counter = if full { &self.counters.full_stripes } else { &self.counters.partial_stripes };
        counter.fetch_add(1, Relaxed);
        if !self.needs(group, stripe, new) {
            return Ok(None);
        }
        if let Some(sum) = old.sums.remove(&(group, stripe)) {
            return Ok(Some(sum));
        }
        let (mut sum, mut unknown) = (slot::zero_slot(), None);
        for drive in self.staying(group, new) {
            match self.old_slot(old, group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(failure) => unknown = Some(failure),
            }
        }
        match unknown {
            None => Ok(Some(sum)),
            // Two drives of the stripe do not answer. If parity can be carried over it still holds what they held.
            Some(failure) => self.sum_by_parity(&mut Ahead::new(), group, stripe, new).ok_or(failure).map(Some),
        }
    }

    /// The old parity without what is written over; `None` if one of them cannot be read or is damaged.
    fn sum_by_parity(&self, ahead: &mut Ahead, group: usize, stripe: u64, new: &[Place]) -> Option<Slot> {
        let parity = usize::from(self.geometry.groups[group].data_drives);
        let mut sum = self.slot_for_parity(ahead, group, parity, stripe).ok()?;
        for &Place { drive, .. } in new {
            let slot = self.slot_for_parity(ahead, group, drive, stripe).ok()?;
            if !self.is_own(group, drive, stripe, &slot) {
                return None;
            }
            xor(&mut sum, &slot);
        }
        Some(sum)
    }

    /// What a data drive holds, put together and written back if it is damaged or missing and the others have it.
    fn old_slot(&mut self, old: &mut Old, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let raw = old.stays.remove(&Place { group, stripe, drive }).ok_or_else(|| self.missing_drive(group, drive));
        if let Ok(slot) = &raw
            && self.is_own(group, drive, stripe, slot)
        {
            return raw;
        }
        match self.rebuild_slot(group, drive, stripe) {
            Some(rebuilt) if self.is_own(group, drive, stripe, &rebuilt) => {
                self.restore(group, drive, stripe, &rebuilt);
                Ok(rebuilt)
            }
            // Of what a cut write left there only the bytes count, and if the drive does not answer, those that parity has.
            rebuilt => raw.or_else(|failure| rebuilt.ok_or(failure)),
        }
    }

    /// Writes a slot that was put together from the other drives back, if its drive is here.
    pub fn restore(&mut self, group: usize, drive: usize, stripe: u64, slot: &Slot) {
        if self.holds(group, drive, stripe) {
            self.counters.repairs.fetch_add(1, Relaxed);
            self.write_back(group, drive, stripe, slot);
        }
    }

    /// Whether a slot is what some whole write left in this place, or never written.
    pub fn is_own(&self, group: usize, drive: usize, stripe: u64, slot: &Slot) -> bool {
        let pvbn = self.geometry.pvbn(Place { group, stripe, drive });
        slot::decode(slot).map_or_else(|_| slot.iter().all(|&byte| byte == 0), |context| context.pvbn == pvbn)
    }
}

const _: () = assert!(SLOT.is_multiple_of(8));
