//! Releases one resource, after a proof that it is still the one that was acquired.
//!
//! An orderly exit and the cleanup after a kill use the same code, so each run also tests the
//! cleanup.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_vdisk::{DiskMount, Footprint, Identity, ServeConfig};

use super::{
    MountSource, Resource, disk_mark,
    proof::{
        Found, is_disk_ours, is_named, prove_files, prove_loops, prove_marked, prove_mounts, prove_path, refuse_name,
    },
    resource_journal::Held,
};
use crate::{
    Result,
    host::{DeviceNumber, FileId, Host, ProcessId},
};

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was removed, or a setting was restored.
    Removed,
    /// It was removed, and the processes that served it were killed.
    Killed {
        /// Their process ids.
        pids: Vec<u32>,
    },
    /// The mount stayed busy and was only detached from the tree. The kernel unmounts it after its
    /// last user.
    DetachedLazily,
    /// It did not exist.
    AlreadyGone,
    /// It exists and belongs to the owner. A dry run does not remove it.
    WouldRemove {
        /// The object that would be removed, in words. Empty if it is the resource itself.
        what: String,
    },
    /// Something else exists at its place, or nothing proves that it is the owner's. It was not
    /// touched.
    NotOurs {
        /// The reason, with the object that exists.
        why: String,
    },
    /// It could not be removed and still exists.
    Failed {
        /// The error.
        why: String,
    },
}

/// One resource that a killed run left, and the result of its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanAction {
    /// The resource.
    pub resource: Resource,
    /// The result.
    pub outcome: Outcome,
}

impl CleanAction {
    /// Whether it still exists.
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
            Outcome::Killed { pids } => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                write!(f, ": removed; process {} was killed", pids.join(", "))
            }
            Outcome::WouldRemove { what } if what.is_empty() => f.write_str(": would be removed"),
            Outcome::WouldRemove { what } => write!(f, ": {what} would be removed"),
            Outcome::DetachedLazily => f.write_str(": was busy, detached; the kernel unmounts it after its last user"),
            Outcome::AlreadyGone => f.write_str(": already gone"),
            Outcome::NotOurs { why } => write!(f, ": not removed, because nothing proves that this run made it: {why}"),
            Outcome::Failed { why } => write!(f, ": STILL THERE: {why}"),
        }
    }
}

/// Tries before a busy mount is detached lazily, and the pause between them: 5 s in total.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Removes `resource` if it exists and is proved to be the owner's. `file` is its confirmed
/// identity. `token` is the mark in the names that the owner made.
pub(super) fn release(host: &dyn Host, resource: &Resource, file: Option<FileId>, token: &str) -> Outcome {
    let result = match resource {
        Resource::File { path } => release_file(host, path, file, token),
        Resource::Directory { path } => release_dir(host, path, file, token, |path| host.remove_dir(path)),
        Resource::Tree { path } => release_dir(host, path, file, token, |path| host.remove_tree(path)),
        Resource::Files { dir } => prove_files(host, dir, token).and_then(|found| {
            act(found, |ours| ours.iter().try_for_each(|path| host.remove_file(path)).map(|()| Outcome::Removed))
        }),
        Resource::Loop { file, .. } => {
            release_loops(host, || prove_loops(host, *file, token), |device| host.detach_loop(device))
        }
        Resource::VirtualDisk { footprint } => release_disk(host, footprint, token),
        Resource::DiskLoop { mark, .. } => {
            release_loops(host, || prove_marked(host, mark, token), |device| host.detach_disk(device))
        }
        Resource::ReadAhead { device, number, kib } => release_read_ahead(host, device, *number, *kib),
        Resource::Mount { point, source } => release_mount(host, point, source, token),
        Resource::Engine { point, name, server } => release_engine(host, point, name, server.as_ref(), token),
    };
    result.unwrap_or_else(|error| Outcome::Failed { why: with_cause(&error) })
}

/// Reports the outcome that [`release`] would have. Changes nothing.
pub(super) fn preview(host: &dyn Host, resource: &Resource, file: Option<FileId>, token: &str) -> Outcome {
    let list = |paths: Vec<PathBuf>| {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Ok(Outcome::WouldRemove { what: names.join(", ") })
    };
    let result = match resource {
        Resource::File { path } | Resource::Directory { path } | Resource::Tree { path } => {
            preview_path(host, path, file, token)
        }
        Resource::Files { dir } => prove_files(host, dir, token).and_then(|found| act(found, list)),
        Resource::Loop { file, .. } => prove_loops(host, *file, token).and_then(|found| act(found, list)),
        Resource::DiskLoop { mark, .. } => prove_marked(host, mark, token).and_then(|found| act(found, list)),
        Resource::Mount { point, source } => {
            prove_mounts(host, point, source, token).and_then(|found| act(found, list))
        }
        Resource::Engine { point, name, .. } => {
            let source = MountSource::Engine { name: name.clone() };
            prove_mounts(host, point, &source, token).and_then(|found| act(found, list))
        }
        Resource::VirtualDisk { footprint } => Ok(match refuse_name(&footprint.name, token) {
            Some(why) => Outcome::NotOurs { why },
            None => Outcome::WouldRemove { what: "the rest of it".to_owned() },
        }),
        Resource::ReadAhead { device, number, .. } => host.device_number(device).map(|found| match found {
            Some(found) if found == *number => Outcome::WouldRemove { what: "the setting".to_owned() },
            _ => Outcome::AlreadyGone,
        }),
    };
    result.unwrap_or_else(|error| Outcome::Failed { why: with_cause(&error) })
}

fn preview_path(host: &dyn Host, path: &Path, file: Option<FileId>, token: &str) -> Result<Outcome> {
    let what = match is_named(path, token) && host.mounts()?.iter().any(|mount| mount.point == path) {
        // This path shows the mounted file system. The directory itself is proved when that is
        // gone.
        true => "the directory, once nothing is mounted on it,".to_owned(),
        false => {
            return act(prove_path(host, path, file, token)?, |()| Ok(Outcome::WouldRemove { what: String::new() }));
        }
    };
    Ok(Outcome::WouldRemove { what })
}

fn with_cause(error: &crate::Error) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

/// Acts on proved resources only.
fn act<T>(found: Found<T>, act: impl FnOnce(T) -> Result<Outcome>) -> Result<Outcome> {
    match found {
        Found::Nothing => Ok(Outcome::AlreadyGone),
        Found::Foreign(why) => Ok(Outcome::NotOurs { why }),
        Found::Ours(ours) => act(ours),
    }
}

fn release_file(host: &dyn Host, path: &Path, file: Option<FileId>, token: &str) -> Result<Outcome> {
    if let Some(file) = file
        && let Some(device) = host.loops_backed_by(file)?.first()
    {
        // Without its name, neither its content nor the file could be found again.
        return Ok(Outcome::Failed { why: format!("{} is still attached to it", device.display()) });
    }
    act(prove_path(host, path, file, token)?, |()| host.remove_file(path).map(|()| Outcome::Removed))
}

fn release_dir(
    host: &dyn Host,
    path: &Path,
    file: Option<FileId>,
    token: &str,
    remove: impl FnOnce(&Path) -> Result<()>,
) -> Result<Outcome> {
    if let Some(mount) = host.mounts()?.iter().find(|mount| mount.point.starts_with(path)) {
        // The path shows another file system, which must not be judged or entered.
        let why = format!("{} is mounted on {}", mount.source.display(), mount.point.display());
        return Ok(Outcome::Failed { why });
    }
    act(prove_path(host, path, file, token)?, |()| remove(path).map(|()| Outcome::Removed))
}

fn release_loops(
    host: &dyn Host,
    prove: impl Fn() -> Result<Found<Vec<PathBuf>>>,
    detach: impl Fn(&Path) -> Result<()>,
) -> Result<Outcome> {
    act(prove()?, |devices| {
        if let Some(mount) = host.mounts()?.iter().find(|mount| devices.contains(&mount.source)) {
            let why = format!("{} is still mounted on {}", mount.source.display(), mount.point.display());
            return Ok(Outcome::Failed { why });
        }
        devices.iter().try_for_each(|device| detach(device))?;
        // The kernel detaches later if a process still has the device open, such as udev.
        for _ in 0..TRIES {
            if prove()? == Found::Nothing {
                return Ok(Outcome::Removed);
            }
            host.pause(PAUSE);
        }
        let names: Vec<String> = devices.iter().map(|device| device.display().to_string()).collect();
        Ok(Outcome::Failed { why: format!("{} is still in use", names.join(", ")) })
    })
}

fn release_disk(host: &dyn Host, footprint: &Footprint, token: &str) -> Result<Outcome> {
    if let Some(why) = refuse_name(&footprint.name, token) {
        return Ok(Outcome::NotOurs { why });
    }
    // The kernel would cut the loop device off after a while. A loop device on a dead disk looks
    // like a live one.
    let disk = footprint.mount_point.join(ServeConfig::FILE_NAME);
    if let Some(device) = host.loops_marked(&disk_mark(&footprint.name))?.first() {
        return Ok(Outcome::Failed { why: format!("{} is still attached to {}", device.display(), disk.display()) });
    }
    let released = host.release_disk(footprint)?;
    Ok(match (released.mount, released.spared.first()) {
        (_, Some(why)) => Outcome::NotOurs { why: why.clone() },
        _ if !released.killed.is_empty() => Outcome::Killed { pids: released.killed },
        (DiskMount::AlreadyGone, _) => Outcome::AlreadyGone,
        (DiskMount::Unmounted, _) => Outcome::Removed,
        (DiskMount::Aborted, _) => Outcome::DetachedLazily,
    })
}

/// Aborts the disks that have lost a process, so that no request waits for them: all I/O on them
/// fails from then on, and they can be removed. Call it before `resource` is released. `held` is
/// everything that is held.
pub(super) fn abort_if_unserved(host: &dyn Host, resource: &Resource, held: &[Held], token: &str) {
    let wanted = match resource {
        Resource::Mount { source: MountSource::Disk { mark }, .. } | Resource::DiskLoop { mark, .. } => Some(mark),
        // The disk of an engine is not known. A disk without a server is of no use, so all are
        // checked.
        Resource::Engine { .. } => None,
        _ => return,
    };
    let is_wanted = |footprint: &Footprint| wanted.is_none_or(|mark| disk_mark(&footprint.name) == *mark);
    let disks = held.iter().filter_map(|held| match &held.resource {
        Resource::VirtualDisk { footprint } if is_wanted(footprint) => Some(footprint),
        _ => None,
    });
    let disks = disks.filter(|footprint| is_disk_ours(footprint, token));
    for footprint in disks.filter(|footprint| !host.is_disk_served(footprint)) {
        // An aborted connection may be gone already. Any other failure shows in the next steps.
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

/// Polls of an unmounted engine's process before it is killed, because it may still write: one
/// minute.
const ENGINE_TRIES: u32 = 600;

/// Unmounts the engine, and stops the process that served it, because it holds the device below.
fn release_engine(
    host: &dyn Host,
    point: &Path,
    name: &str,
    server: Option<&ProcessId>,
    token: &str,
) -> Result<Outcome> {
    let mounted = release_mount(host, point, &MountSource::Engine { name: name.to_owned() }, token)?;
    let Some(server) = server.filter(|server| host.is_alive(server)) else { return Ok(mounted) };
    // The server of an engine that is still mounted elsewhere exits after its last user.
    if matches!(mounted, Outcome::NotOurs { .. } | Outcome::DetachedLazily | Outcome::Failed { .. })
        || refuse_name(name, token).is_some()
    {
        return Ok(mounted);
    }
    if let Identity::Foreign(why) = host.identify(server, name) {
        return Ok(Outcome::NotOurs { why });
    }
    for _ in 0..ENGINE_TRIES {
        host.pause(PAUSE);
        if !host.is_alive(server) {
            return Ok(Outcome::Removed);
        }
    }
    if let Identity::Foreign(why) = host.kill(server, name)? {
        return Ok(Outcome::NotOurs { why });
    }
    for _ in 0..TRIES {
        if !host.is_alive(server) {
            return Ok(Outcome::Killed { pids: vec![server.pid] });
        }
        host.pause(PAUSE);
    }
    Ok(Outcome::Failed { why: format!("process {}, which served {}, does not exit", server.pid, point.display()) })
}

/// Unmounts every mount of `source`. A mount that stays busy is detached, and the kernel unmounts
/// it after its last user.
fn release_mount(host: &dyn Host, point: &Path, source: &MountSource, token: &str) -> Result<Outcome> {
    let mut is_seen = false;
    for attempt in 0..=TRIES {
        let points = match prove_mounts(host, point, source, token)? {
            Found::Nothing | Found::Foreign(_) if is_seen => return Ok(Outcome::Removed),
            Found::Nothing => return Ok(Outcome::AlreadyGone),
            Found::Foreign(why) => return Ok(Outcome::NotOurs { why }),
            Found::Ours(points) => points,
        };
        is_seen = true;
        // An unmount of a frozen file system leaves it in the kernel, and its device in use.
        // Servers of FUSE may not answer, and none of them can be frozen.
        if !matches!(source, MountSource::Engine { .. } | MountSource::Recording { .. }) {
            points.iter().for_each(|point| host.thaw(point));
        }
        // In reverse order, because a later mount may be inside an earlier one.
        let unmounted = points.iter().rev().try_for_each(|point| host.unmount(point, attempt == TRIES));
        match unmounted {
            Ok(()) if attempt == TRIES => return Ok(Outcome::DetachedLazily),
            Ok(()) => {}
            Err(error) if error.is_busy() && attempt < TRIES => host.pause(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::Removed)
}
