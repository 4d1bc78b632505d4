//! A read-only mount of an unmounted file system. It exists only while a value lives, and no other
//! process sees it.
//!
//! The mount has no mount point, and no list of mounts shows it. Open descriptors of this process
//! keep it and an image's loop device. The kernel removes both when the process exits, also after a
//! kill. So a journal needs no entry. An image's loop device is read-only, so the kernel writes
//! nothing to the image. A device is opened only for reading, as every read-only mount does.
//!
//! The log is not replayed, so data that is only in the log is not visible.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::OFlags,
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
        fsopen,
    },
};

use crate::{
    Error, FileSystemKind, Result,
    f2fs::{START_BYTES, check_single_device},
    host::{attach_read_only, btrfs_forget, read_device},
};

/// A mounted file system. Its drop unmounts it.
#[derive(Debug)]
pub struct ReadOnlyMount {
    /// Dropped before `device`.
    mount: Option<OwnedFd>,
    root: PathBuf,
    options: &'static str,
    kind: FileSystemKind,
    /// The loop device of an image.
    device: Option<PathBuf>,
}

impl ReadOnlyMount {
    /// Mounts the device or image at `path` read-only, without replaying its log.
    ///
    /// Errors: not root; the kernel does not know the file system, is older than 5.2, or refuses
    /// it, with its message. Cost: that of any mount.
    pub fn open(path: &Path, kind: FileSystemKind) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NotRoot { operation: "mount a file system" });
        }
        if kind.is_engine() {
            let why = "the kernel cannot mount it; inspect it as garden:PATH or evergreen:PATH";
            return Err(Error::NotPossible { operation: "mount", path: path.to_owned(), why });
        }
        let (options, list): (&str, &[(&str, Option<&str>)]) = match kind {
            FileSystemKind::Ext4 => ("ro,noload", &[("ro", None), ("noload", None)]),
            // A copy of a volume has its UUID, which may be mounted already.
            FileSystemKind::Xfs => ("ro,norecovery,nouuid", &[("ro", None), ("norecovery", None), ("nouuid", None)]),
            FileSystemKind::F2fs | FileSystemKind::Nilfs2 => ("ro,norecovery", &[("ro", None), ("norecovery", None)]),
            // Only its fsck replays the log.
            FileSystemKind::Jfs => ("ro", &[("ro", None)]),
            FileSystemKind::Reiserfs => ("ro,nolog", &[("ro", None), ("nolog", None)]),
            FileSystemKind::Garden | FileSystemKind::Evergreen => unreachable!("refused above"),
            FileSystemKind::Btrfs => ("ro,rescue=nologreplay", &[("ro", None), ("rescue", Some("nologreplay"))]),
        };
        let is_device = rustix::fs::stat(path)
            .map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice)
            .map_err(Error::io("look up", path))?;
        // Held until the mount holds it, because the kernel detaches it after its last user.
        let attached = if is_device { None } else { Some(attach_read_only(path)?) };
        let device = attached.as_ref().map(|(device, _)| device.clone());
        let source = device.as_deref().unwrap_or(path);
        if kind == FileSystemKind::F2fs {
            check_single_device(path, &read_device(source, 0, START_BYTES)?)?;
        }
        let mount = mount(path, source, kind, list);
        if mount.is_err() {
            forget(kind, device.as_deref());
        }
        let mount = mount?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { mount: Some(mount), root, options, kind, device })
    }

    /// The root directory, for this process only.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The mount options.
    pub fn options(&self) -> &str {
        self.options
    }
}

impl Drop for ReadOnlyMount {
    fn drop(&mut self) {
        drop(self.mount.take());
        forget(self.kind, self.device.as_deref());
    }
}

/// Btrfs remembers every device that it has seen, and another image may use the loop device later.
fn forget(kind: FileSystemKind, device: Option<&Path>) {
    if let Some(device) = device.filter(|_| kind == FileSystemKind::Btrfs) {
        // Best effort: a remembered device only confuses a scan.
        let _ = btrfs_forget(device);
    }
}

fn mount(path: &Path, source: &Path, kind: FileSystemKind, options: &[(&str, Option<&str>)]) -> Result<OwnedFd> {
    let context = match fsopen(kind.name(), FsOpenFlags::FSOPEN_CLOEXEC) {
        Err(Errno::NODEV) => return Err(Error::FileSystemNotInKernel { file_system: kind }),
        Err(Errno::NOSYS) => {
            let why = "a mount without a mount point needs Linux 5.2";
            return Err(Error::NotPossible { operation: "mount", path: path.to_owned(), why });
        }
        opened => opened.map_err(Error::io("prepare a mount of", path))?,
    };
    let configured = || -> rustix::io::Result<OwnedFd> {
        fsconfig_set_string(&context, "source", source)?;
        for (key, value) in options {
            match value {
                Some(value) => fsconfig_set_string(&context, *key, *value)?,
                None => fsconfig_set_flag(&context, *key)?,
            }
        }
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOATIME
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    configured().map_err(|errno| Error::MountRefused {
        path: path.to_owned(),
        file_system: kind,
        said: said(&context),
        source: errno.into(),
    })
}

/// The kernel's messages for a mount that it refused, such as `e xfs: bad geometry`.
fn said(context: &OwnedFd) -> String {
    let mut messages = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(length) = rustix::io::read(context, &mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..length]).trim().to_owned();
        if length == 0 || messages.len() >= 8 {
            break;
        }
        messages.push(text.split_once(' ').map_or(text.clone(), |(_, message)| message.to_owned()));
    }
    if messages.is_empty() { String::new() } else { format!(" ({})", messages.join("; ")) }
}

/// Flags for opening an image.
pub(crate) const IMAGE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOATIME);
