//! The kernel's end of a FUSE mount: how many requests wait there, and the switch that makes them all fail.

use std::{fs::File, io::Write, os::unix::fs::FileExt};

use rustix::{
    fs::{Mode, OFlags},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags},
};

use crate::{Error, Result};

/// Control over one FUSE connection. Its files are open, so that using it needs no look-up and no memory to speak of.
///
/// The control file system is mounted nowhere for this: on many machines it is not at `/sys/fs/fuse/connections`.
/// Source: the kernel's Documentation/filesystems/fuse.rst.
#[derive(Debug)]
pub struct Connection {
    number: u32,
    abort: File,
    waiting: File,
}

impl Connection {
    /// Opens the control files of connection `number`: the minor number of the mount's device.
    ///
    /// Errors: not root, no such connection, or a kernel before 5.2.
    pub fn open(number: u32) -> Result<Self> {
        let root = || {
            let context = rustix::mount::fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
            rustix::mount::fsconfig_create(&context)?;
            rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        };
        let root = root().map_err(Error::io("open the control file system", "fusectl"))?;
        let open = |name: &str, flags: OFlags| {
            let path = format!("{number}/{name}");
            let opened = rustix::fs::openat(&root, path.as_str(), flags | OFlags::CLOEXEC, Mode::empty());
            opened.map(File::from).map_err(Error::io("open the control file of the FUSE connection", path))
        };
        Ok(Self { number, abort: open("abort", OFlags::WRONLY)?, waiting: open("waiting", OFlags::RDONLY)? })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Ends the connection: every request that waits, and every one to come, fails with an error. Nothing hangs after
    /// this, and nothing of the disk can be had. Doing it twice is as good as once.
    pub fn abort(&self) -> Result<()> {
        (&self.abort).write_all(b"1").map_err(Error::std("abort the FUSE connection", self.number.to_string()))
    }

    /// How many requests wait for the server or are with it; `None` when the connection is gone.
    pub fn waiting(&self) -> Option<u64> {
        let mut text = [0; 32];
        let length = self.waiting.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..length]).ok()?.trim().parse().ok()
    }
}
