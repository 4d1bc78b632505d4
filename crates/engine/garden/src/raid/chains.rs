//! Reading in chains: blocks that lie one behind the other on a drive come with one request.

use std::collections::{BTreeMap, BTreeSet};

use super::{Raid, Want, counts::Why, slot_offset};
use crate::{
    error::Result,
    format::{
        Block, Damage, SLOT,
        slot::{self, Slot},
    },
};

/// Slots that one request moves at most.
pub(crate) const CHAIN_SLOTS: usize = 64;

/// Slots of a group that were read to compute parity, by drive and stripe.
pub(super) type Ahead = BTreeMap<(usize, u64), Slot>;

impl Raid {
    /// The blocks from `pvbn` on, all on one drive, each if it is the one wanted; else what speaks against it.
    pub fn read_chain(&self, pvbn: u64, wants: &[Want]) -> Vec<std::result::Result<Box<Block>, Damage>> {
        let outside = || Damage::new("pointer", "PVBN", pvbn, format!("less than {}", self.geometry.blocks()));
        let Some(place) = self.geometry.locate(pvbn) else { return vec![Err(outside()); wants.len()] };
        let number = self.geometry.first_drive(place.group) + place.drive;
        // A drive that is missing or fails is as good as wrong blocks: the others have them.
        let nothing = |found| vec![Err(Damage::new("drive", "answer", found, "a block")); wants.len()];
        let Some(drive) = &self.drives[number] else { return nothing("none") };
        self.counters.note(number, Why::Read, wants.len());
        let mut bytes = vec![0; wants.len() * SLOT];
        if drive.read_at(slot_offset(place.stripe), &mut bytes).is_err() {
            return nothing("an error");
        }
        let check = |((slot, want), pvbn): ((&[u8; SLOT], &Want), u64)| {
            slot::decode(slot).and_then(|context| want.check(&context, pvbn)).map(|()| slot::payload(slot))
        };
        bytes.as_chunks::<SLOT>().0.iter().zip(wants).zip(pvbn..).map(check).collect()
    }

    /// Reads slots of a group for parity. What cannot be read is left out.
    pub(super) fn read_for_parity(&self, group: usize, wanted: &BTreeSet<(usize, u64)>) -> Ahead {
        let mut ahead = Ahead::new();
        let mut wanted = wanted.iter().copied().peekable();
        while let Some((drive, first)) = wanted.next() {
            let mut count = 1;
            while count < CHAIN_SLOTS && wanted.next_if_eq(&(drive, first + count as u64)).is_some() {
                count += 1;
            }
            let Some(device) = self.drive(group, drive) else { continue };
            self.counters.note(self.geometry.first_drive(group) + drive, Why::ParityRead, count);
            let mut bytes = vec![0; count * SLOT];
            if device.read_at(slot_offset(first), &mut bytes).is_ok() {
                let slots = bytes.as_chunks::<SLOT>().0.iter().map(|slot| Box::new(*slot));
                ahead.extend((first..).map(|stripe| (drive, stripe)).zip(slots));
            }
        }
        ahead
    }

    /// A slot for parity: what was read ahead, or else from the drive.
    pub(super) fn slot_for_parity(&self, ahead: &Ahead, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        if let Some(slot) = ahead.get(&(drive, stripe)) {
            return Ok(slot.clone());
        }
        self.counters.note(self.geometry.first_drive(group) + drive, Why::ParityRead, 1);
        self.read_slot(group, drive, stripe)
    }
}
