//! The kernel's side of a FUSE mount: the number of waiting requests, and a switch that makes them
//! all fail.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{Mode, OFlags},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags},
};

use crate::{Error, Result};

/// Control over one FUSE connection. The switch stays open, so that its use needs no look-up and
/// almost no memory.
///
/// The control file system is not mounted anywhere for this: on some machines
/// `/sys/fs/fuse/connections` does not exist. Source: the kernel's
/// Documentation/filesystems/fuse.rst.
#[derive(Debug)]
pub struct Connection {
    number: u32,
    dir: OwnedFd,
    abort: File,
}

fn open_at(dir: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd> {
    rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())
        .map_err(Error::io("open the control of the FUSE connection", name))
}

impl Connection {
    /// Opens the controls of connection `number`, which is the minor number of the mount's device.
    ///
    /// Errors: not root, no such connection, or a kernel before 5.2.
    pub fn open(number: u32) -> Result<Self> {
        let root = || {
            let context = rustix::mount::fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
            rustix::mount::fsconfig_create(&context)?;
            rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        };
        let root = root().map_err(Error::io("open the control file system", "fusectl"))?;
        let dir = open_at(&root, &number.to_string(), OFlags::PATH | OFlags::DIRECTORY)?;
        let abort = open_at(&dir, "abort", OFlags::WRONLY)?.into();
        Ok(Self { number, dir, abort })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Aborts the connection: every waiting and later request fails with an error. Then no process
    /// hangs, and the disk is unusable. Idempotent.
    pub fn abort(&self) -> Result<()> {
        (&self.abort).write_all(b"1").map_err(Error::std("abort the FUSE connection", self.number.to_string()))
    }

    /// The number of requests that wait for the server or are being served.
    ///
    /// Errors: the connection is gone.
    pub fn waiting(&self) -> Result<u64> {
        // Opened each time: the file can be read only once, from its start.
        let mut text = String::new();
        let mut file = File::from(open_at(&self.dir, "waiting", OFlags::RDONLY)?);
        file.read_to_string(&mut text).map_err(Error::std("read", "waiting"))?;
        text.trim().parse().map_err(|_| Error::Protocol {
            line: text.trim().to_owned(),
            problem: "the kernel's count of waiting requests is not a number".to_owned(),
        })
    }
}
