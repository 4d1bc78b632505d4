//! Correction of parity after a loss of power.

use super::{Raid, slot_offset, xor};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{Damage, SLOT, slot::Slot},
    log::{Kept, Unfinished},
};

impl Raid {
    /// Corrects parity in stripes that were being written when power was lost. Does not flush.
    ///
    /// For a stripe that was written in part, the method combines the sum from the log with the
    /// contents of the written places. It does not read blocks that stay, so parity is right even
    /// if these are lost or silently damaged. The written places of a missing drive hold no block
    /// in use.
    ///
    /// Returns the stripes whose parity may be wrong, because a drive that the group needs fails to
    /// read and to write a block.
    pub fn recover(&mut self, unfinished: &Unfinished) -> Result<Vec<Finding>> {
        let mut uncorrected = Vec::new();
        for range in &unfinished.stripes {
            for stripe in range.first..range.first + range.count {
                let kept = unfinished.kept.get(&(range.group, stripe));
                if !self.recover_stripe(range.group as usize, stripe, kept)? {
                    let place = format!("RAID group {}, stripe {stripe}", range.group);
                    let damage = Damage::new("stripe", "parity", "not corrected", "that of its blocks");
                    uncorrected.push(Finding { place, damage });
                }
            }
        }
        Ok(uncorrected)
    }

    /// Returns whether the parity of a stripe is right now. True without parity.
    fn recover_stripe(&mut self, group: usize, stripe: u64, kept: Option<&Kept>) -> Result<bool> {
        let unknown = || Error::invalid(format!("the log names RAID group {group}, which does not exist"));
        let shape = *self.geometry.groups.get(group).ok_or_else(unknown)?;
        let data = usize::from(shape.data_drives);
        if !shape.parity || !self.holds(group, data, stripe) || stripe >= shape.stripes {
            return Ok(true);
        }
        let mut sum = kept.map_or_else(Slot::zeros, |kept| kept.sum.clone());
        for drive in (0..data).filter(|drive| kept.is_none_or(|kept| kept.written >> drive & 1 == 1)) {
            // These blocks belong to a consistency point that never became durable; `kept` covers
            // the blocks in use. No reader needs a block that cannot be read, so it is overwritten
            // with zeros. Without that, a later read might return its old bytes, and parity would
            // be wrong.
            match self.read_slot(group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(_) if !self.clear_slot(group, drive, stripe) => return Ok(false),
                Err(_) => {}
            }
        }
        self.write_chain(&[(self.parity_place(group, stripe), &sum)]).map(|()| true)
    }

    /// Writes zeros to a slot. If the write fails, takes the drive out. Returns whether the slot
    /// counts as zeros. This is also so if the drive is missing or was taken out, but not if the
    /// group needs it.
    fn clear_slot(&mut self, group: usize, drive: usize, stripe: u64) -> bool {
        let Some(device) = self.holder(group, drive, stripe) else { return true };
        match device.write_at(slot_offset(stripe), &[0; SLOT]) {
            Ok(()) => true,
            Err(failure) => self.fail(self.geometry.first_drive(group) + drive, failure.into()).is_ok(),
        }
    }
}
