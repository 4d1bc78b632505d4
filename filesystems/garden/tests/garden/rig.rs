//! Small aggregates on devices in memory.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, FsError, FsResult, Timestamp, conformance::Subject};
use senesce_garden::{
    Accepted, FormatOptions, Garden, Limits, LogDevices, Medium, VolumeFs, VolumeOptions, check_with,
};
use senesce_objects::ObjectStore;

/// Bytes of a block with its trailer, and slots of a drive outside its stripes; see
/// docs/reference/garden-format.md.
pub const SLOT: u64 = 4160;
pub const FIXED_SLOTS: u64 = 4;

pub const VOLUME: &[u8] = b"home";

/// The shape of an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The data drives of each RAID group, and whether it has parity.
    pub groups: &'static [(u16, bool)],
    /// The media of the groups; disks if empty.
    pub media: &'static [Medium],
    pub stripes: u64,
    pub log_bytes: u64,
}

pub const SMALL: Shape = Shape { groups: &[(3, true)], media: &[], stripes: 256, log_bytes: 400 << 10 };
/// Two groups with parity, and one drive without.
pub const SEVERAL: Shape =
    Shape { groups: &[(2, true), (1, false), (3, true)], media: &[], stripes: 2200, log_bytes: 1 << 20 };
pub const LARGE: Shape = Shape { groups: &[(4, true)], media: &[], stripes: 3072, log_bytes: 4 << 20 };

impl Shape {
    pub fn options(&self) -> FormatOptions {
        FormatOptions {
            uuid: *b"senesce garden 1",
            groups: self.groups.to_vec(),
            media: self.media.to_vec(),
            aa_stripes: self.area_stripes(),
            tetris_stripes: 16,
            zeroed: true,
        }
    }

    /// Allocation areas of flash are smaller, so that each group has its own.
    fn area_stripes(&self) -> Vec<u32> {
        match self.media {
            [] => vec![64],
            media => media.iter().map(|medium| if *medium == Medium::Ssd { 32 } else { 64 }).collect(),
        }
    }

    /// Zeroed data drives, parity drives and the log.
    pub fn devices(&self) -> Vec<MemoryDevice> {
        let bytes = Bytes((FIXED_SLOTS + self.stripes) * SLOT);
        let drive = |number| MemoryDevice::new(format!("drive {number}"), bytes);
        let mut all: Vec<MemoryDevice> = (0..self.drives()).map(drive).collect();
        all.push(MemoryDevice::new("log", Bytes(self.log_bytes)));
        all
    }

    /// The same with two devices for the copies of the log.
    pub fn mirrored(&self) -> Vec<MemoryDevice> {
        let mut all = self.devices();
        all.push(MemoryDevice::new("log 2", Bytes(self.log_bytes)));
        all
    }

    pub fn drives(&self) -> usize {
        self.groups.iter().map(|(data, parity)| usize::from(*data) + usize::from(*parity)).sum()
    }

    pub fn volume(&self) -> VolumeOptions {
        VolumeOptions {
            blocks: self.groups.iter().map(|(data, _)| u64::from(*data)).sum::<u64>() * self.stripes,
            inodes: 4096,
            seed: 7,
        }
    }
}

pub type Devices = Vec<Arc<dyn BlockDevice>>;

pub fn shared<D: BlockDevice + 'static>(devices: Vec<D>) -> Devices {
    devices.into_iter().map(|device| Arc::new(device) as Arc<dyn BlockDevice>).collect()
}

/// The drives and the devices of the log, which are the last ones whose names start with "log".
pub fn split(devices: &Devices) -> (&[Arc<dyn BlockDevice>], LogDevices) {
    let is_log = |name: &str| name.rsplit('/').next().is_some_and(|name| name.starts_with("log"));
    let logs = devices.iter().rev().take_while(|device| is_log(device.name())).count();
    let (drives, logs) = devices.split_at(devices.len() - logs);
    (drives, logs.to_vec().into())
}

/// Opens an aggregate. The last devices are the log.
pub fn open(devices: &Devices, limits: Limits) -> senesce_garden::Result<Garden> {
    open_with(devices, limits, None)
}

/// Opens an aggregate with an object store.
pub fn open_with(
    devices: &Devices,
    limits: Limits,
    store: Option<Arc<dyn ObjectStore>>,
) -> senesce_garden::Result<Garden> {
    let (drives, log) = split(devices);
    Garden::open_with(drives, log, limits, store, Accepted::NOTHING)
}

/// The findings of the independent check.
pub fn findings(devices: &Devices) -> Vec<String> {
    findings_with(devices, None)
}

/// The findings of the independent check, with an object store.
pub fn findings_with(devices: &Devices, store: Option<&Arc<dyn ObjectStore>>) -> Vec<String> {
    let (drives, log) = split(devices);
    let report = check_with(drives, log, store).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

pub fn format(shape: &Shape, devices: &Devices) {
    let (drives, log) = split(devices);
    Garden::format(&shape.options(), drives.to_vec(), log).unwrap();
}

/// Little memory, so that blocks are evicted.
pub const TIGHT: Limits = Limits { cache_bytes: 64 << 12, dirty_bytes: 96 << 12 };

/// A formatted and opened aggregate with a volume.
pub struct Rig {
    pub devices: Devices,
    pub garden: Option<Garden>,
    pub fs: Option<VolumeFs>,
    pub limits: Limits,
    /// The store for cold blocks.
    pub store: Option<Arc<dyn ObjectStore>>,
}

impl Rig {
    /// A formatted aggregate that is not open.
    pub fn closed(devices: Devices, limits: Limits) -> Self {
        Self { devices, garden: None, fs: None, limits, store: None }
    }

    pub fn new(shape: &Shape, limits: Limits) -> Self {
        Self::on(shape, shared(shape.devices()), limits)
    }

    pub fn on(shape: &Shape, devices: Devices, limits: Limits) -> Self {
        format(shape, &devices);
        open(&devices, limits).unwrap().create_volume(VOLUME, &shape.volume()).unwrap();
        let mut rig = Self::closed(devices, limits);
        rig.open().unwrap();
        rig
    }

    /// Opens the aggregate from its devices. An open garden is dropped and not closed.
    pub fn open(&mut self) -> senesce_garden::Result<()> {
        (self.garden, self.fs) = (None, None);
        let garden = open_with(&self.devices, self.limits, self.store.clone())?;
        self.fs = Some(garden.volume(VOLUME)?);
        self.garden = Some(garden);
        Ok(())
    }

    /// Makes a consistency point and returns the findings of the independent check.
    pub fn findings(&self) -> Vec<String> {
        self.garden().consistency_point().unwrap();
        findings_with(&self.devices, self.store.as_ref())
    }

    pub fn garden(&self) -> &Garden {
        self.garden.as_ref().unwrap()
    }

    pub fn fs(&self) -> &VolumeFs {
        self.fs.as_ref().unwrap()
    }
}

impl Subject for Rig {
    fn file_system(&self) -> &dyn FileSystem {
        self.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.open().map_err(FsError::from)
    }

    fn check(&mut self) -> Result<(), String> {
        match &self.findings()[..] {
            [] => Ok(()),
            findings => Err(findings.join("\n")),
        }
    }
}

/// The caller of all tests, at a second.
pub fn caller(second: i64) -> Caller {
    Caller { uid: 1000, gid: 100, now: Timestamp { seconds: second, nanoseconds: 0 } }
}
