//! A file system on a loop device over an image of the test's own, taken away again whatever happens.

use std::{
    cell::Cell,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

/// Runs a program and gives its standard output; panics with what it said if it failed.
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

/// Unmounts, and tries that for 4 s. A mount is busy for a moment if a program lists all mounts, or if
/// another test starts a program, which holds a copy of each descriptor until it runs.
///
/// Panics with what umount printed.
#[track_caller]
pub fn unmount(point: &Path) {
    if !unmount_patiently(point) {
        run("umount", &[point.to_str().unwrap()]);
    }
}

/// The same without a panic, for what is dropped. Returns whether it is unmounted.
pub fn unmount_patiently(point: &Path) -> bool {
    for _ in 0..200 {
        if Command::new("umount").arg(point).output().is_ok_and(|output| output.status.success()) {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// A directory for images, in memory if there is room for some: a test that is not about disks need not wait for one.
pub fn scratch_directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(memory).map_or(0, |info| info.f_bavail * info.f_frsize);
    if room < SCRATCH_ROOM_BYTES { tempfile::tempdir() } else { tempfile::tempdir_in(memory) }.unwrap()
}

/// What is to be free in memory for that.
const SCRATCH_ROOM_BYTES: u64 = 4 << 30;

/// What volume a test wants.
#[derive(Debug, Clone)]
pub struct VolumeOptions<'a> {
    /// `ext4`, `xfs`, `btrfs`: the ending of mkfs.
    pub kind: &'a str,
    /// Size of the sparse image, MiB (XFS wants 300 at least).
    pub mib: u64,
    /// More arguments for mkfs.
    pub mkfs: &'a [&'a str],
    /// Options of the mount.
    pub mount: &'a str,
    /// The loop device reads and writes past the image's page cache, so that an unmounted volume is a cold one.
    pub direct_io: bool,
    /// Readahead of the device, KiB; `None`: what the host gives.
    pub read_ahead_kib: Option<u32>,
    /// Where the image lies. `None`: in memory if there is room ([`scratch_directory`]), with direct I/O where temporary files do.
    pub image_in: Option<&'a Path>,
}

impl<'a> VolumeOptions<'a> {
    /// A volume of that kind and size with the defaults of mkfs and mount.
    pub fn new(kind: &'a str, mib: u64) -> Self {
        Self { kind, mib, mkfs: &[], mount: "defaults", direct_io: false, read_ahead_kib: None, image_in: None }
    }
}

/// A mounted file system on a loop device over a sparse image; all of it goes when it is dropped, also on a panic.
pub struct Volume {
    /// Where it is mounted, if it is.
    pub mountpoint: PathBuf,
    /// The loop device.
    pub device: String,
    mount_options: String,
    read_ahead_kib: Option<u32>,
    mounted: Cell<bool>,
    /// Removed last, after the mount and the loop device are gone.
    directory: tempfile::TempDir,
}

impl Volume {
    /// A volume of `kind` on an image of `mib` MiB, made with the arguments `mkfs` and mounted with the options `mount`.
    #[track_caller]
    pub fn new(kind: &str, mib: u64, mkfs: &[&str], mount: &str) -> Self {
        Self::with(&VolumeOptions { mkfs, mount, ..VolumeOptions::new(kind, mib) })
    }

    /// Makes the image and the file system, and mounts it. Panics with what a tool said if one fails; needs root.
    #[track_caller]
    pub fn with(options: &VolumeOptions<'_>) -> Self {
        let directory = match options.image_in {
            Some(place) => tempfile::tempdir_in(place).unwrap(),
            // Direct I/O is asked for to see a disk.
            None if options.direct_io => tempfile::tempdir().unwrap(),
            None => scratch_directory(),
        };
        // Some tests look at the volume with nobody's rights.
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

    /// Mounts it again after [`Volume::unmount`].
    #[track_caller]
    pub fn mount(&self) {
        if let Some(kib) = self.read_ahead_kib {
            fs::write(in_sysfs(&self.device).join("queue/read_ahead_kb"), kib.to_string()).unwrap();
        }
        run("mount", &["-o", &self.mount_options, &self.device, self.mountpoint.to_str().unwrap()]);
        self.mounted.set(true);
    }

    /// Unmounts it; image and loop device stay.
    #[track_caller]
    pub fn unmount(&self) {
        unmount(&self.mountpoint);
        self.mounted.set(false);
    }

    /// Unmounts and mounts, and drops what the device has cached. With direct I/O nothing of it stays in memory.
    #[track_caller]
    pub fn remount_cold(&self) {
        self.unmount();
        run("blockdev", &["--flushbufs", &self.device]);
        self.mount();
    }

    /// The path of `name` on the volume.
    pub fn path(&self, name: &str) -> PathBuf {
        self.mountpoint.join(name)
    }

    /// The file below the loop device.
    pub fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// The device's counters since it was made, as in the kernel's Documentation/block/stat.rst: among them requests
    /// read \[0\], sectors of 512 bytes read \[2\] and written \[6\].
    pub fn device_stat(&self) -> Vec<u64> {
        device_stat(&self.device)
    }
}

/// The directory of a block device in sysfs.
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
