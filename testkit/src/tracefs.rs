//! The kernel's tracing, for tests that trace themselves.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
    sync::OnceLock,
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Returns a detached mount of tracefs, which lives as long as the process and does not depend on
/// the machine's mounts. `None` without the right to mount.
pub fn tracefs() -> Option<PathBuf> {
    static MOUNT: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let mount = MOUNT.get_or_init(|| {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(&context).ok()?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).ok()
    });
    mount.as_ref().map(|mount| format!("/proc/self/fd/{}", mount.as_raw_fd()).into())
}
