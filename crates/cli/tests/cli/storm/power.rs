//! Losses of power during cures.
//!
//! A cure runs once on a virtual disk that records all requests with their contents. A loss of
//! power is then a state of the disk at a random moment. It has all writes before the last flush,
//! and a random subset of the later ones. Some of the others are cut at a sector instead of lost.
//! The kernel mounts the state, and replays its log.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{FallocateFlags, fallocate};
use senesce_core::{BlockOp, Rng, SECTOR_BYTES, Seed};
use senesce_testkit::{root_or_skip, unmount_patiently};
use senesce_vdisk::{BackingSpec, Launch, Log, ServeConfig, Server, read_log};

use super::{
    super::{
        defrag::check,
        disk::{Disk, Mount, must},
        lab::{Lab, SENESCE},
    },
    busy,
    case::{Case, Mode, Still, case, sync},
    number, seed,
};

const BLOCK: usize = 4096;
/// Blocks of the file whose writes are all synced.
const BLOCKS: u64 = 48;
/// The largest recording, bytes. It is in memory. On a slow machine, the programs that run during a
/// cure have more time, and once wrote 24 GB.
const LONGEST_BYTES: u64 = 1 << 30;
const BEGIN: &str = "the cure begins";
const DURABLE: &str = "tree/busy/durable";

/// All requests to a disk, with their contents.
pub(super) struct Recording {
    pub log: Log,
    contents: File,
    /// Offset of the contents of each request.
    offsets: Vec<u64>,
}

/// The recording of a cure.
struct Recorded {
    recording: Recording,
    before: Still,
}

/// Starts a virtual disk in the lab, with a loop device on it.
pub(super) fn start_disk(lab: &Lab, mib: u64, device: &str, contents: Option<PathBuf>) -> (Server, Disk) {
    let point = lab.path("disk");
    fs::create_dir(&point).unwrap();
    let backing = BackingSpec::Unlinked { dir: lab.memory().to_owned() };
    let name = format!("storm-{}-{}", std::process::id(), lab.memory().file_name().unwrap().to_string_lossy());
    let mut config = ServeConfig::new(&name, point, mib << 20, backing, device);
    config.contents = contents;
    let launch = Launch { executable: SENESCE.into(), arguments: vec!["vdisk-serve".into()] };
    let mut server = Server::start(&launch, config).unwrap();
    server.start_log(&lab.memory().join("log")).unwrap();
    let device = must("losetup", &["--find", "--show", "--direct-io=on", &server.disk_path().to_string_lossy()]);
    (server, Disk { device })
}

fn record(case: &Case, lab: &Lab, rng: &mut Rng) -> Recorded {
    let (mut server, disk) = start_disk(lab, case.mib, "plain", Some(lab.memory().join("contents")));
    must(&format!("mkfs.{}", case.kind), &[&["-q"], case.mkfs, &[&disk.device]].concat());
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let root = mount.point.clone();
    case.make(&root);
    busy::make(&root);
    fs::write(root.join(DURABLE), vec![0; BLOCK * BLOCKS as usize]).unwrap();
    case.disturb(&root, rng);
    sync(&root);
    let before = Still::of(case, &root);
    server.mark(BEGIN).unwrap();
    let server = Mutex::new(server);
    let stop = AtomicBool::new(false);
    let arguments = case.arguments(lab, &root, rng);
    let seed = rng.next_u64();
    let recording = File::open(lab.memory().join("contents")).unwrap();
    let is_long = || recording.metadata().unwrap().len() > LONGEST_BYTES;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_durably(&root.join(DURABLE), seed, (&stop, &server), is_long));
        let how = busy::Beside { seed, is_full: false, stop: &stop };
        let (done, _) = busy::run_beside(case, &root, &how, || lab.run(&arguments));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        done.good();
    });
    assert!(unmount_patiently(&root));
    drop(mount);
    drop(disk);
    server.into_inner().unwrap().quit().unwrap();
    Recorded { recording: Recording::read(lab), before }
}

/// Fills blocks with the number of the write, and makes each block durable. Stops all programs if
/// the recording is too long.
fn write_durably(path: &Path, seed: u64, (stop, server): (&AtomicBool, &Mutex<Server>), is_long: impl Fn() -> bool) {
    let mut rng = Rng::for_purpose(Seed(seed), "durable");
    let file = File::options().write(true).open(path).unwrap();
    for version in 1u64.. {
        if is_long() {
            stop.store(true, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let block = rng.below(BLOCKS);
        match file.write_all_at(&version.to_le_bytes().repeat(BLOCK / 8), block * BLOCK as u64) {
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => continue,
            written => written.unwrap(),
        }
        file.sync_data().unwrap();
        server.lock().unwrap().mark(&format!("{block} {version}")).unwrap();
    }
}

impl Recording {
    /// Reads the files of the disk that [`start_disk`] started.
    pub fn read(lab: &Lab) -> Self {
        let log = read_log(&lab.memory().join("log")).unwrap();
        let mut next = 0;
        let offset = |(request, _): &(senesce_core::BlockRequest, senesce_core::Nanos)| {
            let at = next;
            next += if request.op == BlockOp::Write { u64::from(request.sectors) * SECTOR_BYTES } else { 0 };
            at
        };
        let offsets = log.requests.iter().map(offset).collect();
        let contents = File::open(lab.memory().join("contents")).unwrap();
        assert_eq!(contents.metadata().unwrap().len(), next, "the log and the contents belong together");
        Self { log, contents, offsets }
    }

    fn begin(&self) -> usize {
        self.log.marks.iter().find(|mark| mark.name == BEGIN).unwrap().request
    }

    /// The newest version of each block that was durable before request `at`.
    fn durable(&self, at: usize) -> BTreeMap<u64, u64> {
        let marks = self.log.marks.iter().filter(|mark| mark.request <= at);
        let version = |mark: &senesce_vdisk::Mark| {
            let (block, version) = mark.name.split_once(' ')?;
            Some((block.parse().ok()?, version.parse().ok()?))
        };
        marks.filter_map(version).collect()
    }

    /// Applies a request to an image. Of a write, it applies only the first `keep` bytes.
    pub fn apply(&self, at: usize, image: &File, keep: u64) {
        let request = &self.log.requests[at].0;
        let (start, length) = (request.sector * SECTOR_BYTES, u64::from(request.sectors) * SECTOR_BYTES);
        match request.op {
            BlockOp::Write => {
                let mut bytes = vec![0; length.min(keep) as usize];
                self.contents.read_exact_at(&mut bytes, self.offsets[at]).unwrap();
                image.write_all_at(&bytes, start).unwrap();
            }
            BlockOp::Discard => {
                fallocate(image, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length).unwrap();
            }
            BlockOp::Read | BlockOp::Flush => {}
        }
    }
}

fn cut_power(case: Case) {
    if !root_or_skip("FUSE and mounting") {
        return;
    }
    let cuts = number("SENESCE_CURE_CUTS").unwrap_or(4);
    let mut rng = Rng::for_purpose(seed(), &format!("power {}", case.purpose()));
    let lab = Lab::new();
    let recorded = record(&case, &lab, &mut rng);
    let recording = &recorded.recording;
    let (begin, end) = (recording.begin() as u64, recording.log.requests.len() as u64);
    let mut moments: Vec<usize> = (0..cuts).map(|_| rng.between(begin, end) as usize).collect();
    moments.sort_unstable();
    let image = lab.memory().join("durable");
    let durable = File::options().read(true).write(true).create_new(true).open(&image).unwrap();
    durable.set_len(case.mib << 20).unwrap();
    let (mut settled, mut lost) = (0, 0);
    for moment in moments {
        let flush = recording.log.requests[..moment].iter().rposition(|(request, _)| request.op == BlockOp::Flush);
        for at in settled..flush.unwrap_or(0) {
            recording.apply(at, &durable, u64::MAX);
        }
        settled = settled.max(flush.unwrap_or(0));
        let state = lab.memory().join("state");
        must("cp", &["--sparse=always", &image.to_string_lossy(), &state.to_string_lossy()]);
        let device = File::options().write(true).open(&state).unwrap();
        // The share of requests after the last flush that are lost.
        let eighths = [0, 1, 4, 7, 8][rng.below(5) as usize];
        let mut said = format!("{case:?}, {:?}, power lost before request {moment} of {end}", seed());
        for at in settled..moment {
            let request = &recording.log.requests[at].0;
            let is_write = request.op == BlockOp::Write;
            match rng.chance(eighths, 8) {
                true if is_write && rng.chance(1, 16) => {
                    recording.apply(at, &device, rng.below(u64::from(request.sectors)) * SECTOR_BYTES);
                }
                true => lost += u64::from(is_write),
                false => recording.apply(at, &device, u64::MAX),
            }
        }
        said.push_str(&format!(", {} requests after the last flush, {eighths} of 8 lost", moment - settled));
        drop(device);
        verify(&case, &lab, (&recorded, moment), &said);
        fs::remove_file(&state).unwrap();
    }
    println!("{case:?}: {cuts} losses of power, {lost} writes lost, {} requests", end - begin);
}

/// Mounts the state after a loss of power, and compares it.
fn verify(case: &Case, lab: &Lab, (recorded, moment): (&Recorded, usize), said: &str) {
    let disk = Disk::attach(&lab.memory().join("state"));
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let mut differences = recorded.before.differences(&Still::of(case, &mount.point));
    let bytes = fs::read(mount.point.join(DURABLE)).unwrap();
    for (block, version) in recorded.recording.durable(moment) {
        let block = &bytes[block as usize * BLOCK..][..BLOCK];
        let found: Vec<u64> = block.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
        if found.iter().any(|found| *found < version) {
            differences.push(format!("write {version} was durable, and now it is {found:?}"));
        }
    }
    assert!(differences.is_empty(), "{said}: {differences:#?}");
    assert!(unmount_patiently(&mount.point));
    drop(mount);
    if case.kind == "btrfs" {
        must("btrfs", &["device", "scan", "--forget", &disk.device]);
    }
    println!("{said}");
    check(case.kind, &disk.device);
}

#[test]
fn power_lost_during_order_on_ext4() {
    cut_power(case("ext4", Mode::Order, &[], 128));
}

#[test]
fn power_lost_during_order_on_ext4_with_pages_as_blocks() {
    cut_power(case("ext4", Mode::Order, &["-b", "4096"], 128));
}

#[test]
fn power_lost_during_pieces_on_ext4() {
    cut_power(case("ext4", Mode::Pieces, &[], 128));
}

#[test]
fn power_lost_during_free_space_on_ext4() {
    cut_power(case("ext4", Mode::Space, &[], 128));
}

#[test]
fn power_lost_during_order_on_xfs() {
    cut_power(case("xfs", Mode::Order, &[], 320));
}

#[test]
fn power_lost_during_pieces_on_xfs() {
    cut_power(case("xfs", Mode::Pieces, &[], 320));
}

#[test]
fn power_lost_during_free_space_on_xfs() {
    cut_power(case("xfs", Mode::Space, &[], 320));
}

#[test]
fn power_lost_during_order_on_btrfs() {
    cut_power(case("btrfs", Mode::Order, &[], 512));
}

#[test]
fn power_lost_during_order_on_btrfs_with_snapshots() {
    cut_power(case("btrfs", Mode::Snapshots, &[], 512));
}

#[test]
fn power_lost_during_balance_on_btrfs() {
    cut_power(case("btrfs", Mode::Space, &[], 512));
}
