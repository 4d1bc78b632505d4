//! The garden `g` of a lab, mounted on `mnt` as a user does it; and what is done with any mount
//! there.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{
    disk::must,
    lab::{Lab, mount_points},
};

/// Bytes of a slot on a drive: a block and its trailer.
pub const SLOT: u64 = 4160;

/// A garden that is mounted on `mnt` until this is unmounted.
pub struct Mounted<'a> {
    lab: &'a Lab,
    child: Child,
}

/// Mounts `g`, and waits until it is there.
pub fn mount<'a>(lab: &'a Lab, more: &[&str]) -> Mounted<'a> {
    let child = start(lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]).args(more).stdout(Stdio::null()));
    Mounted { lab, child }
}

/// What was started with [`start`], so that it is unmounted whatever happens.
pub fn hold(lab: &Lab, child: Child) -> Mounted<'_> {
    Mounted { lab, child }
}

/// Starts a command that mounts something on `mnt`, and waits until it is there.
pub fn start(lab: &Lab, command: &mut Command) -> Child {
    fs::create_dir_all(lab.path("mnt")).unwrap();
    let mut child = command.spawn().unwrap();
    let point = lab.path("mnt").to_string_lossy().into_owned();
    while !mount_points().contains(&point) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

impl Mounted<'_> {
    pub fn unmount(self) {
        assert!(self.end());
    }

    /// Unmounts, and returns whether the program exits without an error.
    pub fn end(mut self) -> bool {
        unmount(self.lab);
        self.child.wait().unwrap().success()
    }

    /// Waits for the end of a mount that was unmounted. Returns its exit code.
    pub fn wait_code(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// Unmounts `mnt`, which may be in use for a moment by a program that scans all mounts.
pub fn unmount(lab: &Lab) {
    senesce_testkit::unmount(&lab.path("mnt"));
}

/// Ends the connection of `mnt` while it is mounted. The kernel does that before it finds that a
/// program uses the mount.
pub fn abort(lab: &Lab) {
    let user = fs::File::open(lab.path("mnt")).unwrap();
    let done = Command::new("umount").arg("--force").arg(lab.path("mnt")).output().unwrap();
    assert!(!done.status.success(), "it was not in use");
    drop(user);
}

impl Drop for Mounted<'_> {
    /// A failed test leaves no resources.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = Command::new("umount").arg("-l").arg(self.lab.path("mnt")).status();
        }
    }
}

/// Mounts `g`, calls `look`, and unmounts. Returns what the program printed on stderr.
pub fn mount_and_hear(lab: &Lab, more: &[&str], look: impl FnOnce()) -> String {
    let child = start(lab, lab.command().args(["fs", "mount", "g", "mnt"]).args(more).stderr(Stdio::piped()));
    look();
    unmount(lab);
    String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
}

/// Writes a file to `mnt` and makes it durable.
pub fn write_synced(lab: &Lab, name: &str, text: &str) {
    let path = lab.path(format!("mnt/{name}"));
    fs::write(&path, text).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
}

/// Writes a tree to `mnt` and copies it to `copy`.
pub fn write_and_copy(lab: &Lab) {
    for directory in 0..5 {
        let path = lab.path(format!("mnt/{directory}"));
        fs::create_dir(&path).unwrap();
        for file in 0..40u8 {
            fs::write(path.join(format!("{file}")), vec![file; usize::from(file) * 1000]).unwrap();
        }
        fs::rename(&path, lab.path(format!("mnt/moved-{directory}"))).unwrap();
    }
    must("cp", &["-a", &lab.path("mnt/.").to_string_lossy(), &lab.path("copy").to_string_lossy()]);
}

/// `mnt` holds what was copied.
pub fn assert_as_copied(lab: &Lab) {
    must("diff", &["-r", &lab.path("copy").to_string_lossy(), &lab.path("mnt").to_string_lossy()]);
}
