//! A file system on a loop device over the test's own image, which is always removed.

use std::{
    cell::Cell,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

/// Runs a program and returns its standard output. Panics with its standard error if it fails.
#[track_caller]
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Unmounts, with retries for 4 s. A mount is busy for a moment if a program lists all mounts, or
/// if another test starts a program. That process holds a copy of each descriptor until its exec.
///
/// Panics with umount's output.
#[track_caller]
pub fn unmount(point: &Path) {
    if !unmount_patiently(point) {
        run("umount", &[point.to_str().unwrap()]);
    }
}

/// As [`unmount`], without a panic, for drops. Returns whether it is unmounted.
pub fn unmount_patiently(point: &Path) -> bool {
    for _ in 0..200 {
        if Command::new("umount").arg(point).output().is_ok_and(|output| output.status.success()) {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// Returns a directory for images, in memory if there is enough space: most tests need not wait for
/// a disk.
pub fn scratch_directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(memory).map_or(0, |info| info.f_bavail * info.f_frsize);
    if room < SCRATCH_ROOM_BYTES { tempfile::tempdir() } else { tempfile::tempdir_in(memory) }.unwrap()
}

/// The free memory that this requires, bytes.
const SCRATCH_ROOM_BYTES: u64 = 4 << 30;

/// Options of a test's volume.
#[derive(Debug, Clone)]
pub struct VolumeOptions<'a> {
    /// The suffix of mkfs: `ext4`, `xfs`, `btrfs`.
    pub kind: &'a str,
    /// Size of the sparse image, MiB (XFS needs at least 300).
    pub mib: u64,
    /// More arguments for mkfs.
    pub mkfs: &'a [&'a str],
    /// Options of the mount.
    pub mount: &'a str,
    /// Whether the loop device bypasses the image's page cache, so that an unmounted volume has no
    /// cached data.
    pub direct_io: bool,
    /// Readahead of the device, KiB; `None`: the host's value.
    pub read_ahead_kib: Option<u32>,
    /// Directory of the image. `None`: in memory if there is enough space ([`scratch_directory`]);
    /// with direct I/O in the directory of temporary files.
    pub image_in: Option<&'a Path>,
}

impl<'a> VolumeOptions<'a> {
    /// Options for a volume of a kind and size, with the defaults of mkfs and mount.
    pub fn new(kind: &'a str, mib: u64) -> Self {
        Self { kind, mib, mkfs: &[], mount: "defaults", direct_io: false, read_ahead_kib: None, image_in: None }
    }
}

/// A mounted file system on a loop device over a sparse image. Drop removes everything, also on a
/// panic.
pub struct Volume {
    /// The mount point.
    pub mountpoint: PathBuf,
    /// The loop device.
    pub device: String,
    mount_options: String,
    read_ahead_kib: Option<u32>,
    mounted: Cell<bool>,
    /// Removed last, after the mount and the loop device.
    directory: tempfile::TempDir,
}

impl Volume {
    /// Creates a volume of `kind` on an image of `mib` MiB, with the arguments `mkfs` and the mount
    /// options `mount`.
    #[track_caller]
    pub fn new(kind: &str, mib: u64, mkfs: &[&str], mount: &str) -> Self {
        Self::with(&VolumeOptions { mkfs, mount, ..VolumeOptions::new(kind, mib) })
    }

    /// Creates the image and the file system, and mounts it. Needs root. Panics with the output of
    /// a tool that fails.
    #[track_caller]
    pub fn with(options: &VolumeOptions<'_>) -> Self {
        let directory = match options.image_in {
            Some(place) => tempfile::tempdir_in(place).unwrap(),
            // Direct I/O is for tests that measure a disk.
            None if options.direct_io => tempfile::tempdir().unwrap(),
            None => scratch_directory(),
        };
        // Some tests read the volume as the user `nobody`.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let (image, mountpoint) = (directory.path().join("image"), directory.path().join("mnt"));
        File::create(&image).unwrap().set_len(options.mib << 20).unwrap();
        fs::create_dir(&mountpoint).unwrap();
        let image = image.to_str().unwrap();
        run(&format!("mkfs.{}", options.kind), &[options.mkfs, &["-q", image]].concat());
        let direct: &[&str] = if options.direct_io { &["--direct-io=on"] } else { &[] };
        let device = run("losetup", &[direct, &["--find", "--show", image]].concat()).trim().to_owned();
        let volume = Self {
            mountpoint,
            device,
            mount_options: options.mount.to_owned(),
            read_ahead_kib: options.read_ahead_kib,
            mounted: Cell::new(false),
            directory,
        };
        volume.mount();
        volume
    }

    /// Mounts the volume again after [`Volume::unmount`].
    #[track_caller]
    pub fn mount(&self) {
        if let Some(kib) = self.read_ahead_kib {
            fs::write(in_sysfs(&self.device).join("queue/read_ahead_kb"), kib.to_string()).unwrap();
        }
        run("mount", &["-o", &self.mount_options, &self.device, self.mountpoint.to_str().unwrap()]);
        self.mounted.set(true);
    }

    /// Unmounts the volume; image and loop device stay.
    #[track_caller]
    pub fn unmount(&self) {
        unmount(&self.mountpoint);
        self.mounted.set(false);
    }

    /// Unmounts, drops the device's cache and mounts again. With direct I/O no data stays in
    /// memory.
    #[track_caller]
    pub fn remount_cold(&self) {
        self.unmount();
        run("blockdev", &["--flushbufs", &self.device]);
        self.mount();
    }

    /// Returns the path of `name` on the volume.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mountpoint.join(name)
    }

    /// The image file of the loop device.
    pub fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// The device's counters since it was created, as in the kernel's Documentation/block/stat.rst:
    /// among them requests read \[0\], sectors of 512 bytes read \[2\] and written \[6\].
    pub fn device_stat(&self) -> Vec<u64> {
        device_stat(&self.device)
    }
}

/// Returns the directory of a block device in sysfs.
pub(crate) fn in_sysfs(device: &str) -> PathBuf {
    Path::new("/sys/block").join(device.trim_start_matches("/dev/"))
}

/// See [`Volume::device_stat`].
pub(crate) fn device_stat(device: &str) -> Vec<u64> {
    let text = fs::read_to_string(in_sysfs(device).join("stat")).unwrap();
    text.split_whitespace().map(|field| field.parse().unwrap()).collect()
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Best effort, also during a panic: a failure here must not hide the first one.
        if self.mounted.get() && !unmount_patiently(&self.mountpoint) {
            eprintln!("could not unmount {}", self.mountpoint.display());
        }
        let _ = Command::new("losetup").args(["--detach", &self.device]).output();
    }
}
