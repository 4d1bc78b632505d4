//! Responses to requests. The JSON form of each is the document that the command prints, without
//! the name of its format.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Checked, EvergreenChecked, MountStat, garden::Activity};

/// A response to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", content = "of", rename_all = "snake_case")]
pub enum Response {
    /// Of `serves`.
    Serves(Serves),
    /// Of `stat` of a garden.
    Stat(Box<Stat>),
    /// Of `stat` of an evergreen.
    EvergreenStat(EvergreenStat),
    /// Of `figures`.
    Figures(Value),
    /// Of `snapshot_create`.
    SnapshotMade(SnapshotMade),
    /// Of `snapshot_list`.
    Snapshots(Snapshots),
    /// Of `snapshot_delete`, `snapshot_restore` and `volume_delete`.
    Deleted(Deleted),
    /// Of `clone`.
    Cloned(Cloned),
    /// Of `volume_create`.
    VolumeMade(VolumeMade),
    /// Of `volume_list`.
    Volumes(Volumes),
    /// Of `scrub`.
    Scrubbed(Scrubbed),
    /// Of `clean`.
    Cleaned(Cleaned),
    /// Of `defrag`.
    Defragmented(Defragmented),
    /// Of `defrag` of an evergreen.
    EvergreenDefragmented(EvergreenDefragmented),
    /// Of `dedup`.
    Deduped(Deduped),
    /// Of `tier`.
    Tiered(Tiered),
    /// Of `check` of a garden.
    Checked(Checked),
    /// Of `check` of an evergreen.
    EvergreenChecked(EvergreenChecked),
}

/// The mounts and files of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Serves {
    /// The files and devices that it has open, under the names of the server and its clients; none
    /// if it only reads them.
    pub files: Vec<String>,
    /// The mounts of its volumes.
    pub mounts: Vec<MountStat>,
}

/// An aggregate and its volumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stat {
    /// The space and the drives.
    pub aggregate: AggregateStat,
    /// Blocks in objects.
    pub cold: ColdStat,
    /// Its volumes.
    pub volumes: Vec<VolumeStat>,
    /// Requests to its drives.
    #[schemars(with = "Activity")]
    pub activity: Value,
    /// The current mounts of its volumes.
    pub mounts: Vec<MountStat>,
}

/// The space and the drives of an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AggregateStat {
    /// Bytes of the aggregate, without parity.
    pub bytes: u64,
    /// Free bytes of the aggregate.
    pub free_bytes: u64,
    /// Bytes that are reserved for maps and deletions.
    pub reserved_bytes: u64,
    /// The number of the last consistency point.
    pub consistency_point: u64,
    /// Drives that are missing.
    pub missing_drives: Vec<u32>,
    /// All places for drives.
    pub drives: Vec<DriveStat>,
    /// Copies of the log.
    pub log: Vec<LogCopyStat>,
    /// The reasons why copies of the log were lost at opening, or failed after it.
    pub log_problems: Vec<String>,
    /// Its RAID groups.
    pub groups: Vec<GroupStat>,
    /// Free blocks of each allocation area by RAID group; `None` before they are counted.
    pub area_free_blocks: Vec<Vec<Option<u64>>>,
    /// Devices that are not used, with the reason.
    pub not_used: Vec<String>,
    /// Unreadable superblocks, with the reason.
    pub unread_superblocks: Vec<String>,
}

/// A place for a copy of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogCopyStat {
    /// Its number.
    pub copy: u32,
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// `whole`, or `lost`: it lacks acknowledged operations.
    pub state: String,
}

/// A RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupStat {
    /// `hdd` or `ssd`.
    pub medium: String,
    /// Whether it has a parity drive.
    pub parity: bool,
}

/// A place for a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveStat {
    /// Its number.
    pub drive: u32,
    /// Its RAID group.
    pub group: usize,
    /// `hdd` or `ssd`.
    pub medium: String,
    /// Whether it holds parity.
    pub parity: bool,
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// `here`, `missing` or `filling`.
    pub state: String,
    /// The reason why the drive is missing, or the progress of filling it.
    pub why: Option<String>,
}

/// Blocks in objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ColdStat {
    /// Objects with blocks.
    pub objects: u64,
    /// Blocks in all objects.
    pub blocks: u64,
    /// Blocks in objects that are still used.
    pub wanted_blocks: u64,
    /// Unused objects.
    pub objects_to_delete: u64,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeStat {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The size of the volume, bytes.
    pub bytes: u64,
    /// Free bytes of the volume.
    pub free_bytes: u64,
    /// Its number of inodes.
    pub inodes: u64,
    /// The free inodes.
    pub free_inodes: u64,
    /// The number of its snapshots.
    pub snapshots: usize,
    /// Bytes that only snapshots use.
    pub held_bytes: u64,
    /// Blocks that several files use.
    pub shared_blocks: u64,
    /// Blocks that sharing saves.
    pub saved_blocks: u64,
    /// Its origin, if it is a clone.
    pub clone_of: Option<CloneOf>,
}

/// The origin of a clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloneOf {
    /// The volume.
    pub volume: String,
    /// The snapshot of that volume.
    pub snapshot: String,
}

/// An evergreen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvergreenStat {
    /// Bytes of keys and values.
    pub live_bytes: u64,
    /// The largest possible value of `live_bytes`.
    pub most_live_bytes: u64,
    /// Size of the space for nodes, bytes.
    pub data_bytes: u64,
    /// Bytes of a unit of space.
    pub unit_bytes: u32,
    /// The size of the log, bytes.
    pub log_bytes: u64,
    /// The largest size of a node, bytes.
    pub node_bytes: u32,
    /// The largest size of a basement, bytes.
    pub basement_bytes: u32,
    /// The largest number of children of a node.
    pub fanout: u32,
    /// The order of keys.
    pub key_order: String,
    /// The number of the newest superblock.
    pub superblock: u64,
    /// Copies of inner nodes and of their map.
    pub metadata_copies: u64,
    /// Reads that used the other copy.
    pub copies_read_instead: u64,
    /// The first damaged copy, in whose place the other one was read. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_bad_copy: Option<String>,
    /// Second copies that are missing for lack of space.
    pub copies_missing: u64,
    /// Failed reads that were not needed.
    pub reads_passed_over: u64,
    /// A superblock that was unreadable at opening.
    pub torn_superblock: Option<String>,
    /// Its current mounts.
    pub mounts: Vec<MountStat>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotStat {
    /// Its name.
    pub name: String,
    /// The time of its creation, seconds since 1970.
    pub created_unix_seconds: i64,
    /// The consistency point of its tree.
    pub consistency_point: u64,
    /// Bytes of its tree.
    pub bytes: u64,
    /// Its inodes.
    pub inodes: u64,
}

/// A new snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotMade {
    /// The volume.
    pub volume: String,
    /// The snapshot.
    pub made: Option<SnapshotStat>,
}

/// All snapshots of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// The volume.
    pub volume: String,
    /// Bytes that only snapshots use.
    pub held_bytes: u64,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotStat>,
}

/// The space after a deletion or a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// Free bytes before the change.
    pub free_bytes_before: u64,
    /// Free bytes now.
    pub free_bytes: u64,
    /// Blocks of maps that are left for later consistency points.
    pub map_blocks_left: u64,
}

/// A new clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cloned {
    /// The free space of the new volume.
    pub free_bytes: u64,
}

/// A new volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeMade {
    /// Its size.
    pub bytes: u64,
    /// Its number of inodes.
    pub inodes: u64,
}

/// All volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Volumes {
    /// The volumes, in the order of the table of volumes.
    pub volumes: Vec<VolumeStat>,
}

/// The result of a scrub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scrubbed {
    /// The stripe at which this scrub started.
    pub from: u64,
    /// The stripe at which this scrub stopped.
    pub stripes: u64,
    /// The number of all stripes.
    pub of: u64,
    /// Blocks that were repaired.
    pub repaired: Vec<String>,
    /// Parity that was repaired.
    pub parity_repaired: Vec<String>,
    /// Blocks that cannot be repaired.
    pub lost: Vec<String>,
}

/// The result of cleaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cleaned {
    /// Areas that were skipped.
    pub from: u64,
    /// Areas that are done, with the skipped ones.
    pub areas: u64,
    /// The number of all areas.
    pub of: u64,
    /// Emptied areas.
    pub cleaned: u64,
    /// Moved blocks of volumes.
    pub moved_blocks: u64,
    /// Moved blocks of the aggregate's own files.
    pub moved_metadata_blocks: u64,
    /// Blocks that could not move.
    pub stuck_blocks: u64,
    /// Areas that could not be emptied for lack of space.
    pub areas_without_space: u64,
    /// Pointers that were read.
    pub pointers: u64,
    /// Corrected pointers.
    pub fixed_pointers: u64,
}

/// The result of sweeping an evergreen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvergreenDefragmented {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Names that were read.
    pub names: u64,
    /// Objects whose keys were changed to those of their current place.
    pub moved_objects: u64,
    /// Bytes of the moved objects.
    pub moved_bytes: u64,
    /// Objects larger than a batch.
    pub too_large_objects: u64,
    /// Objects without space for a move.
    pub objects_without_space: u64,
    /// Unreadable objects, and unreadable names of directories.
    pub unreadable_objects: u64,
    /// The first unreadable object, with the reason. `None` if there was none.
    pub first_unreadable: Option<String>,
    /// Bytes of rewritten leaves; `None` if the sweep of keys did not finish.
    pub swept_leaf_bytes: Option<u64>,
    /// Unreadable leaves; an unreadable inner node counts as one.
    pub unreadable_leaves: Option<u64>,
}

/// The result of defragmenting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Defragmented {
    /// The volume.
    pub volume: String,
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Whether moved blocks received new numbers.
    pub traditional: bool,
    /// Files.
    pub files: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Moved blocks.
    pub moved_blocks: u64,
    /// Corrected pointers.
    pub fixed_pointers: u64,
    /// Unreadable blocks.
    pub unread_blocks: u64,
    /// The number of windows that could not move for lack of space.
    pub windows_without_space: u64,
    /// Blocks that snapshots additionally hold.
    pub newly_held_blocks: u64,
    /// Requests for reading all files.
    pub requests: Requests,
    /// Blocks for each read request.
    pub read_chain: ReadChains,
}

/// Requests for reading all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// Before.
    pub before: u64,
    /// As predicted.
    pub predicted: u64,
    /// After.
    pub after: Option<u64>,
}

/// The mean number of blocks for each read request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadChains {
    /// Before.
    pub before: Option<f64>,
    /// As predicted.
    pub predicted: Option<f64>,
    /// After.
    pub after: Option<f64>,
}

/// The result of deduplication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deduped {
    /// The volume.
    pub volume: String,
    /// Blocks and inodes that were read.
    pub looked_at: u64,
    /// Blocks that became shared.
    pub newly_shared_blocks: u64,
    /// Blocks with the same fingerprint and different bytes.
    pub same_fingerprint_other_bytes: u64,
    /// Unreadable blocks.
    pub unread: u64,
    /// Whether the pass reached the end.
    pub whole: bool,
    /// Blocks that several files use.
    pub shared_blocks: u64,
    /// Blocks that sharing saved before the run.
    pub saved_blocks_before: u64,
    /// Blocks that sharing saves now.
    pub saved_blocks: u64,
}

/// The result of tiering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tiered {
    /// Blocks that were examined.
    pub looked_at: u64,
    /// Blocks that moved to objects.
    pub tiered_blocks: u64,
    /// All new objects.
    pub objects_put: u64,
    /// The new objects of tiering alone.
    pub objects_tiered: u64,
    /// Unreadable blocks.
    pub unread: u64,
    /// Deleted objects that were in no consistency point.
    pub orphans_deleted: u64,
    /// Deleted unused objects.
    pub objects_deleted: u64,
    /// Rewritten objects.
    pub objects_written_anew: u64,
    /// Blocks in rewritten objects.
    pub blocks_written_anew: u64,
    /// The cost of rewriting objects, dollars.
    pub cost_dollars: f64,
    /// The savings of rewriting objects, dollars per month.
    pub saved_in_a_month_dollars: f64,
    /// Objects with blocks.
    pub objects: u64,
    /// Blocks in all objects.
    pub cold_blocks: u64,
    /// Blocks in objects that are still used.
    pub wanted_cold_blocks: u64,
    /// Free bytes of the aggregate.
    pub free_bytes: u64,
    /// Bytes of the aggregate.
    pub bytes: u64,
}
