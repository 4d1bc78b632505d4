//! Disks in virtual time on this host: their servers, and the loop devices on them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};
use senesce_vdisk::{Footprint, Launch, MAX_REQUEST_KIB, ServeConfig, Server, TimeReport};

use super::{DiskServer, LoopDevice, ioctl, linux_device, loop_devices};
use crate::{Error, Result};

impl DiskServer for Server {
    fn footprint(&self) -> &Footprint {
        Server::footprint(self)
    }

    fn notes(&self) -> &[String] {
        Server::notes(self)
    }

    fn drop_device_cache(&mut self) -> Result<()> {
        Server::drop_device_cache(self)?;
        Ok(())
    }

    fn time(&mut self) -> Result<TimeReport> {
        Ok(Server::time(self)?)
    }

    fn start_log(&mut self, path: &Path) -> Result<()> {
        Server::start_log(self, path)?;
        Ok(())
    }

    fn stop_log(&mut self) -> Result<()> {
        Server::stop_log(self)?;
        Ok(())
    }
}

/// The running program as a server. The kernel's link leads to it even if its file was replaced.
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
    let device = loop_devices::attach_named(file, mark.as_bytes(), true)?;
    match verify(&device) {
        Ok(()) => Ok(device),
        Err(error) => {
            // A failed attach must leave no device. The caller receives the first error.
            let _ = detach(&device.path);
            Err(error)
        }
    }
}

/// Every request reaches the disk only with direct I/O. It stays one request only up to this size.
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
        return unlike("limiting the requests", format!("requested {MAX_REQUEST_KIB} KiB, the kernel set {kib} KiB"));
    }
    Ok(())
}

pub(super) fn detach(device: &Path) -> Result<()> {
    // Later users of the device would keep the limit. Zero selects the kernel's default. Kernels
    // before 6.9 cannot reset it, and refuse.
    if let Ok(file) = max_request_file(device) {
        let _ = fs::write(file, "0");
    }
    loop_devices::detach(device)
}

pub(super) fn mark(device: &Path) -> Result<Option<String>> {
    if !loop_devices::is_loop(device)? {
        return Ok(None);
    }
    let fd = linux_device::open_device(device, OFlags::RDONLY)?;
    let status = ioctl::loop_status(&fd).map(|status| String::from_utf8_lossy(status.name()).into_owned());
    decide_mark(device, status, || loop_devices::backing_path(device))
}

/// The mark of a loop device by its status. `None` if it is not attached. The kernel asks the
/// server of the backing file for the status, and that server may be dead. Then a device whose file
/// has the name of a disk in virtual time may be ours, and the unreadable mark is an error. Any
/// other device is foreign.
fn decide_mark(
    device: &Path,
    status: std::result::Result<String, Errno>,
    backing: impl FnOnce() -> Result<Option<PathBuf>>,
) -> Result<Option<String>> {
    let errno = match status {
        Ok(mark) => return Ok(Some(mark)),
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => errno,
    };
    match backing()? {
        Some(file) if file.file_name().is_some_and(|name| name == ServeConfig::FILE_NAME) => Err(Error::Io {
            operation: "read the mark of the loop device",
            path: format!("{} (backing file {})", device.display(), file.display()).into(),
            source: errno.into(),
        }),
        _ => Ok(None),
    }
}

pub(super) fn marked(mark: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for device in loop_devices::attached_loops()? {
        if self::mark(&device)?.as_deref() == Some(mark) {
            found.push(device);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_mark_on_our_disk_is_an_error() {
        let device = Path::new("/dev/loop9");
        let on = |file: &'static str| move || Ok(Some(PathBuf::from(file)));
        let decide = |status, file| decide_mark(device, status, on(file));
        assert_eq!(decide(Ok("aged-1".to_owned()), "/m/disk").unwrap().as_deref(), Some("aged-1"));
        assert_eq!(decide(Err(Errno::NXIO), "/m/disk").unwrap(), None, "it is not attached");
        for errno in [Errno::NOTCONN, Errno::CONNABORTED, Errno::IO, Errno::PERM] {
            assert_eq!(decide(Err(errno), "/home/user/film.iso").unwrap(), None, "it is foreign");
            // After a lazy unmount the kernel shows the path from the mount on.
            for ours in ["/m/disk", "/disk"] {
                let error = decide(Err(errno), ours).unwrap_err().to_string();
                assert!(error.contains("/dev/loop9") && error.contains(ours), "{error}");
            }
            assert_eq!(decide_mark(device, Err(errno), || Ok(None)).unwrap(), None, "it was detached meanwhile");
        }
    }
}
