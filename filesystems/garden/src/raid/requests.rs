//! Write requests to groups without parity, which another thread can execute.

use std::{io::IoSlice, sync::Arc};

use senesce_block::{BlockDevice, BlockResult};

use super::{Place, Raid, request_counts::Why, slot_offset};
use crate::{error::Result, format::slot::Slot};

/// Slots of one request, at most. Large requests are fine, because no caller waits for a single
/// one.
const REQUEST_SLOTS: usize = 256;

/// Adjacent blocks of a drive, to be written.
pub(crate) struct Request {
    device: Arc<dyn BlockDevice>,
    /// The place among all drives.
    drive: usize,
    offset: u64,
    slots: Vec<Arc<Slot>>,
}

impl Request {
    /// Writes the blocks. Does not flush.
    pub fn write(&self) -> BlockResult<()> {
        let parts: Vec<IoSlice<'_>> = self.slots.iter().map(|slot| IoSlice::new(&slot[..])).collect();
        self.device.write_parts_at(self.offset, &parts)
    }
}

impl Raid {
    /// Builds the requests for blocks, and counts them as made. All drives must be present and have
    /// no parity.
    ///
    /// Errors: a drive is missing.
    pub fn requests(&self, mut blocks: Vec<(Place, Arc<Slot>)>) -> Result<Vec<Request>> {
        blocks.sort_by_key(|(place, _)| (place.group, place.drive, place.stripe));
        let mut requests: Vec<Request> = Vec::new();
        let mut next = None;
        for (place, slot) in blocks {
            let is_next = next == Some(place) && requests.last().is_some_and(|last| last.slots.len() < REQUEST_SLOTS);
            next = Some(Place { stripe: place.stripe + 1, ..place });
            match requests.last_mut() {
                Some(last) if is_next => last.slots.push(slot),
                _ => {
                    let holder = self.holder(place.group, place.drive, place.stripe);
                    let device = holder.ok_or_else(|| self.missing_drive(place.group, place.drive))?;
                    let drive = self.geometry.first_drive(place.group) + place.drive;
                    requests.push(Request { device, drive, offset: slot_offset(place.stripe), slots: vec![slot] });
                }
            }
        }
        requests.iter().for_each(|request| self.counters.note(request.drive, Why::Write, request.slots.len()));
        Ok(requests)
    }
}
