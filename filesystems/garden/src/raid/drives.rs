//! The drives of an aggregate: present, missing, or being filled.
//!
//! A drive that fails is taken out if parity can replace it, and its group continues without it.
//! Its contents are too old from then on. It can only come back as a new drive, which is filled
//! stripe by stripe.

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

/// A place for a drive.
pub(crate) enum Drive {
    Here(Arc<dyn BlockDevice>),
    /// Holds the stripes below `done`. The others are as if the drive were missing.
    Filling {
        device: Arc<dyn BlockDevice>,
        done: u64,
    },
    Missing {
        why: String,
    },
}

/// The state of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveState {
    /// The drive holds all its stripes.
    Here,
    /// The drive is absent, failed, or too old to be used. Its group continues without it.
    Missing {
        /// The reason, in words.
        why: String,
    },
    /// The drive is new, and is filled from the others of its group.
    Filling {
        /// Stripes that it holds.
        done: u64,
        /// Stripes of a full drive.
        of: u64,
    },
}

/// A drive that failed while the aggregate was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveFailure {
    /// The place among all drives.
    pub drive: u32,
    /// The name of the device.
    pub device: String,
    /// The failure, in words.
    pub why: String,
    /// Whether parity replaces the drive, so that its group continues without it. Otherwise
    /// requests for its blocks fail.
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
            // A closed channel means that the receiver wants no more reports.
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
    /// The device name and the state of each place.
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

    /// The places of missing drives.
    pub fn missing(&self) -> Vec<u32> {
        let is_missing = |drive: &Drive| matches!(drive, Drive::Missing { .. });
        (0..).zip(&self.drives).filter(|(_, drive)| is_missing(drive)).map(|(place, _)| place).collect()
    }

    /// The drives that are being filled, and the number of stripes that each holds.
    pub fn filling(&self) -> Vec<(u32, u64)> {
        let filled = |(place, drive): (u32, &Drive)| match drive {
            Drive::Filling { done, .. } => Some((place, *done)),
            _ => None,
        };
        (0..).zip(&self.drives).filter_map(filled).collect()
    }

    /// The present devices, with their places.
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

    /// Whether a device holds a stripe for a drive of a group.
    pub fn holds(&self, group: usize, drive: usize, stripe: u64) -> bool {
        match &self.drives[self.geometry.first_drive(group) + drive] {
            Drive::Here(_) => true,
            Drive::Filling { done, .. } => stripe < *done,
            Drive::Missing { .. } => false,
        }
    }

    /// Takes out a drive because it failed.
    ///
    /// Errors: returns the failure if the group cannot do without the drive.
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

    /// Reports the failure of a drive to the receiver, if there is one and the drive is not missing
    /// already.
    pub(super) fn report_failure(&mut self, place: usize, failure: &Error, is_left_out: bool) {
        if let Some(device) = self.drives[place].device() {
            let (drive, device) = (place as u32, device.name().to_owned());
            self.watch.report(DriveFailure { drive, device, why: failure.to_string(), is_left_out });
        }
    }

    /// Sends the first failure of each drive from now on; `None` stops that.
    pub fn watch(&mut self, sender: Option<Sender<DriveFailure>>) {
        self.watch = Watch { sender, reported: Vec::new() };
    }

    fn is_here(&self, place: usize) -> bool {
        matches!(self.drives[place], Drive::Here(_))
    }

    /// Puts a new drive into an empty place. It holds the stripes below `done`.
    pub fn begin_filling(&mut self, place: usize, device: Arc<dyn BlockDevice>, done: u64) {
        self.watch.reported.retain(|&drive| drive as usize != place);
        self.drives[place] = Drive::Filling { device, done };
    }

    /// Notes that a superblock with the current [`filling`](Self::filling) is durable. Completely
    /// filled drives become normal ones.
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

    /// Makes all writes durable. Takes out a drive whose flush fails.
    pub fn flush(&mut self) -> Result<()> {
        self.each(|device| Ok(device.flush()?))
    }

    /// Writes a superblock to one of its two places (0 or 1) on every drive. Does not flush.
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

    /// Reads a slot of a drive of the group (data drives first, then parity).
    pub fn read_slot(&self, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let device = self.holder(group, drive, stripe).ok_or_else(|| self.missing_drive(group, drive))?;
        let mut slot = Slot::zeros();
        device.read_at(slot_offset(stripe), &mut slot[..])?;
        Ok(slot)
    }

    pub(super) fn missing_drive(&self, group: usize, drive: usize) -> Error {
        Error::invalid(format!("drive {drive} of RAID group {group} is missing or does not answer"))
    }

    /// Writes a restored slot back to its drive. If the write, or the read after it, fails, takes
    /// the drive out, unless its group needs it. The restored slot is right in any case.
    pub fn write_back(&mut self, group: usize, drive: usize, stripe: u64, slot: &Slot) {
        let Some(device) = self.holder(group, drive, stripe) else { return };
        let mut again = Slot::zeros();
        let written = device
            .write_at(slot_offset(stripe), &slot[..])
            .and_then(|()| device.read_at(slot_offset(stripe), &mut again[..]));
        if let Err(failure) = written {
            // If the group needs the drive, it stays. The next read of this block tries again.
            let _ = self.fail(self.geometry.first_drive(group) + drive, failure.into());
        }
    }
}

/// The offset and the slot of a superblock.
pub(crate) fn superblock_at(half: u64, cp: u64, block: &Block) -> (u64, Slot) {
    let offset = superblock_slot(half) * SLOT as u64;
    (offset, slot::encode(block, &fixed_context(Kind::Superblock, 1 + half, cp)))
}
