//! The two places of the superblock, written in turn, and the second copies of both.

use senesce_block::{BlockDevice, BlockError, BlockResult};

use super::{
    BLOCK, Damage, Decoded, FORMAT_VERSION, OLDEST_VERSION, Superblock,
    geometry::{SECOND_SLOT_AT, SLOT_COPIES_AT},
    superblock::MAGIC,
};
use crate::{Error, Result};

/// Where the slots lie.
pub(crate) const SLOTS_AT: [u64; 2] = [0, SECOND_SLOT_AT];
/// Where the second copy of each slot is.
pub(crate) const MIRRORS_AT: [u64; 2] = SLOT_COPIES_AT;

const PLACES: [&str; 2] = ["superblock at 0", "superblock at 1 MiB"];
const MIRROR_PLACES: [&str; 2] = ["superblock copy at 768 KiB", "superblock copy at 256 KiB"];

/// One of the two copies of a slot that is not as it must be, while the other one is.
pub(crate) type BadSlotCopy = (&'static str, Damage);

/// What both slots hold.
#[derive(Debug)]
pub struct Slots {
    /// At 0, and at 1 MiB: a superblock, by whichever copy is whole, or why it is none.
    pub slots: [Decoded<Superblock>; 2],
    /// Copies that are not as they must be, of slots of which the other copy is.
    pub(crate) bad_copies: Vec<BadSlotCopy>,
    /// Why the device does not give one of them.
    pub failed: Option<BlockError>,
    /// Readings that failed and were done again, with success.
    pub repeated: u64,
}

impl Slots {
    /// The slot that cannot be read from either copy, in words, and why: the first of them.
    pub fn torn(&self) -> Option<(&'static str, &Damage)> {
        PLACES.into_iter().zip(&self.slots).find_map(|(place, slot)| Some((place, slot.as_ref().err()?)))
    }
}

/// Reads both slots, and their second copies. One that the device does not give is damage of that copy.
///
/// Errors: `Device` if it gives neither slot; `WrongDevice` if the device ends before the second one.
pub fn read_slots(device: &dyn BlockDevice) -> Result<Slots> {
    if device.size().0 < SECOND_SLOT_AT + BLOCK as u64 {
        let what = format!("{} bytes; an evergreen has more than {SECOND_SLOT_AT}", device.size().0);
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    let (mut repeated, mut failed) = (0, Vec::new());
    let read = |at| -> BlockResult<Decoded<Superblock>> {
        let mut block = Box::new([0; BLOCK]);
        // Again, if it failed: the other superblock may be the older one, and what a device gives at last is better than that.
        if device.read_at(at, &mut block[..]).is_err() {
            device.read_at(at, &mut block[..])?;
            repeated += 1;
        }
        Ok(Superblock::decode(&block))
    };
    let mut blocks = [SLOTS_AT[0], SLOTS_AT[1], MIRRORS_AT[0], MIRRORS_AT[1]].map(read);
    for block in &mut blocks {
        if let Err(error) = block {
            let unreadable = Damage::new("superblock", "block", &*error, "one that can be read");
            failed.push(std::mem::replace(block, Ok(Err(unreadable))));
        }
    }
    let [first, second, first_copy, second_copy] =
        blocks.map(|block| block.unwrap_or_else(|_| unreachable!("replaced")));
    let is_readable = |slot: &Decoded<Superblock>| slot.as_ref().err().is_none_or(|damage| damage.field != "block");
    let has_slot = [&first, &second].into_iter().any(is_readable);
    let mut failed = failed.into_iter().find_map(std::result::Result::err);
    let is_trusted = |copy: &Superblock, slot: &Decoded<Superblock>, copy_of_slot: &Decoded<Superblock>| {
        // What is at both places may be another file system, which left the copies alone.
        let is_foreign = |slot: &Decoded<Superblock>| slot.as_ref().is_err_and(|damage| damage.field == "magic");
        match (slot, copy_of_slot) {
            // Programs of version 1 leave a copy of an earlier file system alone.
            (Ok(slot), _) => slot.uuid == copy.uuid && slot.version > OLDEST_VERSION,
            _ if is_foreign(&first) && is_foreign(&second) => false,
            (Err(_), Ok(other)) => other.uuid == copy.uuid,
            (Err(_), Err(_)) => true,
        }
    };
    let are_trusted = [
        first_copy.as_ref().is_ok_and(|copy| is_trusted(copy, &second, &second_copy)),
        second_copy.as_ref().is_ok_and(|copy| is_trusted(copy, &first, &first_copy)),
    ];
    let mut bad_copies = Vec::new();
    let slots = [
        settle(0, first, first_copy, are_trusted[0], &mut bad_copies),
        settle(1, second, second_copy, are_trusted[1], &mut bad_copies),
    ];
    let has_any = has_slot || slots.iter().any(Decoded::is_ok);
    if let Some(error) = failed.take_if(|_| !has_any) {
        return Err(Error::Device(error));
    }
    Ok(Slots { slots, bad_copies, failed, repeated })
}

/// What a slot holds by both of its copies.
fn settle(
    number: usize,
    slot: Decoded<Superblock>,
    copy: Decoded<Superblock>,
    is_trusted: bool,
    bad: &mut Vec<BadSlotCopy>,
) -> Decoded<Superblock> {
    match (slot, copy) {
        // The slot holds what it held before: its last writing was lost.
        (Ok(slot), Ok(copy))
            if slot.uuid == copy.uuid && slot.version > OLDEST_VERSION && slot.generation < copy.generation =>
        {
            bad.push((PLACES[number], Damage::new("superblock", "generation", slot.generation, copy.generation)));
            Ok(copy)
        }
        (Ok(slot), copy) => {
            let damage = match copy {
                Ok(copy) if copy == slot => None,
                Ok(copy) if copy.uuid == slot.uuid => {
                    Some(Damage::new("superblock", "generation", copy.generation, slot.generation))
                }
                Ok(_) => Some(Damage::new("superblock", "uuid", "another", "that of the slot")),
                Err(damage) => Some(damage),
            };
            // Of version 1 there was no second copy.
            let damage = damage.filter(|_| slot.version > OLDEST_VERSION);
            bad.extend(damage.map(|damage| (MIRROR_PLACES[number], damage)));
            Ok(slot)
        }
        (Err(damage), Ok(copy)) if is_trusted && damage.field != "version" => {
            bad.push((PLACES[number], damage));
            Ok(copy)
        }
        (Err(damage), _) => Err(damage),
    }
}

/// Whether an evergreen lies on a device, of whatever version, damaged or not: as far as can be told.
pub fn is_evergreen(device: &dyn BlockDevice) -> bool {
    let mut block = [0; BLOCK];
    let mut is_at = |at| device.read_at(at, &mut block).is_ok() && block.starts_with(MAGIC);
    SLOTS_AT.into_iter().any(&mut is_at)
}

/// The newest superblock of a device.
///
/// Errors: `Device` if a slot fails and the other one holds no superblock; `WrongDevice` if no evergreen lies there, one of another
/// format, or a part of one only; `Damaged` if neither slot holds a superblock, or they belong to different file systems.
pub fn read_newest(device: &dyn BlockDevice) -> Result<Superblock> {
    newest_of(device, &mut read_slots(device)?)
}

/// The same of slots that were read.
pub(crate) fn newest_of(device: &dyn BlockDevice, slots: &mut Slots) -> Result<Superblock> {
    let wrong = |what: String| Error::WrongDevice { device: device.name().to_owned(), what };
    let newest = match &slots.slots {
        [Ok(first), Ok(second)] => {
            if first.uuid != second.uuid {
                let what = "the superblocks at 0 and at 1 MiB are of different file systems".to_owned();
                return Err(Error::Damaged { place: device.name().to_owned(), what });
            }
            if first.generation > second.generation { first } else { second }
        }
        [Err(damage), _] | [_, Err(damage)] if damage.field == "version" => return Err(wrong(other_version(damage))),
        [Ok(only), Err(_)] | [Err(_), Ok(only)] => only,
        [Err(first), Err(second)] => {
            if let Some(error) = slots.failed.take() {
                return Err(Error::Device(error));
            }
            if [first, second].iter().all(|damage| damage.field == "magic") {
                return Err(wrong("no evergreen lies there: no superblock at 0, and none at 1 MiB".to_owned()));
            }
            let what = format!("neither superblock can be read: at 0, {first}; at 1 MiB, {second}");
            return Err(Error::Damaged { place: device.name().to_owned(), what });
        }
    };
    if device.size().0 < newest.geometry.device_bytes {
        let (has, wants) = (device.size().0, newest.geometry.device_bytes);
        return Err(wrong(format!("{has} bytes; the evergreen on it was made for {wants}: a part of it is missing")));
    }
    Ok(newest.clone())
}

/// Writes a superblock to both copies of the slot of its generation, which is not that of the generation before. Not durable before the
/// next flush; what it names must be durable before.
pub fn write_superblock(device: &dyn BlockDevice, superblock: &Superblock) -> Result<()> {
    let slot = (superblock.generation % 2) as usize;
    let block = superblock.encode();
    device.write_at(SLOTS_AT[slot], &block[..])?;
    // Programs of version 1 know of no second copy.
    if superblock.version > OLDEST_VERSION {
        device.write_at(MIRRORS_AT[slot], &block[..])?;
    }
    Ok(())
}

/// Writes zeros over both slots and their copies and makes that durable: nothing lies on the device any more.
pub fn clear_slots(device: &dyn BlockDevice) -> Result<()> {
    for at in SLOTS_AT.into_iter().chain(MIRRORS_AT) {
        device.write_at(at, &[0; BLOCK])?;
    }
    Ok(device.flush()?)
}

fn other_version(damage: &Damage) -> String {
    let found = &damage.found;
    format!("an evergreen of format version {found}; this program reads versions {OLDEST_VERSION} to {FORMAT_VERSION}")
}

#[cfg(test)]
mod tests;
