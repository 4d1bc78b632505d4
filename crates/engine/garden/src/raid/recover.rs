//! Making parity right after a loss of power.

use super::{Raid, slot_offset, xor};
use crate::{
    error::{Error, Result},
    format::{SLOT, slot::Slot},
    log::{Kept, Unfinished},
};

impl Raid {
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
        let mut sum = kept.map_or_else(Slot::zeros, |kept| kept.sum.clone());
        for drive in (0..data).filter(|drive| kept.is_none_or(|kept| kept.written >> drive & 1 == 1)) {
            // Only blocks of a consistency point that never became durable are summed here; those in use are in `kept`. Nothing
            // needs one that cannot be read, so it becomes zeros: counted as that and left, it might be read later.
            match self.read_slot(group, drive, stripe) {
                Ok(slot) => xor(&mut sum, &slot),
                Err(_) if !self.clear_slot(group, drive, stripe) => return Ok(()),
                Err(_) => {}
            }
        }
        self.write_chain(&[(self.parity_place(group, stripe), &sum)])
    }

    /// Makes a slot zeros. One of a drive that is missing counts as that, and so does one of a drive that is taken out because it fails.
    /// Returns whether it is: else the group cannot do without the drive.
    fn clear_slot(&mut self, group: usize, drive: usize, stripe: u64) -> bool {
        let Some(device) = self.holder(group, drive, stripe) else { return true };
        match device.write_at(slot_offset(stripe), &[0; SLOT]) {
            Ok(()) => true,
            Err(failure) => self.fail(self.geometry.first_drive(group) + drive, failure.into()).is_ok(),
        }
    }
}
