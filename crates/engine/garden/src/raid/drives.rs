//! The drives of an aggregate: which are here, which are missing, which are being filled again.
//!
//! A drive that fails while parity makes up for it is taken out, and its group goes on without it. What it holds from then
//! on is too old to be believed; it comes back only as a new drive, whose stripes are put together one after the other.

use std::sync::{Arc, mpsc::Sender};

use senesce_block::BlockDevice;

use super::{Raid, fixed_context, slot_offset, superblock_slot};
use crate::{
    error::{Error, Result},
    format::{
        Block, SLOT,
        slot::{self, Kind, Slot},
    },
};

/// What stands in a place for a drive.
pub(crate) enum Drive {
    Here(Arc<dyn BlockDevice>),
    /// Right below `done`; the stripes from there on are as if it were missing.
    Filling {
        device: Arc<dyn BlockDevice>,
        done: u64,
    },
    Missing {
        why: String,
    },
}

/// What became of a drive, as the aggregate sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveState {
    /// It holds what it should.
    Here,
    /// It is not there, failed, or is too old to be believed. Its group goes on without it.
    Missing {
        /// Why, in words.
        why: String,
    },
    /// It is new, and is filled from the others of its group.
    Filling {
        /// Stripes that it holds.
        done: u64,
        /// Stripes that it is to hold.
        of: u64,
    },
}

/// A drive that failed while the aggregate was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveFailure {
    /// Its place among all drives.
    pub drive: u32,
    /// The name of its device.
    pub device: String,
    /// The failure, in words.
    pub why: String,
    /// Whether parity makes up for it: its group continues without it. Otherwise requests for its blocks fail.
    pub is_left_out: bool,
}

/// Receives the first failure of each drive.
#[derive(Default)]
pub(super) struct Watch {
    sender: Option<Sender<DriveFailure>>,
    /// Drives that were reported and are still in their places.
    reported: Vec<u32>,
}

impl Watch {
    fn report(&mut self, failure: DriveFailure) {
        let is_again = self.reported.contains(&failure.drive);
        if is_again && !failure.is_left_out {
            return;
        }
        if let Some(sender) = &self.sender {
            if !is_again {
                self.reported.push(failure.drive);
            }
            // A receiver that is gone wants no reports.
            let _ = sender.send(failure);
        }
    }
}

impl Drive {
    fn device(&self) -> Option<&Arc<dyn BlockDevice>> {
        match self {
            Self::Here(device) | Self::Filling { device, .. } => Some(device),
            Self::Missing { .. } => None,
        }
    }
}

impl Raid {
    /// The name of each place's device, and what became of it.
    pub fn drive_states(&self) -> Vec<(Option<String>, DriveState)> {
        let state = |(place, drive): (usize, &Drive)| {
            let of = self.geometry.groups[self.geometry.group_of(place)].stripes;
            let state = match drive {
                Drive::Here(_) => DriveState::Here,
                Drive::Filling { done, .. } => DriveState::Filling { done: *done, of },
                Drive::Missing { why } => DriveState::Missing { why: why.clone() },
            };
            (drive.device().map(|device| device.name().to_owned()), state)
        };
        self.drives.iter().enumerate().map(state).collect()
    }

    /// The drives that are missing, by their place among all.
    pub fn missing(&self) -> Vec<u32> {
        let is_missing = |drive: &Drive| matches!(drive, Drive::Missing { .. });
        (0..).zip(&self.drives).filter(|(_, drive)| is_missing(drive)).map(|(place, _)| place).collect()
    }

    /// The drives that are being filled, and how many stripes each of them holds.
    pub fn filling(&self) -> Vec<(u32, u64)> {
        let filled = |(place, drive): (u32, &Drive)| match drive {
            Drive::Filling { done, .. } => Some((place, *done)),
            _ => None,
        };
        (0..).zip(&self.drives).filter_map(filled).collect()
    }

    /// The devices that are here, with their places.
    pub fn present(&self) -> impl Iterator<Item = (usize, &Arc<dyn BlockDevice>)> {
        self.drives.iter().enumerate().filter_map(|(place, drive)| Some((place, drive.device()?)))
    }

    /// The device that holds a stripe for a drive of a group (data drives first, then parity).
    pub fn holder(&self, group: usize, drive: usize, stripe: u64) -> Option<Arc<dyn BlockDevice>> {
        match &self.drives[self.geometry.first_drive(group) + drive] {
            Drive::Here(device) => Some(device.clone()),
            Drive::Filling { device, done } if stripe < *done => Some(device.clone()),
            _ => None,
        }
    }

    /// Whether it does.
    pub fn holds(&self, group: usize, drive: usize, stripe: u64) -> bool {
        match &self.drives[self.geometry.first_drive(group) + drive] {
            Drive::Here(_) => true,
            Drive::Filling { done, .. } => stripe < *done,
            Drive::Missing { .. } => false,
        }
    }

    /// Takes a drive out because it failed. Errors: gives the failure back if the group cannot do without it.
    pub fn fail(&mut self, place: usize, failure: Error) -> Result<()> {
        let group = self.geometry.group_of(place);
        let first = self.geometry.first_drive(group);
        let places = first..first + self.geometry.groups[group].drives();
        let others_are_whole = places.filter(|&other| other != place).all(|other| self.is_here(other));
        let is_left_out = self.geometry.groups[group].parity && others_are_whole;
        self.report_failure(place, &failure, is_left_out);
        if !is_left_out {
            return Err(failure);
        }
        self.drives[place] = Drive::Missing { why: failure.to_string() };
        Ok(())
    }

    /// Reports the failure of a drive to the receiver, if there is one and the drive is not missing already.
    pub(super) fn report_failure(&mut self, place: usize, failure: &Error, is_left_out: bool) {
        if let Some(device) = self.drives[place].device() {
            let (drive, device) = (place as u32, device.name().to_owned());
            self.watch.report(DriveFailure { drive, device, why: failure.to_string(), is_left_out });
        }
    }

    /// Sends the first failure of each drive from now on; `None` ends that.
    pub fn watch(&mut self, sender: Option<Sender<DriveFailure>>) {
        self.watch = Watch { sender, reported: Vec::new() };
    }

    fn is_here(&self, place: usize) -> bool {
        matches!(self.drives[place], Drive::Here(_))
    }

    /// Puts a new drive in a place that is empty. It holds nothing yet.
    pub fn begin_filling(&mut self, place: usize, device: Arc<dyn BlockDevice>, done: u64) {
        self.watch.reported.retain(|&drive| drive as usize != place);
        self.drives[place] = Drive::Filling { device, done };
    }

    /// Notes that the superblock with what [`filling`](Self::filling) said is durable: drives that are full are as others.
    pub fn note_superblock(&mut self) {
        for place in 0..self.drives.len() {
            let stripes = self.geometry.groups[self.geometry.group_of(place)].stripes;
            if let Drive::Filling { device, done } = &self.drives[place]
                && *done == stripes
            {
                self.drives[place] = Drive::Here(device.clone());
            }
        }
    }

    /// Makes all writes durable; a drive that cannot is taken out.
    pub fn flush(&mut self) -> Result<()> {
        self.each(|device| Ok(device.flush()?))
    }

    /// Writes a superblock to one of the two places (0 or 1) for it on every drive. Not flushed.
    pub fn write_superblock(&mut self, half: u64, cp: u64, block: &Block) -> Result<()> {
        let (offset, slot) = superblock_at(half, cp, block);
        self.each(|device| Ok(device.write_at(offset, &slot[..])?))
    }

    fn each(&mut self, act: impl Fn(&dyn BlockDevice) -> Result<()>) -> Result<()> {
        let devices: Vec<_> = self.present().map(|(place, device)| (place, device.clone())).collect();
        for (place, device) in devices {
            if let Err(failure) = act(&device) {
                self.fail(place, failure)?;
            }
        }
        Ok(())
    }

    /// A slot as it lies on a drive of the group (data drives first, then parity).
    pub fn read_slot(&self, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let device = self.holder(group, drive, stripe).ok_or_else(|| self.missing_drive(group, drive))?;
        let mut slot = Slot::zeros();
        device.read_at(slot_offset(stripe), &mut slot[..])?;
        Ok(slot)
    }

    pub(super) fn missing_drive(&self, group: usize, drive: usize) -> Error {
        Error::invalid(format!("drive {drive} of RAID group {group} is missing or does not answer"))
    }

    /// Writes a slot that was put together from the other drives back to its own. A drive that does not take it, or still
    /// does not give it, is taken out if its group can do without it; what was put together is right in any case.
    pub fn write_back(&mut self, group: usize, drive: usize, stripe: u64, slot: &Slot) {
        let Some(device) = self.holder(group, drive, stripe) else { return };
        let mut again = Slot::zeros();
        let written = device
            .write_at(slot_offset(stripe), &slot[..])
            .and_then(|()| device.read_at(slot_offset(stripe), &mut again[..]));
        if let Err(failure) = written {
            // Without spare parity the drive stays, and whoever wants this block asks for it again.
            let _ = self.fail(self.geometry.first_drive(group) + drive, failure.into());
        }
    }
}

/// Where a superblock lies on a drive, and what is written there.
pub(crate) fn superblock_at(half: u64, cp: u64, block: &Block) -> (u64, Slot) {
    let offset = superblock_slot(half) * SLOT as u64;
    (offset, slot::encode(block, &fixed_context(Kind::Superblock, 1 + half, cp)))
}
