//! Images and mounted volumes, removed even after a panic.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use senesce_ext4::FileSystem;
pub use senesce_testkit::run;
use senesce_testkit::{scratch_directory, unmount_patiently};

/// A formatted image in a directory of its own.
pub struct Image {
    pub directory: tempfile::TempDir,
    pub path: PathBuf,
}

impl Image {
    /// Makes a file of `mib` MiB and runs `mkfs.ext4` on it with `arguments` (separated by spaces).
    pub fn new(mib: u64, arguments: &str) -> Self {
        let directory = scratch_directory();
        let path = directory.path().join("image");
        File::create(&path).unwrap().set_len(mib << 20).unwrap();
        let mut all: Vec<&str> = arguments.split_whitespace().collect();
        all.extend(["-q", "-F", path.to_str().unwrap()]);
        run("mkfs.ext4", &all);
        Self { directory, path }
    }

    pub fn open(&self) -> FileSystem<File> {
        FileSystem::open(File::open(&self.path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    pub fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Mounts it on a loop device.
    pub fn mount(&self, options: &str) -> Mount {
        let mountpoint = self.directory.path().join("mnt");
        std::fs::create_dir_all(&mountpoint).unwrap();
        let device = run("losetup", &["--find", "--show", self.text()]).trim().to_owned();
        // From here on, the guard removes the mount and the loop device.
        let mut mount = Mount { mountpoint, device, mounted: false };
        run("mount", &["-t", "ext4", "-o", options, &mount.device, mount.mountpoint.to_str().unwrap()]);
        mount.mounted = true;
        mount
    }
}

/// A mounted image; unmounted and detached when dropped.
pub struct Mount {
    pub mountpoint: PathBuf,
    pub device: String,
    mounted: bool,
}

impl Mount {
    pub fn path(&self, name: &str) -> PathBuf {
        self.mountpoint.join(name)
    }

    pub fn sync(&self) {
        sync(&self.mountpoint);
    }

    /// The current state of the file system on the device.
    pub fn open(&self) -> FileSystem<File> {
        FileSystem::open(File::open(&self.device).unwrap()).unwrap_or_else(|error| panic!("{error}"))
    }
}

pub fn sync(path: &Path) {
    run("sync", &["-f", path.to_str().unwrap()]);
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Best effort, also during a panic: a failure here must not hide the first one.
        if self.mounted {
            unmount_patiently(&self.mountpoint);
        }
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}
