//! Repair of stripes: which blocks are wrong, and their right contents.
//!
//! A block in use is right under three conditions. Its checksums match, its own PVBN is its place,
//! and the map that it names has a pointer with this place and tag. The last condition detects lost
//! writes, where an old block is complete.

use super::{AGGREGATE, Freed, Key, Store, aggregate};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{
        Damage,
        pointer::Physical,
        slot::{self, Context, Kind, Slot},
    },
    raid::{Old, Place, Row},
};

impl Store {
    /// The data drives of a stripe whose blocks are in use and wrong, with the damage. Skips
    /// missing drives.
    pub(super) fn judge(&mut self, row: &Row) -> Result<Vec<(usize, Damage)>> {
        let data = usize::from(self.raid.geometry.groups[row.group].data_drives);
        let mut bad = Vec::new();
        for (drive, slot) in row.slots.iter().take(data).enumerate() {
            if !self.raid.holds(row.group, drive, row.stripe) || !self.is_slot_used(row, drive)? {
                continue;
            }
            let judged = match slot {
                None => Err(Damage::new("drive", "answer", "an error", "a block")),
                Some(slot) => self.judge_slot(row, drive, slot)?,
            };
            bad.extend(judged.err().map(|damage| (drive, damage)));
        }
        Ok(bad)
    }

    /// Whether the block of a data drive is in use.
    pub(super) fn is_slot_used(&mut self, row: &Row, drive: usize) -> Result<bool> {
        self.is_used(self.raid.geometry.pvbn(Place { group: row.group, stripe: row.stripe, drive }))
    }

    /// Judges whether a slot is the one in use at this place. The inner error is the damage.
    pub(super) fn judge_slot(
        &mut self,
        row: &Row,
        drive: usize,
        slot: &Slot,
    ) -> Result<std::result::Result<(), Damage>> {
        self.judge_at(self.raid.geometry.pvbn(Place { group: row.group, stripe: row.stripe, drive }), slot)
    }

    /// Blocks that left the maps since the last consistency point are still in use by it. They are
    /// right if they have the recorded tag.
    fn judge_at(&mut self, pvbn: u64, slot: &Slot) -> Result<std::result::Result<(), Damage>> {
        let context = match slot::decode(slot) {
            Ok(context) => context,
            Err(damage) => return Ok(Err(damage)),
        };
        if context.pvbn != pvbn {
            return Ok(Err(Damage::new("trailer", "PVBN", context.pvbn, pvbn)));
        }
        if let Some(&tag) = self.pending.get(&pvbn) {
            let other = || Damage::new("trailer", "tag", context.tag, tag);
            return Ok(if context.tag == tag { Ok(()) } else { Err(other()) });
        }
        let is_named = match self.is_named(&context, slot) {
            // The map itself is damaged. The scrub finds that at the place of the map.
            Err(Error::Damaged { .. }) => true,
            other => other?,
        };
        let unnamed = || Damage::new("trailer", "tag", context.tag, "one that a map has for this place");
        Ok(if is_named { Ok(()) } else { Err(unnamed()) })
    }

    /// Restores blocks that stay in partly written stripes, are in use, and differ from the maps.
    /// Parity computed from such a block would lose the contents that the old parity still covers.
    /// Blocks that cannot be restored stay as they are. `freed` are blocks that the last
    /// consistency point uses and the running one does not, with their tags.
    ///
    /// Cost: for each block that stays, a lookup in the map that names it, which is read if it is
    /// not in memory.
    pub(super) fn mend_stays(&mut self, old: &mut Old, freed: &Freed) -> Result<()> {
        for (place, slot) in &mut old.stays {
            if self.is_to_stay(place, slot, freed)? {
                continue;
            }
            let Some(rebuilt) = self.raid.rebuild_slot(place.group, place.drive, place.stripe) else { continue };
            if self.is_to_stay(place, &rebuilt, freed)? {
                self.raid.restore(place.group, place.drive, place.stripe, &rebuilt);
                *slot = rebuilt;
            }
        }
        Ok(())
    }

    /// Whether a slot is the one in use at its place, or none is in use there.
    fn is_to_stay(&mut self, place: &Place, slot: &Slot, freed: &Freed) -> Result<bool> {
        let pvbn = self.raid.geometry.pvbn(*place);
        if let Some(tag) = freed.get(&pvbn) {
            return Ok(slot::decode(slot).is_ok_and(|context| context.pvbn == pvbn && context.tag == *tag));
        }
        Ok(!self.is_used(pvbn)? || self.judge_at(pvbn, slot)?.is_ok())
    }

    /// Whether the map that a trailer names has a pointer to its block, or to one of its chunks.
    pub(super) fn is_named(&mut self, context: &Context, slot: &Slot) -> Result<bool> {
        if context.kind == Kind::Compacted {
            return Ok(!self.live_chunks(context, &slot::payload(slot))?.is_empty());
        }
        let is_container = context.owner >= aggregate::FIRST_CONTAINER;
        let level = match context.kind {
            Kind::Volume if is_container => 0,
            Kind::Aggregate if !is_container || context.level > 0 => context.level,
            _ => return Ok(false),
        };
        if self.try_inode(AGGREGATE, context.owner)?.is_none() {
            return Ok(false);
        }
        let pointer = self.pointer(Key::new(AGGREGATE, context.owner, level, context.block))?;
        Ok(pointer.is_some_and(|pointer| pointer.at == Physical::block(context.pvbn, context.tag)))
    }

    /// A finding on a drive of a stripe, with its place in words.
    pub(super) fn find_on(&self, row: &Row, drive: usize, damage: Damage) -> Finding {
        let place = self.raid.geometry.first_drive(row.group) + drive;
        Finding { place: format!("drive {place}, stripe {} of RAID group {}", row.stripe, row.group), damage }
    }
}
