//! Writing stripes: parity with the fewest reads, and adjacent blocks in one request.

use std::{collections::BTreeMap, io::IoSlice, sync::atomic::Ordering::Relaxed};

use super::{CHAIN_SLOTS, Place, Raid, chains::Ahead, request_counts::Why, slot_offset};
use crate::{
    error::Result,
    format::{
        SLOT,
        slot::{self, Slot},
    },
    log::Kept,
};

/// The write of a stripe with parity.
pub(crate) struct StripePlan {
    pub group: usize,
    pub stripe: u64,
    /// The XOR of the blocks that stay. Each written block is added when it is written.
    parity: Slot,
    /// Set if the stripe is written in part.
    pub kept: Option<Kept>,
}

/// Slots that are written together, by their numbers, in the order of group, stripe, drive.
pub(crate) trait Slots {
    /// Completes a slot for its place. Called once for each slot, right before its write.
    fn seal(&mut self, number: usize) -> &[u8; SLOT];

    /// A slot that was sealed.
    fn sealed(&self, number: usize) -> &[u8; SLOT];
}

/// A slot to be written.
#[derive(Clone, Copy)]
struct Write {
    place: Place,
    number: usize,
    /// The index of its stripe's plan, if the group has parity.
    plan: Option<usize>,
}

/// The blocks that stay in stripes that will be written in part.
#[derive(Default)]
pub(crate) struct Old {
    /// The XOR of the blocks that stay, for stripes whose parity is updated.
    sums: BTreeMap<(usize, u64), Slot>,
    /// The blocks that stay in the other stripes, as read. Unreadable blocks are absent.
    pub stays: BTreeMap<Place, Slot>,
}

/// Groups places by stripe.
fn by_stripe(places: &[Place]) -> impl Iterator<Item = (usize, u64, &[Place])> {
    let stripes = places.chunk_by(|one, other| (one.group, one.stripe) == (other.group, other.stripe));
    stripes.map(|new| (new[0].group, new[0].stripe, new))
}

/// Adjacent stripes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeRange {
    pub group: u32,
    pub first: u64,
    pub count: u64,
}

/// Splits slots into chains: adjacent slots of a drive that one request moves.
fn split_chains<T>(slots: &[T], place: impl Fn(&T) -> Place) -> impl Iterator<Item = &[T]> {
    let follows = move |one: &T, other: &T| Place { stripe: place(one).stripe + 1, ..place(one) } == place(other);
    slots.chunk_by(follows).flat_map(|run| run.chunks(CHAIN_SLOTS))
}

/// Adds a slot to an XOR sum.
pub(crate) fn xor(sum: &mut [u8; SLOT], other: &[u8; SLOT]) {
    for (sum, other) in sum.as_chunks_mut::<8>().0.iter_mut().zip(other.as_chunks::<8>().0) {
        *sum = (u64::from_ne_bytes(*sum) ^ u64::from_ne_bytes(*other)).to_ne_bytes();
    }
}

impl Raid {
    /// The stripes of these places, in order.
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

    /// Reads the blocks that the parity of these stripes needs. The places are in the order of
    /// group, stripe, drive.
    ///
    /// Cost: a stripe of n data drives with w written ones needs no reads if w = n, else min(n - w,
    /// w + 1).
    pub fn read_old(&self, places: &[Place]) -> Old {
        let (mut ahead, mut old) = (self.read_ahead(places), Old::default());
        for (group, stripe, new) in by_stripe(places).filter(|(group, stripe, new)| self.needs(*group, *stripe, new)) {
            let ahead = ahead.entry(group).or_default();
            // The bytes subtracted from the old parity must be the ones that were added to it. If
            // an old block is damaged or missing, the blocks that stay are summed instead.
            if self.is_subtracted(group, stripe, new)
                && let Some(sum) = self.sum_by_parity(ahead, group, stripe, new)
            {
                old.sums.insert((group, stripe), sum);
                continue;
            }
            for drive in self.staying(group, new) {
                // `old_slot` restores a block that is absent here, or returns the error.
                if let Ok(slot) = self.slot_for_parity(ahead, group, drive, stripe) {
                    old.stays.insert(Place { group, stripe, drive }, slot);
                }
            }
        }
        old
    }

    /// Counts stripes that will be written, whole or in part.
    pub fn count_stripes(&self, places: &[Place]) {
        for (group, _, new) in by_stripe(places) {
            let is_full = new.len() == usize::from(self.geometry.groups[group].data_drives);
            let counter = if is_full { &self.counters.full_stripes } else { &self.counters.partial_stripes };
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Prepares the parity of all stripes that will be written, from the result of
    /// [`read_old`](Self::read_old). The blocks in use that stay must be the ones that the current
    /// parity covers; the caller ensures that.
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

    /// Writes slots to their places and the parity of their stripes. Does not flush.
    ///
    /// Errors: a drive fails that its group cannot do without; any other failing drive is taken
    /// out.
    pub fn write(&mut self, places: &[Place], slots: &mut dyn Slots, mut plans: Vec<StripePlan>) -> Result<()> {
        let writes = self.by_drive(places);
        let mut chains: Vec<&[Write]> = split_chains(&writes, |write| write.place).collect();
        // Orders chains of several drives by range of stripes. So the sums of these stripes stay in
        // the processor's cache, and so does a chain between `seal` and its write.
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

    /// The writes, drive by drive. The places are in the order of group, stripe, drive.
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

    /// Writes adjacent slots of a drive, as far as it holds their stripes.
    pub(super) fn write_chain(&mut self, chain: &[(Place, &[u8; SLOT])]) -> Result<()> {
        let Place { group, drive, stripe } = chain[0].0;
        // A drive that is being filled holds the start of a chain, or none of it.
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

    /// Whether to compute parity from the old parity and the old blocks of the written places,
    /// instead of the blocks that stay. Chooses the way with fewer reads, or the only possible one.
    fn is_subtracted(&self, group: usize, stripe: u64, new: &[Place]) -> bool {
        let data = usize::from(self.geometry.groups[group].data_drives);
        let missing = (0..data).find(|&drive| !self.holds(group, drive, stripe));
        let stays = |drive| new.iter().all(|place| place.drive != drive);
        data - new.len() > new.len() + 1 || missing.is_some_and(stays)
    }

    /// Whether the parity of a stripe needs reads: the group has parity, and some blocks stay.
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

    /// Reads the blocks that parity needs for all written stripes, in chains.
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

    /// The XOR of a stripe's blocks that stay; `None` if no block stays, or without parity.
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
            // Two drives of the stripe fail. If the old parity can be updated, it still covers
            // their blocks.
            Some(failure) => self.sum_by_parity(&mut Ahead::default(), group, stripe, new).ok_or(failure).map(Some),
        }
    }

    /// The old parity without the blocks that are overwritten; `None` if one of these slots is
    /// unreadable or damaged.
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

    /// The slot of a data drive. If it is damaged or missing, restores it from the other drives and
    /// writes it back.
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
            // Bytes of an interrupted write count as they are. If the drive fails, the bytes that
            // parity gives count.
            rebuilt => raw.or_else(|failure| rebuilt.ok_or(failure)),
        }
    }

    /// Writes a restored slot back, if its drive holds the stripe.
    pub fn restore(&mut self, group: usize, drive: usize, stripe: u64, slot: &Slot) {
        if self.holds(group, drive, stripe) {
            self.counters.repairs.fetch_add(1, Relaxed);
            self.write_back(group, drive, stripe, slot);
        }
    }

    /// Whether a slot holds a complete write to this place, or was never written.
    pub fn is_own(&self, group: usize, drive: usize, stripe: u64, slot: &Slot) -> bool {
        let pvbn = self.geometry.pvbn(Place { group, stripe, drive });
        slot::decode(slot).map_or_else(|_| slot.iter().all(|&byte| byte == 0), |context| context.pvbn == pvbn)
    }
}

const _: () = assert!(SLOT.is_multiple_of(8));
