//! The life of a volume: creation from a specification, mount, unmount, removal.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::build;
use crate::{
    Backend, Custodian, DeviceStat, Error, FileId, Host, LoopDevice, MountSource, Resource, ResourceId, Result, Slot,
    TimeReport, VolumeSpec,
    resources::{Lease, SharedEngine, SharedServer},
};

/// A mounted (or, between [`unmount`](Volume::unmount) and [`mount`](Volume::mount), unmounted)
/// volume.
///
/// When it is dropped, its mount, loop device and image are released.
pub struct Volume {
    pub(super) spec: VolumeSpec,
    pub(super) name: String,
    pub(super) root: PathBuf,
    pub(super) place: Place,
    pub(super) mounted: bool,
    /// It is unmounted, and its device may still be in use.
    pub(super) is_releasing: bool,
    /// The mkfs command and its tool's version. `None` for a directory.
    pub(super) made: Option<MkfsRecord>,
    pub(super) custodian: Custodian,
    /// The server, if its file system is an engine of ours.
    pub(super) engine: Option<EngineMount>,
    /// The last field, because the fields above must describe the resources during their release.
    pub(super) lease: Lease,
}

/// The storage of a volume.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// An image with a loop device on it.
    Image { path: PathBuf, file: FileId, device: LoopDevice },
    /// An image that is served as a disk in virtual time, with a loop device on that disk.
    Disk { image: PathBuf, disk: PathBuf, mark: String, device: LoopDevice, server: SharedServer },
    /// A block device.
    Device { path: PathBuf },
    /// A directory of another file system.
    Directory,
}

/// The mount of an engine of ours, in the journal and as a process.
#[derive(Clone, Debug)]
pub(super) struct EngineMount {
    pub id: ResourceId,
    /// The source in the list of mounts.
    pub name: String,
    pub server: SharedEngine,
}

/// The command that made a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MkfsRecord {
    /// The command with its arguments.
    pub command: String,
    /// The first line of the tool's version output.
    pub tool_version: String,
}

impl Volume {
    /// Makes a volume as `spec` describes it, mounts it, and verifies each step: mkfs by the new
    /// UUID in the superblock, the mount by the kernel's list.
    ///
    /// Errors: not root, tool or kernel support missing, too little space, device in use or not
    /// empty (see [`Error::hint`]); any step that fails. An error leaves nothing. Cost: about that
    /// of mkfs.
    pub fn create(custodian: &Custodian, spec: &VolumeSpec, slot: &Slot) -> Result<Volume> {
        build::create(custodian, spec, slot)
    }

    /// The root directory of the volume.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The volume's name in its run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The specification that it was made from.
    pub fn spec(&self) -> &VolumeSpec {
        &self.spec
    }

    /// The block device below it. `None` for a directory.
    pub fn device(&self) -> Option<&Path> {
        match &self.place {
            Place::Image { device, .. } | Place::Disk { device, .. } => Some(&device.path),
            Place::Device { path } => Some(path),
            Place::Directory => None,
        }
    }

    /// The image file. `None` for a device or a directory.
    pub fn image(&self) -> Option<&Path> {
        match &self.place {
            Place::Image { path, .. } => Some(path),
            Place::Disk { image, .. } => Some(image),
            _ => None,
        }
    }

    /// The modelled time of a disk in virtual time, and its parts. `None` for other backends.
    ///
    /// Errors: the server is gone or does not answer within a minute.
    pub fn disk_time(&self) -> Result<Option<TimeReport>> {
        match &self.place {
            Place::Disk { server, .. } => server.lock().time().map(Some),
            _ => Ok(None),
        }
    }

    /// Starts a log of every request to a disk in virtual time, in a new file. Stops a log that is
    /// open. Returns whether the volume has such a disk.
    ///
    /// Errors: the file exists or cannot be made; the server is gone.
    pub fn start_request_log(&self, path: &Path) -> Result<bool> {
        match &self.place {
            Place::Disk { server, .. } => server.lock().start_log(path).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Stops the log of requests. The log is complete when this returns. Does nothing on a volume
    /// without a disk in virtual time.
    ///
    /// Errors: a part of the log could not be written; the server is gone.
    pub fn stop_request_log(&self) -> Result<()> {
        match &self.place {
            Place::Disk { server, .. } => server.lock().stop_log(),
            _ => Ok(()),
        }
    }

    /// Whether it is mounted. A directory always is.
    pub fn is_mounted(&self) -> bool {
        self.mounted
    }

    /// The kernel's counters of the volume's device. `None` for a directory.
    pub fn device_stat(&self) -> Result<Option<DeviceStat>> {
        self.device().map(|device| self.host().device_stat(device)).transpose()
    }

    /// The command that made its file system. `None` for a directory, and for a restored volume
    /// without [`with_mkfs_record`](Self::with_mkfs_record).
    pub fn mkfs_record(&self) -> Option<&MkfsRecord> {
        self.made.as_ref()
    }

    /// Sets the command that made the file system of a restored snapshot, for its circumstances.
    pub fn with_mkfs_record(mut self, record: MkfsRecord) -> Self {
        self.made = Some(record);
        self
    }

    /// Writes back everything of this volume, and of no other (syncfs).
    pub fn sync(&self) -> Result<()> {
        self.host().sync_file_system(&self.root)
    }

    /// Writes everything back and unmounts. Only syncs a directory. Does nothing if it is unmounted
    /// and its device is no longer in use.
    ///
    /// Errors: still in use after several tries over 5 s, or still mounted in another mount
    /// namespace.
    pub fn unmount(&mut self) -> Result<()> {
        if self.mounted {
            self.sync()?;
        } else if !self.is_releasing {
            return Ok(());
        }
        let Some(device) = self.device().map(Path::to_path_buf) else { return Ok(()) };
        if self.mounted {
            build::unmount_patiently(self.host(), &self.root)?;
            (self.mounted, self.is_releasing) = (false, true);
        }
        if let Some(engine) = &self.engine
            && let Some(mut server) = engine.server.lock().take()
        {
            server.wait_end()?;
        }
        // A copy of a device in use would hold an inconsistent file system, and the next mount
        // would not be cold.
        self.host().await_release(&device)?;
        self.host().flush_device(&device)?;
        self.is_releasing = false;
        Ok(())
    }

    /// Mounts again. Does nothing if it is mounted.
    pub fn mount(&mut self) -> Result<()> {
        if self.mounted {
            return Ok(());
        }
        match (&self.engine, self.device()) {
            (Some(engine), Some(device)) => {
                build::start_engine(&self.custodian, engine, device, &self.root, &self.spec)?;
            }
            (None, Some(device)) => build::mount_verified(self.host(), device, &self.root, &self.spec)?,
            (_, None) => {}
        }
        (self.mounted, self.is_releasing) = (true, false);
        Ok(())
    }

    /// Unmounts, and removes all resources of the volume. A block device keeps its contents.
    pub fn destroy(mut self) -> Result<()> {
        self.lease.release()
    }

    pub(super) fn host(&self) -> &dyn Host {
        &**self.custodian.host()
    }

    /// The resource of this volume's mount.
    pub(super) fn mount_resource(place: &Place, host: &dyn Host, point: &Path) -> Result<Option<Resource>> {
        let source = match place {
            Place::Image { file, .. } => MountSource::Image { file: *file },
            Place::Disk { mark, .. } => MountSource::Disk { mark: mark.clone() },
            Place::Device { path } => {
                let number = host.device_number(path)?;
                let number = number.ok_or_else(|| Error::NotABlockDevice { path: path.clone() })?;
                MountSource::Device { number }
            }
            Place::Directory => return Ok(None),
        };
        Ok(Some(Resource::Mount { point: point.to_owned(), source }))
    }

    pub(super) fn not_possible(&self, operation: &'static str, why: &'static str) -> Error {
        let path = match &self.spec.backend {
            Backend::Image { .. } | Backend::Virtual { .. } => self.image().unwrap_or(&self.root),
            Backend::Device { path, .. } => path,
            Backend::Directory { .. } => &self.root,
        };
        Error::NotPossible { operation, path: path.to_owned(), why }
    }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("name", &self.name)
            .field("root", &self.root)
            .field("place", &self.place)
            .field("mounted", &self.mounted)
            .finish_non_exhaustive()
    }
}
