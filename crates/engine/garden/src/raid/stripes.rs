//! Writing stripes: parity with as few reads as can be, runs of blocks as one request.

use std::{
    collections::{BTreeMap, BTreeSet},
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

/// A group and stripe, and what is written there, drive by drive.
type NewBlocks<'a> = ((usize, u64), Vec<(usize, &'a Slot)>);

/// Stripes of a group that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeRange {
    pub group: u32,
    pub first: u64,
    pub count: u64,
}

/// Adds a slot to a sum.
pub(crate) fn xor(sum: &mut Slot, other: &Slot) {
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

    /// Computes the parity of all stripes that are to be written. The places are in order of group, stripe, drive.
    ///
    /// Cost: for each stripe of n data drives of which w are written, no reads if w = n, else min(n - w, w + 1).
    pub fn plan(&mut self, writes: &BTreeMap<Place, Slot>) -> Result<Vec<StripePlan>> {
        let mut stripes: Vec<NewBlocks<'_>> = Vec::new();
        for (place, slot) in writes {
            match stripes.last_mut().filter(|(at, _)| *at == (place.group, place.stripe)) {
                Some((_, new)) => new.push((place.drive, slot)),
                None => stripes.push(((place.group, place.stripe), vec![(place.drive, slot)])),
            }
        }
        let ahead = self.read_ahead(&stripes);
        let (nothing, mut plans) = (Ahead::new(), Vec::new());
        for ((group, number), stripe) in stripes {
            let kept = self.sum_of_kept(ahead.get(&group).unwrap_or(&nothing), group, number, &stripe)?;
            let mut parity = kept.clone().unwrap_or_else(slot::zero_slot);
            stripe.iter().for_each(|(_, slot)| xor(&mut parity, slot));
            let written = stripe.iter().fold(0, |bits, (drive, _)| bits | 1 << drive);
            let kept = kept.map(|sum| Kept { written, sum });
            plans.push(StripePlan { group, stripe: number, parity, kept });
        }
        Ok(plans)
    }

    /// Writes blocks and the parity of their stripes. Not flushed.
    ///
    /// Errors: a drive fails that its group cannot do without; else it is taken out.
    pub fn write(&mut self, writes: &BTreeMap<Place, Slot>, plans: &[StripePlan]) -> Result<()> {
        let mut runs: BTreeMap<(usize, usize), Vec<(u64, &Slot)>> = BTreeMap::new();
        for (place, slot) in writes {
            runs.entry((place.group, place.drive)).or_default().push((place.stripe, slot));
        }
        for ((group, drive), slots) in &runs {
            self.write_runs(*group, *drive, slots)?;
        }
        for (group, shape) in self.geometry.groups.clone().into_iter().enumerate().filter(|(_, shape)| shape.parity) {
            let own = plans.iter().filter(|plan| plan.group == group);
            let slots: Vec<(u64, &Slot)> = own.map(|plan| (plan.stripe, &plan.parity)).collect();
            self.write_runs(group, usize::from(shape.data_drives), &slots)?;
        }
        Ok(())
    }

    /// Makes parity right in stripes that were being written when power was lost. A data drive that is missing holds
    /// what the log says that the stripe keeps; if it was being written itself, nothing that is in use. Not flushed.
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
        if !shape.parity || self.holder(group, data, stripe).is_none() || stripe >= shape.stripes {
            return Ok(());
        }
        let slots: Vec<Option<Slot>> = (0..data).map(|drive| self.read_slot(group, drive, stripe).ok()).collect();
        let is_written = |drive: usize| kept.is_none_or(|kept| kept.written >> drive & 1 == 1);
        let lost: Vec<usize> = (0..data).filter(|&drive| slots[drive].is_none() && !is_written(drive)).collect();
        if lost.len() > 1 {
            return Ok(()); // parity may still have what one of them held
        }
        let mut sum = slot::zero_slot();
        for (drive, slot) in slots.iter().enumerate() {
            // With the lost one, those that stay add up to what the log has kept.
            if let Some(slot) = slot.as_ref().filter(|_| lost.is_empty() || is_written(drive)) {
                xor(&mut sum, slot);
            }
        }
        if let ([_], Some(kept)) = (&lost[..], kept) {
            xor(&mut sum, &kept.sum);
        }
        self.write_runs(group, data, &[(stripe, &sum)])
    }

    /// Slots of one drive, in order of stripes, in chains, as far as it holds them.
    fn write_runs(&mut self, group: usize, drive: usize, slots: &[(u64, &Slot)]) -> Result<()> {
        let place = self.geometry.first_drive(group) + drive;
        let (mut buffer, mut rest) = (Vec::new(), slots);
        while let Some(&(first, _)) = rest.first() {
            let run =
                rest.iter().zip(first..).take(CHAIN_SLOTS).take_while(|((stripe, _), want)| stripe == want).count();
            let (now, later) = rest.split_at(run);
            rest = later;
            // A drive that is being filled holds the beginning of a run, or none of it.
            let held: Vec<_> =
                now.iter().map_while(|(at, slot)| Some((self.holder(group, drive, *at)?, slot))).collect();
            let Some((device, _)) = held.first() else { continue };
            buffer.clear();
            held.iter().for_each(|(_, slot)| buffer.extend_from_slice(&slot[..]));
            self.counters.note(place, Why::Write, held.len());
            if let Err(failure) = device.write_at(slot_offset(first), &buffer) {
                self.fail(place, failure.into())?;
            }
        }
        Ok(())
    }

    /// Whether parity is computed from that on the drive, with the old blocks of those that are written; else from the blocks
    /// that stay. It is what reads less, or what is possible.
    fn is_subtracted(&self, group: usize, stripe: u64, new: &[(usize, &Slot)]) -> bool {
        let data = usize::from(self.geometry.groups[group].data_drives);
        let missing = (0..data).find(|&drive| self.holder(group, drive, stripe).is_none());
        let stays = |drive| new.iter().all(|(written, _)| *written != drive);
        data - new.len() > new.len() + 1 || missing.is_some_and(stays)
    }

    /// Reads what parity needs of all stripes that are written, in chains.
    fn read_ahead(&self, stripes: &[NewBlocks<'_>]) -> BTreeMap<usize, Ahead> {
        let mut wanted: BTreeMap<usize, BTreeSet<(usize, u64)>> = BTreeMap::new();
        for ((group, stripe), new) in stripes {
            let shape = self.geometry.groups[*group];
            let data = usize::from(shape.data_drives);
            if !shape.parity || new.len() == data || self.holder(*group, data, *stripe).is_none() {
                continue;
            }
            let is_subtracted = self.is_subtracted(*group, *stripe, new);
            let is_new = |drive: usize| new.iter().any(|(written, _)| *written == drive);
            let drives = (0..data).filter(|&drive| is_new(drive) == is_subtracted);
            let drives = drives.chain(is_subtracted.then_some(data));
            wanted.entry(*group).or_default().extend(drives.map(|drive| (drive, *stripe)));
        }
        wanted.into_iter().map(|(group, wanted)| (group, self.read_for_parity(group, &wanted))).collect()
    }

    /// The sum of a stripe's data that `new` leaves as they are; `None` if that is nothing, or there is no parity.
    fn sum_of_kept(
        &mut self,
        ahead: &Ahead,
        group: usize,
        stripe: u64,
        new: &[(usize, &Slot)],
    ) -> Result<Option<Slot>> {
        let shape = self.geometry.groups[group];
        let data = usize::from(shape.data_drives);
        let full = new.len() == data;
        let counter = if full { &self.counters.full_stripes } else { &self.counters.partial_stripes };
        counter.fetch_add(1, Relaxed);
        if full || !shape.parity || self.holder(group, data, stripe).is_none() {
            return Ok(None);
        }
        let is_new = |drive: usize| new.iter().any(|(written, _)| *written == drive);
        // What is subtracted from the old parity must be what was added to it: if the old blocks are not whole, or one of
        // them is missing, the others are added up instead, each put together first if it has to be.
        if self.is_subtracted(group, stripe, new)
            && let Some(kept) = self.sum_by_parity(ahead, group, stripe, new)
        {
            return Ok(Some(kept));
        }
        let (mut sum, mut unknown) = (slot::zero_slot(), None);
        for drive in (0..data).filter(|&drive| !is_new(drive)) {
            match self.old_slot(ahead, group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(failure) => unknown = Some(failure),
            }
        }
        match unknown {
            None => Ok(Some(sum)),
            // Two drives of the stripe do not answer. If parity can be carried over it still holds what they held.
            Some(failure) => self.sum_by_parity(ahead, group, stripe, new).ok_or(failure).map(Some),
        }
    }

    /// The old parity without what is written over; `None` if one of them cannot be read or is damaged.
    fn sum_by_parity(&self, ahead: &Ahead, group: usize, stripe: u64, new: &[(usize, &Slot)]) -> Option<Slot> {
        let parity = usize::from(self.geometry.groups[group].data_drives);
        let mut sum = self.slot_for_parity(ahead, group, parity, stripe).ok()?;
        for (drive, _) in new {
            let slot = self.slot_for_parity(ahead, group, *drive, stripe).ok()?;
            if !self.is_own(group, *drive, stripe, &slot) {
                return None;
            }
            xor(&mut sum, &slot);
        }
        Some(sum)
    }

    /// What a data drive holds, put together and written back if it is damaged or missing and the others have it.
    fn old_slot(&mut self, ahead: &Ahead, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let raw = self.slot_for_parity(ahead, group, drive, stripe);
        if let Ok(slot) = &raw
            && self.is_own(group, drive, stripe, slot)
        {
            return raw;
        }
        match self.rebuild_slot(group, drive, stripe) {
            Some(rebuilt) if self.is_own(group, drive, stripe, &rebuilt) => {
                if self.holder(group, drive, stripe).is_some() {
                    self.counters.repairs.fetch_add(1, Relaxed);
                    self.write_back(group, drive, stripe, &rebuilt);
                }
                Ok(rebuilt)
            }
            // Of what a cut write left there only the bytes count, and if the drive does not answer, those that parity has.
            rebuilt => raw.or_else(|failure| rebuilt.ok_or(failure)),
        }
    }

    /// Whether a slot is what some whole write left in this place, or never written.
    pub fn is_own(&self, group: usize, drive: usize, stripe: u64, slot: &Slot) -> bool {
        let pvbn = self.geometry.pvbn(Place { group, stripe, drive });
        slot::decode(slot).map_or_else(|_| slot.iter().all(|&byte| byte == 0), |context| context.pvbn == pvbn)
    }
}

const _: () = assert!(SLOT.is_multiple_of(8));
