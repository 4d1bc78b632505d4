//! Disks in virtual time as volumes: creation, cold caches, snapshots, and cleanup after a kill of
//! any process.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_core::{Bytes, Clock, Nanos};
use senesce_testkit::root_or_skip;
use senesce_vdisk::{Footprint, Launch, serve_stdio};
use senesce_volume::{
    Backend, CleanMode, Custodian, Error, Existing, FileSystemKind, LinuxHost, Outcome, Pace, Resource, VirtualDevice,
    Volume, VolumeSpec, clean,
};

use crate::bench::{fill, size_of, slot_in, traces_of, tree};

struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Nanos {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

/// A helper, not a test: the server and the guard of the disks of the tests below.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn child_that_serves() {
    // The test runner has started a line.
    println!();
    serve_stdio(Arc::new(Monotonic));
}

fn host() -> LinuxHost {
    let arguments = ["--exact", "virtual_disk::child_that_serves", "--ignored", "--nocapture", "--test-threads=1"];
    let disk_server =
        Launch { executable: std::env::current_exe().unwrap(), arguments: arguments.map(Into::into).to_vec() };
    LinuxHost { disk_server, ..LinuxHost::default() }
}

/// A run's directory with a custodian, and a directory in memory for the images.
struct Bench {
    custodian: Custodian,
    temp: tempfile::TempDir,
    memory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("senesce-volume-virtual-").tempdir_in("/tmp").unwrap();
        let memory = tempfile::Builder::new().prefix("senesce-volume-virtual-").tempdir_in("/dev/shm").unwrap();
        Self { custodian: Custodian::open(Arc::new(host()), temp.path()).unwrap(), temp, memory }
    }

    fn spec(&self, kind: FileSystemKind) -> VolumeSpec {
        spec_in(self.memory.path(), kind)
    }

    fn create(&self, kind: FileSystemKind) -> Volume {
        let create = || Volume::create(&self.custodian, &self.spec(kind), &slot_in(self.temp.path(), "v"));
        // mkfs.btrfs scans all loop devices, and fails at one whose server another test has just
        // killed.
        let is_of_others = |error: &Error| error.to_string().contains("Transport endpoint is not connected");
        for _ in 0..100 {
            match create() {
                Err(error) if is_of_others(&error) => std::thread::sleep(std::time::Duration::from_millis(100)),
                made => return made.unwrap(),
            }
        }
        create().unwrap()
    }

    fn footprint(&self) -> Footprint {
        let held = self.custodian.held();
        let found = held.into_iter().find_map(|resource| match resource {
            Resource::VirtualDisk { footprint } => Some(footprint),
            _ => None,
        });
        found.expect("the journal knows the disk")
    }

    #[track_caller]
    fn assert_nothing_left(&self, footprint: &Footprint) {
        assert_nothing_left(self.temp.path(), self.memory.path(), footprint);
    }
}

fn spec_in(memory: &Path, kind: FileSystemKind) -> VolumeSpec {
    let device = VirtualDevice { device: "hdd-7200".to_owned(), pace: Pace::Device };
    VolumeSpec::new(Backend::Virtual { dir: memory.to_owned(), size: size_of(kind), memory: true, device }, kind)
}

#[track_caller]
fn assert_nothing_left(dir: &Path, memory: &Path, footprint: &Footprint) {
    assert_eq!(traces_of(dir), Vec::<PathBuf>::new(), "mounts and loop devices");
    let marked = senesce_volume::Host::loops_marked(&host(), &footprint.name).unwrap();
    assert_eq!(marked, Vec::<PathBuf>::new(), "loop devices by their mark");
    for process in [footprint.server, footprint.guard] {
        assert!(!process.expect("the journal knows the processes").is_alive(), "{process:?}");
    }
    assert_eq!(fs::read_dir(memory).unwrap().count(), 0, "images");
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["resources.ndjson"]);
}

fn lives(kind: FileSystemKind) {
    if !root_or_skip("FUSE, loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let mut volume = bench.create(kind);
    let footprint = bench.footprint();
    fill(volume.root());
    let files = tree(volume.root());
    let cold = volume.remount_cold().unwrap();
    assert!(cold.is_cold && cold.image_pages_left.is_none_or(|pages| pages == 0), "{cold:?}");
    let before = volume.disk_time().unwrap().unwrap();
    let stat = volume.device_stat().unwrap().unwrap();
    assert_eq!(tree(volume.root()), files);
    let after = volume.disk_time().unwrap().unwrap();
    let requests = volume.device_stat().unwrap().unwrap().reads - stat.reads;
    assert!(after.virtual_ns > before.virtual_ns, "reading a cold volume takes virtual time");
    assert_eq!(after.totals.read.requests - before.totals.read.requests, requests, "one request each");
    assert_eq!((after.failed_requests, after.unaligned_requests), (0, 0));

    let keys = volume.circumstances().unwrap();
    let value = |key: &str| keys.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
    assert_eq!(value("backend"), Some("virtual disk"));
    assert_eq!(value("virtual_device"), Some(after.device.as_str()));
    assert_eq!(value("device_max_request_kib"), Some("1024"));
    assert_eq!(value("device_read_ahead_kib"), Some("128"));

    // Save a snapshot, destroy the volume, and restore it with a new server.
    let snapshot = bench.temp.path().join("kept");
    volume.unmount().unwrap();
    volume.snapshot_to(&snapshot, Existing::Keep, &Monotonic).unwrap();
    volume.destroy().unwrap();
    fs::rename(&snapshot, bench.temp.path().with_extension("kept")).unwrap();
    let snapshot = bench.temp.path().with_extension("kept");
    bench.assert_nothing_left(&footprint);
    let slot = slot_in(bench.temp.path(), "again");
    let restored = Volume::restore(&bench.custodian, &bench.spec(kind), &slot, &snapshot, &Monotonic);
    fs::remove_file(&snapshot).unwrap();
    let (restored, _) = restored.unwrap();
    assert_eq!(tree(restored.root()), files);
    let footprint = bench.footprint();
    restored.destroy().unwrap();
    bench.assert_nothing_left(&footprint);
}

#[test]
fn ext4_works_on_a_virtual_disk() {
    lives(FileSystemKind::Ext4);
}

#[test]
fn xfs_works_on_a_virtual_disk() {
    lives(FileSystemKind::Xfs);
}

#[test]
fn btrfs_works_on_a_virtual_disk() {
    lives(FileSystemKind::Btrfs);
}

#[test]
fn an_unknown_device_is_refused_and_leaves_nothing() {
    if !root_or_skip("FUSE, loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let mut spec = bench.spec(FileSystemKind::Ext4);
    if let Backend::Virtual { device, .. } = &mut spec.backend {
        device.device = "hdd-7201".to_owned();
    }
    let error = Volume::create(&bench.custodian, &spec, &slot_in(bench.temp.path(), "v")).unwrap_err();
    assert!(error.to_string().contains("hdd-7201"), "{error}");
    assert!(bench.custodian.held().is_empty() && traces_of(bench.temp.path()).is_empty());
    assert_eq!(fs::read_dir(bench.memory.path()).unwrap().count(), 0);
}

fn kill(process: Option<senesce_vdisk::ProcessRef>, signal: Signal) {
    let pid = process.unwrap().pid;
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn survives_the_death_of(what: &str, kind: FileSystemKind) {
    if !root_or_skip("FUSE, loop devices and mounts") {
        return;
    }
    let bench = Bench::new();
    let mut volume = bench.create(kind);
    let footprint = bench.footprint();
    fill(volume.root());
    match what {
        "the server" => kill(footprint.server, Signal::KILL),
        // No process is left that detects the stopped server.
        _ => {
            kill(footprint.guard, Signal::KILL);
            kill(footprint.server, Signal::STOP);
        }
    }
    while !(footprint.server.is_some_and(|it| !it.is_alive()) || footprint.guard.is_some_and(|it| !it.is_alive())) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    if what == "the server" {
        assert!(volume.remount_cold().is_err(), "the write-back fails");
        assert!(matches!(volume.disk_time(), Err(Error::Disk(_))));
    }
    let _ = volume.destroy();
    bench.custodian.release_all();
    bench.assert_nothing_left(&footprint);
}

#[test]
fn ext4_is_released_after_its_server_died() {
    survives_the_death_of("the server", FileSystemKind::Ext4);
}

#[test]
fn xfs_is_released_after_its_server_died() {
    survives_the_death_of("the server", FileSystemKind::Xfs);
}

#[test]
fn btrfs_is_released_after_its_server_died() {
    survives_the_death_of("the server", FileSystemKind::Btrfs);
}

#[test]
fn a_stopped_server_without_guard_is_released() {
    survives_the_death_of("the guard", FileSystemKind::Ext4);
}

const DIR: &str = "SENESCE_TEST_CHILD_DIR";
const MEMORY: &str = "SENESCE_TEST_CHILD_MEMORY";

/// A helper, not a test: the process that the test below starts and kills.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn child_that_holds_a_disk() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let memory = std::env::var_os(MEMORY).map(PathBuf::from).unwrap();
    let custodian = Custodian::open(Arc::new(host()), &dir).unwrap();
    let kind = FileSystemKind::Ext4;
    let volume = Volume::create(&custodian, &spec_in(&memory, kind), &slot_in(&dir, "killed")).unwrap();
    fill(volume.root());
    fs::write(dir.join("ready"), "").unwrap();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

fn cleaned_after_a_kill(and_the_server: bool) {
    if !root_or_skip("FUSE, loop devices and mounts") {
        return;
    }
    let temp = tempfile::Builder::new().prefix("senesce-volume-virtual-").tempdir_in("/tmp").unwrap();
    let memory = tempfile::Builder::new().prefix("senesce-volume-virtual-").tempdir_in("/dev/shm").unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "virtual_disk::child_that_holds_a_disk", "--ignored"])
        .env(DIR, temp.path())
        .env(MEMORY, memory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ready = temp.path().join("ready");
    while !ready.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the child exited before it was ready");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    fs::remove_file(ready).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let journal = fs::read_to_string(temp.path().join("resources.ndjson")).unwrap();
    let amended = journal.lines().find(|line| line.contains("\"amend\"")).expect("the processes are in the journal");
    let amended: serde_json::Value = serde_json::from_str(amended).unwrap();
    let footprint: Footprint = serde_json::from_value(amended["resource"]["footprint"].clone()).unwrap();
    if and_the_server {
        kill(footprint.server, Signal::KILL);
    }
    let actions = clean(&host(), temp.path(), CleanMode::Act).unwrap();
    let failed: Vec<_> = actions.iter().filter(|action| matches!(action.outcome, Outcome::Failed { .. })).collect();
    assert!(failed.is_empty() && actions.len() == 6, "{actions:#?}");
    assert_nothing_left(temp.path(), memory.path(), &footprint);
    assert_eq!(clean(&host(), temp.path(), CleanMode::Act).unwrap(), []);
}

#[test]
fn a_killed_run_with_a_virtual_disk_is_cleaned() {
    cleaned_after_a_kill(false);
}

#[test]
fn a_run_killed_with_its_server_is_cleaned() {
    cleaned_after_a_kill(true);
}

#[test]
fn images_of_other_runs_are_not_confused_with_disks() {
    if !root_or_skip("FUSE, loop devices and mounts") {
        return;
    }
    let (one, other) = (Bench::new(), Bench::new());
    let (volume, theirs) = (one.create(FileSystemKind::Ext4), other.create(FileSystemKind::Ext4));
    fs::write(theirs.root().join("precious"), vec![1; Bytes::MIB as usize]).unwrap();
    let footprint = one.footprint();
    volume.destroy().unwrap();
    one.assert_nothing_left(&footprint);
    assert_eq!(fs::read(theirs.root().join("precious")).unwrap().len(), 1 << 20);
    theirs.destroy().unwrap();
}
