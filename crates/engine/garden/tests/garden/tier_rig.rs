//! An aggregate with a store of objects, in memory.

use std::sync::Arc;

use senesce_fsapi::{FileSystem, FsError, FsResult, Ino, NewNode};
use senesce_garden::{Accepted, CheckReport, Garden, Limits, Tiering, VolumeFs, check_with};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectStore};

use crate::rig::{Devices, Shape, VOLUME, caller, format, shared};

/// Everything that may leave the drives does.
pub const ALL: Tiering = Tiering { age: 0, with_cached: true };
const BLOCK: usize = 4096;

pub type Store = Arc<FaultObjects<MemoryObjects>>;

/// A formatted aggregate with a volume, and a store of objects, open.
pub struct Tiered {
    pub devices: Devices,
    pub store: Store,
    /// What openings are given.
    door: Arc<dyn ObjectStore>,
    /// Whether the next opening is given it.
    pub with_store: bool,
    pub limits: Limits,
    open: Option<(Garden, VolumeFs)>,
}

impl Tiered {
    pub fn on(shape: &Shape, devices: Devices, limits: Limits) -> Self {
        format(shape, &devices);
        let store = Arc::new(FaultObjects::new(MemoryObjects::default()));
        let mut tiered = Self { devices, door: store.clone(), store, with_store: true, limits, open: None };
        tiered.open_garden().unwrap().create_volume(VOLUME, &shape.volume()).unwrap();
        tiered.open();
        tiered
    }

    pub fn new(shape: &Shape) -> Self {
        Self::on(shape, shared(shape.devices()), Limits::default())
    }

    /// One that was formatted before.
    pub fn of(devices: Devices, store: Store, limits: Limits) -> Self {
        let door = store.clone();
        Self::behind(devices, store, door, limits)
    }

    /// The same, that goes to its store by way of another one.
    pub fn behind(devices: Devices, store: Store, door: Arc<dyn ObjectStore>, limits: Limits) -> Self {
        let mut tiered = Self { devices, store, door, with_store: true, limits, open: None };
        tiered.open();
        tiered
    }

    /// Opens it beside what is open, or tells why not.
    pub fn open_garden(&self) -> senesce_garden::Result<Garden> {
        let (log, drives) = self.devices.split_last().unwrap();
        let store = self.with_store.then(|| self.door.clone());
        Garden::open_with(drives, log.clone(), self.limits, store, Accepted::NOTHING)
    }

    /// Opens it as it lies on the devices, whatever is open.
    pub fn open(&mut self) {
        self.open = None;
        let garden = self.open_garden().unwrap();
        let fs = garden.volume(VOLUME).unwrap();
        self.open = Some((garden, fs));
    }

    pub fn garden(&self) -> &Garden {
        &self.open.as_ref().unwrap().0
    }

    pub fn fs(&self) -> &VolumeFs {
        &self.open.as_ref().unwrap().1
    }

    /// What the check says of the last consistency point, with the objects.
    pub fn looked(&self) -> CheckReport {
        let (log, drives) = self.devices.split_last().unwrap();
        check_with(drives, log, Some(&self.door)).unwrap()
    }

    pub fn findings(&self) -> Vec<String> {
        self.garden().consistency_point().unwrap();
        self.looked().findings.iter().map(ToString::to_string).collect()
    }

    pub fn make(&self, name: &[u8], data: &[u8]) -> Ino {
        let ino = self.fs().make_node(&caller(1), Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
        self.write(ino, 0, data).unwrap();
        ino
    }

    pub fn write(&self, ino: Ino, offset: u64, data: &[u8]) -> FsResult<()> {
        let mut at = 0;
        for part in data.chunks(64 << 10) {
            self.fs().write(&caller(2), ino, offset + at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Lets the volume's pointers name the objects: what lies on the drives yet is not found any more. Opens it anew.
    pub fn forget_drives(&mut self) {
        while !self.garden().fix_up_step(VOLUME, 10_000).unwrap().ended {}
        self.garden().consistency_point().unwrap();
        self.open();
    }

    pub fn read(&self, ino: Ino, offset: u64, len: usize) -> FsResult<Vec<u8>> {
        read(self.fs(), ino, offset, len)
    }
}

pub fn read(fs: &VolumeFs, ino: Ino, offset: u64, len: usize) -> FsResult<Vec<u8>> {
    let mut out = vec![0; len];
    let mut done = 0;
    while done < len {
        let now = fs.read(ino, offset + done as u64, &mut out[done..])?;
        if now == 0 {
            break;
        }
        done += now;
    }
    out.truncate(done);
    Ok(out)
}

/// As many blocks, no two the same.
pub fn bytes(blocks: usize, seed: u8) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| (at / BLOCK) as u8 ^ (at / BLOCK / 256) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

/// What a read that wants a cold block says while the store is away.
pub fn why(error: FsError) -> String {
    match error {
        FsError::Io { source, .. } => source.to_string(),
        error => panic!("not an error of reading: {error:?}"),
    }
}
