//! A block device that fails when its space is used up.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::Command,
    thread::sleep,
    time::Duration,
};

use crate::{
    run,
    volume::{device_stat, in_sysfs},
};

/// A loop device over a sparse image on a tmpfs that is smaller. A write fails with EIO if the
/// tmpfs has no space for it: at once, or when the kernel writes its pages.
///
/// Linux (seen with 6.18) confirms a write of which a loop device's file took only a part. So each
/// request here has one page, which the file takes or not.
pub struct FailingDisk {
    /// The loop device.
    pub device: String,
    requests_kib: String,
    writes_before: u64,
    /// Removed last.
    directory: tempfile::TempDir,
}

impl FailingDisk {
    /// A device of `mib` MiB with space for `kib` KiB. Needs root.
    #[track_caller]
    pub fn new(mib: u64, kib: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "none", &at(&directory)]);
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]).trim().to_owned();
        let limit = limit_of(&device);
        let requests_kib = fs::read_to_string(&limit).unwrap();
        fs::write(limit, "4").unwrap();
        let writes_before = count_writes(&device);
        Self { device, requests_kib, writes_before, directory }
    }

    /// Changes the space to `kib` KiB.
    #[track_caller]
    pub fn resize(&self, kib: u64) {
        run("mount", &["-o", &format!("remount,size={kib}k"), &at(&self.directory)]);
    }

    /// Waits until the device has done `count` writes since it was created, with or without
    /// success.
    #[track_caller]
    pub fn await_writes(&self, count: u64) {
        for _ in 0..1000 {
            if count_writes(&self.device) >= self.writes_before + count {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{} did not do {count} writes", self.device);
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        // Best effort, also during a panic: a failure here must not hide the first one.
        // The limit stays with the device, which others attach later.
        let _ = fs::write(limit_of(&self.device), self.requests_kib.trim());
        let _ = Command::new("losetup").args(["--detach", &self.device]).output();
        // The device must be detached first.
        let _ = Command::new("umount").args(["--lazy", &at(&self.directory)]).output();
    }
}

fn limit_of(device: &str) -> PathBuf {
    in_sysfs(device).join("queue/max_sectors_kb")
}

fn count_writes(device: &str) -> u64 {
    // Writes completed, in the kernel's Documentation/block/stat.rst.
    device_stat(device)[4]
}

fn at(directory: &tempfile::TempDir) -> String {
    directory.path().to_string_lossy().into_owned()
}
