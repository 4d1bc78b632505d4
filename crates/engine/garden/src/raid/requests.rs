//! Requests that write blocks of groups without parity, and can be made by another thread.

use std::{io::IoSlice, sync::Arc};

use senesce_block::{BlockDevice, BlockResult};

use super::{Place, Raid, counts::Why, slot_offset};
use crate::{error::Result, format::slot::Slot};

/// Slots that one request writes at most: nobody waits for one of them alone.
const REQUEST_SLOTS: usize = 256;

/// Blocks that lie behind each other on a drive, and are written there.
pub(crate) struct Request {
    device: Arc<dyn BlockDevice>,
    /// Its place among all drives.
    drive: usize,
    offset: u64,
    slots: Vec<Arc<Slot>>,
}

impl Request {
    /// Writes them. Not flushed.
    pub fn write(&self) -> BlockResult<()> {
        let parts: Vec<IoSlice<'_>> = self.slots.iter().map(|slot| IoSlice::new(&slot[..])).collect();
        self.device.write_parts_at(self.offset, &parts)
    }
}

impl Raid {
    /// Requests for blocks, which come in order of group, stripe, drive; all drives are there, and none has parity. They count as made.
    ///
    /// Errors: a drive is not there.
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
