//! RAID-4: data drives and one parity drive. Parity is the XOR of whole slots, trailers included.
//!
//! Reads compare each block with the context that the reader wants. A block that differs is
//! restored from the other drives. If the restored block matches, it is written back.

mod chains;
mod drives;
mod geometry;
mod parity_recovery;
mod request_counts;
mod requests;
mod stripes;
#[cfg(test)]
mod tests;
mod version_7;
mod whole_stripes;

use std::sync::atomic::Ordering::Relaxed;

use crate::{
    error::{Error, Result},
    format::{
        Damage,
        page::Page,
        slot::{self, Context, Kind, Slot},
    },
};
pub(crate) use chains::CHAIN_SLOTS;
use drives::Watch;
pub(crate) use drives::{Drive, superblock_at};
pub use drives::{DriveFailure, DriveState};
pub(crate) use geometry::{FIXED_SLOTS, Geometry, LABELS, Place, slot_offset, superblock_slot};
use request_counts::Counters;
pub use request_counts::{Chains, DriveCounts, RaidCounts};
pub(crate) use requests::Request;
pub(crate) use stripes::{Old, Slots, StripeRange, xor};
pub(crate) use version_7::OldDrive;
pub(crate) use whole_stripes::Row;

/// The identity of the block that a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub kind: Kind,
    pub level: Option<u8>,
    pub owner: u64,
    pub block: u64,
    pub tag: u16,
}

impl Want {
    /// A compacted block of a container.
    pub fn compacted(owner: u64, tag: u16) -> Self {
        Self { kind: Kind::Compacted, level: Some(0), owner, block: 0, tag }
    }

    /// Compares the trailer of a block at `pvbn` with this identity.
    pub fn check(&self, context: &Context, pvbn: u64) -> std::result::Result<(), Damage> {
        let fields = [
            ("kind", context.kind as u64, self.kind as u64),
            ("level", context.level.into(), self.level.unwrap_or(context.level).into()),
            ("owner", context.owner, self.owner),
            ("block", context.block, self.block),
            ("PVBN", context.pvbn, pvbn),
            ("tag", context.tag.into(), self.tag.into()),
        ];
        match fields.into_iter().find(|(_, found, wanted)| found != wanted) {
            None => Ok(()),
            Some((field, found, wanted)) => Err(Damage::new("trailer", field, found, wanted)),
        }
    }
}

/// All drives of an aggregate.
pub(crate) struct Raid {
    pub geometry: Geometry,
    drives: Vec<Drive>,
    counters: Counters,
    watch: Watch,
}

impl Raid {
    /// Errors: a group has more missing drives than parity can replace.
    pub fn new(geometry: Geometry, drives: Vec<Drive>) -> Result<Self> {
        for (index, group) in geometry.groups.iter().enumerate() {
            let first = geometry.first_drive(index);
            let missing =
                (first..).zip(&drives[first..first + group.drives()]).filter_map(|(place, drive)| match drive {
                    Drive::Here(_) => None,
                    Drive::Filling { done, .. } => {
                        Some(format!("drive {place} (holds {done} of {} blocks)", group.stripes))
                    }
                    Drive::Missing { why } => Some(format!("drive {place} ({why})")),
                });
            let missing: Vec<String> = missing.collect();
            if missing.len() > usize::from(group.parity) {
                let spare = if group.parity { "parity makes up for one" } else { "there is no parity" };
                let list = missing.join(", ");
                return Err(Error::invalid(format!("RAID group {index}: missing are {list}; {spare}")));
            }
        }
        let counters = Counters::new(drives.len());
        Ok(Self { geometry, drives, counters, watch: Watch::default() })
    }

    /// Requests to all drives since the opening.
    pub fn counts(&self) -> RaidCounts {
        self.counters.sum(|drive| self.is_parity(drive))
    }

    /// Requests to each drive since the opening.
    pub fn drive_counts(&self) -> Vec<DriveCounts> {
        self.counters.drives()
    }

    /// Whether a drive holds parity.
    pub fn is_parity(&self, drive: usize) -> bool {
        self.geometry.is_parity(drive)
    }

    /// Reads the block at `pvbn`. Errors: its difference from the wanted block.
    pub fn read(&mut self, pvbn: u64, want: &Want) -> std::result::Result<Page, Damage> {
        let nothing = || Damage::new("drive", "answer", "nothing", "a block");
        self.read_chain(pvbn, std::slice::from_ref(want), &mut Vec::new()).pop().unwrap_or_else(|| Err(nothing()))
    }

    /// Restores the block at `pvbn` from the other drives and writes it back.
    ///
    /// Errors: `Damaged` with `why` (the damage of the block itself) if the restored block is not
    /// the wanted one.
    pub fn repair(&mut self, pvbn: u64, want: &Want, why: Damage) -> Result<Page> {
        let lost = |why| Error::damaged(format!("block {} of file {} at PVBN {pvbn}", want.block, want.owner), why);
        let Some(place) = self.geometry.locate(pvbn) else { return Err(lost(why)) };
        let Some(slot) = self.rebuild_slot(place.group, place.drive, place.stripe) else { return Err(lost(why)) };
        if slot::decode(&slot).and_then(|context| want.check(&context, pvbn)).is_err() {
            return Err(lost(why));
        }
        self.counters.repairs.fetch_add(1, Relaxed);
        self.write_back(place.group, place.drive, place.stripe, &slot);
        Ok(slot.into())
    }

    /// Restores a slot from the other drives; `None` if one of them is missing or fails, or the
    /// group has no parity.
    pub fn rebuild_slot(&self, group: usize, drive: usize, stripe: u64) -> Option<Slot> {
        self.try_rebuild(group, drive, stripe).ok()
    }

    /// Like [`rebuild_slot`](Self::rebuild_slot).
    ///
    /// Errors: the first of the other drives that fails to read its slot, and why; `None` without
    /// parity.
    fn try_rebuild(
        &self,
        group: usize,
        drive: usize,
        stripe: u64,
    ) -> std::result::Result<Slot, Option<(usize, Error)>> {
        let shape = self.geometry.groups[group];
        if !shape.parity {
            return Err(None);
        }
        let mut sum = Slot::zeros();
        for other in (0..shape.drives()).filter(|&other| other != drive) {
            let slot = self.read_slot(group, other, stripe).map_err(|failure| Some((other, failure)))?;
            stripes::xor(&mut sum, &slot);
        }
        Ok(sum)
    }
}

/// The context of labels and superblocks, which have no PVBN.
pub(crate) fn fixed_context(kind: Kind, place: u64, cp: u64) -> Context {
    Context { kind, level: 0, tag: cp as u16, owner: 0, block: place, pvbn: 0, cp, hint_file: 0, hint_block: 0 }
}
