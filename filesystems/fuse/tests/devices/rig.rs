//! Engines on devices of the test, opened and mounted with the modes of `senesce fs mount`.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_evergreen::{Evergreen, EvergreenFs, FsOptions, KeyValue, MakeOptions};
use senesce_fsapi::{FileSystem, Timestamp};
use senesce_fuse::{KernelPages, MountOptions, Mounted};
use senesce_garden::{Acknowledge, FormatOptions, Garden, VolumeOptions};

const VOLUME: &[u8] = b"main";
/// The bytes of a block of a garden with its trailer, and the slots of a drive outside stripes
/// (docs/reference/garden-format.md).
const SLOT: u64 = 4160;
const FIXED_SLOTS: u64 = 3;

/// An engine with its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Evergreen,
    /// With or without a parity drive.
    Garden {
        parity: bool,
    },
}

pub const KINDS: [Kind; 3] = [Kind::Evergreen, Kind::Garden { parity: true }, Kind::Garden { parity: false }];

/// The modes of a mount: the default, and the three kinds of `--write-back`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Durable,
    WriteBack,
    WriteBackEngine,
    WriteBackDirect,
}

pub const MODES: [Mode; 4] = [Mode::Durable, Mode::WriteBack, Mode::WriteBackEngine, Mode::WriteBackDirect];

impl Mode {
    fn pages(self) -> KernelPages {
        match self {
            Self::Durable | Self::WriteBackEngine => KernelPages::Through,
            Self::WriteBack => KernelPages::Keep,
            Self::WriteBackDirect => KernelPages::PastIfNew,
        }
    }

    /// Whether every write reaches the engine before the program continues.
    pub fn writes_through(self) -> bool {
        self != Self::WriteBack
    }
}

impl Kind {
    /// Whether every operation of a mount in this mode is durable when it returns.
    pub fn is_durable_at_once(self, mode: Mode) -> bool {
        self != Self::Evergreen && mode == Mode::Durable
    }

    /// Formatted devices with an empty file system; the last one of a garden is its log.
    pub fn made(self) -> Vec<MemoryDevice> {
        let devices: Vec<MemoryDevice> = match self {
            Self::Evergreen => vec![MemoryDevice::new("disk", Bytes(24 << 20))],
            Self::Garden { parity } => {
                let drive = Bytes((FIXED_SLOTS + if parity { 1024 } else { 3072 }) * SLOT);
                let drives = (0..if parity { 4 } else { 1 }).map(|n| MemoryDevice::new(format!("drive {n}"), drive));
                drives.chain([MemoryDevice::new("log", Bytes(2 << 20))]).collect()
            }
        };
        let shared = share(devices.iter().map(MemoryDevice::fork));
        match self {
            Self::Evergreen => {
                let options = MakeOptions {
                    unit_bytes: 4096,
                    log_bytes: Some(1 << 20),
                    ..MakeOptions::with_nodes([7; 16], 64 << 10)
                };
                Evergreen::make(shared[0].clone(), &options).unwrap();
                let store = Arc::new(Evergreen::open(shared[0].clone(), EVERGREEN_LIMITS).unwrap());
                EvergreenFs::format(store.clone(), FsOptions::default()).unwrap();
                store.checkpoint().unwrap();
            }
            Self::Garden { parity } => {
                let (log, drives) = shared.split_last().unwrap();
                let options = FormatOptions {
                    uuid: *b"senesce garden 1",
                    groups: vec![(if parity { 3 } else { 1 }, parity)],
                    media: Vec::new(),
                    aa_stripes: vec![64],
                    tetris_stripes: 16,
                    zeroed: true,
                };
                Garden::format(&options, drives.to_vec(), log.clone()).unwrap();
                let garden = Garden::open(drives, log.clone(), GARDEN_LIMITS).unwrap();
                garden.create_volume(VOLUME, &VolumeOptions { blocks: 3072, inodes: 4096, seed: 7 }).unwrap();
                garden.commit_checkpoint().unwrap();
            }
        }
        copies(&devices, &shared)
    }

    /// Opens the devices as a mount does.
    pub fn open(self, devices: &[Arc<dyn BlockDevice>], mode: Mode) -> Result<Opened, String> {
        let said = |error: &dyn std::error::Error| error.to_string();
        if self == Self::Evergreen {
            let store = Evergreen::open(devices[0].clone(), EVERGREEN_LIMITS).map_err(|error| said(&error))?;
            let store = Arc::new(store);
            let fs = EvergreenFs::open(store.clone()).map_err(|error| said(&error))?;
            return Ok(Opened { fs: Arc::new(fs), engine: Engine::Evergreen(store) });
        }
        let (log, drives) = devices.split_last().unwrap();
        let garden = Garden::open(drives, log.clone(), GARDEN_LIMITS).map_err(|error| said(&error))?;
        let when = if mode == Mode::Durable { Acknowledge::Durable } else { Acknowledge::Done };
        garden.set_acknowledge(when).map_err(|error| said(&error))?;
        let fs = garden.volume(VOLUME).map_err(|error| said(&error))?;
        Ok(Opened { fs: Arc::new(fs), engine: Engine::Garden(Arc::new(garden)) })
    }

    /// The findings of the independent check.
    pub fn findings(self, devices: &[Arc<dyn BlockDevice>]) -> Vec<String> {
        match self {
            Self::Evergreen => match senesce_evergreen::check(&devices[0]) {
                Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
                Err(error) => vec![error.to_string()],
            },
            Self::Garden { .. } => {
                let (log, drives) = devices.split_last().unwrap();
                match senesce_garden::check(drives, log) {
                    Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
                    Err(error) => vec![error.to_string()],
                }
            }
        }
    }
}

/// Little memory, so that checkpoints, evictions and reads happen.
const EVERGREEN_LIMITS: senesce_evergreen::Limits =
    senesce_evergreen::Limits { cache_bytes: 1 << 20, dirty_bytes: 1 << 20 };
const GARDEN_LIMITS: senesce_garden::Limits = senesce_garden::Limits { cache_bytes: 1 << 20, dirty_bytes: 1 << 20 };

pub fn share<D: BlockDevice + 'static>(devices: impl IntoIterator<Item = D>) -> Vec<Arc<dyn BlockDevice>> {
    devices.into_iter().map(|device| Arc::new(device) as Arc<dyn BlockDevice>).collect()
}

/// Devices with the names of `named` and the contents of `full`.
fn copies(named: &[MemoryDevice], full: &[Arc<dyn BlockDevice>]) -> Vec<MemoryDevice> {
    let copy = |(named, full): (&MemoryDevice, &Arc<dyn BlockDevice>)| {
        let (mut bytes, zeros) = (vec![0; 4096], vec![0; 4096]);
        for at in (0..named.size().0).step_by(4096) {
            let piece = &mut bytes[..4096.min(named.size().0 - at) as usize];
            full.read_at(at, piece).unwrap();
            if *piece != zeros[..piece.len()] {
                named.write_at(at, piece).unwrap();
            }
        }
        named.fork()
    };
    named.iter().zip(full).map(copy).collect()
}

/// An open file system with its engine.
pub struct Opened {
    pub fs: Arc<dyn FileSystem>,
    pub engine: Engine,
}

#[derive(Clone)]
pub enum Engine {
    Evergreen(Arc<Evergreen>),
    Garden(Arc<Garden>),
}

impl Engine {
    /// The work of a mount in each second.
    pub fn sync(&self) -> Result<(), String> {
        match self {
            Self::Evergreen(store) => store.sync().map_err(|error| error.to_string()),
            Self::Garden(garden) => garden.sync().map_err(|error| error.to_string()),
        }
    }

    /// The work of a mount every few seconds, and at its end.
    pub fn point(&self) -> Result<(), String> {
        match self {
            Self::Evergreen(store) => store.checkpoint().map_err(|error| error.to_string()),
            Self::Garden(garden) => garden.commit_checkpoint().map_err(|error| error.to_string()),
        }
    }
}

/// A mount of an open file system, with the background thread of an evergreen. Dropping it
/// unmounts.
pub struct Serving {
    pub engine: Engine,
    mounted: Option<Mounted>,
    worker: Option<JoinHandle<()>>,
}

impl Serving {
    pub fn start(opened: &Opened, mode: Mode, point: &Path) -> Self {
        static MOUNTS: AtomicU64 = AtomicU64::new(0);
        let ticks = AtomicU64::new(0);
        let now = move || {
            let seconds = 1_000_000_000 + ticks.fetch_add(1, Ordering::SeqCst) as i64;
            Timestamp { seconds, nanoseconds: 5 }
        };
        let number = MOUNTS.fetch_add(1, Ordering::SeqCst);
        let options = MountOptions {
            source: format!("senesce-devices-{}-{number}", std::process::id()),
            threads: 4,
            now: Arc::new(now),
            read_only: false,
            pages: mode.pages(),
            suid: false,
            dev: false,
        };
        let mounted = Some(Mounted::start(opened.fs.clone(), point, options).unwrap());
        let engine = opened.engine.clone();
        let worker = match &engine {
            Engine::Evergreen(store) => {
                store.start_background();
                let store = store.clone();
                Some(std::thread::spawn(move || {
                    while store.wait_for_work() {
                        // An error recurs and reaches the next fsync; the program prints it.
                        while let Ok(true) = store.work() {}
                    }
                }))
            }
            Engine::Garden(_) => None,
        };
        Self { engine, mounted, worker }
    }

    /// Unmounts, and makes the last checkpoint, as the program does. Errors: those that make the
    /// program fail.
    pub fn end(mut self) -> Result<(), String> {
        let unmounted = self.mounted.take().unwrap().unmount().map_err(|error| error.to_string());
        self.stop_background();
        let closed = self.engine.point();
        unmounted.and(closed)
    }

    fn stop_background(&mut self) {
        if let Engine::Evergreen(store) = &self.engine {
            store.stop_background();
        }
        if let Some(worker) = self.worker.take() {
            worker.join().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.mounted.take());
        self.stop_background();
    }
}
