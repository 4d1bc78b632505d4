//! Whole stripes as they are on the drives, for scrubs and for filling drives.

use super::{Drive, Raid, slot_offset, xor};
use crate::format::{SLOT, bytes::array, slot::Slot};

/// A stripe; `None` stands for a drive that is missing or fails.
pub(crate) struct Row {
    pub group: usize,
    pub stripe: u64,
    /// Data drives first, then parity.
    pub slots: Vec<Option<Slot>>,
}

impl Row {
    /// The XOR of all readable slots except that of one drive.
    pub fn sum_without(&self, drive: Option<usize>) -> Slot {
        let mut sum = Slot::zeros();
        let others = (0..).zip(&self.slots).filter(|(other, _)| Some(*other) != drive);
        others.filter_map(|(_, slot)| slot.as_ref()).for_each(|slot| xor(&mut sum, slot));
        sum
    }
}

impl Raid {
    /// Reads stripes of a group with one request for each drive, or slot by slot if that fails.
    pub fn read_rows(&self, group: usize, first: u64, count: u64) -> Vec<Row> {
        let drives = self.geometry.groups[group].drives();
        let row = |stripe| Row { group, stripe, slots: Vec::with_capacity(drives) };
        let mut rows: Vec<Row> = (first..first + count).map(row).collect();
        let mut buffer = vec![0; count as usize * SLOT];
        for drive in 0..drives {
            let device = self.holder(group, drive, first + count - 1);
            let whole = device.is_some_and(|device| device.read_at(slot_offset(first), &mut buffer).is_ok());
            for (index, row) in rows.iter_mut().enumerate() {
                let slot = if whole {
                    Some(Slot::from(&array(&buffer, index * SLOT)))
                } else {
                    self.read_slot(group, drive, row.stripe).ok()
                };
                row.slots.push(slot);
            }
        }
        rows
    }

    /// Writes slots from stripe `first` on to a drive that is being filled, and notes that it holds
    /// them. Does not flush. If the write fails, the drive is missing again.
    pub fn fill(&mut self, place: usize, first: u64, slots: &[Slot]) {
        let Drive::Filling { device, done } = &mut self.drives[place] else { return };
        let bytes: Vec<u8> = slots.iter().flat_map(|slot| slot.iter().copied()).collect();
        match device.write_at(slot_offset(first), &bytes) {
            Ok(()) => *done = first + slots.len() as u64,
            Err(failure) => self.drives[place] = Drive::Missing { why: failure.to_string() },
        }
    }
}
