//! The mounts of this process, for requests on its control socket.

use std::{
    os::unix::ffi::OsStrExt,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    time::Duration,
};

use senesce_service::{MountStat, Mounts as Mounted};
use senesce_volume::{DeviceNumber, Host, LinuxHost};

/// The mounts that a process holds, by number.
pub struct Mounts {
    all: Mutex<Vec<Option<MountStat>>>,
    /// The thread that notices the end of a mount.
    holder: Thread,
}

impl Mounts {
    /// Mounts that the calling thread is about to make and to hold.
    pub fn of_this_thread(wanted: impl IntoIterator<Item = MountStat>) -> Self {
        Self { all: Mutex::new(wanted.into_iter().map(Some).collect()), holder: thread::current() }
    }

    /// Records the device number of a mount.
    pub fn begin(&self, number: usize, device: Option<u64>) {
        let device = device.map(DeviceNumber::of).map(|DeviceNumber { major, minor }| format!("{major}:{minor}"));
        if let Some(mount) = &mut self.all()[number] {
            mount.device = device;
        }
    }

    /// Records the end of a mount. Its volume may be deleted then.
    pub fn end(&self, number: usize) {
        self.all()[number] = None;
    }

    fn all(&self) -> MutexGuard<'_, Vec<Option<MountStat>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mounted for Mounts {
    /// Reports each mount at the place to which it was moved, if it was.
    fn list(&self) -> Vec<MountStat> {
        let mut all: Vec<_> = self.all().iter().flatten().cloned().collect();
        let listed = LinuxHost::default().mounts().unwrap_or_default(); // the points at which they began are better than none
        for mount in &mut all {
            let mut at = listed.iter().filter(|entry| is_on(mount, entry.device)).map(|entry| &entry.point);
            // It may be bound to other places, too.
            if let Some(first) = at.next()
                && !at.chain([first]).any(|point| point.as_os_str().as_bytes() == &mount.point.0[..])
            {
                mount.point = first.as_os_str().as_bytes().into();
            }
        }
        all
    }

    /// Waits for the end of mounts that are gone from this namespace. The holder notices an unmount
    /// only after the program that unmounted continues, and another namespace may have a copy of
    /// the mount for a moment. A mount that a program still uses does not end, so the wait is
    /// short.
    fn settle(&self) {
        const TRIES: u32 = 100;
        const PAUSE: Duration = Duration::from_millis(20);
        for _ in 0..TRIES {
            let Ok(listed) = LinuxHost::default().mounts() else { return };
            let is_listed = |mount: &MountStat| listed.iter().any(|entry| is_on(mount, entry.device));
            if self.all().iter().flatten().all(is_listed) {
                return;
            }
            self.holder.unpark();
            thread::sleep(PAUSE);
        }
    }
}

/// Whether a mount has a device number.
pub fn is_on(mount: &MountStat, DeviceNumber { major, minor }: DeviceNumber) -> bool {
    mount.device.as_deref() == Some(&format!("{major}:{minor}"))
}
