//! Reading in chains: one request reads adjacent blocks of a drive.

use std::{io::IoSliceMut, sync::atomic::Ordering::Relaxed};

use senesce_block::BlockDevice;

use super::{Place, Raid, Want, request_counts::Why, slot_offset};
use crate::{
    error::Result,
    format::{
        Damage,
        page::Page,
        slot::{self, Slot},
    },
};

/// Slots of one request, at most.
pub(crate) const CHAIN_SLOTS: usize = 64;

/// Slots of a group that were read to compute parity, in the order of drive and stripe. `take`
/// removes a slot.
#[derive(Default)]
pub(super) struct Ahead(Vec<((usize, u64), Option<Slot>)>);

impl Ahead {
    fn take(&mut self, drive: usize, stripe: u64) -> Option<Slot> {
        let at = self.0.binary_search_by_key(&(drive, stripe), |(at, _)| *at).ok()?;
        self.0[at].1.take()
    }
}

impl Raid {
    /// Reads the blocks from `pvbn` on, all on one drive. Each result is the block, or the
    /// difference from the wanted one. Blocks that the drive fails to read are restored from the
    /// other drives. `spare` provides memory for the blocks.
    pub fn read_chain(
        &mut self,
        pvbn: u64,
        wants: &[Want],
        spare: &mut Vec<Page>,
    ) -> Vec<std::result::Result<Page, Damage>> {
        let outside = || Damage::new("pointer", "PVBN", pvbn, format!("less than {}", self.geometry.blocks()));
        let Some(place) = self.geometry.locate(pvbn) else { return vec![Err(outside()); wants.len()] };
        let last = place.stripe + wants.len().saturating_sub(1) as u64;
        if let Some(device) = self.holder(place.group, place.drive, last) {
            self.counters.note(self.geometry.first_drive(place.group) + place.drive, Why::Read, wants.len());
            let mut pages: Vec<Page> = wants.iter().map(|_| spare.pop().unwrap_or_else(Page::any)).collect();
            let mut parts: Vec<IoSliceMut<'_>> = pages.iter_mut().map(|page| IoSliceMut::new(page.memory())).collect();
            if device.read_parts_at(slot_offset(place.stripe), &mut parts).is_ok() {
                return pages
                    .into_iter()
                    .zip(wants)
                    .zip(pvbn..)
                    .map(|((page, want), at)| check(page, want, at))
                    .collect();
            }
        }
        let stripes = place.stripe..;
        wants
            .iter()
            .zip(pvbn..)
            .zip(stripes)
            .map(|((want, pvbn), stripe)| self.read_around(Place { stripe, ..place }, pvbn, want))
            .collect()
    }

    /// Restores a block of a drive that is missing or fails from the other drives.
    fn read_around(&mut self, place: Place, pvbn: u64, want: &Want) -> std::result::Result<Page, Damage> {
        let Place { group, drive, stripe } = place;
        let failure = match self.read_slot(group, drive, stripe) {
            Ok(slot) => return check(slot.into(), want, pvbn),
            Err(failure) => failure,
        };
        let slot = match self.try_rebuild(group, drive, stripe) {
            Ok(slot) => slot,
            Err(other) => {
                // A drive that is being filled and does not hold this stripe yet did not fail:
                // another drive did.
                let (failed, failure) = other.filter(|_| !self.holds(group, drive, stripe)).unwrap_or((drive, failure));
                self.report_failure(self.geometry.first_drive(group) + failed, &failure, false);
                return Err(Damage::new("drive", "answer", "an error", "a block"));
            }
        };
        slot::decode(&slot).and_then(|context| want.check(&context, pvbn))?;
        self.put_back(place, &slot);
        Ok(slot.into())
    }

    /// Reads adjacent slots of a data drive to find out what they hold; `None` for slots that it
    /// fails to read. Slots of a missing drive are not restored here.
    pub fn read_for_cleaning(&self, group: usize, drive: usize, stripes: std::ops::Range<u64>) -> Vec<Option<Slot>> {
        let count = (stripes.end - stripes.start) as usize;
        let Some(device) = self.holder(group, drive, stripes.end.saturating_sub(1)) else {
            return stripes.map(|stripe| self.read_slot(group, drive, stripe).ok()).collect();
        };
        self.counters.note(self.geometry.first_drive(group) + drive, Why::Cleaning, count);
        match read_slots(&*device, stripes.start, count) {
            Some(slots) => slots.map(Some).collect(),
            None => stripes.map(|stripe| self.read_slot(group, drive, stripe).ok()).collect(),
        }
    }

    /// Writes a restored slot back, unless its drive does not hold the stripe. Counts both cases.
    pub fn put_back(&mut self, place: Place, slot: &Slot) {
        if !self.holds(place.group, place.drive, place.stripe) {
            self.counters.degraded_reads.fetch_add(1, Relaxed);
        } else {
            self.counters.repairs.fetch_add(1, Relaxed);
            self.write_back(place.group, place.drive, place.stripe, slot);
        }
    }

    /// Reads slots of a group for parity, in the order of drive and stripe. Skips slots that cannot
    /// be read.
    pub(super) fn read_for_parity(&self, group: usize, wanted: &[(usize, u64)]) -> Ahead {
        let mut ahead = Ahead(Vec::with_capacity(wanted.len()));
        let mut wanted = wanted.iter().copied().peekable();
        while let Some((drive, first)) = wanted.next() {
            let mut count = 1;
            while count < CHAIN_SLOTS && wanted.next_if_eq(&(drive, first + count as u64)).is_some() {
                count += 1;
            }
            let Some(device) = self.holder(group, drive, first + count as u64 - 1) else { continue };
            self.counters.note(self.geometry.first_drive(group) + drive, Why::ParityRead, count);
            if let Some(slots) = read_slots(&*device, first, count) {
                ahead.0.extend((first..).map(|stripe| (drive, stripe)).zip(slots.map(Some)));
            }
        }
        ahead
    }

    /// Returns a slot for parity: from `ahead`, or else from the drive.
    pub(super) fn slot_for_parity(&self, ahead: &mut Ahead, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        if let Some(slot) = ahead.take(drive, stripe) {
            return Ok(slot);
        }
        self.counters.note(self.geometry.first_drive(group) + drive, Why::ParityRead, 1);
        self.read_slot(group, drive, stripe)
    }
}

/// Reads adjacent slots, each into its own memory; `None` if the device fails.
fn read_slots(device: &dyn BlockDevice, first: u64, count: usize) -> Option<impl Iterator<Item = Slot>> {
    let mut slots: Vec<Slot> = (0..count).map(|_| Slot::any()).collect();
    let mut parts: Vec<IoSliceMut<'_>> = slots.iter_mut().map(|slot| IoSliceMut::new(&mut slot[..])).collect();
    device.read_parts_at(slot_offset(first), &mut parts).ok()?;
    Some(slots.into_iter())
}

fn check(page: Page, want: &Want, pvbn: u64) -> std::result::Result<Page, Damage> {
    slot::decode(page.slot()).and_then(|context| want.check(&context, pvbn)).map(|()| page.known())
}
