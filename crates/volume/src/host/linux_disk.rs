//! Disks in virtual time on this host: their servers, and the loop devices on them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use senesce_vdisk::{Footprint, Launch, MAX_REQUEST_KIB, ServeConfig, Server, TimeReport};

use super::{DiskServer, LoopDevice, ioctl, linux_device};
use crate::{Error, Result};

impl DiskServer for Server {
    fn footprint(&self) -> &Footprint {
        Server::footprint(self)
    }

    fn notes(&self) -> &[String] {
        Server::notes(self)
    }

    fn cool(&mut self) -> Result<()> {
        Server::cool(self)?;
        Ok(())
    }

    fn time(&mut self) -> Result<TimeReport> {
        Ok(Server::time(self)?)
    }
}

/// The running program, as a server: the kernel's link leads to it also when its file was replaced meanwhile.
pub(super) fn default_launch() -> Launch {
    Launch { executable: "/proc/self/exe".into(), arguments: vec!["vdisk-serve".into()] }
}

pub(super) fn start(launch: &Launch, config: ServeConfig) -> Result<Box<dyn DiskServer>> {
    Ok(Box::new(Server::start(launch, config)?))
}

pub(super) fn is_served(footprint: &Footprint) -> bool {
    let (Some(server), Some(guard)) = (footprint.server, footprint.guard) else { return false };
    server.is_alive() && guard.is_alive()
}

fn max_request_file(device: &Path) -> Result<PathBuf> {
    Ok(linux_device::queue_dir(device)?.join("max_sectors_kb"))
}

pub(super) fn attach(file: &Path, mark: &str) -> Result<LoopDevice> {
    let device = linux_device::attach_named(file, mark.as_bytes(), true)?;
    match verify(&device) {
        Ok(()) => Ok(device),
        Err(error) => {
            // What attaches must leave nothing behind when it fails; the first error is the one to tell.
            let _ = detach(&device.path);
            Err(error)
        }
    }
}

/// Only with direct I/O does every request reach the disk, and only as large as this does it stay one request.
fn verify(device: &LoopDevice) -> Result<()> {
    let unlike = |operation, detail| Err(Error::Unverified { operation, path: device.path.clone(), detail });
    if !device.direct_io {
        return unlike("direct I/O", "a disk in virtual time has no times without it".to_owned());
    }
    let file = max_request_file(&device.path)?;
    let read = || -> Result<u32> {
        let text = fs::read_to_string(&file).map_err(Error::std("read", &file))?;
        Ok(text.trim().parse().unwrap_or(u32::MAX))
    };
    if read()? != MAX_REQUEST_KIB {
        fs::write(&file, MAX_REQUEST_KIB.to_string()).map_err(Error::std("write", &file))?;
    }
    let kib = read()?;
    if kib > MAX_REQUEST_KIB {
        return unlike("limiting the requests", format!("asked for {MAX_REQUEST_KIB} KiB, got {kib}"));
    }
    Ok(())
}

pub(super) fn detach(device: &Path) -> Result<()> {
    // The device goes on to others, and with it the limit. Zero is the kernel's own one; kernels before 6.9 have no
    // way back, and refuse.
    if let Ok(file) = max_request_file(device) {
        let _ = fs::write(file, "0");
    }
    linux_device::detach(device)
}

pub(super) fn mark(device: &Path) -> Result<Option<String>> {
    if !linux_device::is_loop(device)? {
        return Ok(None);
    }
    let fd = linux_device::open_device(device, OFlags::RDONLY)?;
    // Whose backing file cannot be asked any more is none that could be told.
    let status = ioctl::loop_status(&fd).ok();
    Ok(status.map(|status| String::from_utf8_lossy(status.name()).into_owned()))
}

pub(super) fn marked(mark: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for device in linux_device::attached_loops()? {
        if self::mark(&device)?.as_deref() == Some(mark) {
            found.push(device);
        }
    }
    Ok(found)
}
