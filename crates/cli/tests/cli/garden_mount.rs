//! The garden `g` of a lab, mounted on `mnt` as a user does it.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{
    disk::must,
    lab::{Lab, mount_points},
};

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
    pub fn unmount(mut self) {
        must("umount", &[&self.lab.path("mnt").to_string_lossy()]);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Mounted<'_> {
    /// A test that failed leaves nothing behind.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = Command::new("umount").arg("-l").arg(self.lab.path("mnt")).status();
        }
    }
}
