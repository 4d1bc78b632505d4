//! Writing stripes: parity with as few reads as can be, runs of blocks as one request.

use std::{collections::BTreeMap, io::IoSlice, sync::atomic::Ordering::Relaxed};

use super::{CHAIN_SLOTS, Place, Raid, chains::Ahead, counts::Why, slot_offset};
use crate::{
    error::Result,
    format::{
        SLOT,
        slot::{self, Slot},
    },
    log::Kept,
};

/// A stripe with parity that is to be written.
pub(crate) struct StripePlan {
    pub group: usize,
    pub stripe: u64,
    /// The sum of what stays, to which what is written is added when it is written.
    parity: Slot,
    /// If it is written in part.
    pub kept: Option<Kept>,
}

/// Slots that are written together, by their numbers, in order of group, stripe, drive.
pub(crate) trait Slots {
    /// Makes a slot what is to lie in its place. It is asked for once for each, right before that is written.
    fn seal(&mut self, number: usize) -> &[u8; SLOT];

    /// A slot that was sealed.
    fn sealed(&self, number: usize) -> &[u8; SLOT];
}

/// A slot that is to be written.
#[derive(Clone, Copy)]
struct Write {
    place: Place,
    number: usize,
    /// The plan of its stripe, by its number, if there is parity.
    plan: Option<usize>,
}

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

/// Slots drive by drive, in pieces that lie one behind the other and that one request moves.
fn split_chains<T>(slots: &[T], place: impl Fn(&T) -> Place) -> impl Iterator<Item = &[T]> {
    let follows = move |one: &T, other: &T| Place { stripe: place(one).stripe + 1, ..place(one) } == place(other);
    slots.chunk_by(follows).flat_map(|run| run.chunks(CHAIN_SLOTS))
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
                // What is left out here, `old_slot` puts together from the others, or returns the error.
                if let Ok(slot) = self.slot_for_parity(ahead, group, drive, stripe) {
                    old.stays.insert(Place { group, stripe, drive }, slot);
                }
            }
        }
        old
    }

    /// Counts stripes that are to be written, whole or in part.
    pub fn count_stripes(&self, places: &[Place]) {
        for (group, _, new) in by_stripe(places) {
            let is_full = new.len() == usize::from(self.geometry.groups[group].data_drives);
            let counter = if is_full { &self.counters.full_stripes } else { &self.counters.partial_stripes };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// What parity is to be made of in all stripes that are to be written, from what [`read_old`](Self::read_old) gave. What stays
    /// and is in use must be what it was when parity was computed before; the caller sees to that.
    pub fn plan(&mut self, places: &[Place], mut old: Old) -> Result<Vec<StripePlan>> {
        self.count_stripes(places);
        let mut plans = Vec::new();
        for (group, number, stripe) in by_stripe(places) {
            let kept = self.sum_of_kept(&mut old, group, number, stripe)?;
            if !self.geometry.groups[group].parity {
                continue;
            }
            let parity = kept.clone().unwrap_or_else(Slot::zeros);
            let written = stripe.iter().fold(0, |bits, place| bits | 1 << place.drive);
            let kept = kept.map(|sum| Kept { written, sum });
            plans.push(StripePlan { group, stripe: number, parity, kept });
        }
        Ok(plans)
    }

    /// Writes slots to their places and the parity of their stripes. Not flushed.
    ///
    /// Errors: a drive fails that its group cannot do without; else it is taken out.
    pub fn write(&mut self, places: &[Place], slots: &mut dyn Slots, mut plans: Vec<StripePlan>) -> Result<()> {
        let writes = self.by_drive(places);
        let mut chains: Vec<&[Write]> = split_chains(&writes, |write| write.place).collect();
        // Chains of several drives that begin in the same stretch of stripes come one behind the other: the sums of these
        // stripes stay in the processor's cache, and so does a chain on its way from there to the drive.
        let stretch = |Place { group, stripe, drive }| (group, stripe / CHAIN_SLOTS as u64, drive);
        chains.sort_by_key(|chain| stretch(chain[0].place));
        for chain in chains {
            for &Write { number, plan, .. } in chain {
                let slot = slots.seal(number);
                if let Some(plan) = plan {
                    xor(&mut plans[plan].parity, slot);
                }
            }
            let chain: Vec<_> = chain.iter().map(|write| (write.place, slots.sealed(write.number))).collect();
            self.write_chain(&chain)?;
        }
        let parity = plans.iter().map(|plan| (self.parity_place(plan.group, plan.stripe), &*plan.parity));
        let parity: Vec<_> = parity.collect();
        split_chains(&parity, |(place, _)| *place).try_for_each(|chain| self.write_chain(chain))
    }

    /// What is written, drive by drive. The places are in order of group, stripe, drive.
    fn by_drive(&self, places: &[Place]) -> Vec<Write> {
        let (mut writes, mut plan) = (Vec::with_capacity(places.len()), 0);
        for of_group in places.chunk_by(|one, other| one.group == other.group) {
            let shape = self.geometry.groups[of_group[0].group];
            let (first, mut drives) = (writes.len(), vec![Vec::new(); shape.data_drives.into()]);
            for (number, place) in (first..).zip(of_group) {
                let begins = number > first && of_group[number - first - 1].stripe != place.stripe;
                plan += usize::from(begins && shape.parity);
                drives[place.drive].push(Write { place: *place, number, plan: shape.parity.then_some(plan) });
            }
            plan += usize::from(shape.parity);
            writes.extend(drives.into_iter().flatten());
        }
        writes
    }

    pub(super) fn parity_place(&self, group: usize, stripe: u64) -> Place {
        Place { group, stripe, drive: self.geometry.groups[group].data_drives.into() }
    }

    /// Writes slots that lie one behind the other on a drive, as far as it holds them.
    pub(super) fn write_chain(&mut self, chain: &[(Place, &[u8; SLOT])]) -> Result<()> {
        let Place { group, drive, stripe } = chain[0].0;
        // A drive that is being filled holds the beginning of a chain, or none of it.
        let Some(device) = self.holder(group, drive, stripe) else { return Ok(()) };
        let held = chain.iter().take_while(|(place, _)| self.holds(group, drive, place.stripe));
        let parts: Vec<IoSlice<'_>> = held.map(|(_, slot)| IoSlice::new(&slot[..])).collect();
        let drive = self.geometry.first_drive(group) + drive;
        self.counters.note(drive, Why::Write, parts.len());
        match device.write_parts_at(slot_offset(stripe), &parts) {
            Ok(()) => Ok(()),
            Err(failure) => self.fail(drive, failure.into()),
        }
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
        let mut wanted: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
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
        let read = |(group, mut wanted): (usize, Vec<_>)| {
            wanted.sort_unstable();
            (group, self.read_for_parity(group, &wanted))
        };
        wanted.into_iter().map(read).collect()
    }

    /// The sum of a stripe's data that `new` leaves as they are; `None` if that is nothing, or there is no parity.
    fn sum_of_kept(&mut self, old: &mut Old, group: usize, stripe: u64, new: &[Place]) -> Result<Option<Slot>> {
        if !self.needs(group, stripe, new) {
            return Ok(None);
        }
        if let Some(sum) = old.sums.remove(&(group, stripe)) {
            return Ok(Some(sum));
        }
        let (mut sum, mut unknown) = (Slot::zeros(), None);
        for drive in self.staying(group, new) {
            match self.old_slot(old, group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(failure) => unknown = Some(failure),
            }
        }
        match unknown {
            None => Ok(Some(sum)),
            // Two drives of the stripe do not answer. If parity can be carried over it still holds what they held.
            Some(failure) => self.sum_by_parity(&mut Ahead::default(), group, stripe, new).ok_or(failure).map(Some),
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
