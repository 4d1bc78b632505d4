//! Writing stripes: parity with as few reads as can be, runs of blocks as one request.

use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed};

use super::{Place, Raid, slot_offset};
use crate::{
    error::Result,
    format::{
        SLOT,
        slot::{self, Slot},
    },
};

/// Slots that one request writes at most.
const RUN_SLOTS: usize = 64;

/// Stripes of a group that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripeRange {
    pub group: u32,
    pub first: u64,
    pub count: u64,
}

pub(super) fn xor(sum: &mut Slot, other: &Slot) {
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

    /// Writes blocks and the parity of their stripes. Not flushed. The places are in order of group, stripe, drive.
    ///
    /// Cost: for each stripe of n data drives of which w are written, no reads if w = n, else min(n - w, w + 1).
    pub fn write(&self, writes: &BTreeMap<Place, Slot>) -> Result<()> {
        let mut runs: BTreeMap<(usize, usize), Vec<(u64, &Slot)>> = BTreeMap::new();
        let mut parities: Vec<(usize, u64, Slot)> = Vec::new();
        let mut writes = writes.iter().peekable();
        while let Some(first) = writes.peek().map(|(place, _)| **place) {
            let mut stripe = Vec::new();
            while let Some((place, slot)) =
                writes.next_if(|(at, _)| (at.group, at.stripe) == (first.group, first.stripe))
            {
                stripe.push((place.drive, slot));
                runs.entry((place.group, place.drive)).or_default().push((place.stripe, slot));
            }
            if let Some(parity) = self.compute_parity(first.group, first.stripe, &stripe)? {
                parities.push((first.group, first.stripe, parity));
            }
        }
        for ((group, drive), slots) in &runs {
            self.counters.data_writes.fetch_add(slots.len() as u64, Relaxed);
            let chains = self.write_runs(*group, *drive, slots)?;
            self.counters.write_chains.fetch_add(chains, Relaxed);
        }
        for (group, shape) in self.geometry.groups.iter().enumerate().filter(|(_, shape)| shape.parity) {
            let slots: Vec<(u64, &Slot)> =
                parities.iter().filter(|parity| parity.0 == group).map(|(_, stripe, slot)| (*stripe, slot)).collect();
            self.write_runs(group, usize::from(shape.data_drives), &slots)?;
        }
        Ok(())
    }

    /// Makes the parity of a stripe that of its data, as it lies there. Not flushed.
    pub fn resync(&self, group: usize, stripe: u64) -> Result<()> {
        let shape = self.geometry.groups[group];
        let data = usize::from(shape.data_drives);
        if !shape.parity || (0..=data).any(|drive| self.drive(group, drive).is_none()) {
            return Ok(());
        }
        let mut sum = slot::zero_slot();
        for drive in 0..data {
            xor(&mut sum, &self.read_slot(group, drive, stripe)?);
        }
        self.write_runs(group, data, &[(stripe, &sum)])?;
        Ok(())
    }

    /// Slots of one drive, in order of stripes; gives the number of requests.
    fn write_runs(&self, group: usize, drive: usize, slots: &[(u64, &Slot)]) -> Result<u64> {
        let Some(device) = self.drive(group, drive) else { return Ok(0) };
        let mut chains = 0;
        let mut buffer = Vec::new();
        let mut rest = slots;
        while let Some(&(first, _)) = rest.first() {
            let run = rest.iter().zip(first..).take(RUN_SLOTS).take_while(|((stripe, _), want)| stripe == want).count();
            let (now, later) = rest.split_at(run);
            buffer.clear();
            now.iter().for_each(|(_, slot)| buffer.extend_from_slice(&slot[..]));
            device.write_at(slot_offset(first), &buffer)?;
            (rest, chains) = (later, chains + 1);
        }
        Ok(chains)
    }

    /// The parity that a stripe has after `new`; `None` if the group has none or its drive is missing.
    fn compute_parity(&self, group: usize, stripe: u64, new: &[(usize, &Slot)]) -> Result<Option<Slot>> {
        let shape = self.geometry.groups[group];
        let data = usize::from(shape.data_drives);
        let full = new.len() == data;
        let counter = if full { &self.counters.full_stripes } else { &self.counters.partial_stripes };
        counter.fetch_add(1, Relaxed);
        if !shape.parity || self.drive(group, data).is_none() {
            return Ok(None);
        }
        let mut sum = slot::zero_slot();
        new.iter().for_each(|(_, slot)| xor(&mut sum, slot));
        if full {
            return Ok(Some(sum));
        }
        let is_new = |drive: usize| new.iter().any(|(written, _)| *written == drive);
        let missing = (0..data).find(|&drive| self.drive(group, drive).is_none());
        let others = data - new.len();
        // What is subtracted from the old parity must be what was added to it: if the old blocks are not whole, or one of
        // them is missing, the others are added up instead, each put together first if it has to be.
        if others > new.len() + 1 || missing.is_some_and(|drive| !is_new(drive)) {
            let mut old = Vec::new();
            for (drive, _) in new {
                old.push(self.read_slot(group, *drive, stripe).ok().filter(|slot| slot::is_whole(slot)));
            }
            if let (Some(old), Ok(parity)) =
                (old.into_iter().collect::<Option<Vec<_>>>(), self.read_slot(group, data, stripe))
            {
                self.counters.parity_reads.fetch_add(old.len() as u64 + 1, Relaxed);
                xor(&mut sum, &parity);
                old.iter().for_each(|slot| xor(&mut sum, slot));
                return Ok(Some(sum));
            }
        }
        for drive in (0..data).filter(|&drive| !is_new(drive)) {
            xor(&mut sum, &self.old_slot(group, drive, stripe)?);
            self.counters.parity_reads.fetch_add(1, Relaxed);
        }
        Ok(Some(sum))
    }

    /// What a data drive holds, put together and written back if it is damaged or missing and the others have it.
    fn old_slot(&self, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let raw = self.read_slot(group, drive, stripe);
        if let Ok(slot) = &raw
            && slot::is_whole(slot)
        {
            return raw;
        }
        match self.rebuild_slot(group, drive, stripe) {
            Some(rebuilt) if slot::is_whole(&rebuilt) => {
                self.counters.repairs.fetch_add(1, Relaxed);
                if let Some(device) = self.drive(group, drive) {
                    device.write_at(slot_offset(stripe), &rebuilt[..])?;
                }
                Ok(rebuilt)
            }
            // Of what a cut write left there only the bytes count.
            _ => raw,
        }
    }
}

const _: () = assert!(SLOT.is_multiple_of(8));
