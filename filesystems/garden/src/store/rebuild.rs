//! Filling a new drive from the others of its group, in steps, while the aggregate is in use.
//!
//! The new drive holds the stripes below a mark; above it, it counts as missing. The mark is in the
//! superblock, so filling continues there after a loss of power. Stripes between the durable and
//! the current mark are still covered by parity.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::{
    Store,
    find_drives::{check_alignment, of_version, read_label},
};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{Damage, SLOT},
    raid::{DriveState, Row, superblock_at, superblock_slot},
};

/// The result of a step of filling a new drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildStep {
    /// The place of the drive.
    pub drive: u32,
    /// Stripes that it holds.
    pub done: u64,
    /// All its stripes.
    pub of: u64,
    /// Blocks in use that cannot be restored, because the block of another drive in the stripe is
    /// damaged too.
    pub lost: Vec<Finding>,
}

impl Store {
    /// Puts a new drive in the place of a missing one. All data on the device are lost.
    ///
    /// Errors: the place is not empty; the device is too small, in use, or a drive of another
    /// aggregate.
    pub fn replace_drive(&mut self, place: u32, device: Arc<dyn BlockDevice>) -> Result<()> {
        self.check_running()?;
        self.check_new_drive(place, &device)?;
        if !self.durable.missing.contains(&place) {
            self.commit_drives()?; // otherwise the empty drive could pass for the old one
        }
        // In this order, no empty drive ever looks current.
        let device = of_version(device, self.aggregate.version);
        for half in 0..2 {
            device.write_at(superblock_slot(half) * SLOT as u64, &[0; SLOT])?;
        }
        device.flush()?;
        self.write_label(place, &device)?;
        // With the last superblock the drive is current. That superblock still calls it missing,
        // until the next one is durable.
        let (offset, slot) = superblock_at(self.sb_slot, self.durable.cp, &self.durable.encode());
        device.write_at(offset, &slot[..])?;
        device.flush()?;
        self.raid.begin_filling(place as usize, device, 0);
        self.commit_drives()
    }

    fn check_new_drive(&self, place: u32, device: &Arc<dyn BlockDevice>) -> Result<()> {
        let wrong = |what: String| Err(Error::WrongDevice { device: device.name().to_owned(), what });
        let states = self.raid.drive_states();
        let Some((name, state)) = states.get(place as usize) else {
            return Err(Error::invalid(format!("there is no drive {place}; the aggregate has {}", states.len())));
        };
        if !matches!(state, DriveState::Missing { .. }) {
            let name = name.as_deref().unwrap_or("a device");
            let what = format!("drive {place} ({name}) is here; only a drive that is missing can be replaced");
            return Err(Error::invalid(what));
        }
        check_alignment(device)?;
        if self.raid.present().any(|(_, other)| Arc::ptr_eq(other, device)) {
            return wrong("it is a drive of this aggregate already".to_owned());
        }
        let sized = of_version(device.clone(), self.aggregate.version);
        let (has, wanted) =
            (sized.size().0, self.raid.geometry.drive_bytes(self.raid.geometry.group_of(place as usize)));
        if has < wanted {
            return wrong(format!("too small for drive {place}: {has} bytes of {wanted}"));
        }
        match read_label(device) {
            Ok(label) if label.aggregate.uuid != self.aggregate.uuid => wrong(
                "a drive of another aggregate; clear its first 12,480 bytes if that is not wanted any more".to_owned(),
            ),
            Ok(label) if label.drive != place => {
                wrong(format!("its label says that it is drive {} of this aggregate, not {place}", label.drive))
            }
            _ => Ok(()),
        }
    }

    /// Fills up to `stripes` stripes of the first drive that is being filled. They are durable on
    /// return. `None` if there is none.
    ///
    /// Errors: those of the new drive, which is taken out again, and those of a consistency point.
    pub fn rebuild_step(&mut self, stripes: u64) -> Result<Option<RebuildStep>> {
        self.check_running()?;
        let Some((drive, done)) = self.raid.filling().first().copied() else { return Ok(None) };
        let place = drive as usize;
        let group = self.raid.geometry.group_of(place);
        let own = place - self.raid.geometry.first_drive(group);
        let of = self.raid.geometry.groups[group].stripes;
        let end = (done + stripes.max(1)).min(of);
        let mut lost = Vec::new();
        for first in (done..end).step_by(ROWS_AT_ONCE as usize) {
            let rows = self.raid.read_rows(group, first, ROWS_AT_ONCE.min(end - first));
            let mut slots = Vec::with_capacity(rows.len());
            for row in &rows {
                lost.extend(self.find_lost(row, own)?);
                slots.push(row.sum_without(Some(own)));
            }
            self.raid.fill(place, first, &slots);
        }
        self.commit_drives()?;
        if let DriveState::Missing { why } = &self.raid.drive_states()[place].1 {
            return Err(Error::invalid(format!("drive {drive} failed while it was filled: {why}")));
        }
        Ok(Some(RebuildStep { drive, done: end, of, lost }))
    }

    /// The blocks in use of a stripe that cannot be restored without one of its drives.
    fn find_lost(&mut self, row: &Row, own: usize) -> Result<Vec<Finding>> {
        let data = usize::from(self.raid.geometry.groups[row.group].data_drives);
        let mut bad = self.judge(row)?;
        if own < data && self.is_slot_used(row, own)? {
            let silent = (0..row.slots.len()).any(|other| other != own && row.slots[other].is_none());
            let judged = match silent {
                true => Err(Damage::new("stripe", "drives that answer", "too few", "all others")),
                false => self.judge_slot(row, own, &row.sum_without(Some(own)))?,
            };
            bad.extend(judged.err().map(|damage| (own, damage)));
        }
        Ok(bad.into_iter().map(|(drive, damage)| self.find_on(row, drive, damage)).collect())
    }
}

/// Stripes of each read.
pub(super) const ROWS_AT_ONCE: u64 = 64;
