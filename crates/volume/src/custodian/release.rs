//! Giving back one resource, after making sure that it is still the one that was acquired.
//!
//! The same code serves a run's orderly end and the cleaning after a kill, so that the second is exercised by the
//! first.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_vdisk::{Footprint, Released, ServeConfig};

use super::{MountSource, Resource, disk_mark, journal::Held};
use crate::{
    Result,
    host::{DeviceNumber, FileId, Host, ProcessId},
};

/// What became of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was removed, or put back to what it was.
    Removed,
    /// The mount was in use for so long that it was only detached from the tree; the kernel ends it with its last
    /// user.
    DetachedLazily,
    /// Nothing was there.
    AlreadyGone,
    /// Something else is there now; it was not touched.
    NotOurs {
        /// What was found.
        why: String,
    },
    /// It could not be removed and is still there.
    Failed {
        /// The error.
        why: String,
    },
}

/// One resource that a killed run had left, and what was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanAction {
    /// The resource.
    pub resource: Resource,
    /// What became of it.
    pub outcome: Outcome,
}

impl CleanAction {
    /// Whether it is still there.
    pub fn is_failure(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

impl fmt::Display for CleanAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resource {
            Resource::File { path } => write!(f, "file {}", path.display()),
            Resource::Directory { path } => write!(f, "directory {}", path.display()),
            Resource::Tree { path } => write!(f, "directory tree {}", path.display()),
            Resource::Files { dir } => write!(f, "temporary files in {}", dir.display()),
            Resource::Loop { image, .. } => write!(f, "loop device of {}", image.display()),
            Resource::DiskLoop { path, .. } => write!(f, "loop device of {}", path.display()),
            Resource::VirtualDisk { footprint } => write!(f, "virtual disk at {}", footprint.mount_point.display()),
            Resource::ReadAhead { device, kib, .. } => write!(f, "read-ahead of {} ({kib} KiB)", device.display()),
            Resource::Mount { point, source: MountSource::Recording { .. } } => {
                write!(f, "recording at {}", point.display())
            }
            Resource::Mount { point, .. } => write!(f, "mount at {}", point.display()),
            Resource::Engine { point, .. } => write!(f, "engine at {}", point.display()),
        }?;
        match &self.outcome {
            Outcome::Removed => f.write_str(": removed"),
            Outcome::DetachedLazily => f.write_str(": was busy, detached; goes with its last user"),
            Outcome::AlreadyGone => f.write_str(": already gone"),
            Outcome::NotOurs { why } => write!(f, ": left alone, it is not ours: {why}"),
            Outcome::Failed { why } => write!(f, ": STILL THERE: {why}"),
        }
    }
}

/// Tries before a busy mount is detached lazily, and the pause between them: 5 s in all.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Removes `resource` if it is there and ours. `file` is its confirmed identity, `token` the mark in the names that
/// its run made.
pub(super) fn release(host: &dyn Host, resource: &Resource, file: Option<FileId>, token: &str) -> Outcome {
    let result = match resource {
        Resource::File { path } => release_file(host, path, file, token),
        Resource::Directory { path } => release_dir(host, path, file, token, |path| host.remove_dir(path)),
        Resource::Tree { path } => release_dir(host, path, file, token, |path| host.remove_tree(path)),
        Resource::Files { dir } => release_files(host, dir, token),
        Resource::Loop { file, .. } => {
            release_loops(host, || host.loops_backed_by(*file), |device| host.detach_loop(device))
        }
        Resource::VirtualDisk { footprint } => release_disk(host, footprint),
        Resource::DiskLoop { mark, .. } => {
            release_loops(host, || host.loops_marked(mark), |device| host.detach_disk(device))
        }
        Resource::ReadAhead { device, number, kib } => release_read_ahead(host, device, *number, *kib),
        Resource::Mount { point, source } => release_mount(host, point, source),
        Resource::Engine { point, name, server } => release_engine(host, point, name, server.as_ref()),
    };
    result.unwrap_or_else(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        Outcome::Failed { why: format!("{error}{source}") }
    })
}

fn release_path(
    host: &dyn Host,
    path: &Path,
    file: Option<FileId>,
    token: &str,
    remove: impl FnOnce(&Path) -> Result<()>,
) -> Result<Outcome> {
    let Some(found) = host.file_id(path)? else { return Ok(Outcome::AlreadyGone) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_ours = match file {
        Some(file) => found == file,
        // Killed between making it and writing down its number: the token in the name is nobody else's.
        None => !token.is_empty() && name.contains(token),
    };
    if !is_ours {
        let why = format!("{} is another file now (inode {})", path.display(), found.inode);
        return Ok(Outcome::NotOurs { why });
    }
    remove(path)?;
    Ok(Outcome::Removed)
}

fn release_files(host: &dyn Host, dir: &Path, token: &str) -> Result<Outcome> {
    let is_ours = |path: &PathBuf| {
        !token.is_empty() && path.file_name().is_some_and(|name| name.to_string_lossy().contains(token))
    };
    let ours: Vec<PathBuf> = host.list(dir)?.into_iter().filter(is_ours).collect();
    for path in &ours {
        host.remove_file(path)?;
    }
    Ok(if ours.is_empty() { Outcome::AlreadyGone } else { Outcome::Removed })
}

fn release_file(host: &dyn Host, path: &Path, file: Option<FileId>, token: &str) -> Result<Outcome> {
    if let Some(file) = file
        && let Some(device) = host.loops_backed_by(file)?.first()
    {
        // What is on it could no longer be looked at, nor found again by the file's name.
        return Ok(Outcome::Failed { why: format!("{} is still attached to it", device.display()) });
    }
    release_path(host, path, file, token, |path| host.remove_file(path))
}

fn release_dir(
    host: &dyn Host,
    path: &Path,
    file: Option<FileId>,
    token: &str,
    remove: impl FnOnce(&Path) -> Result<()>,
) -> Result<Outcome> {
    if let Some(mount) = host.mounts()?.iter().find(|mount| mount.point.starts_with(path)) {
        // What is seen there now is another file system: not to be judged, and not to be reached into.
        let why = format!("{} is mounted on {}", mount.source.display(), mount.point.display());
        return Ok(Outcome::Failed { why });
    }
    release_path(host, path, file, token, remove)
}

fn release_loops(
    host: &dyn Host,
    ours: impl Fn() -> Result<Vec<PathBuf>>,
    detach: impl Fn(&Path) -> Result<()>,
) -> Result<Outcome> {
    let devices = ours()?;
    if devices.is_empty() {
        return Ok(Outcome::AlreadyGone);
    }
    if let Some(mount) = host.mounts()?.iter().find(|mount| devices.contains(&mount.source)) {
        let why = format!("{} is still mounted on {}", mount.source.display(), mount.point.display());
        return Ok(Outcome::Failed { why });
    }
    for device in &devices {
        detach(device)?;
    }
    // The kernel detaches late if somebody still has the device open, such as a prober.
    for _ in 0..TRIES {
        if ours()?.is_empty() {
            return Ok(Outcome::Removed);
        }
        host.pause(PAUSE);
    }
    let names: Vec<String> = devices.iter().map(|device| device.display().to_string()).collect();
    Ok(Outcome::Failed { why: format!("{} is still in use", names.join(", ")) })
}

fn release_disk(host: &dyn Host, footprint: &Footprint) -> Result<Outcome> {
    // It would be cut off after a while, and a loop device on a dead disk cannot be told from a living one.
    let disk = footprint.mount_point.join(ServeConfig::FILE_NAME);
    if let Some(device) = host.loops_marked(&disk_mark(&footprint.name))?.first() {
        return Ok(Outcome::Failed { why: format!("{} is still attached to {}", device.display(), disk.display()) });
    }
    Ok(match host.release_disk(footprint)? {
        Released::AlreadyGone => Outcome::AlreadyGone,
        Released::Unmounted => Outcome::Removed,
        Released::Aborted => Outcome::DetachedLazily,
    })
}

/// Sees to it that nobody waits for a disk whose processes are not all there: everything on it fails from then on, and
/// can be taken down. To be called before `resource` is released; `held` is everything that is held.
pub(super) fn abort_if_unserved(host: &dyn Host, resource: &Resource, held: &[Held]) {
    let wanted = match resource {
        Resource::Mount { source: MountSource::Disk { mark }, .. } | Resource::DiskLoop { mark, .. } => Some(mark),
        // Which disk it is on is not known, and a disk that nobody serves is of no use to anybody.
        Resource::Engine { .. } => None,
        _ => return,
    };
    let is_wanted = |footprint: &Footprint| wanted.is_none_or(|mark| disk_mark(&footprint.name) == *mark);
    let disks = held.iter().filter_map(|held| match &held.resource {
        Resource::VirtualDisk { footprint } if is_wanted(footprint) => Some(footprint),
        _ => None,
    });
    for footprint in disks.filter(|footprint| !host.is_disk_served(footprint)) {
        // That it is gone already is as good; any other failure shows in what follows.
        let _ = host.abort_disk(footprint);
    }
}

fn release_read_ahead(host: &dyn Host, device: &Path, number: DeviceNumber, kib: u32) -> Result<Outcome> {
    if host.device_number(device)? != Some(number) {
        return Ok(Outcome::AlreadyGone);
    }
    host.set_read_ahead(device, kib)?;
    Ok(Outcome::Removed)
}

/// Looks at the process of an engine that was unmounted before it is killed: it may have much to write. A minute.
const ENGINE_TRIES: u32 = 600;

/// The mount, and then the end of who served it, which holds the device below.
fn release_engine(host: &dyn Host, point: &Path, name: &str, server: Option<&ProcessId>) -> Result<Outcome> {
    let mounted = release_mount(host, point, &MountSource::Engine { name: name.to_owned() })?;
    let Some(server) = server.filter(|server| host.is_alive(server)) else { return Ok(mounted) };
    if matches!(mounted, Outcome::NotOurs { .. } | Outcome::DetachedLazily) {
        // With its last user it ends by itself.
        return Ok(mounted);
    }
    for _ in 0..ENGINE_TRIES {
        host.pause(PAUSE);
        if !host.is_alive(server) {
            return Ok(Outcome::Removed);
        }
    }
    host.kill(server)?;
    for _ in 0..TRIES {
        if !host.is_alive(server) {
            return Ok(Outcome::Removed);
        }
        host.pause(PAUSE);
    }
    Ok(Outcome::Failed { why: format!("process {}, which served {}, does not end", server.pid, point.display()) })
}

fn release_mount(host: &dyn Host, point: &Path, source: &MountSource) -> Result<Outcome> {
    let mut seen = false;
    for attempt in 0..=TRIES {
        // The last mount on a point is the one that is seen there, and the one that would be unmounted.
        let mounts = host.mounts()?;
        let Some(mount) = mounts.iter().rev().find(|mount| mount.point == point) else {
            return Ok(if seen { Outcome::Removed } else { Outcome::AlreadyGone });
        };
        let is_ours = match source {
            MountSource::Image { file } => host.loop_backing(&mount.source)? == Some(*file),
            MountSource::Disk { mark } => host.loop_mark(&mount.source)?.as_ref() == Some(mark),
            MountSource::Device { number } => host.device_number(&mount.source)? == Some(*number),
            MountSource::Recording { name } | MountSource::Engine { name } => mount.source == Path::new(name),
        };
        if !is_ours {
            let why = format!("{} is mounted on {}", mount.source.display(), point.display());
            return Ok(Outcome::NotOurs { why });
        }
        seen = true;
        match host.unmount(point, attempt == TRIES) {
            Ok(()) if attempt == TRIES => return Ok(Outcome::DetachedLazily),
            Ok(()) => return Ok(Outcome::Removed),
            Err(error) if error.is_busy() && attempt < TRIES => host.pause(PAUSE),
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last attempt returns")
}
