//! Small file systems and loop devices with cleanup on drop, and functions that age them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub use senesce_testkit::{Volume, run};

/// Appends 16 KiB in turn to `files` files, with a sync after each, so that their extents
/// alternate.
pub fn write_fragmented(directory: &Path, files: usize, rounds: usize) {
    use std::io::Write;
    let mut open: Vec<_> =
        (0..files).map(|n| std::fs::File::create(directory.join(format!("fragmented-{n}"))).unwrap()).collect();
    for round in 0..rounds {
        for file in &mut open {
            file.write_all(&vec![round as u8 + 1; 16384]).unwrap();
            file.sync_all().unwrap();
        }
    }
}

/// Fills the volume with small files and deletes every third and seventh, so that free space is
/// fragmented.
pub fn fragment_free_space(directory: &Path, files: usize) {
    for n in 0..files {
        std::fs::write(directory.join(format!("f{n}")), vec![n as u8; 4096 * (1 + n % 5)]).unwrap();
    }
    run("sync", &["-f", directory.to_str().unwrap()]);
    for n in (0..files).filter(|n| n % 3 == 0 || n % 7 == 0) {
        std::fs::remove_file(directory.join(format!("f{n}"))).unwrap();
    }
}

/// A loop device over an image in a temporary directory, without a file system.
pub struct LoopDevice {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl LoopDevice {
    /// Over an image of `mib` MiB whose blocks are all written.
    pub fn new(mib: usize) -> Self {
        Self::make(mib, &[], true)
    }

    /// Over an image of `mib` MiB that is one hole.
    pub fn sparse(mib: usize) -> Self {
        Self::make(mib, &[], false)
    }

    /// The same with partitions, added to the kernel without a partition table: number, first
    /// sector, sectors.
    pub fn with_partitions(mib: usize, partitions: &[(u32, u32, u32)]) -> Self {
        let device = Self::make(mib, &["--partscan"], true);
        for (number, start, sectors) in partitions {
            let numbers = [number, start, sectors].map(u32::to_string);
            run("addpart", &[device.path.to_str().unwrap(), &numbers[0], &numbers[1], &numbers[2]]);
        }
        device
    }

    fn make(mib: usize, options: &[&str], written: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        if written {
            std::fs::write(&image, vec![0x5A; mib << 20]).unwrap();
        } else {
            std::fs::File::create(&image).unwrap().set_len((mib as u64) << 20).unwrap();
        }
        let path = run("losetup", &[options, &["--find", "--show", image.to_str().unwrap()]].concat());
        Self { path: path.trim().into(), _directory: directory }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}
