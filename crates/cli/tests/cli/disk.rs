//! What tests mount and attach themselves; each goes away by itself.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Runs a command that must succeed.
#[track_caller]
pub fn must(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A block device that plays the disk of another user.
pub struct Disk {
    pub device: String,
}

impl Disk {
    /// An image of `mib` MiB at `image`, on a loop device.
    pub fn new(image: &Path, mib: u64) -> Self {
        std::fs::File::create(image).unwrap().set_len(mib << 20).unwrap();
        Self::attach(image)
    }

    /// The image that is there, on a loop device.
    pub fn attach(image: &Path) -> Self {
        Self { device: must("losetup", &["--find", "--show", &image.to_string_lossy()]) }
    }

    pub fn format_ext4(&self) {
        must("mkfs.ext4", &["-q", &self.device]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).output();
        // A program that scans all loop devices, or a namespace of another test, delays the detach.
        let backing = Path::new("/sys/block").join(self.device.trim_start_matches("/dev/")).join("loop/backing_file");
        for _ in 0..12_000 {
            if !backing.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// A file system of `kind`, made with the arguments `mkfs` on an image of `mib` MiB and mounted at
/// `at`.
pub fn volume(kind: &str, mkfs: &[&str], image: &Path, mib: u64, at: PathBuf) -> (Disk, Mount) {
    let disk = Disk::new(image, mib);
    must(&format!("mkfs.{kind}"), &[&["-q"], mkfs, &[&disk.device]].concat());
    // Locals drop in reverse order: the mount must go before its disk.
    let mount = Mount::new(&[&disk.device], at);
    (disk, mount)
}

/// A mount of the test's own.
pub struct Mount {
    pub point: PathBuf,
}

impl Mount {
    pub fn new(args: &[&str], point: PathBuf) -> Self {
        std::fs::create_dir_all(&point).unwrap();
        must("mount", &[args, &[&*point.to_string_lossy()]].concat());
        Self { point }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).output();
    }
}
