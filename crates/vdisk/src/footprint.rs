//! The resources that a disk in virtual time holds on the machine, and the order of their release.
//!
//! An orderly end and a cleaning after a kill have the same order:
//!
//! 1. unmount the file system on the disk (its last writes go through the server);
//! 2. detach the loop device;
//! 3. unmount the disk itself: then its server exits, and then the guard;
//! 4. remove the backing file, if it has a name, and the mount point.
//!
//! The caller does the first two steps, since it acquired these resources. If the server is dead,
//! or must be abandoned, the connection is aborted first. Steps 1 and 2 then fail quickly with
//! errors instead of waiting. A mount that is still in use is detached, and disappears with its
//! last user.

use std::{path::PathBuf, thread, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    BackingSpec, Result, ServeConfig,
    config::mount_source,
    host::{self, Connection, Identity, ProcessRef},
};

/// The resources of one disk. Write it to a journal before the server starts
/// ([`Footprint::planned`]), and again when the processes are known
/// ([`Server::footprint`](crate::Server::footprint)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// The disk's name. It is part of the mount's source, by which the mount is recognised.
    pub name: String,
    /// The mount point: a directory that the caller made.
    pub mount_point: PathBuf,
    /// The backing file, if it has a name.
    pub backing_file: Option<PathBuf>,
    /// The server, if known.
    pub server: Option<ProcessRef>,
    /// The guard, if known.
    pub guard: Option<ProcessRef>,
}

/// One step of the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseStep {
    /// The file system on the disk; done by the caller.
    UnmountFileSystem,
    /// The loop devices of this file; done by the caller.
    DetachLoop {
        /// The disk.
        disk: PathBuf,
    },
    /// The FUSE mount with this source.
    UnmountDisk {
        /// Source in the list of mounts.
        source: String,
    },
    /// A process that exits when its mount disappears. If it does not, it is killed.
    EndProcess {
        /// The process.
        process: ProcessRef,
    },
    /// A file; done by the caller, who knows whether its contents are still needed.
    RemoveFile {
        /// The file.
        path: PathBuf,
    },
    /// An empty directory; done by the caller.
    RemoveDirectory {
        /// The directory.
        path: PathBuf,
    },
}

impl Footprint {
    /// The resources of a disk before it is started.
    pub fn planned(config: &ServeConfig) -> Self {
        let backing_file = match &config.backing {
            BackingSpec::File { path } => Some(path.clone()),
            BackingSpec::Unlinked { .. } => None,
        };
        Self {
            name: config.name.clone(),
            mount_point: config.mount_point.clone(),
            backing_file,
            server: None,
            guard: None,
        }
    }
}

/// All steps of the release, in order.
pub fn plan_release(footprint: &Footprint) -> Vec<ReleaseStep> {
    let mut steps = vec![
        ReleaseStep::UnmountFileSystem,
        ReleaseStep::DetachLoop { disk: footprint.mount_point.join(ServeConfig::FILE_NAME) },
        ReleaseStep::UnmountDisk { source: mount_source(&footprint.name) },
    ];
    let processes = [footprint.server, footprint.guard].into_iter().flatten();
    steps.extend(processes.map(|process| ReleaseStep::EndProcess { process }));
    steps.extend(footprint.backing_file.clone().map(|path| ReleaseStep::RemoveFile { path }));
    steps.push(ReleaseStep::RemoveDirectory { path: footprint.mount_point.clone() });
    steps
}

/// The result of releasing a disk's mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskMount {
    /// It was not mounted.
    AlreadyGone,
    /// It was unmounted.
    Unmounted,
    /// It was in use: its connection was aborted, its mount detached.
    Aborted,
}

/// The result of releasing a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Its mount.
    pub mount: DiskMount,
    /// Processes that did not exit by themselves and were killed.
    pub killed: Vec<u32>,
    /// The reasons for leaving live processes alone: nothing proves that they serve this disk.
    pub spared: Vec<String>,
}

/// The waiting time for a disk in use, and for a process to exit.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// Makes all later requests to the disk fail, so that no process waits for its server. `false` if
/// it is not mounted.
pub fn abort(footprint: &Footprint) -> Result<bool> {
    match host::find_fuse_mount(&mount_source(&footprint.name))? {
        Some(mount) => Connection::open(mount.connection)?.abort().map(|()| true),
        None => Ok(false),
    }
}

/// Releases the resources that this crate acquired: the mount, the server and the guard (steps
/// `UnmountDisk` and `EndProcess`). The file system and the loop device must be released before. A
/// disk that is still in use after 5 s is aborted.
///
/// A process is killed only if it runs this program for this disk ([`ProcessRef::identify`]): a
/// footprint can be forged.
///
/// The call is idempotent, also after a kill of any of the processes. Errors: not root.
pub fn release(footprint: &Footprint) -> Result<Released> {
    let source = mount_source(&footprint.name);
    let mut released = Released { mount: DiskMount::AlreadyGone, killed: Vec::new(), spared: Vec::new() };
    if host::find_fuse_mount(&source)?.is_some() {
        released.mount = match wait(|| host::unmount(&source, false))? {
            true => DiskMount::Unmounted,
            false => {
                abort(footprint)?;
                host::unmount(&source, true)?;
                DiskMount::Aborted
            }
        };
    }
    for process in [footprint.server, footprint.guard].into_iter().flatten() {
        if let Identity::Foreign(why) = process.identify(&source) {
            released.spared.push(why);
        } else if !wait(|| Ok(!process.is_alive()))? {
            match process.kill_if_ours(&source)? {
                Identity::Ours => released.killed.push(process.pid),
                Identity::Foreign(why) => released.spared.push(why),
                Identity::Gone => {}
            }
        }
    }
    Ok(released)
}

/// Repeats `done` until it returns true or [`PATIENCE`] is over.
fn wait(mut done: impl FnMut() -> Result<bool>) -> Result<bool> {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if done()? {
            return Ok(true);
        }
        thread::sleep(PAUSE);
    }
    done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_steps_are_ordered_from_user_to_server() {
        let file = PathBuf::from("/images/a.disk");
        let config = ServeConfig::new("a", "/m".into(), 4096, BackingSpec::File { path: file.clone() }, "plain");
        let mut footprint = Footprint::planned(&config);
        let server = ProcessRef { pid: 7, start_ticks: 1, boot: None };
        footprint.server = Some(server);
        assert_eq!(
            plan_release(&footprint),
            [
                ReleaseStep::UnmountFileSystem,
                ReleaseStep::DetachLoop { disk: "/m/disk".into() },
                ReleaseStep::UnmountDisk { source: "senesce-vdisk:a".to_owned() },
                ReleaseStep::EndProcess { process: server },
                ReleaseStep::RemoveFile { path: file },
                ReleaseStep::RemoveDirectory { path: "/m".into() },
            ]
        );
        let line = serde_json::to_string(&footprint).unwrap();
        assert_eq!(serde_json::from_str::<Footprint>(&line).unwrap(), footprint);
    }

    #[test]
    fn releasing_nothing_succeeds_at_once() {
        let config = ServeConfig::new(
            "never-there-4711",
            "/nowhere".into(),
            4096,
            BackingSpec::Unlinked { dir: "/nowhere".into() },
            "plain",
        );
        let footprint = Footprint::planned(&config);
        assert_eq!(release(&footprint).unwrap().mount, DiskMount::AlreadyGone);
        assert!(!abort(&footprint).unwrap());
    }

    #[test]
    fn a_foreign_process_is_not_killed() {
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let config = ServeConfig::new(
            "never-there-4712",
            "/nowhere".into(),
            4096,
            BackingSpec::Unlinked { dir: "/nowhere".into() },
            "plain",
        );
        let mut footprint = Footprint::planned(&config);
        footprint.server = Some(ProcessRef::of(other.id()).unwrap());
        // This process runs the right program, but not for this disk.
        footprint.guard = Some(ProcessRef::of(std::process::id()).unwrap());
        let released = release(&footprint);
        let is_running = other.try_wait().unwrap().is_none();
        other.kill().unwrap();
        other.wait().unwrap();
        let released = released.unwrap();
        assert!(is_running && released.killed.is_empty(), "{released:?}");
        assert!(released.spared[0].contains("runs another program"), "{released:?}");
        assert!(released.spared[1].contains("never-there-4712"), "{released:?}");
    }
}
