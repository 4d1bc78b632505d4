//! Requests to an open garden.

mod chains;
mod check;
mod drives;
mod dry_run;
mod files;
mod objects;
mod snapshots;
mod stat;
mod volumes;

use std::sync::Arc;

use senesce_garden::{Error as Engine, Garden};
use senesce_objects::ObjectStore;

pub use chains::{Activity, report_chains};
pub use check::{checked, words};
pub use stat::GardenFigures;
pub use volumes::packing;

use crate::{
    Devices, Error, MountStat, Mounts, Name, Passes, Request, Response, Result, Serves, Task, error::While,
    passes::Pass,
};

/// An open garden with the context of the process.
pub struct Service<'a> {
    /// The garden.
    pub garden: &'a Garden,
    /// Its name in messages.
    pub place: &'a str,
    /// The mounted volumes; none offline.
    pub mounts: &'a dyn Mounts,
    /// Work under way.
    pub passes: &'a Passes,
    /// Whether changes are refused.
    pub read_only: bool,
    /// The name of its object store.
    pub objects: Option<&'a str>,
    /// The object store, for checks.
    pub store: Option<&'a Arc<dyn ObjectStore>>,
    /// Its devices; `None` if they cannot be checked.
    pub devices: Option<&'a Devices>,
    /// Whether programs use it: then a consistency point ends each request, and the log stays open.
    pub live: bool,
}

impl Service<'_> {
    /// Answers a request.
    ///
    /// Errors: those of the engine; a wrong name; other work is under way; the volume to remove is
    /// mounted.
    pub fn answer(&self, request: &Request, task: &mut dyn Task) -> Result<Response> {
        if self.read_only && request.is_change() {
            let hint = "unmount it, or mount it without --read-only and --snapshot";
            return Err(Error::refused(format!("{} is open read-only", self.place), Some(hint)));
        }
        match request {
            Request::Stat => self.stat().map(|stat| Response::Stat(Box::new(stat))),
            Request::Serves => Ok(Response::Serves(Serves { files: Vec::new(), mounts: self.mounts.list() })),
            Request::Figures => Ok(Response::Figures(self.figures())),
            Request::Check { most_bytes } => self.check(*most_bytes, task),
            Request::SnapshotCreate { volume, name, unix_seconds } => self.create_snapshot(volume, name, *unix_seconds),
            Request::SnapshotList { volume } => self.list_snapshots(volume),
            Request::SnapshotDelete { volume, name } => self.delete_snapshot(volume, name, task),
            Request::SnapshotRestore { volume, name } => self.restore_snapshot(volume, name, task),
            Request::Clone { volume, snapshot, name } => self.clone_volume(volume, snapshot, name),
            Request::VolumeCreate { .. } => self.create_volume(request),
            Request::VolumeList => self.list_volumes(),
            Request::VolumeDelete { name } => self.delete_volume(name, task),
            Request::Scrub { from } => self.scrub(*from, task),
            Request::Clean { from } => self.clean(*from, task),
            Request::Defrag { .. } => self.defrag(request, task),
            Request::Dedup { volume } => self.dedup(volume, task),
            Request::Tier { objects, age, prices } => self.tier(objects, *age, *prices, task),
            Request::DryRun { of } => self.dry_run(of, task),
        }
    }

    /// Begins a pass through the whole aggregate. A pass sees only data of consistency points, so a
    /// mount makes one.
    fn begin_pass(&self, task: &mut dyn Task) -> Result<Pass<'_>> {
        Ok(self.begin_alone(task)?.through(self.garden))
    }

    /// The same without positions: while it exists, no other pass runs.
    fn begin_alone(&self, task: &mut dyn Task) -> Result<Pass<'_>> {
        let pass = self.passes.begin(task)?;
        if self.live && !self.read_only {
            self.close()?;
        }
        Ok(pass)
    }

    /// Makes everything durable in a consistency point.
    fn close(&self) -> Result<()> {
        let closed = if self.live { self.garden.commit_checkpoint() } else { self.garden.close() };
        closed.when(|| format!("cannot close {}", self.place))
    }

    /// Errors: the volume, or a snapshot of it, is mounted.
    fn check_unmounted(&self, volume: &Name, snapshot: Option<&Name>, why: &str) -> Result<()> {
        let uses = |mount: &&MountStat| {
            mount.volume == volume.lossy() && snapshot.is_none_or(|name| mount.snapshot == Some(name.lossy()))
        };
        let find = || self.mounts.list().into_iter().find(|mount| uses(&mount));
        if find().is_none() {
            return Ok(());
        }
        // The unmount may be recent.
        self.mounts.settle();
        match find() {
            None => Ok(()),
            Some(MountStat { point, .. }) => {
                Err(Error::refused(format!("{why}: it is mounted on {point}"), Some(&format!("unmount {point} first"))))
            }
        }
    }

    /// Converts an error about a name into a wrong request, with a list of the existing names.
    fn explain(&self, volume: &Name, error: Engine) -> Error {
        let Engine::Invalid { what } = error else { return error.into() };
        let list = |names: Vec<Vec<u8>>| {
            names.iter().map(|name| Name::from(&name[..]).to_string()).collect::<Vec<_>>().join(", ")
        };
        let hint = match self.garden.snapshots(&volume.0) {
            Err(_) => format!("its volumes: {}", list(self.garden.volumes())), // no such volume
            Ok(snapshots) if snapshots.is_empty() => format!("volume {volume} has no snapshots"),
            Ok(snapshots) => {
                let names = list(snapshots.into_iter().map(|snapshot| snapshot.name).collect());
                format!("volume {volume} has the snapshots: {names}")
            }
        };
        Error::usage(what, Some(&hint))
    }
}

impl Request {
    /// Whether the request changes the devices.
    pub fn changes(&self) -> bool {
        !matches!(
            self,
            Self::Stat
                | Self::Figures
                | Self::Serves
                | Self::Check { .. }
                | Self::SnapshotList { .. }
                | Self::VolumeList
                | Self::Defrag { dry_run: true, .. }
                | Self::DryRun { .. }
        )
    }

    /// Whether the request is a change, or the dry run of one.
    fn is_change(&self) -> bool {
        match self {
            Self::DryRun { of } => of.is_change(),
            request => request.changes(),
        }
    }
}
