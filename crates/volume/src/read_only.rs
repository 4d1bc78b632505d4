//! A file system that is not mounted, mounted read-only for as long as a value lives, so that nobody else sees it and
//! nothing of it can stay behind.
//!
//! The mount is attached nowhere: it has no mount point and stands in nobody's list of mounts. It and, for an image, its
//! loop device live by open descriptors of this process, so that the kernel takes both away when the process ends, however
//! it ends; a journal has nothing to write down. An image's loop device is read-only, and so the kernel itself writes
//! nothing to the image; a device is opened for reading only, as every read-only mount does.
//!
//! What it is not: a way to look at a log that was not replayed. What is in it only is not seen.

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

/// A mounted file system; unmounted when it goes.
#[derive(Debug)]
pub struct ReadOnlyMount {
    /// Before `device`: the order in which they are let go.
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
    /// Errors: not root; the kernel does not know the file system, is older than 5.2, or refuses it (with what it says).
    /// Cost: as of any mount.
    pub fn open(path: &Path, kind: FileSystemKind) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NotRoot { operation: "mount a file system" });
        }
        if kind.is_engine() {
            let why = "the kernel knows nothing of an engine of our own; `senesce inspect garden:PATH` or evergreen:PATH reads it";
            return Err(Error::NotPossible { operation: "mount", path: path.to_owned(), why });
        }
        let (options, list): (&str, &[(&str, Option<&str>)]) = match kind {
            FileSystemKind::Ext4 => ("ro,noload", &[("ro", None), ("noload", None)]),
            // A copy of a volume has its UUID, which may be mounted already.
            FileSystemKind::Xfs => ("ro,norecovery,nouuid", &[("ro", None), ("norecovery", None), ("nouuid", None)]),
            FileSystemKind::F2fs => ("ro,norecovery", &[("ro", None), ("norecovery", None)]),
            FileSystemKind::Garden | FileSystemKind::Evergreen => unreachable!("refused above"),
            FileSystemKind::Btrfs => ("ro,rescue=nologreplay", &[("ro", None), ("rescue", Some("nologreplay"))]),
        };
        let is_device = rustix::fs::stat(path)
            .map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice)
            .map_err(Error::io("look up", path))?;
        // Held until the mount holds it: it goes with its last user.
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

    /// Its root, for this process only.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How it is mounted.
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

/// Btrfs remembers every device it has seen; a loop device will be another's.
fn forget(kind: FileSystemKind, device: Option<&Path>) {
    if let Some(device) = device.filter(|_| kind == FileSystemKind::Btrfs) {
        // Best effort: what it remembers in vain does no harm but to confuse a scan.
        let _ = btrfs_forget(device);
    }
}

fn mount(path: &Path, source: &Path, kind: FileSystemKind, options: &[(&str, Option<&str>)]) -> Result<OwnedFd> {
    let context = match fsopen(kind.name(), FsOpenFlags::FSOPEN_CLOEXEC) {
        Err(Errno::NODEV) => return Err(Error::FileSystemNotInKernel { file_system: kind }),
        Err(Errno::NOSYS) => {
            let why = "mounts that are attached nowhere came with Linux 5.2";
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

/// What the kernel has to say of a mount that it refused: messages such as `e xfs: bad geometry`.
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

/// How an image is opened.
pub(crate) const IMAGE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOATIME);
