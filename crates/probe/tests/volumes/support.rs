//! A small file system on a loop device, taken away again whatever happens.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Runs a program and gives its standard output; panics with what it said if it failed.
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
    String::from_utf8(output.stdout).unwrap()
}

/// A mounted file system on a loop device over a sparse image.
pub struct Volume {
    pub mountpoint: PathBuf,
    pub device: String,
    options: String,
    mounted: bool,
    /// Removed last, after the mount and the loop device are gone.
    _directory: tempfile::TempDir,
}

impl Volume {
    /// Makes `mkfs.<kind>` with `arguments` on an image of `mib` MiB and mounts it with `options`.
    pub fn new(kind: &str, mib: u64, arguments: &[&str], options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let mountpoint = directory.path().join("mnt");
        std::fs::create_dir(&mountpoint).unwrap();
        let image = image.to_str().unwrap();
        run(&format!("mkfs.{kind}"), &[arguments, &["-q", image]].concat());
        let device = run("losetup", &["--find", "--show", image]).trim().to_owned();
        let mut volume =
            Self { mountpoint, device, options: options.to_owned(), mounted: false, _directory: directory };
        volume.mount();
        volume
    }

    pub fn mount(&mut self) {
        run("mount", &["-o", &self.options, &self.device, self.mountpoint.to_str().unwrap()]);
        self.mounted = true;
    }

    pub fn unmount(&mut self) {
        run("umount", &[self.mountpoint.to_str().unwrap()]);
        self.mounted = false;
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.mountpoint.join(name)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Best effort, also during a panic: a failure here must not hide the first one.
        if self.mounted {
            let _ = Command::new("umount").arg(&self.mountpoint).status();
        }
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Appends 16 KiB in turn to `files` files, with a sync after each, so that their extents alternate.
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

/// Fills the volume with small files and deletes every third and seventh, so that free space is in many pieces.
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

    /// The same with partitions, told to the kernel without a table: number, first sector, sectors.
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
