//! The two slots of the superblock, written alternately, and the second copies of both.

use senesce_block::{BlockDevice, BlockError, BlockResult};

use super::{
    BLOCK, Damage, Decoded, FORMAT_VERSION, OLDEST_VERSION, Superblock,
    geometry::{SECOND_SLOT_AT, SLOT_COPIES_AT},
    superblock::MAGIC,
};
use crate::{Error, Result};

/// The offsets of the slots.
pub(crate) const SLOTS_AT: [u64; 2] = [0, SECOND_SLOT_AT];
/// The offsets of their second copies.
pub(crate) const MIRRORS_AT: [u64; 2] = SLOT_COPIES_AT;

const PLACES: [&str; 2] = ["superblock at 0", "superblock at 1 MiB"];
const MIRROR_PLACES: [&str; 2] = ["superblock copy at 768 KiB", "superblock copy at 256 KiB"];

/// A damaged copy of a slot whose other copy is whole.
pub(crate) type BadSlotCopy = (&'static str, Damage);

/// The contents of both slots.
#[derive(Debug)]
pub struct Slots {
    /// The slots at 0 and at 1 MiB: a superblock from any whole copy, or the damage.
    pub slots: [Decoded<Superblock>; 2],
    /// Damaged copies of slots whose other copy is whole.
    pub(crate) bad_copies: Vec<BadSlotCopy>,
    /// The error of the device for a block that cannot be read.
    pub failed: Option<BlockError>,
    /// The number of reads that failed at first and succeeded when repeated.
    pub repeated: u64,
}

impl Slots {
    /// The first slot without a whole copy, and its damage.
    pub fn torn(&self) -> Option<(&'static str, &Damage)> {
        PLACES.into_iter().zip(&self.slots).find_map(|(place, slot)| Some((place, slot.as_ref().err()?)))
    }
}

/// Reads both slots and their second copies. A block that the device cannot read is damage of that
/// copy.
///
/// Errors: `Device` if neither slot can be read; `WrongDevice` if the device ends before the second
/// slot.
pub fn read_slots(device: &dyn BlockDevice) -> Result<Slots> {
    if device.size().0 < SECOND_SLOT_AT + BLOCK as u64 {
        let what = format!("it has {} bytes; an evergreen has more than {SECOND_SLOT_AT}", device.size().0);
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    let (mut repeated, mut failed) = (0, Vec::new());
    let read = |at| -> BlockResult<Decoded<Superblock>> {
        let mut block = Box::new([0; BLOCK]);
        // Repeat a failed read: without this superblock an older one might be used.
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
        // Both slots may belong to another file system, which did not overwrite the copies.
        let is_foreign = |slot: &Decoded<Superblock>| slot.as_ref().is_err_and(|damage| damage.field == "magic");
        match (slot, copy_of_slot) {
            // Programs for version 1 do not overwrite the copies of an earlier file system.
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

/// Chooses the content of a slot from its two copies.
fn settle(
    number: usize,
    slot: Decoded<Superblock>,
    copy: Decoded<Superblock>,
    is_trusted: bool,
    bad: &mut Vec<BadSlotCopy>,
) -> Decoded<Superblock> {
    match (slot, copy) {
        // The slot is older than its copy: its last write was lost.
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
            // Version 1 has no second copy.
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

/// Whether a slot starts with the magic of an evergreen, of any version, damaged or not.
pub fn is_evergreen(device: &dyn BlockDevice) -> bool {
    let mut block = [0; BLOCK];
    let mut is_at = |at| device.read_at(at, &mut block).is_ok() && block.starts_with(MAGIC);
    SLOTS_AT.into_iter().any(&mut is_at)
}

/// Returns the newest superblock of a device.
///
/// Errors: `Device` if a block fails and no slot holds a superblock. `WrongDevice` if the device
/// holds no evergreen, one of another format version, or only a part of one. `Damaged` if neither
/// slot holds a superblock, or the slots belong to different file systems.
pub fn read_newest(device: &dyn BlockDevice) -> Result<Superblock> {
    newest_of(device, &mut read_slots(device)?)
}

/// Like [`read_newest`], for slots that were read.
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
                return Err(wrong("no evergreen file system: no superblock at 0, and none at 1 MiB".to_owned()));
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

/// Writes a superblock to both copies of the slot of its generation; the previous generation is in
/// the other slot. Durable after the next flush. The blocks that it names must be durable before
/// the call.
pub fn write_superblock(device: &dyn BlockDevice, superblock: &Superblock) -> Result<()> {
    let slot = (superblock.generation % 2) as usize;
    let block = superblock.encode();
    device.write_at(SLOTS_AT[slot], &block[..])?;
    // Version 1 has no second copy.
    if superblock.version > OLDEST_VERSION {
        device.write_at(MIRRORS_AT[slot], &block[..])?;
    }
    Ok(())
}

/// Writes zeros over both slots and their copies and flushes the device. The device then holds no
/// evergreen.
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
