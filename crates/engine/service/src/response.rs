//! What requests return. The JSON form of each is the document that the command prints, without its format's name.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Checked, EvergreenChecked, MountStat};

/// What a request returned.
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

/// What a process serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serves {
    /// The files and devices that it holds, as the server and its clients name them; none if it only looks at them.
    pub files: Vec<String>,
    /// Where its volumes are mounted.
    pub mounts: Vec<MountStat>,
}

/// An aggregate and its volumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// Its space and drives.
    pub aggregate: AggregateStat,
    /// Blocks in objects.
    pub cold: ColdStat,
    /// Its volumes.
    pub volumes: Vec<VolumeStat>,
    /// What its drives were asked for.
    pub activity: Value,
    /// Where its volumes are mounted now.
    pub mounts: Vec<MountStat>,
}

/// The space and the drives of an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregateStat {
    /// Bytes without parity.
    pub bytes: u64,
    /// Of these, free.
    pub free_bytes: u64,
    /// Of these, kept for maps and for deleting.
    pub reserved_bytes: u64,
    /// The last consistency point.
    pub consistency_point: u64,
    /// Drives that are missing.
    pub missing_drives: Vec<u32>,
    /// All places for drives.
    pub drives: Vec<DriveStat>,
    /// Copies of the log.
    pub log: Vec<LogCopyStat>,
    /// Why copies of the log were lost when it was opened, or failed since.
    pub log_problems: Vec<String>,
    /// Its RAID groups.
    pub groups: Vec<GroupStat>,
    /// Free blocks of each allocation area by RAID group; none where they are not counted yet.
    pub area_free_blocks: Vec<Vec<Option<u64>>>,
    /// Devices that are not used, and why.
    pub not_used: Vec<String>,
    /// Superblocks that could not be read, and why.
    pub unread_superblocks: Vec<String>,
}

/// A place for a copy of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogCopyStat {
    /// Its number.
    pub copy: u32,
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// `whole`, or `lost`: it does not hold all that was acknowledged.
    pub state: String,
}

/// A RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupStat {
    /// `hdd` or `ssd`.
    pub medium: String,
    /// Whether a drive of it holds parity.
    pub parity: bool,
}

/// A place for a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Why it is missing, or how far it is filled.
    pub why: Option<String>,
}

/// Blocks in objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdStat {
    /// Objects.
    pub objects: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Of these, wanted.
    pub wanted_blocks: u64,
    /// Objects that nothing needs.
    pub objects_to_delete: u64,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeStat {
    /// Its name; what is not UTF-8 is replaced.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Of these, free.
    pub free_bytes: u64,
    /// Inodes that it may have.
    pub inodes: u64,
    /// Of these, free.
    pub free_inodes: u64,
    /// Its snapshots.
    pub snapshots: usize,
    /// What only they hold.
    pub held_bytes: u64,
    /// Blocks that files share.
    pub shared_blocks: u64,
    /// Blocks that this saves.
    pub saved_blocks: u64,
    /// What it is a clone of.
    pub clone_of: Option<CloneOf>,
}

/// What a volume is a clone of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneOf {
    /// The volume.
    pub volume: String,
    /// Its snapshot.
    pub snapshot: String,
}

/// An evergreen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvergreenStat {
    /// Bytes of keys and values.
    pub live_bytes: u64,
    /// The most that there may be.
    pub most_live_bytes: u64,
    /// Bytes for nodes.
    pub data_bytes: u64,
    /// Bytes of a unit of space.
    pub unit_bytes: u32,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// The largest node.
    pub node_bytes: u32,
    /// The largest basement.
    pub basement_bytes: u32,
    /// The most children of a node.
    pub fanout: u32,
    /// What keys are ordered by.
    pub key_order: String,
    /// The newest superblock.
    pub superblock: u64,
    /// Copies of inner nodes and their map.
    pub metadata_copies: u64,
    /// Reads that the other copy answered.
    pub copies_read_instead: u64,
    /// The first of these.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_bad_copy: Option<String>,
    /// Second copies for which there was no space.
    pub copies_missing: u64,
    /// Reads that failed and were not needed.
    pub reads_passed_over: u64,
    /// A superblock that could not be read when it was opened.
    pub torn_superblock: Option<String>,
    /// Where it is mounted now.
    pub mounts: Vec<MountStat>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotStat {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_unix_seconds: i64,
    /// The consistency point whose tree it is.
    pub consistency_point: u64,
    /// Bytes of its tree.
    pub bytes: u64,
    /// Its inodes.
    pub inodes: u64,
}

/// A snapshot was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotMade {
    /// Of this volume.
    pub volume: String,
    /// The snapshot.
    pub made: Option<SnapshotStat>,
}

/// All snapshots of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// The volume.
    pub volume: String,
    /// What only they hold.
    pub held_bytes: u64,
    /// The oldest first.
    pub snapshots: Vec<SnapshotStat>,
}

/// Something is deleted, or replaced by a snapshot, and space became free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Free before.
    pub free_bytes_before: u64,
    /// Free now.
    pub free_bytes: u64,
    /// Blocks of maps that later consistency points go through.
    pub map_blocks_left: u64,
}

/// A volume was made of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloned {
    /// What the new volume has left.
    pub free_bytes: u64,
}

/// A volume was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMade {
    /// Its size.
    pub bytes: u64,
    /// How many inodes it may have.
    pub inodes: u64,
}

/// All volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volumes {
    /// In the order of the table.
    pub volumes: Vec<VolumeStat>,
}

/// What a scrub found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// The first stripe.
    pub from: u64,
    /// Stripes until the end of this scrub.
    pub stripes: u64,
    /// All stripes.
    pub of: u64,
    /// Blocks that were repaired.
    pub repaired: Vec<String>,
    /// Parity that was repaired.
    pub parity_repaired: Vec<String>,
    /// Blocks that cannot be repaired.
    pub lost: Vec<String>,
}

/// What cleaning did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Areas that were done before.
    pub from: u64,
    /// Areas that are done.
    pub areas: u64,
    /// All areas.
    pub of: u64,
    /// Areas that were emptied.
    pub cleaned: u64,
    /// Blocks of volumes that moved.
    pub moved_blocks: u64,
    /// Blocks of the aggregate's own files that moved.
    pub moved_metadata_blocks: u64,
    /// Blocks that could not move.
    pub stuck_blocks: u64,
    /// Areas that could not be emptied for want of space.
    pub areas_without_space: u64,
    /// Pointers that were read.
    pub pointers: u64,
    /// Pointers that were corrected.
    pub fixed_pointers: u64,
}

/// What became of the keys and leaves of an evergreen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvergreenDefragmented {
    /// Whether nothing was moved.
    pub dry_run: bool,
    /// Names that were read.
    pub names: u64,
    /// Objects that have the keys of where they are now, and had others.
    pub moved_objects: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Objects that are larger than a batch.
    pub too_large_objects: u64,
    /// Objects for which there was no space.
    pub objects_without_space: u64,
    /// Objects, or the names of directories, that cannot be read.
    pub unreadable_objects: u64,
    /// The first of them, and why.
    pub first_unreadable: Option<String>,
    /// Bytes of leaves that were written again; none if the sweep of keys did not end.
    pub swept_leaf_bytes: Option<u64>,
    /// Leaves, or all that is below an inner node, that cannot be read.
    pub unreadable_leaves: Option<u64>,
}

/// What defragmenting did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Defragmented {
    /// The volume.
    pub volume: String,
    /// Whether nothing was moved.
    pub dry_run: bool,
    /// Whether blocks got new numbers.
    pub traditional: bool,
    /// Files.
    pub files: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Blocks that moved.
    pub moved_blocks: u64,
    /// Pointers that were corrected.
    pub fixed_pointers: u64,
    /// Blocks that could not be read.
    pub unread_blocks: u64,
    /// Times that there was no space.
    pub windows_without_space: u64,
    /// Blocks that snapshots hold since.
    pub newly_held_blocks: u64,
    /// Requests that reading all files takes.
    pub requests: Requests,
    /// Blocks that a request reads.
    pub read_chain: ReadChains,
}

/// Requests that reading all files takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Before.
    pub before: u64,
    /// As predicted.
    pub predicted: u64,
    /// After.
    pub after: Option<u64>,
}

/// Blocks that a request reads, in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadChains {
    /// Before.
    pub before: Option<f64>,
    /// As predicted.
    pub predicted: Option<f64>,
    /// After.
    pub after: Option<f64>,
}

/// What deduplication did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deduped {
    /// The volume.
    pub volume: String,
    /// Blocks and inodes that were read.
    pub looked_at: u64,
    /// Blocks that share another one since.
    pub newly_shared_blocks: u64,
    /// Blocks with the fingerprint of other bytes.
    pub same_fingerprint_other_bytes: u64,
    /// Blocks that could not be read.
    pub unread: u64,
    /// Whether the pass reached the end.
    pub whole: bool,
    /// Blocks that several files use.
    pub shared_blocks: u64,
    /// Blocks saved before.
    pub saved_blocks_before: u64,
    /// Blocks saved now.
    pub saved_blocks: u64,
}

/// What tiering did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tiered {
    /// Blocks that were examined.
    pub looked_at: u64,
    /// Blocks that are in objects since.
    pub tiered_blocks: u64,
    /// Objects that were put.
    pub objects_put: u64,
    /// Of these, by tiering alone.
    pub objects_tiered: u64,
    /// Blocks that could not be read.
    pub unread: u64,
    /// Objects that no consistency point names, deleted.
    pub orphans_deleted: u64,
    /// Objects that nothing needs, deleted.
    pub objects_deleted: u64,
    /// Objects that were rewritten.
    pub objects_written_anew: u64,
    /// Blocks of these.
    pub blocks_written_anew: u64,
    /// What that cost.
    pub cost_dollars: f64,
    /// What it saves.
    pub saved_in_a_month_dollars: f64,
    /// Objects.
    pub objects: u64,
    /// Blocks in them.
    pub cold_blocks: u64,
    /// Of these, wanted.
    pub wanted_cold_blocks: u64,
    /// Free bytes of the aggregate.
    pub free_bytes: u64,
    /// Bytes of the aggregate.
    pub bytes: u64,
}
