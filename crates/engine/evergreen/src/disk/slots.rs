//! The two places of the superblock, written in turn.

use senesce_block::{BlockDevice, BlockError, BlockResult};

use super::{BLOCK, Damage, Decoded, FORMAT_VERSION, Superblock, geometry::SECOND_SLOT_AT, superblock::MAGIC};
use crate::{Error, Result};

/// Where the slots lie.
pub(crate) const SLOTS_AT: [u64; 2] = [0, SECOND_SLOT_AT];

/// What both slots hold.
#[derive(Debug)]
pub struct Slots {
    /// At 0, and at 1 MiB: a superblock, or why it is none.
    pub slots: [Decoded<Superblock>; 2],
    /// Why the device does not give one of them.
    pub failed: Option<BlockError>,
    /// Readings that failed and were done again, with success.
    pub repeated: u64,
}

impl Slots {
    /// The slot that cannot be read, in words, and why: the first of them.
    pub fn torn(&self) -> Option<(&'static str, &Damage)> {
        let places = ["superblock at 0", "superblock at 1 MiB"];
        places.into_iter().zip(&self.slots).find_map(|(place, slot)| Some((place, slot.as_ref().err()?)))
    }
}

/// Reads both slots. One that the device does not give is damage of that slot.
///
/// Errors: `Device` if it gives neither; `WrongDevice` if the device ends before the second one.
pub fn read_slots(device: &dyn BlockDevice) -> Result<Slots> {
    if device.size().0 < SECOND_SLOT_AT + BLOCK as u64 {
        let what = format!("{} bytes; an evergreen has more than {SECOND_SLOT_AT}", device.size().0);
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    let mut repeated = 0;
    let read = |at| -> BlockResult<Decoded<Superblock>> {
        let mut block = Box::new([0; BLOCK]);
        // Again, if it failed: the other superblock may be the older one, and what a device gives at last is better than that.
        if device.read_at(at, &mut block[..]).is_err() {
            device.read_at(at, &mut block[..])?;
            repeated += 1;
        }
        Ok(Superblock::decode(&block))
    };
    let unreadable = |error: &BlockError| Err(Damage::new("superblock", "block", error, "one that can be read"));
    let (slots, failed) = match SLOTS_AT.map(read) {
        [Err(error), Err(_)] => return Err(Error::Device(error)),
        [Err(error), Ok(second)] => ([unreadable(&error), second], Some(error)),
        [Ok(first), Err(error)] => ([first, unreadable(&error)], Some(error)),
        [Ok(first), Ok(second)] => ([first, second], None),
    };
    Ok(Slots { slots, failed, repeated })
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

/// Writes a superblock to the slot of its generation, which is not that of the generation before. Not durable before the next
/// flush; what it names must be durable before.
pub fn write_superblock(device: &dyn BlockDevice, superblock: &Superblock) -> Result<()> {
    let slot = (superblock.generation % 2) as usize;
    Ok(device.write_at(SLOTS_AT[slot], &superblock.encode()[..])?)
}

/// Writes zeros over both slots and makes that durable: nothing lies on the device any more.
pub fn clear_slots(device: &dyn BlockDevice) -> Result<()> {
    for at in SLOTS_AT {
        device.write_at(at, &[0; BLOCK])?;
    }
    Ok(device.flush()?)
}

fn other_version(damage: &Damage) -> String {
    let found = &damage.found;
    format!("an evergreen of format version {found}; this program reads version {FORMAT_VERSION} only")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use senesce_block::{FaultDevice, MemoryDevice};
    use senesce_core::Bytes;

    use super::{
        super::superblock::tests::{example, forged},
        *,
    };

    fn device_with(generations: &[u64]) -> MemoryDevice {
        let device = MemoryDevice::new("disk", Bytes(64 << 20));
        for &generation in generations {
            write_superblock(&device, &Superblock { generation, ..example() }).unwrap();
        }
        device
    }

    fn refusal(device: &MemoryDevice) -> String {
        read_newest(device).unwrap_err().to_string()
    }

    #[test]
    fn the_newer_valid_slot_counts() {
        assert_eq!(read_newest(&device_with(&[3, 4])).unwrap().generation, 4);
        assert_eq!(read_newest(&device_with(&[4, 5])).unwrap().generation, 5);
        let device = device_with(&[4, 5]);
        device.write_at(SECOND_SLOT_AT + 40, &[1]).unwrap();
        assert_eq!(read_newest(&device).unwrap().generation, 4, "the newer one was torn");
    }

    #[test]
    fn a_slot_that_cannot_be_read_is_damaged_and_the_other_one_counts() {
        for (fault, generation) in [("fail read at 0+4096", Some(5)), ("fail read at 1048576+4096", Some(4))]
            .into_iter()
            .chain([("fail read 1", Some(5)), ("fail read 2", Some(5)), ("fail read 1..", None)])
        {
            let device = FaultDevice::new(Arc::new(device_with(&[4, 5])));
            device.inject(fault).unwrap();
            match read_newest(&device) {
                Ok(newest) => assert_eq!(Some(newest.generation), generation, "{fault}"),
                Err(error) => assert!(generation.is_none() && matches!(error, Error::Device(_)), "{fault}: {error}"),
            }
        }
        let device = FaultDevice::new(Arc::new(device_with(&[5])));
        device.inject("fail read at 1048576+4096").unwrap();
        assert!(
            matches!(read_newest(&device), Err(Error::Device(_))),
            "zeros beside it do not say that nothing is there"
        );
    }

    #[test]
    fn what_lies_there_is_told_by_either_slot() {
        let device = device_with(&[5]);
        assert!(is_evergreen(&device) && !is_evergreen(&device_with(&[])));
        assert!(!is_evergreen(&MemoryDevice::new("disk", Bytes(512))));
        write_superblock(&device, &example()).unwrap();
        device.write_at(0, &[1; 4096]).unwrap();
        assert!(is_evergreen(&device));
    }

    #[test]
    fn what_is_refused_is_said() {
        assert_eq!(
            refusal(&MemoryDevice::new("disk", Bytes(4096))),
            "disk: 4096 bytes; an evergreen has more than 1048576"
        );
        assert_eq!(refusal(&device_with(&[])), "disk: no evergreen lies there: no superblock at 0, and none at 1 MiB");
        let device = device_with(&[4, 5]);
        device.write_at(SECOND_SLOT_AT, &forged(8, 7)[..]).unwrap();
        assert_eq!(refusal(&device), "disk: an evergreen of format version 7; this program reads version 1 only");
        let device = device_with(&[4, 5]);
        device.write_at(SECOND_SLOT_AT + 40, &[1]).unwrap();
        device.write_at(1000, &[1]).unwrap();
        assert!(refusal(&device).starts_with("disk: neither superblock can be read: at 0, superblock: checksum is"));
        clear_slots(&device).unwrap();
        assert!(refusal(&device).contains("no evergreen lies there"));
        let device = device_with(&[4]);
        write_superblock(&device, &Superblock { generation: 5, uuid: [1; 16], ..example() }).unwrap();
        assert!(refusal(&device).ends_with("are of different file systems"));
    }

    #[test]
    fn a_device_that_lacks_a_part_is_refused() {
        let device = MemoryDevice::new("disk", Bytes(32 << 20));
        write_superblock(&device, &example()).unwrap();
        assert!(refusal(&device).ends_with("was made for 67108864: a part of it is missing"));
    }
}
