//! The requests `stat` and `figures`.

use senesce_fsapi::FileSystem;
use senesce_garden::{AggregateReport, DriveReport, DriveState, LogCopyReport};
use serde_json::{Value, json};

use super::{Service, report_chains};
use crate::{
    AggregateStat, BLOCK_BYTES, CloneOf, ColdStat, DriveStat, GroupStat, LogCopyStat, Name, Result, Stat, VolumeStat,
};

impl Service<'_> {
    pub(super) fn stat(&self) -> Result<Stat> {
        let (cold, report) = (self.garden.cold(), self.garden.report());
        Ok(Stat {
            aggregate: aggregate(&report),
            cold: ColdStat {
                objects: cold.objects,
                blocks: cold.blocks,
                wanted_blocks: cold.live,
                objects_to_delete: cold.deletable,
            },
            volumes: self.volumes()?,
            activity: report_chains(&report),
            mounts: self.mounts.list(),
        })
    }

    /// All counters in one document; it needs no reads.
    pub(super) fn figures(&self) -> Value {
        let report = self.garden.report();
        let mut figures = report_chains(&report);
        let counts = &report.counts;
        figures["consistency_point"] = report.cp.into();
        figures["free_bytes"] = (report.free * BLOCK_BYTES).into();
        figures["volume_blocks_read"] = counts.volume_reads.into();
        figures["volume_blocks_written"] = counts.volume_writes.into();
        figures["points_beside_operations"] = counts.points_beside.into();
        figures["raid_repairs"] = report.raid.repairs.into();
        figures["degraded_reads"] = report.raid.degraded_reads.into();
        figures["objects"] = json!({
            "blocks_tiered": counts.tiered,
            "puts": counts.object_puts,
            "gets": counts.object_gets,
            "blocks_read": counts.cold_reads,
            "deletes": counts.object_deletes,
        });
        figures["mounts"] = json!(self.mounts.list());
        figures
    }

    pub(super) fn volumes(&self) -> Result<Vec<VolumeStat>> {
        let garden = self.garden;
        let one = |name: &Vec<u8>| -> Result<VolumeStat> {
            let (space, sharing) = (garden.volume(name)?.space()?, garden.sharing(name)?);
            let block = u64::from(space.block_bytes);
            let text = |name: Vec<u8>| Name(name).to_string();
            Ok(VolumeStat {
                name: String::from_utf8_lossy(name).into_owned(),
                bytes: space.blocks * block,
                free_bytes: space.free * block,
                inodes: space.inodes,
                free_inodes: space.free_inodes,
                snapshots: garden.snapshots(name)?.len(),
                held_bytes: garden.held_blocks(name)? * block,
                shared_blocks: sharing.shared,
                saved_blocks: sharing.saved,
                clone_of: garden
                    .origin(name)?
                    .map(|(volume, snapshot)| CloneOf { volume: text(volume), snapshot: text(snapshot) }),
            })
        };
        let mut volumes = Vec::new();
        for name in &garden.volumes() {
            match one(name) {
                Ok(volume) => volumes.push(volume),
                // The volume was deleted after the list was made.
                Err(_) if !garden.volumes().contains(name) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(volumes)
    }
}

fn aggregate(report: &AggregateReport) -> AggregateStat {
    let drive = |(number, drive): (u32, &DriveReport)| {
        let (state, why) = match &drive.state {
            DriveState::Here => ("here", None),
            DriveState::Missing { why } => ("missing", Some(why.clone())),
            DriveState::Filling { done, of } => ("filling", Some(format!("{done} of {of} stripes"))),
        };
        DriveStat {
            drive: number,
            group: drive.group,
            medium: report.groups[drive.group].medium.to_string(),
            parity: drive.parity,
            device: drive.device.clone(),
            state: state.to_owned(),
            why,
        }
    };
    let copy = |(copy, state): (u32, &LogCopyReport)| LogCopyStat {
        copy,
        device: state.device.clone(),
        state: if state.is_whole { "whole" } else { "lost" }.to_owned(),
    };
    AggregateStat {
        bytes: report.blocks * BLOCK_BYTES,
        free_bytes: report.free * BLOCK_BYTES,
        reserved_bytes: report.kept * BLOCK_BYTES,
        consistency_point: report.cp,
        missing_drives: report.missing_drives.clone(),
        drives: (0..).zip(&report.drives).map(drive).collect(),
        log: (0..).zip(&report.log.states).map(copy).collect(),
        log_problems: report.log.lost.clone(),
        groups: report
            .groups
            .iter()
            .map(|group| GroupStat { medium: group.medium.to_string(), parity: group.parity })
            .collect(),
        area_free_blocks: report.area_free.clone(),
        not_used: report.opening.left_out.iter().map(ToString::to_string).collect(),
        unread_superblocks: report.opening.unread_superblocks.clone(),
    }
}
