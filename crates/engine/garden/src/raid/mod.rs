//! RAID-4: data drives and one of parity. Parity is the XOR of whole slots, trailers included.
//!
//! Blocks are checked here against the context that the reader wants; what does not fit is put together again from the
//! other drives and, if that fits, written back.

mod chains;
mod counts;
mod geometry;
mod stripes;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use senesce_block::BlockDevice;

use crate::{
    error::{Error, Result},
    format::{
        Block, Damage, SLOT,
        slot::{self, Context, Kind, Slot},
    },
};
pub(crate) use chains::CHAIN_SLOTS;
use counts::Counters;
pub use counts::{Chains, DriveCounts, RaidCounts};
pub(crate) use geometry::{FIXED_SLOTS, Geometry, Place, slot_offset};
pub(crate) use stripes::StripeRange;

/// What a reader wants to find: anything else is not its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub kind: Kind,
    pub level: Option<u8>,
    pub owner: u64,
    pub block: u64,
    pub tag: u16,
}

impl Want {
    /// Whether it is that block, at that place.
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

/// All drives of an aggregate. A drive that is missing is `None`.
pub(crate) struct Raid {
    pub geometry: Geometry,
    drives: Vec<Option<Arc<dyn BlockDevice>>>,
    counters: Counters,
}

impl Raid {
    /// Errors: more drives missing than parity makes up for.
    pub fn new(geometry: Geometry, drives: Vec<Option<Arc<dyn BlockDevice>>>) -> Result<Self> {
        for (index, group) in geometry.groups.iter().enumerate() {
            let first = geometry.first_drive(index);
            let missing = drives[first..first + group.drives()].iter().filter(|drive| drive.is_none()).count();
            if missing > usize::from(group.parity) {
                return Err(Error::invalid(format!(
                    "RAID group {index}: {missing} drives are missing; parity makes up for {}",
                    u8::from(group.parity)
                )));
            }
        }
        let counters = Counters::new(drives.len());
        Ok(Self { geometry, drives, counters })
    }

    /// What all drives were asked for since they were opened.
    pub fn counts(&self) -> RaidCounts {
        self.counters.sum(|drive| self.is_parity(drive))
    }

    /// The same by drive.
    pub fn drive_counts(&self) -> Vec<DriveCounts> {
        self.counters.drives()
    }

    /// Whether a drive holds parity.
    pub fn is_parity(&self, drive: usize) -> bool {
        let group = self.geometry.group_of(drive);
        drive - self.geometry.first_drive(group) >= usize::from(self.geometry.groups[group].data_drives)
    }

    /// The block at `pvbn` if it is the one wanted; else what speaks against it.
    pub fn read(&self, pvbn: u64, want: &Want) -> std::result::Result<Box<Block>, Damage> {
        let nothing = || Damage::new("drive", "answer", "nothing", "a block");
        self.read_chain(pvbn, std::slice::from_ref(want)).pop().unwrap_or_else(|| Err(nothing()))
    }

    /// The block at `pvbn` from the other drives, if that is the one wanted; it is written back.
    ///
    /// Errors: `Damaged` with `why` (what was wrong with the block itself) if there is nothing that fits.
    pub fn repair(&self, pvbn: u64, want: &Want, why: Damage) -> Result<Box<Block>> {
        let lost = |why| Error::damaged(format!("block {} of file {} at PVBN {pvbn}", want.block, want.owner), why);
        let Some(place) = self.geometry.locate(pvbn) else { return Err(lost(why)) };
        let Some(slot) = self.rebuild_slot(place.group, place.drive, place.stripe) else { return Err(lost(why)) };
        if slot::decode(&slot).and_then(|context| want.check(&context, pvbn)).is_err() {
            return Err(lost(why));
        }
        self.counters.repairs.fetch_add(1, Relaxed);
        if let Some(drive) = self.drive(place.group, place.drive) {
            drive.write_at(slot_offset(place.stripe), &slot[..])?;
        }
        Ok(slot::payload(&slot))
    }

    /// The drives that are missing, by their place among all.
    pub fn missing(&self) -> Vec<u32> {
        (0..).zip(&self.drives).filter(|(_, drive)| drive.is_none()).map(|(place, _)| place).collect()
    }

    /// The drives that are here.
    pub fn present(&self) -> impl Iterator<Item = &Arc<dyn BlockDevice>> {
        self.drives.iter().flatten()
    }

    pub fn flush(&self) -> Result<()> {
        for drive in self.present() {
            drive.flush()?;
        }
        Ok(())
    }

    /// Writes a superblock to one of the two places (0 or 1) for it on every drive. Not flushed.
    pub fn write_superblock(&self, half: u64, cp: u64, block: &Block) -> Result<()> {
        let place = 1 + half;
        let context = fixed_context(Kind::Superblock, place, cp);
        let slot = slot::encode(block, &context);
        for drive in self.present() {
            drive.write_at(place * SLOT as u64, &slot[..])?;
        }
        Ok(())
    }

    /// A slot as it lies on a drive of the group (data drives first, then parity).
    pub fn read_slot(&self, group: usize, drive: usize, stripe: u64) -> Result<Slot> {
        let missing = || Error::invalid(format!("drive {drive} of RAID group {group} is missing"));
        let device = self.drive(group, drive).ok_or_else(missing)?;
        let mut slot = slot::zero_slot();
        device.read_at(slot_offset(stripe), &mut slot[..])?;
        Ok(slot)
    }

    fn drive(&self, group: usize, drive: usize) -> Option<&Arc<dyn BlockDevice>> {
        self.drives[self.geometry.first_drive(group) + drive].as_ref()
    }

    /// A slot of a data drive as the other drives tell it; `None` if one of them is missing, fails, or none is parity.
    fn rebuild_slot(&self, group: usize, drive: usize, stripe: u64) -> Option<Slot> {
        let shape = self.geometry.groups[group];
        if !shape.parity {
            return None;
        }
        let mut sum = slot::zero_slot();
        for other in (0..shape.drives()).filter(|&other| other != drive) {
            stripes::xor(&mut sum, &self.read_slot(group, other, stripe).ok()?);
        }
        Some(sum)
    }
}

/// The context of labels and superblocks, which have no PVBN.
pub(crate) fn fixed_context(kind: Kind, place: u64, cp: u64) -> Context {
    Context { kind, level: 0, tag: cp as u16, owner: 0, block: place, pvbn: 0, cp, hint_file: 0, hint_block: 0 }
}
