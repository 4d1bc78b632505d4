//! File systems on images in memory, mounted for a test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A mounted file system; unmounted when dropped, also on a panic. The loop device goes with the mount.
pub struct Mounted {
    pub at: PathBuf,
    _dir: tempfile::TempDir,
}

/// The file systems that workloads are tried on.
pub const KINDS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// The smallest image that all of them can be made on, and then some.
pub const SMALL_BYTES: u64 = 320 << 20;

impl Mounted {
    pub fn new(kind: &str, size_bytes: u64) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (image, at) = (dir.path().join("image"), dir.path().join("mount"));
        fs::create_dir(&at).unwrap();
        fs::File::create(&image).unwrap().set_len(size_bytes).unwrap();
        let (options, mount): (&[&str], &str) = match kind {
            "ext4" => (&["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "loop,commit=300"),
            "btrfs" => (&["-q", "-f"], "loop,commit=300,nodiscard"),
            _ => (&["-q", "-f"], "loop"),
        };
        run(Command::new(format!("mkfs.{kind}")).args(options).arg(&image));
        run(Command::new("mount").args(["-t", kind, "-o", mount]).arg(&image).arg(&at));
        Self { at, _dir: dir }
    }

    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.at).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("could not unmount {}", self.at.display());
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
