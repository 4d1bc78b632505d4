//! Snapshots of image volumes. An interrupted experiment continues from one with exactly the same
//! layout.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use senesce_core::{Bytes, Clock, Nanos};

use super::{build, lifecycle::Volume};
use crate::{
    Custodian, Error, FileSystemKind, Host, MountEntry, Resource, Result, SCAN_BYTES, Slot, SuperblockIdentity,
    VolumeSpec, read_superblock, resources::Lease,
};

/// The method and cost of writing or restoring a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The snapshot.
    pub path: PathBuf,
    /// `clone` (shared blocks, in constant time) or `sparse copy`.
    pub method: &'static str,
    /// Bytes that the source occupies.
    pub allocated: Bytes,
    /// Elapsed time, with the sync.
    pub elapsed: Nanos,
}

impl SnapshotReport {
    /// Occupied bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.allocated.0 as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// What a snapshot does with an existing file of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Replaces it.
    Replace,
    /// Leaves it, and gives the snapshot the first free name with a number: `aged.img.1`.
    Keep,
}

/// Renames a file. An existing file of the new name is not replaced.
///
/// Errors: such a file exists; the file system refuses the rename.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // NFS does not support this flag, and a FUSE server may refuse it with another error. A
        // hard link does not replace a file either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let unsupported = [Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL].map(Errno::raw_os_error);
            match fs::hard_link(from, to) {
                // The file has its new name.
                Ok(()) => {
                    let _ = fs::remove_file(from);
                    Ok(())
                }
                Err(error) if error.raw_os_error().is_some_and(|code| unsupported.contains(&code)) => {
                    File::create_new(to)?;
                    fs::rename(from, to)
                }
                Err(error) => Err(error),
            }
        }
        other => other.map_err(io::Error::from),
    }
}

/// Renames a file to `to`, or to the first free name with a number. Returns the name.
fn rename_free(from: &Path, to: &Path) -> io::Result<PathBuf> {
    let mut name = to.to_owned();
    for number in 1u64.. {
        match rename_new(from, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut numbered = to.as_os_str().to_owned();
                numbered.push(format!(".{number}"));
                name = numbered.into();
            }
            other => return other.map(|()| name),
        }
    }
    unreachable!("some number is free")
}

/// The space that a file occupies.
fn allocated(path: &Path) -> Result<Bytes> {
    let stat = rustix::fs::stat(path).map_err(Error::io("look up", path))?;
    Ok(Bytes(u64::try_from(stat.st_blocks).unwrap_or(0) * 512))
}

/// The mount point of a file system of this kind and UUID, if it is mounted. Cost: one read of each
/// mounted device of that kind.
///
/// Errors: the list of mounts cannot be read.
pub fn find_mounted_twin(host: &dyn Host, identity: SuperblockIdentity) -> Result<Option<PathBuf>> {
    let is_twin = |mount: &MountEntry| {
        // An unreadable source is no device, or none of ours.
        let start = host.read_device(&mount.source, 0, SCAN_BYTES);
        let found = start.ok().and_then(|start| read_superblock(&start));
        found.is_some_and(|found| (found.file_system, found.uuid) == (identity.file_system, identity.uuid))
    };
    let mounts = host.mounts()?;
    let twin = mounts.iter().find(|mount| mount.file_system == identity.file_system.name() && is_twin(mount));
    Ok(twin.map(|mount| mount.point.clone()))
}

impl Volume {
    /// Writes a snapshot of an unmounted image volume to `path`. The file gets its name in one
    /// step: a reader sees the old snapshot or the complete new one, also after a power cut.
    ///
    /// Errors: the volume is mounted, or is no image; too little space. Cost: about none where the
    /// host's file system clones, else a copy of the occupied bytes.
    pub fn snapshot_to(&self, path: &Path, existing: Existing, clock: &dyn Clock) -> Result<SnapshotReport> {
        let Some(image) = self.image() else {
            return Err(self.not_possible("take a snapshot of", "it is not on an image"));
        };
        if self.mounted {
            return Err(self.not_possible("take a snapshot of", "it is mounted; unmount it first"));
        }
        let begin = clock.now();
        let host = self.host();
        let name = path.file_name().ok_or_else(|| self.not_possible("name a snapshot of", "the path has no name"))?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let partial = dir.join(format!("{}.{}.partial", name.to_string_lossy(), self.custodian.token()));
        let mut lease = Lease::new(&self.custodian);
        let resource = Resource::File { path: partial.clone() };
        let (id, _) = self.custodian.acquire_file(resource, |host| host.create_file(&partial, Bytes(0)))?;
        lease.push(id);
        let method = host.copy_image(image, &partial)?;
        host.sync_file(&partial)?;
        let path = dir.join(name);
        let renamed = match existing {
            Existing::Replace => fs::rename(&partial, &path).map(|()| path.clone()),
            Existing::Keep => rename_free(&partial, &path),
        };
        let path = renamed.map_err(Error::std("make", &path))?;
        host.sync_file(&path)?;
        // A copy of this size would evict useful pages from the cache.
        host.drop_page_cache(&path)?;
        // The temporary name is gone, so this only closes the journal's entry.
        lease.release()?;
        Ok(SnapshotReport { path, method, allocated: allocated(image)?, elapsed: clock.now().since(begin) })
    }

    /// Makes a volume from a snapshot: a new image with its contents, attached and mounted. Ignores
    /// the UUID in `slot`: the file system keeps its UUID, so the source volume of the snapshot
    /// must be gone.
    ///
    /// Errors: as [`Volume::create`]; the snapshot is no image of `spec`'s file system; a Btrfs of
    /// this UUID is mounted.
    pub fn restore(
        custodian: &Custodian,
        spec: &VolumeSpec,
        slot: &Slot,
        snapshot: &Path,
        clock: &dyn Clock,
    ) -> Result<(Volume, SnapshotReport)> {
        let begin = clock.now();
        let host = &**custodian.host();
        build::check_name(slot)?;
        build::check_machine(host, spec)?;
        let Some(image) = spec.backend.image() else {
            let why = "the volume is not on an image";
            return Err(Error::NotPossible { operation: "restore", path: snapshot.to_owned(), why });
        };
        build::check_image_dir(host, image.dir, image.memory, slot.needed)?;
        let mut lease = Lease::new(custodian);
        let (path, file) = build::acquire_image(custodian, &mut lease, &image, &slot.name)?;
        let method = host.copy_image(snapshot, &path)?;
        host.sync_file(&path)?;
        host.drop_page_cache(&path)?;
        host.drop_page_cache(snapshot)?;
        let report = SnapshotReport {
            path: snapshot.to_owned(),
            method,
            allocated: allocated(snapshot)?,
            elapsed: clock.now().since(begin),
        };
        let (place, device) = build::attach(custodian, &mut lease, &image, slot, path, file)?;
        let found = read_superblock(&host.read_device(&device, 0, SCAN_BYTES)?);
        let Some(found) = found.filter(|found| found.file_system == spec.file_system) else {
            let seen = found.map_or("no file system".to_owned(), |found| found.file_system.to_string());
            let detail = format!("it holds {seen}, not {}", spec.file_system);
            return Err(Error::Unverified { operation: "restoring", path: snapshot.to_owned(), detail });
        };
        // Of one UUID, Btrfs prefers the newest generation it has seen. A snapshot may be older.
        host.forget_device(&device, spec.file_system)?;
        if found.file_system == FileSystemKind::Btrfs
            && let Some(mount_point) = find_mounted_twin(host, found)?
        {
            let (path, uuid) = (snapshot.to_owned(), found.uuid);
            return Err(Error::TwinMounted { path, file_system: found.file_system, uuid, mount_point });
        }
        let volume = build::finish(custodian, spec, slot, lease, place, None)?;
        Ok((volume, report))
    }
}
