//! A mounted engine, from its beginning to its end.

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

/// How far the kernel reads ahead: as much as one request may ask for.
const READ_AHEAD_KIB: &str = "1024";

/// Gives the time of day; whatever it gives, files get.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How an engine is mounted.
pub struct MountOptions {
    /// What the list of mounts says is mounted, so that it can be found again. No other mount may have the same.
    pub source: String,
    /// How many threads serve; at least one.
    pub threads: usize,
    /// Where times come from.
    pub now: Now,
    /// The kernel refuses changes.
    pub read_only: bool,
    /// What becomes of writes on their way.
    pub pages: KernelPages,
    /// Whether setuid bits have an effect. Only root can enable this.
    pub suid: bool,
    /// Whether device nodes can be opened. Only root can enable this.
    pub dev: bool,
}

/// An engine that is mounted and served. Dropping it unmounts it, unless a process uses it.
pub struct Mounted {
    point: PathBuf,
    unmounter: SessionUnmounter,
    thread: Option<JoinHandle<io::Result<()>>>,
    end: Arc<Mutex<End>>,
    alarm: Arc<Alarm>,
    device: Option<u64>,
}

/// Wakes the holder when the serving thread ends, also by a panic.
struct EndNoted(Arc<Alarm>);

impl Drop for EndNoted {
    fn drop(&mut self) {
        self.0.note_end();
    }
}

/// How a mount ended.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Why the last synchronisation failed, if it did.
    pub not_durable: Option<FsError>,
    /// Why an inode without a name was not removed.
    pub not_removed: Option<FsError>,
    /// The connection ended while it was still mounted.
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

/// Whether a file system with this source is mounted. A list of mounts that cannot be read counts as yes: a false alarm
/// costs less than an abort that looks like an unmount.
pub(crate) fn is_mounted(source: &str) -> bool {
    std::fs::read("/proc/self/mountinfo").map_or(true, |table| lists_source(&table, source))
}

impl Mounted {
    /// Mounts a file system, for all users if root does it, and serves it until any process unmounts it.
    ///
    /// The [alarm](Self::alarm) wakes the thread that calls this.
    ///
    /// Errors: no FUSE, not root and no fusermount3, or nothing to mount on.
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
        let _ = notifier.set(session.notifier()); // fails if it is set, and each adapter is mounted once
        let unmounter = session.unmount_callable();
        let ends = EndNoted(alarm.clone());
        let serve = move || {
            let _ends = ends;
            session.run()
        };
        let thread = thread::Builder::new().name("fuse".to_owned()).spawn(serve).map_err(failed)?;
        // Without it the kernel reads in pieces of 128 KiB; not all who mount may say so. If it has ended already, the path is the host's.
        let device = device_of(point).ok().filter(|device| below.is_ok_and(|below| below != *device));
        if let Some(device) = device {
            let _ = set_read_ahead(device);
        }
        Ok(Self { point: point.to_owned(), unmounter, thread: Some(thread), end, alarm, device })
    }

    /// Whether it was unmounted, or serving ended for another reason.
    pub fn is_over(&self) -> bool {
        self.thread.is_none() || self.alarm.is_over()
    }

    /// The device number of its files, as `st_dev` reports it. `None`: it ended at once.
    pub fn device(&self) -> Option<u64> {
        self.device
    }

    /// Wakes the thread that mounted it when calls change the file system, and when serving ends.
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

    /// Waits until it is unmounted, and everything durable.
    ///
    /// Errors: the connection was aborted, serving ended for another reason, or what was written last could not be made
    /// durable.
    pub fn join(mut self) -> Result<()> {
        let served = self.thread.take().map(JoinHandle::join);
        let point = self.point.clone();
        match served {
            // The kernel cut the connection before all threads had heard that it was unmounted: another way to say so.
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

/// Returns whether it could unmount. Retries for two seconds, because programs that list mounts use each of them for a
/// moment. The library unmounts for users without the right, but tries only once.
fn unmount_patiently(point: &Path) -> bool {
    for _ in 0..40 {
        match rustix::mount::unmount(point, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => thread::sleep(Duration::from_millis(50)),
            done => return done.is_ok(),
        }
    }
    false
}

/// The number of the device that a path lies on.
fn device_of(point: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(point)?.dev())
}

/// Tells the kernel how far it may read ahead of a reader of a mount.
fn set_read_ahead(device: u64) -> io::Result<()> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::write(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"), READ_AHEAD_KIB)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.unmounter.unmount().is_ok()
        {
            let _ = thread.join(); // who wants to know how it ended calls join()
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
