//! Drives that panic when a block is overwritten that the last consistency point uses.
//!
//! The independent check finds the blocks in use, each time a superblock has become durable. So it
//! also checks every consistency point of a guarded run, except parity.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;
use senesce_garden::collect_used_slots;

use crate::rig::{Devices, SLOT};

struct State {
    used: HashSet<(usize, u64)>,
    /// The place of the newest superblock, and whether it was written since the last flush.
    newest: u64,
    written: bool,
}

struct Guard {
    number: usize,
    device: Arc<dyn BlockDevice>,
    /// All devices, for the check; the log is the last one.
    all: Devices,
    state: Arc<Mutex<State>>,
}

/// Wraps the drives, which may hold an aggregate. The log, which is the last device, stays as it
/// is.
pub fn guard(devices: &Devices) -> Devices {
    let (log, drives) = devices.split_last().unwrap();
    let used = collect_used_slots(drives, log).unwrap_or_default().into_iter().collect();
    let number = |slot: u64| {
        let mut bytes = [0; 8];
        drives[0].read_at(slot * SLOT + 32, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    };
    let newest = if number(1) > number(3) { SLOT } else { 3 * SLOT };
    let state = Arc::new(Mutex::new(State { used, newest, written: false }));
    let guard = |(number, device): (usize, &Arc<dyn BlockDevice>)| {
        let state = state.clone();
        Arc::new(Guard { number, device: device.clone(), all: devices.clone(), state }) as Arc<dyn BlockDevice>
    };
    let mut guarded: Devices = devices.iter().enumerate().map(guard).collect();
    *guarded.last_mut().unwrap() = devices.last().unwrap().clone();
    guarded
}

impl BlockDevice for Guard {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn size(&self) -> Bytes {
        self.device.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.device.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let mut state = self.state.lock().unwrap();
        for slot in (offset / SLOT * SLOT..offset + data.len() as u64).step_by(SLOT as usize) {
            assert!(!state.used.contains(&(self.number, slot)), "{} is written over at {slot}", self.name());
        }
        if offset == SLOT || offset == 3 * SLOT {
            assert!(state.written || offset != state.newest, "the newest superblock is written over");
            (state.newest, state.written) = (offset, true);
        }
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.device.flush()?;
        let mut state = self.state.lock().unwrap();
        if std::mem::take(&mut state.written) {
            let (log, drives) = self.all.split_last().unwrap();
            state.used = collect_used_slots(drives, log).unwrap().into_iter().collect();
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.device.discard(offset, len)
    }
}

#[test]
#[should_panic(expected = "is written over")]
fn guard_detects_an_overwritten_block() {
    let mut rig = crate::rig::Rig::new(&crate::rig::SMALL, crate::rig::TIGHT);
    rig.garden().consistency_point().unwrap();
    rig.fs = None;
    let (log, drives) = rig.devices.split_last().unwrap();
    let (drive, offset) = collect_used_slots(drives, log).unwrap()[0];
    let guarded = guard(&rig.devices);
    let (copy, mut bytes) = (guarded[drive].clone(), vec![0; 4160]);
    // An unchanged superblock and a flush make the guard read the blocks in use.
    copy.read_at(SLOT, &mut bytes).unwrap();
    copy.write_at(SLOT, &bytes).unwrap();
    copy.flush().unwrap();
    copy.write_at(offset, &bytes).unwrap();
}
