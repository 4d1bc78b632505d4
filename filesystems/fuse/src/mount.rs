//! A mounted engine, from the mount to the unmount.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::{io::Errno, mount::UnmountFlags};
use senesce_core::lists_source;
use senesce_fsapi::{FileSystem, FsError, Timestamp};

use crate::{Alarm, Error, KernelPages, Result, adapter::Adapter};

/// The readahead of the kernel in KiB: the size of the largest request.
const READ_AHEAD_KIB: &str = "1024";

/// Returns the current time for the times of files.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The options of a mount.
pub struct MountOptions {
    /// The source in the list of mounts, which identifies the mount. It must be unique.
    pub source: String,
    /// The number of server threads; at least one.
    pub threads: usize,
    /// The clock.
    pub now: Now,
    /// Whether the kernel refuses changes.
    pub read_only: bool,
    /// The use of the page cache by writes.
    pub pages: KernelPages,
    /// Whether setuid bits have an effect. Only root can enable this.
    pub suid: bool,
    /// Whether device nodes can be opened. Only root can enable this.
    pub dev: bool,
}

/// A mounted engine with its server. Dropping it unmounts it, unless a process uses it.
pub struct Mounted {
    point: PathBuf,
    unmounter: SessionUnmounter,
    thread: Option<JoinHandle<io::Result<()>>>,
    end: Arc<Mutex<End>>,
    alarm: Arc<Alarm>,
    device: Option<u64>,
}

/// Wakes the holder when the server thread exits, also after a panic.
struct EndNoted(Arc<Alarm>);

impl Drop for EndNoted {
    fn drop(&mut self) {
        self.0.note_end();
    }
}

/// The outcome of a mount.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// The error of the last sync, if it failed.
    pub not_durable: Option<FsError>,
    /// The error that prevented the removal of an inode without a name.
    pub not_removed: Option<FsError>,
    /// Whether the connection closed while the file system was mounted.
    pub is_aborted: bool,
}

impl End {
    fn judge(self, point: PathBuf) -> Result<()> {
        match (self.not_durable, self.not_removed) {
            (Some(source), _) => Err(Error::NotDurable { point, source }),
            (None, _) if self.is_aborted => Err(Error::Aborted { point }),
            (None, Some(source)) => Err(Error::NotRemoved { point, source }),
            (None, None) => Ok(()),
        }
    }
}

/// Whether a file system with this source is mounted. An unreadable list of mounts counts as yes: a
/// false alarm costs less than an abort that looks like an unmount.
pub(crate) fn is_mounted(source: &str) -> bool {
    std::fs::read("/proc/self/mountinfo").map_or(true, |table| lists_source(&table, source))
}

impl Mounted {
    /// Mounts a file system, for all users if root does it, and serves it until a process unmounts
    /// it.
    ///
    /// The [alarm](Self::alarm) wakes the thread that calls this.
    ///
    /// Errors: no FUSE, not root and no fusermount3, or an invalid mount point.
    pub fn start(fs: Arc<dyn FileSystem>, point: &Path, options: MountOptions) -> Result<Self> {
        let failed = |source| Error::Mount { point: point.to_owned(), source };
        let mut config = Config::default();
        config.n_threads = Some(options.threads.max(1));
        config.clone_fd = options.threads > 1;
        config.mount_options = vec![MountOption::FSName(options.source.clone()), MountOption::DefaultPermissions];
        if options.read_only {
            config.mount_options.push(MountOption::RO);
        }
        let is_root = rustix::process::geteuid().is_root();
        let may = |wanted: bool, yes, no| if wanted && is_root { yes } else { no };
        config.mount_options.push(may(options.suid, MountOption::Suid, MountOption::NoSuid));
        config.mount_options.push(may(options.dev, MountOption::Dev, MountOption::NoDev));
        if is_root {
            config.acl = SessionACL::All;
        }
        let below = device_of(point);
        let end = Arc::new(Mutex::new(End::default()));
        let alarm = Arc::new(Alarm::of_this_thread());
        let adapter = Adapter::new(fs, (options.source, end.clone()), options.now, options.pages, alarm.clone());
        let notifier = adapter.notifier();
        let mut session = Session::new(adapter, point, &config).map_err(failed)?;
        let _ = notifier.set(session.notifier()); // fails only if it is set; each adapter is mounted once
        let unmounter = session.unmount_callable();
        let ends = EndNoted(alarm.clone());
        let serve = move || {
            let _ends = ends;
            session.run()
        };
        let thread = thread::Builder::new().name("fuse".to_owned()).spawn(serve).map_err(failed)?;
        // Otherwise the kernel reads in pieces of 128 KiB. Not every user may change this. If the
        // server already stopped, the path is on the host.
        let device = device_of(point).ok().filter(|device| below.is_ok_and(|below| below != *device));
        if let Some(device) = device {
            let _ = set_read_ahead(device);
        }
        Ok(Self { point: point.to_owned(), unmounter, thread: Some(thread), end, alarm, device })
    }

    /// Whether it was unmounted, or the server stopped for another reason.
    pub fn is_over(&self) -> bool {
        self.thread.is_none() || self.alarm.is_over()
    }

    /// The device number of its files, as in `st_dev`. `None`: the server stopped at once.
    pub fn device(&self) -> Option<u64> {
        self.device
    }

    /// Wakes the thread that mounted it when calls change the file system, and when the server
    /// stops.
    pub fn alarm(&self) -> &Arc<Alarm> {
        &self.alarm
    }

    /// Unmounts and waits for the end.
    ///
    /// Errors: it is in use and stays mounted; those of [`join`](Self::join).
    pub fn unmount(mut self) -> Result<()> {
        if !unmount_patiently(&self.point)
            && let Err(source) = self.unmounter.unmount()
        {
            // The thread still serves, so dropping this must not wait for it.
            self.thread = None;
            return Err(Error::Unmount { point: self.point.clone(), source });
        }
        self.join()
    }

    /// Waits until it is unmounted and all data is durable.
    ///
    /// Errors: the connection was aborted, the server stopped for another reason, or the last
    /// written data could not be made durable.
    pub fn join(mut self) -> Result<()> {
        let served = self.thread.take().map(JoinHandle::join);
        let point = self.point.clone();
        match served {
            // The kernel closed the connection before all threads received the unmount.
            Some(Ok(Err(source))) if source.kind() == io::ErrorKind::ConnectionAborted => {}
            Some(Ok(Err(source))) => return Err(Error::Served { point, source }),
            Some(Err(_)) => {
                return Err(Error::Served { point, source: io::Error::other("the serving thread panicked") });
            }
            Some(Ok(Ok(()))) | None => {}
        }
        let end = std::mem::take(&mut *self.end.lock().unwrap_or_else(PoisonError::into_inner));
        end.judge(point)
    }
}

/// Returns whether the unmount succeeded. Retries for two seconds, because programs that list
/// mounts use each of them for a moment. The library unmounts for users without the right, but
/// tries only once.
fn unmount_patiently(point: &Path) -> bool {
    for _ in 0..40 {
        match rustix::mount::unmount(point, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => thread::sleep(Duration::from_millis(50)),
            done => return done.is_ok(),
        }
    }
    false
}

/// The device number of a path.
fn device_of(point: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(point)?.dev())
}

/// Sets the kernel's readahead for a mount.
fn set_read_ahead(device: u64) -> io::Result<()> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), READ_AHEAD_KIB)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.unmounter.unmount().is_ok()
        {
            let _ = thread.join(); // a caller that needs the outcome calls join()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_sync_is_a_loss() {
        let failed = || Some(FsError::NoSpace);
        let judge = |not_durable, not_removed, is_aborted| {
            End { not_durable, not_removed, is_aborted }.judge(PathBuf::from("/mnt"))
        };
        assert!(judge(None, None, false).is_ok());
        assert!(matches!(judge(failed(), failed(), true), Err(Error::NotDurable { .. })));
        assert!(matches!(judge(None, failed(), true), Err(Error::Aborted { .. })));
        assert!(matches!(judge(None, failed(), false), Err(Error::NotRemoved { .. })));
    }
}
