//! Locks and claims of other processes on a file or device.

use std::{fs, os::fd::OwnedFd, path::Path, time::Duration};

use rustix::{
    fs::{FlockOperation, OFlags},
    io::Errno,
};

use super::{in_use::Use, ioctl, linux_device::open_device};
use crate::{Error, Result};

/// Locks an open file or device with `flock`, as engines of senesce do, until it is closed. Returns
/// the conflicting lock, if there is one: a lock of `flock`, or of `fcntl`, which virtual machines
/// use.
pub(super) fn find_lock(file: &OwnedFd, name: &Path, lock: FlockOperation) -> Result<Option<Use>> {
    let found = |process| Ok(Some(Use::Locked { path: name.to_owned(), process }));
    // udev locks a device for a moment while it reads signatures.
    match patiently(20, || rustix::fs::flock(file, lock), |errno| *errno == Errno::WOULDBLOCK) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return found(flock_owner(file)),
        Err(errno) if has_no_locks(errno) => {}
        Err(errno) => return Err(Error::io("lock", name)(errno)),
    }
    match ioctl::find_range_lock(file, lock == FlockOperation::NonBlockingLockExclusive) {
        Ok(Some(pid)) => found(u32::try_from(pid).ok().filter(|&pid| pid > 0)),
        Ok(None) => Ok(None),
        Err(errno) if has_no_locks(errno) => Ok(None),
        Err(errno) => Err(Error::io("query the locks of", name)(errno)),
    }
}

/// Whether an error of a lock call means that the file system has no locks.
fn has_no_locks(errno: Errno) -> bool {
    matches!(errno, Errno::NOLCK | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS)
}

/// The process that holds a `flock` on a file, from `/proc/locks`. `None` if the kernel lists the
/// file under another number.
pub(crate) fn flock_owner(file: &OwnedFd) -> Option<u32> {
    let stat = rustix::fs::fstat(file).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let wanted = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let text = fs::read_to_string("/proc/locks").ok()?;
    let mut owners = text.lines().filter_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 4711 00:1a:42 0 EOF`
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&wanted.as_str());
        is_it.then(|| fields[4].parse().ok()).flatten()
    });
    owners.next()
}

/// Whether a device cannot be opened exclusively.
pub(super) fn is_claimed(device: &Path) -> Result<bool> {
    match open_patiently(device, OFlags::RDONLY | OFlags::EXCL) {
        Ok(_) => Ok(false),
        Err(error) if error.is_busy() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Opens a device. Retries a busy one, because `losetup --find` claims every free loop device for a
/// moment.
pub(super) fn open_patiently(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    patiently(20, || open_device(path, flags), Error::is_busy)
}

/// Retries an operation every 5 ms while another process disturbs it.
pub(super) fn patiently<T, E>(
    retries: u32,
    act: impl Fn() -> std::result::Result<T, E>,
    is_disturbed: impl Fn(&E) -> bool,
) -> std::result::Result<T, E> {
    for _ in 0..retries {
        match act() {
            Err(error) if is_disturbed(&error) => std::thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
    act()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_found_with_its_process() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || open_device(file.path(), OFlags::RDWR).unwrap();
        let holder = open();
        rustix::fs::flock(&holder, FlockOperation::LockShared).unwrap();
        let shared = FlockOperation::NonBlockingLockShared;
        assert_eq!(find_lock(&open(), file.path(), shared).unwrap(), None);
        let found = find_lock(&open(), file.path(), FlockOperation::NonBlockingLockExclusive).unwrap().unwrap();
        // If a file system has two numbers, the kernel's list does not show the process.
        let Use::Locked { process, .. } = found else { panic!("{found}") };
        assert!(process.is_none_or(|process| process == std::process::id()));
        drop(holder);
        assert_eq!(find_lock(&open(), file.path(), FlockOperation::NonBlockingLockExclusive).unwrap(), None);
    }
}
