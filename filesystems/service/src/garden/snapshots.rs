//! Snapshots and clones.

use senesce_fsapi::{FileSystem, Timestamp};
use senesce_garden::SnapshotReport;

use super::Service;
use crate::{
    BLOCK_BYTES, Cloned, Deleted, Name, Response, Result, SnapshotMade, SnapshotStat, Snapshots, Task, error::While,
};

impl Service<'_> {
    pub(super) fn create_snapshot(&self, volume: &Name, name: &Name, unix_seconds: i64) -> Result<Response> {
        let now = Timestamp { seconds: unix_seconds, nanoseconds: 0 };
        let made = self.garden.create_snapshot(&volume.0, &name.0, now);
        made.map_err(|error| self.explain(volume, error))
            .when(|| format!("cannot make snapshot {name} of volume {volume} in {}", self.place))?;
        self.close()?;
        let all = self.garden.snapshots(&volume.0)?;
        let made = all.iter().find(|snapshot| snapshot.name == name.0).map(stat);
        Ok(Response::SnapshotMade(SnapshotMade { volume: volume.lossy(), made }))
    }

    pub(super) fn list_snapshots(&self, volume: &Name) -> Result<Response> {
        let snapshots = self.garden.snapshots(&volume.0).map_err(|error| self.explain(volume, error))?;
        Ok(Response::Snapshots(Snapshots {
            volume: volume.lossy(),
            held_bytes: self.garden.held_blocks(&volume.0)? * BLOCK_BYTES,
            snapshots: snapshots.iter().map(stat).collect(),
        }))
    }

    pub(super) fn delete_snapshot(&self, volume: &Name, name: &Name, task: &mut dyn Task) -> Result<Response> {
        self.check_unmounted(volume, Some(name), &format!("cannot delete snapshot {name} of volume {volume}"))?;
        let before = self.garden.report().free;
        let done = self.garden.delete_snapshot(&volume.0, &name.0);
        done.map_err(|error| self.explain(volume, error))
            .when(|| format!("cannot delete snapshot {name} in {}", self.place))?;
        self.reclaim(before, task)
    }

    pub(super) fn restore_snapshot(&self, volume: &Name, name: &Name, task: &mut dyn Task) -> Result<Response> {
        self.check_unmounted(volume, None, &format!("cannot restore volume {volume}"))?;
        // A pass may use this volume.
        let _pass = self.begin_alone(task)?;
        let before = self.garden.report().free;
        let done = self.garden.restore_snapshot(&volume.0, &name.0);
        done.map_err(|error| self.explain(volume, error))
            .when(|| format!("cannot restore snapshot {name} in {}", self.place))?;
        self.reclaim(before, task)
    }

    pub(super) fn clone_volume(&self, volume: &Name, snapshot: &Name, name: &Name) -> Result<Response> {
        let made = self.garden.clone_volume(&volume.0, &snapshot.0, &name.0);
        made.map_err(|error| self.explain(volume, error))
            .when(|| format!("cannot make volume {name} of snapshot {snapshot} in {}", self.place))?;
        self.close()?;
        let space = self.garden.volume(&name.0)?.space()?;
        Ok(Response::Cloned(Cloned { free_bytes: space.free * u64::from(space.block_bytes) }))
    }

    /// Frees unused space. After a cancellation, later consistency points free the rest.
    pub(super) fn reclaim(&self, free_before: u64, task: &mut dyn Task) -> Result<Response> {
        let cannot = || "cannot reclaim its space".to_owned();
        let mut left = self.garden.reclaim_step(1).when(cannot)?;
        let of = left + 1;
        while left > 0 && !task.is_cancelled() {
            left = self.garden.reclaim_step(1).when(cannot)?;
            task.progress("reclaiming", "blocks of maps", of - left.min(of), of);
        }
        self.close()?;
        Ok(Response::Deleted(Deleted {
            free_bytes_before: free_before * BLOCK_BYTES,
            free_bytes: self.garden.report().free * BLOCK_BYTES,
            map_blocks_left: left,
        }))
    }
}

fn stat(snapshot: &SnapshotReport) -> SnapshotStat {
    SnapshotStat {
        name: String::from_utf8_lossy(&snapshot.name).into_owned(),
        created_unix_seconds: snapshot.created.seconds,
        consistency_point: snapshot.cp,
        bytes: snapshot.blocks * BLOCK_BYTES,
        inodes: snapshot.inodes,
    }
}
