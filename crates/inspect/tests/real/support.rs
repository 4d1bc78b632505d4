//! Volumes on loop devices without the page cache, removed even after a panic; and the aging of
//! their files.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FallocateFlags, fallocate};
use senesce_core::{BlockOp, BlockRequest, Clock, Nanos, Rng, Seed, never};
use senesce_device::find_preset;
use senesce_inspect::{Access, Error, InspectOptions, Inspection, Judge, find_target, inspect};
use senesce_probe::collect::{BlockTracer, GrepOptions, Order, collect_grep, compute_pattern};
use senesce_testkit::VolumeOptions;
pub use senesce_testkit::{Volume, run};
use senesce_volume::LinuxHost;

/// The readahead of every volume, KiB.
pub const READ_AHEAD_KIB: u32 = 128;

/// Runs one volume test at a time: a machine has few loop devices, and a trace needs a quiet one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A volume on a loop device with direct I/O and a fixed readahead.
pub fn volume(kind: &str, mib: u64, mkfs: &[&str], mount: &str) -> Volume {
    Volume::with(&VolumeOptions {
        mkfs,
        mount,
        direct_io: true,
        read_ahead_kib: Some(READ_AHEAD_KIB),
        ..VolumeOptions::new(kind, mib)
    })
}

/// Sectors written to the device since it was made.
pub fn written_sectors(volume: &Volume) -> u64 {
    volume.device_stat()[6]
}

/// The clock of the tests.
pub struct TestClock(Instant);

impl TestClock {
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TestClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }
}

/// Inspects a directory for a disk, as the command does.
pub fn inspect_at(root: &Path) -> Result<Inspection, Error> {
    inspect_while(root, &mut |_| true)
}

/// Inspects a device or image, past its mount if it is mounted.
pub fn inspect_offline(path: &Path) -> Result<Inspection, Error> {
    inspect_with(path, Access::Offline, &mut |_| true)
}

/// Inspects a directory; `progress` may stop the inspection.
pub fn inspect_while(root: &Path, progress: &mut dyn FnMut(u64) -> bool) -> Result<Inspection, Error> {
    inspect_with(root, Access::ThroughMount, progress)
}

fn inspect_with(path: &Path, access: Access, progress: &mut dyn FnMut(u64) -> bool) -> Result<Inspection, Error> {
    let host = LinuxHost::default();
    let options = InspectOptions {
        devices: vec![find_preset("hdd-7200").unwrap().clone()],
        judge: Judge::Named,
        threads: 2,
        read_ahead_kib: Some(READ_AHEAD_KIB),
        map_order: 4,
        top: senesce_inspect::DEFAULT_TOP,
        progress,
    };
    inspect(&find_target(path, access, &host)?, options, &host, &TestClock::start())
}

/// Writes a file of `pieces` pieces of 16 KiB. Between them it allocates pieces of other files,
/// which it deletes at the end.
pub fn write_in_pieces(path: &Path, pieces: u64) {
    const PIECE: u64 = 16 << 10;
    let others: Vec<PathBuf> = (0..6).map(|n| path.with_extension(format!("other-{n}"))).collect();
    let files: Vec<fs::File> = std::iter::once(path)
        .chain(others.iter().map(PathBuf::as_path))
        .map(|path| fs::File::create(path).unwrap())
        .collect();
    for piece in 0..pieces {
        for file in &files {
            fallocate(file, FallocateFlags::empty(), piece * PIECE, PIECE).unwrap();
        }
    }
    (&files[0]).write_all(&vec![1; (pieces * PIECE) as usize]).unwrap();
    sync(path.parent().unwrap());
    drop(files);
    others.iter().for_each(|other| fs::remove_file(other).unwrap());
    sync(path.parent().unwrap());
}

/// Writes dirty pages to the device.
pub fn sync(at: &Path) {
    run("sync", &["-f", at.to_str().unwrap()]);
}

/// The sizes of files in an aged tree.
#[derive(Clone, Copy, Debug)]
pub enum Files {
    /// Half of them fit in two blocks, some have 256 KiB. Contents take most of the time of
    /// reading.
    Mixed,
    /// An eighth of these sizes, and more files. Metadata takes more of the time, and on Btrfs many
    /// contents are inline.
    Small,
    /// Small files in three directories, which are large enough for an index.
    Crowded,
}

/// Ages the volume below `root`: makes files in some hundred directories, appends to them, rewrites
/// and deletes them in turn, with a sync now and then. So files are in pieces and neighbours are
/// apart. The result is always the same.
pub fn age(root: &Path, files: Files) {
    let (directories, live_files, steps, divisor) = match files {
        Files::Mixed => (300, 4000, 12_000, 1),
        Files::Small => (300, 9000, 30_000, 8),
        Files::Crowded => (3, 9000, 30_000, 8),
    };
    let mut rng = Rng::for_purpose(Seed(7), "age");
    for directory in 0..directories {
        // Two levels.
        fs::create_dir_all(root.join(format!("d{}/e{directory}", directory % 17))).unwrap();
    }
    let content = vec![b'x'; 256 << 10];
    let mut live: Vec<PathBuf> = Vec::new();
    for step in 0..steps {
        // Half of the files fit in a few blocks, some are large.
        let length = match rng.below(8) {
            0..4 => rng.between(100, 8 << 10),
            4..7 => rng.between(8 << 10, 64 << 10),
            _ => rng.between(64 << 10, 256 << 10),
        } as usize
            / divisor;
        let pick = rng.below(live.len().max(1) as u64) as usize;
        match rng.below(10) {
            _ if live.is_empty() => live.push(make(root, step, 1, &content[..length])),
            0..5 => live.push(make(root, step, rng.below(directories), &content[..length])),
            5..8 => {
                let mut file = fs::OpenOptions::new().append(true).open(&live[pick]).unwrap();
                file.write_all(&content[..length / 2 + 1]).unwrap();
            }
            8 => fs::write(&live[pick], &content[..length]).unwrap(),
            _ => fs::remove_file(live.swap_remove(pick)).unwrap(),
        }
        if live.len() > live_files {
            let oldest = rng.below(live.len() as u64) as usize;
            fs::remove_file(live.swap_remove(oldest)).unwrap();
        }
        if step % 100 == 99 {
            sync(root);
        }
    }
    sync(root);
}

fn make(root: &Path, step: u64, directory: u64, content: &[u8]) -> PathBuf {
    let path = root.join(format!("d{}/e{directory}/file-{step}", directory % 17));
    fs::write(&path, content).unwrap();
    path
}

/// The reads of a cold grep test of the volume, in the order of their issue.
pub fn trace_cold_grep(volume: &Volume) -> Vec<BlockRequest> {
    volume.remount_cold();
    let tracer = BlockTracer::start(Path::new(&volume.device)).unwrap();
    let options = GrepOptions { order: Order::Readdir, pattern: compute_pattern(Seed(1)) };
    let figures = collect_grep(&volume.mountpoint, &options, &TestClock::start(), &never).unwrap();
    let trace = tracer.stop().unwrap();
    assert_eq!((figures.errors_count, trace.lost), (0, 0));
    trace.block_requests().filter(|request| request.op == BlockOp::Read).collect()
}
