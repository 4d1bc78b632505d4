//! Making parity right after a loss of power.

use super::{Raid, slot_offset, xor};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{Damage, SLOT, slot::Slot},
    log::{Kept, Unfinished},
};

impl Raid {
    /// Corrects parity in stripes that were being written when power was lost. For a stripe that
    /// was written in part, combines the sum that the log kept with the contents of the written
    /// places. It does not read blocks that stay, so parity is right even if these are lost or
    /// silently damaged. If a drive is missing, the places that were being written on it hold
    /// nothing in use. Does not flush.
    ///
    /// Returns the stripes whose parity is not known to be right: a drive that the group needs
    /// neither reads nor writes a block of them.
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

    /// Returns whether the parity of a stripe is right now, if it has any.
    fn recover_stripe(&mut self, group: usize, stripe: u64, kept: Option<&Kept>) -> Result<bool> {
        let unknown = || Error::invalid(format!("the log names RAID group {group}, which does not exist"));
        let shape = *self.geometry.groups.get(group).ok_or_else(unknown)?;
        let data = usize::from(shape.data_drives);
        if !shape.parity || !self.holds(group, data, stripe) || stripe >= shape.stripes {
            return Ok(true);
        }
        let mut sum = kept.map_or_else(Slot::zeros, |kept| kept.sum.clone());
        for drive in (0..data).filter(|drive| kept.is_none_or(|kept| kept.written >> drive & 1 == 1)) {
            // These blocks are of a consistency point that never became durable; `kept` has the
            // blocks in use. Nothing needs a block that cannot be read, so it is overwritten with
            // zeros. If it only counted as zeros, a later read might return it, and parity would be
            // wrong.
            match self.read_slot(group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(_) if !self.clear_slot(group, drive, stripe) => return Ok(false),
                Err(_) => {}
            }
        }
        self.write_chain(&[(self.parity_place(group, stripe), &sum)]).map(|()| true)
    }

    /// Writes zeros to a slot. If the write fails, takes the drive out. Returns whether the slot
    /// counts as zeros: also if its drive is missing or was taken out, not if the group needs the
    /// drive.
    fn clear_slot(&mut self, group: usize, drive: usize, stripe: u64) -> bool {
        let Some(device) = self.holder(group, drive, stripe) else { return true };
        match device.write_at(slot_offset(stripe), &[0; SLOT]) {
            Ok(()) => true,
            Err(failure) => self.fail(self.geometry.first_drive(group) + drive, failure.into()).is_ok(),
        }
    }
}
