//! A block device that fails when its space is used up.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use crate::run;

/// A loop device over a sparse image on a tmpfs that is smaller. A write fails with EIO if the
/// tmpfs has no space for it: at once, or when the kernel writes its pages.
///
/// Linux (seen with 6.18) confirms a write of which a loop device's file took only a part. So each
/// request here has one page, which the file takes or not.
pub struct FailingDisk {
    /// The loop device.
    pub device: String,
    requests_kib: String,
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
        Self { device, requests_kib, directory }
    }

    /// Changes the space to `kib` KiB.
    #[track_caller]
    pub fn resize(&self, kib: u64) {
        run("mount", &["-o", &format!("remount,size={kib}k"), &at(&self.directory)]);
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        // The limit stays with the device, which others attach later.
        fs::write(limit_of(&self.device), self.requests_kib.trim()).unwrap();
        run("losetup", &["--detach", &self.device]);
        // The device may go only after this.
        run("umount", &["--lazy", &at(&self.directory)]);
    }
}

fn limit_of(device: &str) -> PathBuf {
    Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join("queue/max_sectors_kb")
}

fn at(directory: &tempfile::TempDir) -> String {
    directory.path().to_string_lossy().into_owned()
}
