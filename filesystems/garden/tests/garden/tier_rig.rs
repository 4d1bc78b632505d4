//! An aggregate with an object store, in memory.

use std::sync::Arc;

use senesce_fsapi::{FileSystem, FsError, FsResult, Ino, NewNode};
use senesce_garden::{Accepted, CheckReport, Garden, Limits, Tiering, VolumeFs, check_with};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectStore};

use crate::rig::{Devices, Shape, VOLUME, caller, format, shared};

/// All cold blocks may leave the drives.
pub const ALL: Tiering = Tiering { age: 0, with_cached: true };
const BLOCK: usize = 4096;

pub type Store = Arc<FaultObjects<MemoryObjects>>;

/// A formatted and opened aggregate with a volume and an object store.
pub struct Tiered {
    pub devices: Devices,
    pub store: Store,
    /// The store that openings receive.
    door: Arc<dyn ObjectStore>,
    /// Whether the next opening receives it.
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

    /// An aggregate that was formatted before.
    pub fn of(devices: Devices, store: Store, limits: Limits) -> Self {
        let door = store.clone();
        Self::behind(devices, store, door, limits)
    }

    /// An aggregate that was formatted before, and reaches its store through `door`.
    pub fn behind(devices: Devices, store: Store, door: Arc<dyn ObjectStore>, limits: Limits) -> Self {
        let mut tiered = Self { devices, store, door, with_store: true, limits, open: None };
        tiered.open();
        tiered
    }

    /// Opens the aggregate again, or returns the error. An open garden stays open.
    pub fn open_garden(&self) -> senesce_garden::Result<Garden> {
        let (log, drives) = self.devices.split_last().unwrap();
        let store = self.with_store.then(|| self.door.clone());
        Garden::open_with(drives, log.clone(), self.limits, store, Accepted::NOTHING)
    }

    /// Opens the aggregate from its devices. An open garden is dropped and not closed.
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

    /// The report of the check on the last consistency point, with the objects.
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

    /// Makes the pointers of the volume name the objects, so that reads use the store and not the
    /// old places. Then opens the aggregate again.
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

/// Blocks of different contents.
pub fn bytes(blocks: usize, seed: u8) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| (at / BLOCK) as u8 ^ (at / BLOCK / 256) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

/// The source of the error of a read that needs an unavailable cold block.
pub fn why(error: FsError) -> String {
    match error {
        FsError::Io { source, .. } => source.to_string(),
        error => panic!("not an error of reading: {error:?}"),
    }
}
