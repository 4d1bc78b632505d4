//! The requests `stat` and `figures`.

use schemars::JsonSchema;
use senesce_fsapi::FileSystem;
use senesce_garden::{AggregateReport, DriveReport, DriveState, LogCopyReport};
use serde::Serialize;
use serde_json::Value;

use super::{Activity, Service, report_chains};
use crate::{
    AggregateStat, BLOCK_BYTES, CloneOf, ColdStat, DriveStat, GroupStat, LogCopyStat, MountStat, Name, Result, Stat,
    VolumeStat,
};

/// The counters of a garden since its opening.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GardenFigures {
    #[serde(flatten)]
    activity: Activity,
    /// The number of the last consistency point.
    consistency_point: u64,
    /// Free bytes.
    free_bytes: u64,
    /// Blocks of volumes that were read.
    volume_blocks_read: u64,
    /// Blocks of volumes that consistency points wrote.
    volume_blocks_written: u64,
    /// Consistency points that were written in the background.
    points_beside_operations: u64,
    /// Damaged blocks that were restored from the other drives and written back.
    raid_repairs: u64,
    /// Blocks that were computed from the other drives, because their drive is missing.
    degraded_reads: u64,
    /// Requests to objects.
    objects: ObjectFigures,
    /// The mounts.
    mounts: Vec<MountStat>,
}

/// Requests to objects.
#[derive(Debug, Serialize, JsonSchema)]
struct ObjectFigures {
    /// Blocks that were written to objects.
    blocks_tiered: u64,
    /// Objects that were written.
    puts: u64,
    /// Ranges of objects that were read.
    gets: u64,
    /// Blocks in the ranges that were read.
    blocks_read: u64,
    /// Objects that were deleted.
    deletes: u64,
}

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
        let counts = &report.counts;
        let figures = GardenFigures {
            activity: Activity::of(&report),
            consistency_point: report.cp,
            free_bytes: report.free * BLOCK_BYTES,
            volume_blocks_read: counts.volume_reads,
            volume_blocks_written: counts.volume_writes,
            points_beside_operations: counts.points_beside,
            raid_repairs: report.raid.repairs,
            degraded_reads: report.raid.degraded_reads,
            objects: ObjectFigures {
                blocks_tiered: counts.tiered,
                puts: counts.object_puts,
                gets: counts.object_gets,
                blocks_read: counts.cold_reads,
                deletes: counts.object_deletes,
            },
            mounts: self.mounts.list(),
        };
        serde_json::to_value(figures).expect("plain structures with text keys")
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
