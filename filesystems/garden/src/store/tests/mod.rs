//! Tests of internals: places of blocks, scores of areas, chains.

mod areas;
mod dedup;
mod defrag;
mod media;
mod memory;
mod placement;
mod reading;
mod reclaim;
mod relocate;
mod reserve;
mod tier;
mod tree;

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};

use crate::{
    FormatOptions, Garden, Limits, VolumeFs, VolumeOptions,
    format::{
        SLOT,
        slot::{self, Kind},
    },
    raid::slot_offset,
};

const NAME: &[u8] = b"home";

/// An aggregate in memory: groups with parity, all with this number of stripes.
pub(super) struct Small {
    pub groups: Vec<u16>,
    pub stripes: u64,
    pub aa_stripes: u32,
    pub tetris_stripes: u32,
}

pub(super) type Devices = Vec<Arc<dyn BlockDevice>>;

impl Small {
    /// Formats the aggregate; the last device is the log.
    pub fn format(&self) -> Devices {
        let drives: u16 = self.groups.iter().map(|data| data + 1).sum();
        let drive = |number| MemoryDevice::new(format!("drive {number}"), Bytes(slot_offset(self.stripes)));
        let mut devices: Devices = (0..drives).map(|number| Arc::new(drive(number)) as Arc<dyn BlockDevice>).collect();
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(4 << 20)));
        let options = FormatOptions {
            uuid: [3; 16],
            groups: self.groups.iter().map(|&data| (data, true)).collect(),
            media: vec![],
            aa_stripes: vec![self.aa_stripes],
            tetris_stripes: self.tetris_stripes,
            zeroed: true,
        };
        Garden::format(&options, devices.clone(), log.clone()).unwrap();
        devices.push(log);
        devices
    }

    /// Formats and opens the aggregate, with one volume of its size.
    pub fn garden(&self) -> (Devices, Garden, VolumeFs) {
        let devices = self.format();
        let garden = open(&devices);
        let blocks = self.groups.iter().map(|&data| u64::from(data)).sum::<u64>() * self.stripes;
        garden.create_volume(NAME, &VolumeOptions { blocks, inodes: 512, seed: 1 }).unwrap();
        let fs = garden.volume(NAME).unwrap();
        (devices, garden, fs)
    }
}

pub(super) fn open(devices: &Devices) -> Garden {
    let (log, drives) = devices.split_last().unwrap();
    Garden::open(drives, log.clone(), Limits::default()).unwrap()
}

pub(super) fn findings(devices: &Devices) -> Vec<String> {
    let (log, drives) = devices.split_last().unwrap();
    crate::check(drives, log).unwrap().findings.iter().map(ToString::to_string).collect()
}

pub(super) fn make(fs: &VolumeFs, name: &str) -> Ino {
    fs.make_node(&Caller::default(), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino
}

/// The newest slot of a file of the aggregate, at level 0: its drive and offset.
pub(super) fn newest_slot(devices: &Devices, file: u64) -> (usize, u64) {
    let mut newest: Option<(u64, usize, u64)> = None;
    for (number, drive) in devices[..devices.len() - 1].iter().enumerate() {
        for offset in (slot_offset(0)..drive.size().0).step_by(SLOT) {
            let mut slot = slot::Slot::zeros();
            drive.read_at(offset, &mut slot[..]).unwrap();
            let Ok(context) = slot::decode(&slot) else { continue };
            // Parity may be equal to it, but is on a later drive.
            let is_newer = newest.is_none_or(|(cp, ..)| cp < context.cp);
            if (context.kind, context.owner, context.level) == (Kind::Aggregate, file, 0) && is_newer {
                newest = Some((context.cp, number, offset));
            }
        }
    }
    newest.map(|(_, drive, offset)| (drive, offset)).unwrap()
}
