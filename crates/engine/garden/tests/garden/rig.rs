//! An aggregate on devices in memory, small enough to see its ends.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, FsError, FsResult, Timestamp, conformance::Subject};
use senesce_garden::{
    Accepted, FormatOptions, Garden, Limits, LogDevices, Medium, VolumeFs, VolumeOptions, check_with,
};
use senesce_objects::ObjectStore;

/// Bytes of a block with its trailer, and slots of a drive that are no stripes: as docs/reference/garden-format.md has them.
pub const SLOT: u64 = 4160;
pub const FIXED_SLOTS: u64 = 4;

pub const VOLUME: &[u8] = b"home";

/// The shape of an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Data drives of each RAID group, and whether it has parity.
    pub groups: &'static [(u16, bool)],
    /// What their drives are; disks if nothing is said.
    pub media: &'static [Medium],
    pub stripes: u64,
    pub log_bytes: u64,
}

pub const SMALL: Shape = Shape { groups: &[(3, true)], media: &[], stripes: 256, log_bytes: 400 << 10 };
/// Two protected groups, and one drive on its own.
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

    /// Areas of flash beside disks are smaller, so that no group's are another one's.
    fn area_stripes(&self) -> Vec<u32> {
        match self.media {
            [] => vec![64],
            media => media.iter().map(|medium| if *medium == Medium::Ssd { 32 } else { 64 }).collect(),
        }
    }

    /// Drives of data, of parity, and the log, all zeros.
    pub fn devices(&self) -> Vec<MemoryDevice> {
        let bytes = Bytes((FIXED_SLOTS + self.stripes) * SLOT);
        let drive = |number| MemoryDevice::new(format!("drive {number}"), bytes);
        let mut all: Vec<MemoryDevice> = (0..self.drives()).map(drive).collect();
        all.push(MemoryDevice::new("log", Bytes(self.log_bytes)));
        all
    }

    /// The same with a device for each of two copies of the log.
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

/// Drives, and the devices of the log: those at the end that are called so.
pub fn split(devices: &Devices) -> (&[Arc<dyn BlockDevice>], LogDevices) {
    let is_log = |name: &str| name.rsplit('/').next().is_some_and(|name| name.starts_with("log"));
    let logs = devices.iter().rev().take_while(|device| is_log(device.name())).count();
    let (drives, logs) = devices.split_at(devices.len() - logs);
    (drives, logs.to_vec().into())
}

/// Opens an aggregate; the last devices are the log.
pub fn open(devices: &Devices, limits: Limits) -> senesce_garden::Result<Garden> {
    open_with(devices, limits, None)
}

/// The same with a store of objects.
pub fn open_with(
    devices: &Devices,
    limits: Limits,
    store: Option<Arc<dyn ObjectStore>>,
) -> senesce_garden::Result<Garden> {
    let (drives, log) = split(devices);
    Garden::open_with(drives, log, limits, store, Accepted::NOTHING)
}

/// What the independent check finds on devices.
pub fn findings(devices: &Devices) -> Vec<String> {
    findings_with(devices, None)
}

/// The same, with the objects of a store.
pub fn findings_with(devices: &Devices, store: Option<&Arc<dyn ObjectStore>>) -> Vec<String> {
    let (drives, log) = split(devices);
    let report = check_with(drives, log, store).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

pub fn format(shape: &Shape, devices: &Devices) {
    let (drives, log) = split(devices);
    Garden::format(&shape.options(), drives.to_vec(), log).unwrap();
}

/// Little memory, so that blocks come and go.
pub const TIGHT: Limits = Limits { cache_bytes: 64 << 12, dirty_bytes: 96 << 12 };

/// A formatted aggregate with a volume, open.
pub struct Rig {
    pub devices: Devices,
    pub garden: Option<Garden>,
    pub fs: Option<VolumeFs>,
    pub limits: Limits,
    /// Where cold blocks go, if they may.
    pub store: Option<Arc<dyn ObjectStore>>,
}

impl Rig {
    /// One that was formatted before, not open yet.
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

    /// Opens it as it lies on the devices, whatever is open: nothing is closed before.
    pub fn open(&mut self) -> senesce_garden::Result<()> {
        (self.garden, self.fs) = (None, None);
        let garden = open_with(&self.devices, self.limits, self.store.clone())?;
        self.fs = Some(garden.volume(VOLUME)?);
        self.garden = Some(garden);
        Ok(())
    }

    /// Makes a consistency point and gives what the independent check finds.
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

/// Who does everything in these tests, at some second.
pub fn caller(second: i64) -> Caller {
    Caller { uid: 1000, gid: 100, now: Timestamp { seconds: second, nanoseconds: 0 } }
}
