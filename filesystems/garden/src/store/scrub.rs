//! Scrubbing: checks every block and its parity in steps, before a reader needs them.
//!
//! Trailers and maps decide which block of a stripe is wrong, never parity alone. A wrong block is
//! restored from the others, and accepted only if it then is the one that the map names. Parity is
//! rewritten only if all blocks in use are right.

use super::{
    Store,
    find_drives::{read_labels, read_superblock},
    rebuild::ROWS_AT_ONCE,
};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{Damage, label::DriveLabel},
    raid::Row,
};

/// The position of the scrub, and its findings since the opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Finished stripes of the current pass, over all RAID groups.
    pub done: u64,
    /// Passes over the whole aggregate.
    pub passes: u64,
    /// Damaged blocks, labels and superblocks that were repaired.
    pub repaired: u64,
    /// Stripes with right blocks and wrong parity that were repaired.
    pub parity_repaired: u64,
    /// Damaged blocks in use that cannot be restored.
    pub lost: u64,
}

/// The findings of a step of the scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubStep {
    /// Finished stripes of this pass.
    pub done: u64,
    /// All stripes. When `done` equals this, the pass has ended, and the next step starts another
    /// one.
    pub of: u64,
    /// Damaged blocks, labels and superblocks that were repaired.
    pub repaired: Vec<Finding>,
    /// Stripes with right blocks and wrong parity that were repaired.
    pub parity_repaired: Vec<Finding>,
    /// Damaged blocks in use that cannot be restored. Nothing was written to their stripes.
    pub lost: Vec<Finding>,
}

impl Store {
    /// Scrubs up to `stripes` stripes from the position of the last step.
    ///
    /// Errors: those of a consistency point.
    ///
    /// Cost: reads the stripes and maps.
    pub fn scrub_step(&mut self, stripes: u64) -> Result<ScrubStep> {
        self.check_running()?;
        let groups = self.raid.geometry.groups.clone();
        let of = groups.iter().map(|group| group.stripes).sum();
        let mut step = ScrubStep { of, ..ScrubStep::default() };
        let begin = self.scrub.done % of;
        if begin == 0 {
            self.scrub_fixed(&mut step)?;
        }
        let end = (begin + stripes.max(1)).min(of);
        let mut base = 0;
        for (group, shape) in groups.iter().enumerate() {
            let own = begin.clamp(base, base + shape.stripes) - base..end.clamp(base, base + shape.stripes) - base;
            base += shape.stripes;
            for first in own.clone().step_by(ROWS_AT_ONCE as usize) {
                for row in self.raid.read_rows(group, first, ROWS_AT_ONCE.min(own.end - first)) {
                    self.scrub_row(&row, &mut step)?;
                }
            }
        }
        self.raid.flush()?;
        step.done = end;
        self.scrub.done = end;
        self.scrub.passes += u64::from(end == of);
        self.scrub.repaired += step.repaired.len() as u64;
        self.scrub.parity_repaired += step.parity_repaired.len() as u64;
        self.scrub.lost += step.lost.len() as u64;
        Ok(step)
    }

    fn scrub_row(&mut self, row: &Row, step: &mut ScrubStep) -> Result<()> {
        let shape = self.raid.geometry.groups[row.group];
        let bad = self.judge(row)?;
        let is_here = |drive| self.raid.holder(row.group, drive, row.stripe).is_some();
        if !shape.parity || !(0..shape.drives()).all(is_here) {
            step.lost.extend(bad.into_iter().map(|(drive, damage)| self.find_on(row, drive, damage)));
            return Ok(());
        }
        // Drives that fail to read, and drives whose block in use is wrong. One drive of a stripe
        // can be restored.
        let mut wrong: Vec<usize> = (0..shape.drives()).filter(|&drive| row.slots[drive].is_none()).collect();
        wrong.extend(bad.iter().map(|(drive, _)| *drive));
        wrong.sort_unstable();
        wrong.dedup();
        if wrong.is_empty() {
            return self.scrub_parity(row, step);
        }
        let findings: Vec<Finding> =
            bad.iter().map(|(drive, damage)| self.find_on(row, *drive, damage.clone())).collect();
        if let [drive] = wrong[..] {
            let rebuilt = row.sum_without(Some(drive));
            let is_right = bad.is_empty() || self.judge_slot(row, drive, &rebuilt)?.is_ok();
            if is_right {
                self.raid.write_back(row.group, drive, row.stripe, &rebuilt);
                let silent = || self.find_on(row, drive, Damage::new("drive", "answer", "an error", "a block"));
                step.repaired.push(findings.into_iter().next().unwrap_or_else(silent));
                return Ok(());
            }
        }
        step.lost.extend(findings);
        Ok(())
    }

    /// All blocks in use are right, so differing parity is wrong.
    fn scrub_parity(&mut self, row: &Row, step: &mut ScrubStep) -> Result<()> {
        let parity = usize::from(self.raid.geometry.groups[row.group].data_drives);
        let sum = row.sum_without(None);
        let Some(at) = sum.iter().position(|&byte| byte != 0) else { return Ok(()) };
        self.raid.write_back(row.group, parity, row.stripe, &row.sum_without(Some(parity)));
        let damage = Damage::new("stripe", "parity", format!("a difference at byte {at}"), "none");
        step.parity_repaired.push(self.find_on(row, parity, damage));
        Ok(())
    }

    /// Labels and superblocks, of which every drive has its own.
    fn scrub_fixed(&mut self, step: &mut ScrubStep) -> Result<()> {
        let uuid = self.aggregate.uuid;
        let mut superblocks_wrong = false;
        let devices: Vec<_> = self.raid.present().map(|(place, device)| (place as u32, device.clone())).collect();
        for (place, device) in devices {
            let own = DriveLabel { drive: place, aggregate: self.aggregate.clone() };
            let judged = match read_labels(&device) {
                Ok((label, damaged)) if label == own => damaged.into_iter().next().map(|finding| finding.damage),
                Ok((label, _)) => Some(Damage::new("drive label", "drive", label.drive, place)),
                Err(Error::Damaged { damage, .. }) => Some(damage),
                Err(error) => Some(Damage::new("drive", "answer", error, "a block")),
            };
            if let Some(damage) = judged {
                if let Err(failure) = self.write_label(place, &device) {
                    self.raid.fail(place as usize, failure)?;
                }
                step.repaired.push(Finding { place: format!("label of drive {place}"), damage });
            }
            for half in 0..2 {
                let found = read_superblock(&device, half, uuid);
                let is_newest = found.as_ref().is_ok_and(|sb| *sb == self.durable);
                if is_newest || half != self.sb_slot && (found.is_ok() || self.durable.previous == 0) {
                    continue;
                }
                superblocks_wrong = true;
                let cp = found.map_or("no superblock".to_owned(), |sb| sb.cp.to_string());
                let damage = Damage::new("superblock", "consistency point", cp, self.durable.cp);
                step.repaired.push(Finding { place: format!("superblock {half} of drive {place}"), damage });
            }
        }
        if superblocks_wrong {
            // The older place is written first, then the newer one, so that one of them is valid at
            // any time.
            self.commit_drives()?;
            self.commit_drives()?;
        }
        Ok(())
    }
}
