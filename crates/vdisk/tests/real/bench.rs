//! A disk with its loop device and its file system, which are released even when a test fails.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use senesce_core::{Clock, Nanos};
use senesce_vdisk::{BackingSpec, Footprint, Launch, Pace, ServeConfig, Server, abort, release};
use tempfile::TempDir;

pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Nanos {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

/// The test program itself, as a server or a guard.
pub fn launch() -> Launch {
    Launch { executable: std::env::current_exe().unwrap(), arguments: vec!["vdisk-serve".into()] }
}

/// Runs a program for at most a minute; returns its output, or the reason of its failure.
pub fn try_run(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output =
        Command::new("timeout").args(["-k", "5", "60"]).args(words).stdin(Stdio::null()).output().expect("timeout");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{line}: {} {}", output.status, String::from_utf8_lossy(&output.stderr).trim())),
    }
}

pub fn run(line: &str) -> String {
    try_run(line).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Waits up to 20 s.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "still not so: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Aborts a disk's connection when a test runs too long.
pub struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub fn new(footprint: &Footprint, seconds: u64) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (footprint, seen) = (footprint.clone(), Arc::clone(&done));
        thread::spawn(move || {
            for _ in 0..seconds * 10 {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
            eprintln!("WATCHDOG: aborting {}", footprint.name);
            let _ = abort(&footprint);
        });
        Self(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The directories of a disk, removed on drop.
pub struct Place {
    dir: TempDir,
    memory: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let memory =
            if Path::new("/dev/shm").is_dir() { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() };
        let place = Self { dir: tempfile::tempdir().unwrap(), memory: memory.unwrap() };
        fs::create_dir(place.disk_point()).unwrap();
        fs::create_dir(place.root()).unwrap();
        place
    }

    pub fn disk_point(&self) -> PathBuf {
        self.dir.path().join("disk-point")
    }

    /// The mount point of the file system on the disk.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn config(&self, megabytes: u64, device: &str) -> ServeConfig {
        let name = format!("test-{}-{}", std::process::id(), self.dir.path().file_name().unwrap().to_string_lossy());
        let backing = BackingSpec::Unlinked { dir: self.memory.path().to_owned() };
        ServeConfig::new(&name.replace(['(', ')'], ""), self.disk_point(), megabytes << 20, backing, device)
    }
}

/// A loop device on a disk, optionally with a mounted file system.
pub struct Attached {
    pub loop_device: PathBuf,
    pub root: PathBuf,
    footprint: Footprint,
    is_mounted: bool,
    is_attached: bool,
    _watchdog: Watchdog,
}

impl Attached {
    pub fn new(footprint: &Footprint, root: PathBuf) -> Self {
        let disk = footprint.mount_point.join("disk");
        let _watchdog = Watchdog::new(footprint, 150);
        let loop_device = PathBuf::from(run(&format!("losetup --find --show --direct-io=on {}", disk.display())));
        let footprint = footprint.clone();
        let attached = Self { loop_device, root, footprint, is_mounted: false, is_attached: true, _watchdog };
        assert_eq!(attached.sys("loop/dio"), "1", "the loop device goes past the page cache");
        fs::write(attached.sys_path("queue/max_sectors_kb"), senesce_vdisk::MAX_REQUEST_KIB.to_string()).unwrap();
        fs::write(attached.sys_path("queue/read_ahead_kb"), "128").unwrap();
        attached
    }

    fn sys_path(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(self.loop_device.file_name().unwrap()).join(name)
    }

    pub fn sys(&self, name: &str) -> String {
        fs::read_to_string(self.sys_path(name)).unwrap_or_default().trim().to_owned()
    }

    pub fn mkfs(&self, kind: &str) {
        let quiet = if kind == "ext4" { "-q -F -E lazy_itable_init=0,lazy_journal_init=0" } else { "-q -f" };
        run(&format!("mkfs.{kind} {quiet} {}", self.loop_device.display()));
    }

    pub fn mount(&mut self, kind: &str) {
        run(&format!("mount -t {kind} -o noatime {} {}", self.loop_device.display(), self.root.display()));
        self.is_mounted = true;
    }

    pub fn try_unmount(&mut self) -> Result<String, String> {
        let done = try_run(&format!("umount {}", self.root.display()));
        self.is_mounted &= done.is_err();
        done
    }

    /// Unmounts, with retries: a process that reads the list of mounts, or a killed one that still
    /// closes its files, delays it.
    pub fn unmount(&mut self) {
        let mut done = self.try_unmount();
        for _ in 0..200 {
            if !done.as_ref().is_err_and(|error| error.contains("busy")) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            done = self.try_unmount();
        }
        done.unwrap();
    }

    pub fn remount(&mut self, kind: &str) {
        self.unmount();
        self.mount(kind);
    }

    pub fn detach(&mut self) {
        run(&format!("losetup -d {}", self.loop_device.display()));
        self.is_attached = false;
        let file = self.sys_path("loop/backing_file");
        eventually("the loop device is detached", || !file.exists());
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.is_mounted || self.is_attached {
            // A test failed: the contents are not needed any more, and no process must wait.
            let _ = abort(&self.footprint);
        }
        if self.is_mounted {
            let _ = try_run(&format!("umount -l {}", self.root.display()));
        }
        if self.is_attached {
            let _ = try_run(&format!("losetup -d {}", self.loop_device.display()));
        }
        let _ = release(&self.footprint);
    }
}

/// A whole disk: server, loop device, directories. Fields are dropped in this order.
pub struct Disk {
    pub attached: Attached,
    pub server: Server,
    pub place: Place,
}

impl Disk {
    pub fn new(megabytes: u64, device: &str, pace: Pace) -> Self {
        let place = Place::new();
        Self::with(ServeConfig { pace, ..place.config(megabytes, device) }, place)
    }

    pub fn with(config: ServeConfig, place: Place) -> Self {
        let server = Server::start(&launch(), config).unwrap();
        let attached = Attached::new(server.footprint(), place.root());
        Self { attached, server, place }
    }

    /// Releases everything in order, and checks that nothing is left.
    pub fn end(mut self) {
        if self.attached.is_mounted {
            self.attached.unmount();
        }
        self.attached.detach();
        let footprint = self.server.footprint().clone();
        let last = self.server.quit().unwrap();
        assert_eq!((last.failed_requests, last.unaligned_requests, last.log_problem), (0, 0, None));
        assert_nothing_left(&footprint);
    }
}

pub fn assert_nothing_left(footprint: &Footprint) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&footprint.name), "it is still mounted:\n{mounts}");
    for process in [footprint.server, footprint.guard].into_iter().flatten() {
        eventually("the process is gone", || !process.is_alive());
    }
    assert_eq!(fs::read_dir(&footprint.mount_point).unwrap().count(), 0, "the mount point is empty again");
}

/// Contents that depend on their position.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Writes a file and makes it durable.
pub fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
