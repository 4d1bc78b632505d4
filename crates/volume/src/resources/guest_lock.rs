//! Prevents that a guest and a process of the host use one run directory at the same time.
//!
//! The journal names its owner by process and boot. To a process of the host, an owner in a guest
//! seems to be of an earlier boot, and so dead. The reverse is true for a process in a guest. A
//! lock of `flock` does not cross hostfs. So the launcher of the guest holds a lock on the
//! directory, on the host, while the guest runs. A journal opens only without a conflicting lock.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    io::Errno,
};

use super::resource_journal::Journal;
use crate::{Error, Result, host::Host, host::flock_owner};

/// A run directory that a guest uses. Its drop releases the lock.
#[derive(Debug)]
pub struct GuestLock {
    dir: OwnedFd,
    path: PathBuf,
}

impl GuestLock {
    /// Locks a run directory for a guest.
    ///
    /// Errors: another guest, or a live process of the host, uses it ([`Error::OwnerAlive`]).
    pub fn take(host: &dyn Host, dir: &Path) -> Result<Self> {
        // Without CLOEXEC: the guest's processes inherit the lock, so it outlives a killed launcher
        // until the last of them exits.
        let fd =
            rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).map_err(Error::io("open", dir))?;
        lock(&fd, dir, FlockOperation::NonBlockingLockExclusive)?;
        // A process of the host that opens the journal later finds the lock. One that opened it
        // before is its owner.
        if let Some((journal, state)) = Journal::open_below_lock(dir)?
            && let Some(owner) = state.owner.filter(|owner| host.is_alive(owner))
        {
            return Err(Error::OwnerAlive { journal: journal.path().to_owned(), pid: owner.pid });
        }
        Ok(Self { dir: fd, path: dir.to_owned() })
    }

    /// Lets processes of the host use the directory, such as a cleaner, but no other guest.
    pub fn share(&self) -> Result<()> {
        lock(&self.dir, &self.path, FlockOperation::NonBlockingLockShared)
    }
}

/// Refuses a directory that a guest uses. Keep the descriptor's lock until the journal names its
/// new owner.
pub(super) fn respect(dir: &OwnedFd, path: &Path) -> Result<()> {
    lock(dir, path, FlockOperation::NonBlockingLockShared)
}

fn lock(fd: &OwnedFd, dir: &Path, operation: FlockOperation) -> Result<()> {
    // Another process may be opening the journal.
    for _ in 0..100 {
        match rustix::fs::flock(fd.as_fd(), operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(10)),
            // The file system has no locks.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => return Ok(()),
            Err(errno) => return Err(Error::io("lock", dir)(errno)),
        }
    }
    Err(Error::OwnerAlive { journal: dir.to_owned(), pid: flock_owner(fd).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{CleanMode, Custodian, LinuxHost, clean};

    #[test]
    fn a_directory_of_a_guest_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let host = Arc::new(LinuxHost::default());
        let is_refused = |error: Error| matches!(error, Error::OwnerAlive { .. });
        let lock = GuestLock::take(&*host, dir.path()).unwrap();
        assert!(is_refused(Custodian::open(host.clone(), dir.path()).unwrap_err()));
        assert!(is_refused(GuestLock::take(&*host, dir.path()).unwrap_err()));
        drop(lock);
        let custodian = Custodian::open(host.clone(), dir.path()).unwrap();
        assert!(is_refused(GuestLock::take(&*host, dir.path()).unwrap_err()));
        drop(custodian);
    }

    #[test]
    fn cleaning_below_a_guest_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let host = LinuxHost::default();
        std::fs::write(dir.path().join(crate::JOURNAL_FILE_NAME), "").unwrap();
        let _lock = GuestLock::take(&host, dir.path()).unwrap();
        let error = clean(&host, dir.path(), CleanMode::Act).unwrap_err();
        assert!(matches!(error, Error::OwnerAlive { .. }), "{error}");
    }

    #[test]
    fn a_shared_lock_lets_a_cleaner_in_and_no_guest() {
        let dir = tempfile::tempdir().unwrap();
        let host = LinuxHost::default();
        std::fs::write(dir.path().join(crate::JOURNAL_FILE_NAME), "").unwrap();
        let lock = GuestLock::take(&host, dir.path()).unwrap();
        lock.share().unwrap();
        assert!(clean(&host, dir.path(), CleanMode::Act).unwrap().is_empty());
        assert!(matches!(GuestLock::take(&host, dir.path()), Err(Error::OwnerAlive { .. })));
    }
}
